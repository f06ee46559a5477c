package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

const explainHelp = `Compare selected anomalies with the other calls of their functions, and list the fields in
which they differ, the strongest first: host, rank, thread, GPU, message partner and size,
call path, counters and the state of the node; then the time. Without flags, the command
explains the worst finding.

BITS is the information that a field gives: 0 if its values are as frequent here as
elsewhere, 1 if all anomalies have them and no other call does. CHANCE is the probability of
such a difference in any field by chance. docs/dashboard.md has the details.

--only and --without narrow the selection by any field, and --group-by lists how many
anomalies have each value of a field and how much time they lost. A term is FIELD=VALUE:
function, host, call-path, gpu-device and gpu-stream with a name; link with two ranks as in
5:6; rank, thread, step and partner with a number or a range as in 4..7; bytes,
counter:NAME and node-state:NAME with a range as in 400.. or ..400; time with seconds as in
9.5..13. If several terms have the same field, one of them must match.` + runHelp

// explainFlags select the anomalies to explain.
type explainFlags struct {
	query.Selection
	finding     int
	least, most float64
	group       string
	groups      int
}

func (e *explainFlags) register(f *pflag.FlagSet) {
	f.IntVar(&e.finding, "finding", 0, "number of a finding, as chimbuko findings lists them; 0 for the worst if no other flag is given")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "issue" { // earlier name
			name = "finding"
		}
		return pflag.NormalizedName(name)
	})
	registerFilter(f, &e.Filter, "from", "to")
	f.Float64Var(&e.least, "min-us", 0, "minimum own (exclusive) time in microseconds")
	f.Float64Var(&e.most, "max-us", 0, "maximum own (exclusive) time in microseconds; 0 for any")
	registerTerms(f, "only", "required value, as FIELD=VALUE; may be repeated", &e.Only)
	registerTerms(f, "without", "excluded value, as FIELD=VALUE; may be repeated", &e.Without)
	f.Func("lasso", "polygon of SECONDS:MICROSECONDS,… (entry, own time), as drawn on the page", func(text string) (err error) {
		e.Lasso, err = contrast.ParseLasso(text)
		return err
	})
	f.StringVar(&e.group, "group-by", "", "field to group the anomalies by, instead of an explanation")
	f.IntVar(&e.groups, "groups", 20, "number of values with --group-by")
}

// registerTerms adds a flag whose values are terms.
func registerTerms(f *pflag.FlagSet, name, help string, terms *[]contrast.Term) {
	f.Func(name, help, func(text string) error {
		if len(*terms) == contrast.MaxTerms {
			return usage.Errorf("more than %d terms", contrast.MaxTerms)
		}
		t, err := contrast.ParseTerm(text)
		if err == nil {
			*terms = append(*terms, t)
		}
		return err
	})
}

func newExplainCmd(env *Env) *cobra.Command {
	var q queryFlags
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain RUN",
		Short: "Show how some anomalies differ from other calls",
		Long:  explainHelp,
		Example: `  chimbuko explain run                 # the worst finding
  chimbuko explain run --finding 3
  chimbuko explain run --rank 8-11 --from 9 --to 13
  chimbuko explain run --func 'MPI_*' --host nid00123 --format json
  chimbuko explain run --finding 3 --without rank=5 --only bytes=100000..
  chimbuko explain run --finding 3 --group-by host
  chimbuko explain run --host nid00123 --group-by function`,
		Args: usage.Args(cobra.ExactArgs(1)),
	}
	flags.register(cmd.Flags())
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		by, err := flags.check()
		if err != nil {
			return nil, err
		}
		s := &flags.Selection
		s.Filter.Program = q.chosenProgram()
		if flags.finding > 0 || flags.isEmpty() {
			if err := a.SelectFinding(ctx, s, flags.finding); err != nil {
				return nil, err
			}
		}
		if err := a.ForExplain(ctx, 1); err != nil {
			return nil, err
		}
		if flags.group != "" {
			g, err := a.Group(ctx, *s, by, flags.groups)
			if err != nil {
				return nil, err
			}
			return output.Groups(g), nil
		}
		e, err := a.Explain(ctx, *s)
		if err != nil {
			return nil, err
		}
		return output.Explanation(e), nil
	})
}

// check returns an error if the flags are invalid, and the field of --group-by.
func (e *explainFlags) check() (by contrast.FieldKey, err error) {
	if e.least < 0 || e.most < 0 || e.most > 0 && e.most < e.least || e.finding < 0 {
		return by, usage.Errorf("--finding, --min-us and --max-us cannot be negative, nor --max-us less than --min-us")
	}
	if e.least > 0 || e.most > 0 {
		e.Filter.Took = &executions.Times{First: e.least, Last: e.most}
	}
	if e.group == "" {
		return by, nil
	}
	if e.groups < 1 || e.groups > query.MaxGroups {
		return by, usage.Errorf("--groups %d is not between 1 and %d", e.groups, query.MaxGroups)
	}
	if by, err = contrast.ParseField(e.group); err != nil {
		return by, usage.Errorf("--group-by: %w", err)
	}
	return by, nil
}

// isEmpty reports whether no flag selects anomalies.
func (e *explainFlags) isEmpty() bool {
	f := &e.Filter
	return len(e.Only)+len(e.Without)+len(e.Lasso)+len(f.Kinds)+len(f.Ranks) == 0 && f.Function == "" && f.Host == "" &&
		f.Since == nil && f.Until == nil && f.Took == nil
}

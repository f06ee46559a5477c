package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// explainFlags choose the anomalies that are explained.
type explainFlags struct {
	issue                           int
	function, host, ranks, from, to string
	kinds                           []string
	least, most                     int64
	lasso, group                    string
	only, without                   []string
	groups                          int
}

func newExplainCmd(env *Env) *cobra.Command {
	var q questionFlags
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain RUN",
		Short: "what is different about some anomalies: where, when, how called, in which state",
		Long: `Hold some anomalies against the rest of the calls of their functions, and list in
which fields they differ, those that explain most first: host, rank, thread, GPU,
message partner and size, call path, counters and the state of the node; then when it
was. Without flags it is the worst issue.

BITS is how much the values of a field tell: 0, there are as many here as elsewhere; 1,
all here have them and none elsewhere. CHANCE is how likely such a difference is
without a reason, whichever field shows it. docs/dashboard.md tells more.

--only and --without narrow by any field, and --group-by tells how many anomalies have
which value and what they lost. A term is FIELD=VALUE: function, host, call-path,
gpu-device and gpu-stream with a name; link with two ranks as in 5:6; rank, thread, step
and partner with a number or a range as in 4..7; bytes, counter:NAME and node-state:NAME
with a range as in 400.. or ..400; time with seconds as in 9.5..13. Of several terms of a
field one must fit.` + whereHelp,
		Example: `  chimbuko explain run                 # the worst issue
  chimbuko explain run --issue 3
  chimbuko explain run --rank 8-11 --from 9 --to 13
  chimbuko explain run --func 'MPI_*' --host nid00123 --format json
  chimbuko explain run --issue 3 --without rank=5 --only bytes=100000..
  chimbuko explain run --issue 3 --group-by host
  chimbuko explain run --host nid00123 --group-by function`,
		Args: args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.IntVar(&flags.issue, "issue", 0, "number of the issue, as chimbuko issues lists them; 0 without other flags is the worst")
	f.StringVar(&flags.function, "func", "", "pattern of function names, with * and ?")
	f.StringSliceVar(&flags.kinds, "kind", nil, "kinds: slow, fast, comm-wait or gpu; several with commas")
	f.StringVar(&flags.host, "host", "", "pattern of host names")
	f.StringVar(&flags.ranks, "rank", "", "ranks, as in 0,4-7")
	f.StringVar(&flags.from, "from", "", "entered at or after this time since the begin of the run: 90s, 1.5m, or seconds")
	f.StringVar(&flags.to, "to", "", "entered at or before this time")
	f.Int64Var(&flags.least, "min-us", 0, "at least this exclusive time, in microseconds")
	f.Int64Var(&flags.most, "max-us", 0, "at most this exclusive time; 0 is any")
	f.StringArrayVar(&flags.only, "only", nil, "only what has this value, as FIELD=VALUE; may be given several times")
	f.StringArrayVar(&flags.without, "without", nil, "leave out what has this value, as FIELD=VALUE; may be given several times")
	f.StringVar(&flags.lasso, "lasso", "", "only what is inside a polygon of SECONDS:MICROSECONDS,… (entry, exclusive time), as drawn on "+
		"the page")
	f.StringVar(&flags.group, "group-by", "", "field by which the selection is broken down, instead of an explanation")
	f.IntVar(&flags.groups, "groups", 20, "with --group-by: values that are listed")
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, _ []string) error {
		selection, err := flags.selection(ctx, a, &q)
		if err != nil {
			return err
		}
		if err := a.ForExplain(ctx); err != nil {
			return err
		}
		if flags.group != "" {
			return flags.breakDown(ctx, env, a, &q, selection)
		}
		e, err := a.Explain(ctx, *selection)
		if err != nil {
			return err
		}
		if q.format != "table" {
			return q.answer(ctx, env, explainRows(e), nil)
		}
		return q.write(env, func(w io.Writer) error { return writeExplanation(w, e) })
	})
}

// selection is what the flags choose.
func (f *explainFlags) selection(ctx context.Context, a *query.Asker, q *questionFlags) (*query.Selection, error) {
	s := &query.Selection{Filter: query.Filter{Function: f.function, Kinds: f.kinds, Host: f.host, Program: q.only()}}
	var err error
	if s.Filter.Ranks, err = parseRanks(f.ranks); err != nil {
		return nil, err
	}
	if f.from != "" {
		t, err := parseTime(f.from, time.Second)
		if err != nil {
			return nil, usagef("--from: %w", err)
		}
		s.Filter.Since = &t
	}
	if f.to != "" {
		t, err := parseTime(f.to, time.Second)
		if err != nil {
			return nil, usagef("--to: %w", err)
		}
		s.Filter.Until = &t
	}
	if f.least < 0 || f.most < 0 || f.most > 0 && f.most < f.least || f.issue < 0 {
		return nil, usagef("issue, min-us and max-us cannot be negative, nor max-us less than min-us")
	}
	if f.least > 0 || f.most > 0 {
		s.Filter.Took = &query.Range{First: f.least, Last: f.most}
		if f.most == 0 {
			s.Filter.Took.Last = math.MaxInt64
		}
	}
	if s.Only, err = parseTerms("only", f.only); err != nil {
		return nil, err
	}
	if s.Without, err = parseTerms("without", f.without); err != nil {
		return nil, err
	}
	if f.lasso != "" {
		if s.Lasso, err = contrast.ParseLasso(f.lasso); err != nil {
			return nil, usagef("--lasso: %w", err)
		}
	}
	none := len(s.Only)+len(s.Without)+len(s.Lasso) == 0 && f.function == "" && len(f.kinds) == 0 && f.host == "" && f.ranks == "" &&
		s.Filter.Since == nil && s.Filter.Until == nil && s.Filter.Took == nil
	if f.issue > 0 || none {
		return s, f.ofIssue(ctx, a, s)
	}
	return s, nil
}

func parseTerms(flag string, texts []string) (terms []contrast.Term, err error) {
	if len(texts) > contrast.MaxTerms {
		return nil, usagef("--%s is given %d times, at most %d are possible", flag, len(texts), contrast.MaxTerms)
	}
	for _, text := range texts {
		t, err := contrast.ParseTerm(text)
		if err != nil {
			return nil, usagef("--%s: %w", flag, err)
		}
		terms = append(terms, t)
	}
	return terms, nil
}

// breakDown prints the selection by values of a field.
func (f *explainFlags) breakDown(ctx context.Context, env *Env, a *query.Asker, q *questionFlags, s *query.Selection) error {
	by, err := contrast.ParseField(f.group)
	if err != nil {
		return usagef("--group-by: %w", err)
	}
	if f.groups < 1 || f.groups > query.MaxGroups {
		return usagef("--groups is from 1 to %d", query.MaxGroups)
	}
	g, err := a.Group(ctx, *s, by, f.groups)
	if err != nil {
		return err
	}
	if q.format != "table" {
		return q.answer(ctx, env, groupRows(g), nil)
	}
	return q.write(env, func(w io.Writer) error { return writeGroups(w, g) })
}

// groupRows are groups for programs.
func groupRows(g *query.Groups) *provdb.Rows {
	columns := []provdb.Column{
		{Name: "field", Type: provdb.Text},
		{Name: "value", Type: provdb.Text},
		{Name: "term", Type: provdb.Text},
		{Name: "executions", Type: provdb.Int},
		{Name: "lost_us", Type: provdb.Int},
	}
	var all [][]any
	for i := range g.Rows {
		r := &g.Rows[i]
		all = append(all, []any{g.Field.String(), r.Label, r.Term.String(), r.Executions, int64(r.Lost)})
	}
	for i, r := range []query.Group{g.Rest, g.None} {
		if r.Executions > 0 {
			all = append(all, []any{g.Field.String(), []string{"(others)", "(none)"}[i], nil, r.Executions, int64(r.Lost)})
		}
	}
	return rowsOf(columns, all)
}

// writeGroups writes groups for people.
func writeGroups(w io.Writer, g *query.Groups) error {
	about := ""
	if g.Reckoned {
		about = "about "
	}
	values := counted(g.Values, "value")
	if g.Ranges {
		values = counted(len(g.Rows), "range")
	}
	fmt.Fprintf(w, "%s%s lost %s; %s of %s.\n", about, anomaliesText(int(g.Executions), ""), microsText(float64(g.Lost)), values,
		oneLine(g.Name))
	if g.Looked < g.Executions {
		fmt.Fprintf(w, "There are very many: what follows is of %s of them.\n", grouped(g.Looked))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nANOMALIES\tSHARE\tLOST\t  %s\n", strings.ToUpper(oneLine(g.Name)))
	row := func(r *query.Group, label string) {
		if r.Executions > 0 {
			fmt.Fprintf(t, "%s\t%.0f %%\t%s\t  %s\n", grouped(r.Executions), 100*float64(r.Executions)/float64(g.Looked),
				microsText(float64(r.Lost)), label)
		}
	}
	for i := range g.Rows {
		row(&g.Rows[i], oneLine(g.Rows[i].Label))
	}
	row(&g.Rest, fmt.Sprintf("%s more; --groups lists them", counted(g.Values-len(g.Rows), "value")))
	row(&g.None, "without one")
	return t.Flush()
}

// ofIssue chooses the anomalies of an issue, as it is stored or found out now.
func (f *explainFlags) ofIssue(ctx context.Context, a *query.Asker, s *query.Selection) error {
	issues, err := a.StoredIssues(ctx)
	if err != nil {
		return err
	}
	var links []provenance.Link
	stored := len(issues) > 0
	if !stored {
		found, err := a.Findings(ctx, true)
		if err != nil {
			return err
		}
		issues, links = found.Issues, found.Links
	}
	if len(issues) == 0 {
		return fmt.Errorf("nothing is wrong with run %s: there is no issue to explain", a.Run.Name)
	}
	i := slices.IndexFunc(issues, func(x provenance.Issue) bool {
		return x.Number == f.issue || f.issue == 0 && (s.Filter.Program == nil || x.PID == *s.Filter.Program)
	})
	if i < 0 {
		return usagef("there is no issue %d; chimbuko issues --all lists them", f.issue)
	}
	if s.Issue = &issues[i]; stored {
		return nil
	}
	members := make(map[trace.EventKey]bool)
	for i := range links {
		if l := &links[i]; l.Issue == s.Issue.Number {
			members[trace.EventKey{Program: l.PID, ID: l.EventID}] = true
		}
	}
	s.Member = func(program trace.Program, event string) bool {
		return members[trace.EventKey{Program: program, ID: event}]
	}
	return nil
}

// explainRows are fields for programs.
func explainRows(e *contrast.Explanation) *provdb.Rows {
	columns := []provdb.Column{
		{Name: "field", Type: provdb.Text},
		{Name: "name", Type: provdb.Text},
		{Name: "values", Type: provdb.Text},
		{Name: "executions", Type: provdb.Int},
		{Name: "of", Type: provdb.Int},
		{Name: "rest", Type: provdb.Text},
		{Name: "rest_share", Type: provdb.Float},
		{Name: "bits", Type: provdb.Float},
		{Name: "chance", Type: provdb.Float},
		{Name: "notable", Type: provdb.Bool},
		{Name: "sentence", Type: provdb.Text},
	}
	var all [][]any
	for i := range e.Fields {
		c := &e.Fields[i]
		all = append(all, []any{
			string(c.Kind), c.Name, c.Values, int64(c.With), int64(c.Of), c.Rest, c.BaselineShare, c.Bits, c.Chance,
			c.Notable, e.Sentence,
		})
	}
	return rowsOf(columns, all)
}

// writeExplanation writes it for people.
func writeExplanation(w io.Writer, e *contrast.Explanation) error {
	fmt.Fprintf(w, "%s.\n", oneLine(e.Sentence))
	if e.Looked > 0 {
		fmt.Fprintf(w, "%s lost %s; held against %s and %s of the same functions.\n", anomaliesText(int(e.Selected), ""),
			microsText(float64(e.Lost)),
			counted(e.Typical, "typical execution"), anomaliesText(e.Others, "other "))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\n\tFIELD\tVALUES\tHERE\tELSEWHERE\tBITS\tCHANCE")
	for i := range e.Fields {
		c := &e.Fields[i]
		mark := " "
		if c.Notable {
			mark = "*"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s of %s\t%s\t%.2f\t%s\n", mark, oneLine(c.Name), oneLine(c.Values), grouped(int64(c.With)),
			grouped(int64(c.Of)), c.Rest, c.Bits, c.ChanceText())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n* differs by more than chance would have it")
	return err
}

func anomaliesText(n int, which string) string {
	if n == 1 {
		return "1 " + which + "anomaly"
	}
	return grouped(int64(n)) + " " + which + "anomalies"
}

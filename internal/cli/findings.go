package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// findingFlags choose findings.
type findingFlags struct {
	kinds    []string
	function string
	all, old bool
	limit    int
}

func newFindingsCmd(env *Env) *cobra.Command {
	var q queryFlags
	var flags findingFlags
	cmd := &cobra.Command{
		Use:     "findings RUN",
		Aliases: []string{"issues"},
		Short:   "List the findings of a run, the costliest first",
		Long: `List the findings of a run by the time they cost, with the waits they caused. A finding
groups anomalies that belong together, or describes a lasting change of a function:

  outlier       executions took far longer than others like them
  recurring     a share of the calls is slow by a similar time, throughout the run
  change        a function is slower from some time on
  interference  delays hit whatever runs, in proportion to its time
  wait          calls waited for others, and the cause is unknown

Findings that cost less than 0.01 % of the time of all ranks are minor, and waits with a
known cause are part of the finding that caused them; --all lists both separately. Flags
that the review at the end of a run withdrew are findings, too: --withdrawn lists them.
docs/findings.md describes the rules.

Findings are stored when a run ends. For a run that has not ended they are computed now.` + runHelp,
		Example: `  chimbuko findings run
  chimbuko findings run --all --format csv
  chimbuko findings run --kind interference,recurring
  chimbuko event run 5:41:210       # the example of a finding`,
		Args: args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.kinds, "kind", nil, "kinds, separated by commas: outlier, recurring, change, excess-work, interference or wait")
	f.StringVar(&flags.function, "func", "", "pattern of function names, with * and ?")
	f.BoolVar(&flags.all, "all", false, "include minor findings, and waits with known causes")
	f.BoolVar(&flags.old, "withdrawn", false, "only withdrawn findings")
	f.IntVar(&flags.limit, "limit", 20, "number of findings")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		for _, k := range flags.kinds {
			if kinds := provenance.FindingKinds(); !slices.Contains(kinds, provenance.FindingKind(k)) {
				return nil, usagef("unknown kind %q (want %s)", k, strings.Trim(strings.ReplaceAll(fmt.Sprint(kinds), " ", ", "), "[]"))
			}
		}
		findings, err := a.Findings(ctx)
		if err != nil {
			return nil, err
		}
		chosen := flags.choose(findings, q.chosenProgram())
		shown := chosen[:min(flags.limit, len(chosen))]
		list := &output.FindingList{
			All: findings, Listed: shown, Omitted: len(chosen) - len(shown), Withdrawn: flags.old, Complete: flags.all,
		}
		return list.Answer(), nil
	})
}

// choose returns the findings that the flags choose.
func (f *findingFlags) choose(findings []provenance.Finding, program *trace.Program) (chosen []provenance.Finding) {
	pattern := outlier.Glob(cmp.Or(f.function, "*"))
	for _, x := range findings {
		withdrawn := x.Status == provenance.Withdrawn
		switch {
		case withdrawn != f.old, !withdrawn && !x.Listed() && !f.all && len(f.kinds) == 0,
			len(f.kinds) > 0 && !slices.Contains(f.kinds, string(x.Kind)),
			program != nil && x.PID != *program, !pattern.MatchString(x.Func):
			continue
		}
		chosen = append(chosen, x)
	}
	return chosen
}

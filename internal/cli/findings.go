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
	all      bool
	limit    int
}

func newFindingsCmd(env *Env) *cobra.Command {
	var q queryFlags
	var flags findingFlags
	cmd := &cobra.Command{
		Use:     "findings RUN",
		Aliases: []string{"issues"},
		Short:   "List the findings of a run, the worst first",
		Long: `List the findings of a run. All anomalies with the same program, function, call path, kind
and cause are one finding; so is a lasting change of a function. Waits for a late execution
are shown with that execution, their culprit; --all lists them as separate findings.
docs/culprits.md describes how culprits are found.

Findings are stored when a run ends. For a run that has not ended they are computed now.` + runHelp,
		Example: `  chimbuko findings run
  chimbuko findings run --all --format csv
  chimbuko findings run --kind burst,gpu
  chimbuko event run 5:41:210       # the example of a finding`,
		Args: args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.kinds, "kind", nil, "kinds, separated by commas: slow, fast, comm-wait, gpu, burst, shift or drift")
	f.StringVar(&flags.function, "func", "", "pattern of function names, with * and ?")
	f.BoolVar(&flags.all, "all", false, "include waits with known culprits")
	f.IntVar(&flags.limit, "limit", 20, "number of findings")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		for _, k := range flags.kinds {
			if kinds := provenance.FindingKinds(); !slices.Contains(kinds, provenance.AnomalyKind(k)) {
				return nil, usagef("unknown kind %q (want %s)", k, strings.Trim(strings.ReplaceAll(fmt.Sprint(kinds), " ", ", "), "[]"))
			}
		}
		findings, err := a.Findings(ctx)
		if err != nil {
			return nil, err
		}
		chosen := flags.choose(findings, q.chosenProgram())
		shown := chosen[:min(flags.limit, len(chosen))]
		list := &output.FindingList{All: findings, Listed: shown, Omitted: len(chosen) - len(shown), Begin: a.Begin}
		return list.Answer(), nil
	})
}

// choose returns the findings that the flags choose.
func (f *findingFlags) choose(findings []provenance.Finding, program *trace.Program) (chosen []provenance.Finding) {
	pattern := outlier.Glob(cmp.Or(f.function, "*"))
	for _, i := range findings {
		switch {
		case i.Cause > 0 && !f.all && len(f.kinds) == 0,
			len(f.kinds) > 0 && !slices.Contains(f.kinds, string(i.Kind)),
			program != nil && i.PID != *program, !pattern.MatchString(i.Func):
			continue
		}
		chosen = append(chosen, i)
	}
	return chosen
}

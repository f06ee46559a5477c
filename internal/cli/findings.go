package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// findingFlags select findings.
type findingFlags struct {
	kinds    []string
	function string
	all, old bool
	notes    bool
	limit    int
}

func newFindingsCmd(env *Env) *cobra.Command {
	var q queryFlags
	var flags findingFlags
	cmd := &cobra.Command{
		Use:     "findings RUN [NUMBER]",
		Aliases: []string{"issues"},
		Short:   "List the findings of a run, the costliest first, or show the evidence of one",
		Long: `List the findings of a run by the time they cost, including the waits they caused. A finding
groups anomalies that belong together, or describes a lasting change of a function:

  outlier       executions took far longer than others like them
  recurring     a share of the calls is slow by a similar time, throughout the run
  change        a function becomes slower or faster and stays so
  excess-work   executions made far more calls than others of the function, or a rank or
                GPU starts to make more calls than its peers
  interference  delays hit whatever runs, in proportion to its time
  slow-peer     a rank, host, thread or GPU takes longer than others for equal work
  wait          calls waited for others, and the cause is unknown

Notes describe normal behavior, such as a slow mode that all ranks have throughout the run.
They do not count as findings. --notes lists them; formats other than table include them,
with the severity info. Findings that cost less than 0.01 % of the time of all ranks are
minor, and waits with a known cause are part of the finding that caused them. --all lists
both separately. --withdrawn lists flags that the review at the end of a run withdrew.
docs/findings.md describes the rules.

With a number, the command shows the evidence for this finding: examples and a typical
execution, the distribution of the calls, how they differ from others, and under which
condition the finding would be wrong. For a slow peer, it also shows the ratio to its peers
over time, the functions that take longer, and a typical peer for comparison.

If the calls of a finding differ from others, for example in the size of their messages,
their caller or their host, the list says so (in JSON: differs).

Findings are stored when a run ends. For a run that has not ended, they are computed now.` + runHelp,
		Example: `  chimbuko findings run
  chimbuko findings run 3
  chimbuko findings run --all --format csv
  chimbuko findings run --kind interference,recurring
  chimbuko event run 5:41:210       # the example of a finding`,
		Args: usage.Args(cobra.RangeArgs(1, 2)),
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.kinds, "kind", nil,
		"kinds, separated by commas: outlier, recurring, change, excess-work, interference, slow-peer or wait")
	f.StringVar(&flags.function, "func", "", "pattern of function names, with * and ?")
	f.BoolVar(&flags.all, "all", false, "include notes, minor findings, and waits with known causes")
	f.BoolVar(&flags.notes, "notes", false, "include notes about normal behavior")
	f.BoolVar(&flags.old, "withdrawn", false, "only withdrawn findings")
	f.IntVar(&flags.limit, "limit", 20, "number of findings")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, args []string) (*output.Answer, error) {
		if len(args) == 1 {
			return evidence(ctx, a, args[0])
		}
		for _, k := range flags.kinds {
			if kinds := provenance.FindingKinds(); !slices.Contains(kinds, provenance.FindingKind(k)) {
				return nil, usage.Errorf("unknown kind %q (want %s)", k, strings.Trim(strings.ReplaceAll(fmt.Sprint(kinds), " ", ", "), "[]"))
			}
		}
		result, err := a.Findings(ctx)
		if err != nil {
			return nil, err
		}
		selected := flags.choose(result.Findings, q.chosenProgram())
		shown := selected[:min(flags.limit, len(selected))]
		list := &output.FindingList{
			Unit: a.Unit,
			All:  result.Findings, Listed: shown, Omitted: len(selected) - len(shown), Withdrawn: flags.old, Complete: flags.all,
			Notes: flags.notes || flags.all || len(flags.kinds) > 0,
		}
		if list.Differs, err = a.Differences(ctx, shown, result.Links); err != nil {
			return nil, err
		}
		return list.Answer(), nil
	})
}

// evidence returns the evidence of a finding.
func evidence(ctx context.Context, a *query.Queries, number string) (*output.Answer, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return nil, usage.Errorf("finding %q must be a number ≥ 1", number)
	}
	var s query.Selection
	if err := a.SelectFinding(ctx, &s, n); err != nil {
		return nil, err
	}
	e := &output.Evidence{Finding: s.Finding, Unit: a.Unit, Begin: a.Begin, Threads: make(map[trace.RankKey]map[trace.Thread]string)}
	if e.Slow, err = slowEvidence(ctx, a, s.Finding); err != nil {
		return nil, err
	}
	explain := len(s.Finding.Examples) > 0 && s.Finding.Status != provenance.Withdrawn
	if explain { // first, because it also finds the twin faster
		if err := a.ForExplain(ctx, 1); err != nil {
			return nil, err
		}
	}
	for i, id := range s.Finding.Examples {
		event, err := readExample(ctx, a, e, id, i == 0)
		if err != nil {
			return nil, err
		}
		e.Examples = append(e.Examples, event.Record)
		rank := trace.RankKey{Program: event.Record.PID, Rank: event.Record.RID}
		if e.Threads[rank] != nil {
			continue
		}
		if e.Threads[rank], err = a.ThreadNames(ctx, rank); err != nil {
			return nil, err
		}
	}
	if !explain {
		return e.Answer(), nil
	}
	if e.Differs, err = a.Explain(ctx, s); err != nil {
		return nil, err
	}
	return e.Answer(), nil
}

// readExample reads an example of the finding of e, and the twin of the first one.
func readExample(ctx context.Context, a *query.Queries, e *output.Evidence, id string, first bool) (*executions.Event, error) {
	if !first {
		return a.Event(ctx, id, &e.Finding.PID)
	}
	event, twin, _, _, err := a.EventWithTwin(ctx, id, &e.Finding.PID)
	if err == nil && twin != nil {
		e.Twin = twin.Record
	}
	return event, err
}

// slowEvidence returns the evidence of a slow peer, or nil for other findings.
func slowEvidence(ctx context.Context, a *query.Queries, x *provenance.Finding) (*api.SlowEvidence, error) {
	if !x.OfPeers() {
		return nil, nil //nolint:nilnil // not a slow peer
	}
	peers, err := a.Peers(ctx)
	if err != nil || peers == nil {
		return nil, err
	}
	slow := provenance.SlowPeerOf(x, peers.Slow)
	if slow == nil { // the comparison of a live run has changed in the meantime
		return nil, nil //nolint:nilnil // no longer a slow peer
	}
	links := noLinks
	links.Finding = func(*provenance.SlowPeer) (int, string) { return x.Number, "" }
	return ranks.Evidence(peers, slow, links), nil
}

// choose returns the findings that the flags select.
func (f *findingFlags) choose(findings []provenance.Finding, program *trace.Program) (matches []provenance.Finding) {
	pattern := outlier.Glob(cmp.Or(f.function, "*"))
	for _, x := range findings {
		withdrawn := x.Status == provenance.Withdrawn
		switch {
		case withdrawn != f.old, !withdrawn && !x.Listed() && !x.Noted() && !f.all && len(f.kinds) == 0,
			len(f.kinds) > 0 && !slices.Contains(f.kinds, string(x.Kind)),
			program != nil && x.PID != *program, !pattern.MatchString(x.Func):
			continue
		}
		matches = append(matches, x)
	}
	return matches
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newRanksCmd(env *Env) *cobra.Command {
	var q queryFlags
	var table ranks.Params
	var limit int
	cmd := &cobra.Command{
		Use:   "ranks RUN",
		Short: "Compare ranks, hosts, threads, GPUs or roles with their peers, the costliest first",
		Long: `Compare ranks with their peers. Peers are ranks of the same program with the same role, which
means that they do equal work. The first line is the efficiency of the program: the share of
the time of all ranks that is useful. It is load balance (mean useful time divided by the
greatest) times communication (greatest useful time divided by the elapsed time).

  role             group of ranks with the same work, numbered from 1
  useful, wait     time of work, and time of waiting for others, of the main thread
  lost to findings sum of the lost time of the anomalies
  ratio            time of the work divided by the time that peers take for equal work
  slow             when it was slower than its peers
  if like peers    by how much the run would be shorter if it were as fast as its peers;
                   the costliest come first

Rows of hosts and roles have the sums of their ranks, the ratio of all together, and the
pattern and cost of their costliest rank. – means that there is no data. With fewer than four
peers, the evidence is weak, so a rank is also compared with its own past. A rank that is slow
from the start has no such past; it counts as slow only if it is far slower than two or three
peers. docs/findings.md describes the rules.` + runHelp,
		Example: `  chimbuko ranks run
  chimbuko ranks run --by host
  chimbuko ranks run --rank 3       # and its functions
  chimbuko ranks run --by thread --limit 50
  chimbuko ranks run --format json
  chimbuko query run 'SELECT * FROM load_windows WHERE rid = 3'   # over time`,
		Args: usage.Args(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&table.By, "by", "rank", "rows: rank, host, thread, device (GPU) or role")
	cmd.Flags().Func("rank", "only these ranks, as in 0,4-7, with the functions that take most of their time", func(text string) error {
		ranges, err := query.ParseRanks(text)
		table.Ranks = append(table.Ranks, ranges...)
		return err
	})
	cmd.Flags().IntVar(&limit, "limit", 20, "number of rows")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		if !slices.Contains(ranks.By, table.By) {
			return nil, usage.Errorf("unknown by %q (want %s)", table.By, strings.Join(slices.Sorted(slices.Values(ranks.By)), ", "))
		}
		table.Program = q.chosenProgram()
		d, err := rankData(ctx, a, table.By == ranks.ByThread || table.By == ranks.ByDevice)
		if err != nil {
			return nil, err
		}
		list := &output.RankList{Unit: d.Peers.Unit, By: table.By, List: *ranks.Costliest(*d, table, limit)}
		list.Corrected = output.CorrectedClocks(a.Run.Decoded().Notes)
		if len(table.Ranks) > 0 {
			list.Functions = ranks.Functions(*d, table)
		}
		for _, e := range d.Peers.Efficiency {
			if e.Entire && (table.Program == nil || e.PID == *table.Program) {
				list.Efficiency = append(list.Efficiency, e)
			}
		}
		return list.Answer(), nil
	})
}

// rankData reads the comparison of the ranks of a run, or of their threads.
func rankData(ctx context.Context, a *query.Queries, ofThreads bool) (*ranks.Data, error) {
	peers, err := a.PeersWithoutWindows(ctx)
	if err != nil {
		return nil, err
	}
	if peers == nil || len(peers.Efficiency) == 0 {
		return nil, noLoads(&a.Run)
	}
	d := &ranks.Data{Peers: peers, Links: noLinks, Lost: make(map[ranks.LostKey]trace.Ticks), Known: make(map[trace.RankKey]string)}
	placed, err := a.Ranks(ctx, query.MaxRanks)
	if err != nil {
		return nil, err
	}
	for _, r := range placed {
		d.Known[r.RankKey] = r.Host
	}
	return d, a.LostTime(ctx, ofThreads, func(of trace.RankKey, tid int64, lost trace.Ticks) {
		d.Lost[ranks.LostKey{RankKey: of, TID: tid}] = lost
	})
}

// noLinks are the links of answers for a terminal.
var noLinks = ranks.Links{
	Finding:    func(*provenance.SlowPeer) (int, string) { return 0, "" },
	FunctionID: func(trace.FuncKey) string { return "" },
}

// noLoads explains why the ranks of a run cannot be compared.
func noLoads(run *provdb.Run) error {
	why := "it was imported from records without them, or has no calls (analyze its traces if there are any)"
	if run.State.Open() {
		why = "none was stored yet (try again in some seconds)"
	}
	return fmt.Errorf("run %s has no load of ranks to compare: %s", run.Name, why)
}

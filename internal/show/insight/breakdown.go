package insight

import (
	"context"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/gpus"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// BreakdownParams select ranks.
type BreakdownParams struct {
	Program *trace.Program // nil: all
	Host    string         // pattern; "": all
	Ranks   []trace.Range
}

// Bounds of a breakdown.
const (
	maxGPURanks    = 4096
	maxGPUSteps    = 4096
	maxCollectives = 1000
)

// Breakdown returns how the GPUs of a run spent their time, and its collective operations. It has one of both at least.
func (in *Insight) Breakdown(ctx context.Context, run string, of BreakdownParams) (*api.Breakdown, error) {
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.Breakdown, error) {
		if err := q.data.needBreakdown(q.data.gpus || q.data.collectives); err != nil {
			return nil, err
		}
		times, err := q.GPUTimes(ctx, false, nil)
		if err != nil {
			return nil, err
		}
		collectives, err := q.Collectives(ctx)
		if err != nil {
			return nil, err
		}
		hosts := q.data.hosts()
		selects := of.selects(hosts)
		selected := func(t *provenance.GPUTime) bool { return selects(trace.RankKey{Program: t.PID, Rank: t.RID}) }
		b := &api.Breakdown{
			Times:       *gpus.Times(q.Unit, times, false, maxGPURanks, q.data.info.Notes, selected),
			Collectives: *gpus.Collectives(collectives, of.Program, maxCollectives, q.data.info.Notes),
		}
		for i := range b.Times.Rows {
			row := &b.Times.Rows[i]
			q.data.place(row, hosts)
			row.Streams = nil
		}
		return b, nil
	})
}

// RankParams name a rank.
type RankParams struct{ trace.RankKey }

// RankSteps returns how the GPUs of a rank spent their time in each training step.
func (in *Insight) RankSteps(ctx context.Context, run string, of RankParams) (*api.RankSteps, error) {
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.RankSteps, error) {
		if err := q.data.needBreakdown(q.data.gpus); err != nil {
			return nil, err
		}
		total, err := q.GPUTimes(ctx, false, &of.RankKey)
		if err != nil {
			return nil, err
		}
		if len(total) == 0 {
			return nil, api.Problemf(api.NotFound, "see runs/{run}/breakdown", "rank %d of program %d has no times of GPUs", of.Rank, of.Program)
		}
		steps, err := q.GPUTimes(ctx, true, &of.RankKey)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(steps, func(a, b provenance.GPUTime) int { return int(min(max(a.Start-b.Start, -1), 1)) })
		facts, err := q.metadata(ctx, of.Program, of.Rank)
		if err != nil {
			return nil, err
		}
		hosts := q.data.hosts()
		list := gpus.Times(q.Unit, steps, true, maxGPUSteps, nil, func(*provenance.GPUTime) bool { return true })
		s := &api.RankSteps{Rank: gpus.Time(q.Unit, &total[0]), Steps: list.Rows, More: list.More}
		for i := range s.Rank.Streams {
			stream := &s.Rank.Streams[i]
			for _, f := range facts {
				if f.Name == query.ThreadName && f.Thread == stream.Thread {
					stream.Name = text.OneLine(f.Value)
				}
			}
		}
		q.data.place(&s.Rank, hosts)
		for i := range s.Steps {
			q.data.place(&s.Steps[i], hosts)
		}
		return s, nil
	})
}

// needBreakdown returns an error if the run does not have a breakdown.
func (d *runData) needBreakdown(has bool) error {
	if has {
		return nil
	}
	what := "no times of GPUs"
	if !d.collectives {
		what += " and no collective operations"
	}
	hint := "its traces do not have them, it is live (times of GPUs need chimbuko analyze), or it was imported from records without them"
	return api.Problemf(api.NotFound, hint, "run %s has %s", d.run.Name, what)
}

// hosts returns the known hosts of ranks.
func (d *runData) hosts() map[trace.RankKey]string {
	hosts := make(map[trace.RankKey]string, len(d.ranks))
	for _, r := range d.ranks {
		hosts[r.RankKey] = r.Host
	}
	return hosts
}

// place adds host and time since the start of the run to a row.
func (d *runData) place(row *api.GPUTime, hosts map[trace.RankKey]string) {
	row.Host = hosts[trace.RankKey{Program: trace.Program(row.Program), Rank: trace.Rank(row.Rank)}]
	if d.begin > 0 {
		row.From = new((row.Start - d.unit.Micros(d.begin)) / 1e6)
	}
}

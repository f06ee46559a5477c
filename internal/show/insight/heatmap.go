package insight

import (
	"context"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Heatmap returns the lost time of ranks over time.
func (in *Insight) Heatmap(ctx context.Context, run string, h heatmap.Params) (*api.Heatmap, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.Heatmap, error) { return in.heatmap(ctx, q, &h) })
}

func (in *Insight) heatmap(ctx context.Context, q *runQuery, h *heatmap.Params) (*api.Heatmap, error) {
	v, err := in.view(ctx, q)
	if err != nil {
		return nil, err
	}
	silent, never := v.silentRanks()
	ranks := slices.Clone(v.ranks())
	if v.hasEnded() {
		for _, key := range never {
			silent[key] = ""
			ranks = append(ranks, executions.RankHost{RankKey: key})
		}
		heatmap.SortRanks(ranks)
	}
	heat, t := heatmap.New(h, ranks, silent, q.Unit, q.data.extent)
	q.data.addEnds(heat)
	lines, err := q.Timeline(ctx, t)
	if err != nil {
		return nil, err
	}
	for i := range lines {
		heatmap.AddLine(heat, q.Unit, &lines[i])
	}
	return heat, nil
}

// addEnds sets the ends of the data of rows whose traces are damaged.
func (d *runData) addEnds(h *api.Heatmap) {
	if d.peers == nil || len(d.info.Broken) == 0 {
		return
	}
	ends := make(map[trace.RankKey]float64)
	var longest float64 // window
	for i := range d.peers.Loads {
		if l := &d.peers.Loads[i]; l.TID == provenance.AllThreads && len(l.Windows) > 0 {
			w := &l.Windows[len(l.Windows)-1]
			ends[trace.RankKey{Program: l.PID, Rank: l.RID}] = w.To
			longest = max(longest, w.To-w.From)
		}
	}
	length := d.unit.Seconds(d.extent)
	for i := range h.Rows {
		row := &h.Rows[i]
		var end float64
		for rank := row.FirstRank; rank <= row.LastRank; rank++ {
			end = max(end, ends[trace.RankKey{Program: trace.Program(row.Program), Rank: trace.Rank(rank)}])
		}
		if end > 0 && end < length-longest {
			row.Until = &end
		}
	}
}

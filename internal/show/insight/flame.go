package insight

import (
	"context"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/flame"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
)

// FlameParams select a tree of call paths.
type FlameParams struct {
	Metric  string // time or lost
	Program *trace.Program
}

// Check rejects invalid parameters.
func (p *FlameParams) Check() error {
	if p.Metric != "time" && p.Metric != heatmap.MetricLost {
		return api.Problemf(api.Invalid, api.ParamsHint, "parameter metric: unknown metric %.40q (want lost or time)", p.Metric)
	}
	return nil
}

// Flame returns the call paths of a run as a tree by time, or by lost time.
func (in *Insight) Flame(ctx context.Context, run string, of FlameParams) (*api.Flame, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.Flame, error) { return q.flame(ctx, of) })
}

func (q *runQuery) flame(ctx context.Context, of FlameParams) (*api.Flame, error) {
	r, err := q.CallPaths(ctx, of.Program, of.Metric == heatmap.MetricLost)
	if err != nil {
		return nil, err
	}
	partial := ""
	if len(r.Paths) == 0 && of.Metric != heatmap.MetricLost {
		partial = "Times of call paths are unknown: they are stored some ten seconds after the first calls."
	}
	root, left := flame.Tree(r, of.Metric == heatmap.MetricLost)
	return &api.Flame{Metric: of.Metric, Root: root, Partial: strings.TrimSpace(partial + " " + left)}, nil
}

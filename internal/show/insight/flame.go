package insight

import (
	"context"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/flame"
)

// FlameParams select a tree of call paths.
type FlameParams struct {
	Metric  string // time or lost
	Program *trace.Program
}

// Check rejects invalid parameters.
func (p *FlameParams) Check() error {
	if p.Metric != "time" && p.Metric != MetricLost {
		return Problemf(api.Invalid, ParamsHint, "parameter metric: unknown metric %.40q (want lost or time)", p.Metric)
	}
	return nil
}

// Flame returns the call paths of a run as a tree by time, or by lost time.
func (in *Insight) Flame(ctx context.Context, run string, of FlameParams) (*api.Flame, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	return ask(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.Flame, error) { return q.flame(ctx, of) })
}

func (q *runQuery) flame(ctx context.Context, of FlameParams) (*api.Flame, error) {
	paths, err := q.flamePaths(ctx, of)
	if err != nil {
		return nil, err
	}
	partial := ""
	if len(paths) == 0 && of.Metric != MetricLost {
		partial = "Times of call paths are unknown: they are stored some ten seconds after the first calls."
	}
	device := make(map[trace.FuncKey]bool)
	if err := q.OnDevice(ctx, func(p trace.Program, name string) { device[trace.FuncKey{Program: p, Name: name}] = true }); err != nil {
		return nil, err
	}
	root, left := flame.Tree(paths, device)
	return &api.Flame{Metric: of.Metric, Root: root, Partial: strings.TrimSpace(partial + " " + left)}, nil
}

// flamePaths returns the call paths of all anomalies that were not withdrawn, with their lost
// time, or those of all calls with their times.
func (q *runQuery) flamePaths(ctx context.Context, of FlameParams) (paths []flame.Path, err error) {
	if of.Metric == MetricLost {
		losses, err := q.AllPathLosses(ctx, of.Program)
		for _, l := range losses {
			paths = append(paths, flame.Path{Program: l.Program, Funcs: l.Path, Self: float64(l.Lost), Calls: l.N})
		}
		return paths, err
	}
	times, err := q.PathTimes(ctx, of.Program)
	for i := range times {
		t := &times[i]
		paths = append(paths, flame.Path{Program: t.Program, Funcs: t.Funcs, Self: float64(t.Exclusive), Calls: t.Calls})
	}
	return paths, err
}

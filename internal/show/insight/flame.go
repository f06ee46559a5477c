package insight

import (
	"context"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/flame"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// FlameParams choose a tree of call paths.
type FlameParams struct {
	Metric  string // time or lost
	Program *trace.Program
}

// Check rejects what cannot be drawn.
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
	return ask(ctx, in, run, func(ctx context.Context, q *asked) (*api.Flame, error) { return q.flame(ctx, of) })
}

func (q *asked) flame(ctx context.Context, of FlameParams) (*api.Flame, error) {
	find := q.timePaths
	if of.Metric == MetricLost {
		find = q.lostPaths
	}
	paths, partial, err := find(ctx, of.Program)
	if err != nil {
		return nil, err
	}
	device := make(map[trace.FuncKey]bool)
	if err := q.OnDevice(ctx, func(p trace.Program, name string) { device[trace.FuncKey{Program: p, Name: name}] = true }); err != nil {
		return nil, err
	}
	root, left := flame.Tree(paths, device)
	return &api.Flame{Metric: of.Metric, Root: root, Partial: strings.TrimSpace(partial + " " + left)}, nil
}

// lostPaths are the call paths of all anomalies that count, with what these lost
// themselves; nothing of that is missing.
func (q *asked) lostPaths(ctx context.Context, p *trace.Program) (paths []flame.Path, partial string, err error) {
	ways, err := q.LostWays(ctx, p)
	for _, w := range ways {
		paths = append(paths, flame.Path{Program: w.Program, Funcs: w.Path, Self: float64(w.Lost), Calls: w.N})
	}
	return paths, "", err
}

// timePaths are all calls with their call paths and times.
func (q *asked) timePaths(ctx context.Context, p *trace.Program) (paths []flame.Path, partial string, err error) {
	times, err := q.PathTimes(ctx, p)
	for i := range times {
		t := &times[i]
		paths = append(paths, flame.Path{Program: t.Program, Funcs: t.Funcs, Self: float64(t.Exclusive), Calls: t.Calls})
	}
	if len(paths) == 0 {
		partial = "The times of call paths are not known: they come some ten seconds after the first calls of a run, or an older chimbuko " +
			"analyzed this one."
	}
	return paths, partial, err
}

package query

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// CallPaths returns the call paths of a program, or of all programs, with the times of all calls,
// which are empty if none are stored yet, or with the anomalies that were not withdrawn. Its
// functions are those with a stored execution on a GPU.
func (a *Queries) CallPaths(ctx context.Context, p *trace.Program, lost bool) (*comparison.Run, error) {
	type device struct {
		Program trace.Program `sql:"pid"`
		Name    string        `sql:"name"`
	}
	r, add := new(comparison.Run), a.addPathTimes
	if lost {
		add = a.addPathLosses
	}
	if err := add(ctx, r, p); err != nil {
		return nil, err
	}
	return r, executions.ReadEach(ctx, a, text("function_device"), func(d *device) {
		r.Functions = append(r.Functions, comparison.Function{Program: d.Program, Name: d.Name, OnGPU: true})
	})
}

// addPathTimes adds the times of all calls by call path.
func (a *Queries) addPathTimes(ctx context.Context, r *comparison.Run, p *trace.Program) error {
	type row struct {
		executions.PathID
		Parent    int32  `sql:"parent"`
		Func      string `sql:"func"`
		Calls     int64  `sql:"calls"`
		Exclusive int64  `sql:"exclusive_us"`
	}
	places := make(map[executions.PathID]int)
	return executions.ReadEach(ctx, a, text("path_times"), func(row *row) {
		parent, ok := places[executions.PathID{Program: row.Program, Path: row.Parent}]
		if !ok {
			parent = -1
		}
		at := r.Child(parent, row.Program, row.Func)
		places[row.PathID] = at
		r.Paths[at].Calls += row.Calls
		r.Paths[at].Exclusive += a.Unit.MicrosOf(float64(row.Exclusive))
	}, executions.OptionalProgram(p))
}

// addPathLosses adds the anomalies by call path.
func (a *Queries) addPathLosses(ctx context.Context, r *comparison.Run, p *trace.Program) error {
	sql, err := a.rollupStatement(ctx, "path_lost")
	if err != nil {
		return err
	}
	names, err := a.FunctionNames(ctx)
	if err != nil {
		return err
	}
	paths, err := a.PathFunctions(ctx, p, names)
	if err != nil {
		return err
	}
	type row struct {
		executions.PathID
		Number    int32 `sql:"fn"`
		Anomalies int64 `sql:"anomalies"`
		Lost      int64 `sql:"lost_us"`
	}
	return executions.ReadEach(ctx, a, sql, func(row *row) {
		path := paths[row.PathID]
		if len(path) == 0 { // the path is unknown
			path = []string{names[executions.FunctionID{Program: row.Program, Number: row.Number}]}
		}
		at := r.Path(row.Program, path)
		r.Paths[at].Anomalies += row.Anomalies
		r.Paths[at].Lost += a.Unit.MicrosOf(float64(row.Lost))
	}, executions.OptionalProgram(p))
}

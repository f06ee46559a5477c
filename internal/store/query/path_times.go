package query

import (
	"context"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// PathTime is how much time all calls with one call path took.
type PathTime struct {
	Program   trace.Program
	Path      int32    // number, as in call_paths
	Parent    int      // place in the answer of the path without the last function; -1: none
	Funcs     []string // from the outermost; the last may be callpath.OtherName
	Calls     int64    // that ended; 0 where the path only leads to others
	Exclusive trace.Micros
	Inclusive trace.Micros // with that of all paths that continue it
}

// PathTimes returns all calls of a program, or of all, by call path. Each path comes
// after the one that it continues, and that is always there. It is empty for a run of
// which nothing is known yet, or that an older chimbuko analyzed.
func (a *Queries) PathTimes(ctx context.Context, p *trace.Program) ([]PathTime, error) {
	var all []PathTime
	type row struct {
		executions.PathID
		Parent    int32        `sql:"parent"`
		Func      string       `sql:"func"`
		Calls     int64        `sql:"calls"`
		Exclusive trace.Micros `sql:"exclusive_us"`
	}
	places := make(map[executions.PathID]int)
	err := executions.ReadEach(ctx, a, text("path_times"), func(r *row) {
		t := PathTime{Program: r.Program, Path: r.Path, Parent: -1, Calls: r.Calls, Exclusive: r.Exclusive, Inclusive: r.Exclusive}
		if parent, ok := places[executions.PathID{Program: r.Program, Path: r.Parent}]; ok {
			t.Parent = parent
			t.Funcs = append(t.Funcs, all[parent].Funcs...)
		}
		t.Funcs = append(t.Funcs, r.Func)
		places[r.PathID] = len(all)
		all = append(all, t)
	}, executions.OptionalProgram(p))
	for _, t := range slices.Backward(all) { // what continues a path comes after it
		if t.Parent >= 0 {
			all[t.Parent].Inclusive += t.Inclusive
		}
	}
	return all, err
}

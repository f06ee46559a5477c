package query

import (
	"context"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// PathTime is the time of all calls with one call path.
type PathTime struct {
	Program   trace.Program
	Path      int32    // number, as in call_paths
	Parent    int      // index of the path without the last function; -1 if there is none
	Funcs     []string // outermost first; the last may be callpath.OtherName
	Calls     int64    // that ended; 0 if the path is only a prefix of others
	Exclusive trace.Micros
	Inclusive trace.Micros // including that of all longer paths
}

// PathTimes returns the times of all calls of a program, or of all programs, by call path. Each
// path comes after its parent. The result is empty if no times are stored yet.
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
	for _, t := range slices.Backward(all) { // children come after their parents
		if t.Parent >= 0 {
			all[t.Parent].Inclusive += t.Inclusive
		}
	}
	return all, err
}

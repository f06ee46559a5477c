package query

import (
	"context"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
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
func (a *Asker) PathTimes(ctx context.Context, p *trace.Program) ([]PathTime, error) {
	var all []PathTime
	type key struct{ program, path int64 }
	places := make(map[key]int)
	err := a.each(ctx, text("path_times"), func(row []any) {
		t := PathTime{
			Program: whole[trace.Program](row[0]), Path: whole[int32](row[1]), Parent: -1,
			Calls: whole[int64](row[4]), Exclusive: whole[trace.Micros](row[5]),
		}
		if parent, ok := places[key{row[0].(int64), whole[int64](row[2])}]; ok {
			t.Parent = parent
			t.Funcs = append(t.Funcs, all[parent].Funcs...)
		}
		t.Funcs = append(t.Funcs, word[string](row[3]))
		t.Inclusive = t.Exclusive
		places[key{row[0].(int64), row[1].(int64)}] = len(all)
		all = append(all, t)
	}, program(p))
	for _, t := range slices.Backward(all) { // what continues a path comes after it
		if t.Parent >= 0 {
			all[t.Parent].Inclusive += t.Inclusive
		}
	}
	return all, err
}

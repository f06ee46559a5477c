package summary

import (
	"cmp"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// Path sums up the calls with one call path on all ranks of a program. A path without calls is the
// prefix of others; its own calls had not ended with the trace.
type Path struct {
	Program trace.Program
	Parent  int    // index of the path without the last function, less than its own; -1: none
	ID      int    // of the last function, as in Function; -1: none
	Name    string // of the last function; callpath.OtherName for all paths that were folded
	callpath.Sums
}

// AddPaths adds the call paths of a program, sorted by the names of functions. name
// returns the id and name of a function. Folded paths are tallied.
func (o *Outcome) AddPaths(program trace.Program, list []callpath.Entry, name func(fn uint32) (id int, name string)) {
	list = callpath.Sort(list, func(a, b uint32) int {
		_, x := name(a)
		_, y := name(b)
		return cmp.Compare(x, y)
	})
	first := len(o.Paths)
	for i := range list {
		e := &list[i]
		p := Path{Program: program, Parent: -1, ID: -1, Name: callpath.OtherName, Sums: e.Sums}
		if e.Parent >= 0 {
			p.Parent = first + int(e.Parent)
		}
		if e.Func != callpath.Other {
			p.ID, p.Name = name(e.Func)
		} else {
			o.Tally.Add(tally.PathFolded, int64(e.Calls))
		}
		o.Paths = append(o.Paths, p)
	}
}

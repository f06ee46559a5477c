package analyzer

import (
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// of returns the function of a call, with the path and the work of the call if they matter for comparisons.
func (r *rank) of(c *callstack.Call) *localFunc {
	work := callpath.ClassOf(c.Children)
	if n := int(c.Path()); n < len(r.nodes) {
		for f := r.nodes[n]; f != nil; f = f.next {
			if f.work == work {
				return f
			}
		}
	}
	f := r.slot(c.Func)
	if _, last := r.builder.Paths().Last(c.Path()); !r.byPath || last == callpath.Other {
		return f
	}
	f = r.newFunc(c.Func, f, c.Path())
	f.work = work
	r.place(f)
	return f
}

// place makes the calls of a path and work belong to a function.
func (r *rank) place(f *localFunc) {
	if n := int(f.node) + 1 - len(r.nodes); n > 0 {
		r.nodes = append(r.nodes, make([]*localFunc, n)...)
	}
	f.next, r.nodes[f.node] = r.nodes[f.node], f
}

// folded renumbers the paths. From now on, calls on folded paths belong to their function with all paths, even calls captured
// earlier.
func (r *rank) folded(moved []callpath.Node) {
	old := r.nodes
	r.nodes = nil
	for _, f := range old {
		for f != nil {
			next := f.next
			f.node, f.next = moved[f.node], nil
			if _, last := r.builder.Paths().Last(f.node); last == callpath.Other {
				f.node, f.path, f.model, f.common = callpath.Root, 0, f.allPaths.model, nil
			} else {
				r.place(f)
			}
			f = next
		}
	}
}

// pooled returns the number of paths that their functions do not keep.
func (r *rank) pooled() (n int64) {
	for _, f := range r.nodes {
		if f != nil && f.path != 0 && !f.allPaths.models.paths.Keeps(f.path) {
			n++
		}
	}
	return n
}

// funcName returns the name of a function on a path, if it is known.
func (r *rank) funcName(fn uint32) (string, bool) { return r.names.Func(r.key.Rank, trace.FuncID(fn)) }

// takePaths appends the calls that ended since the last time, by call path, to list. Calls of functions without a name, and
// calls in them, wait for the name; takePaths returns their number.
func (r *rank) takePaths(list []callpath.NamedEntry) (taken []callpath.NamedEntry, waiting uint64) {
	r.paths, waiting = r.builder.Paths().Take(r.paths[:0], func(fn uint32) bool {
		_, named := r.funcName(fn)
		return !named
	})
	for i := range r.paths {
		e := &r.paths[i]
		name := callpath.OtherName
		if e.Func != callpath.Other {
			name, _ = r.funcName(e.Func)
		}
		list = append(list, callpath.NamedEntry{Parent: e.Parent, Name: name, Sums: e.Sums})
	}
	return list, waiting
}

// sumPaths returns the call paths of all ranks by program. It returns none for traces that were being written, because each
// step has contributed its paths.
func (a *Analyzer) sumPaths() map[trace.Program]*callpath.Profile {
	profiles := make(map[trace.Program]*callpath.Profile)
	var list []callpath.NamedEntry
	for _, s := range a.sources {
		for _, r := range s.ranks {
			var waiting uint64
			list, waiting = r.takePaths(list[:0])
			s.tally.Add(tally.PathUnnamed, int64(waiting))
			if a.online != nil {
				continue
			}
			if profiles[r.key.Program] == nil {
				profiles[r.key.Program] = callpath.NewProfile(callpath.MaxPaths)
			}
			profiles[r.key.Program].Merge(r.builder.Paths().Depth(), list)
		}
	}
	return profiles
}

// addPaths adds the call paths of programs to the result of the run.
func (m *Models) addPaths(o *summary.Outcome, profiles map[trace.Program]*callpath.Profile) {
	for _, program := range slices.Sorted(maps.Keys(profiles)) {
		p := profiles[program]
		o.AddPaths(program, p.Append(nil), func(fn uint32) (id int, name string) {
			if f := m.byName[trace.FuncKey{Program: program, Name: p.Name(fn)}]; f != nil {
				return f.ID, f.Name
			}
			return -1, p.Name(fn)
		})
	}
}

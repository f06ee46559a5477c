package analyzer

import (
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// takePaths moves the calls that ended since the last time, by call path, to the end of
// list. Calls of functions without a name, and calls in them, wait for the name; it
// returns their number.
func (r *rank) takePaths(list []callpath.NamedEntry) (taken []callpath.NamedEntry, waiting uint64) {
	r.paths, waiting = r.builder.Paths().Take(r.paths[:0], func(fn uint32) bool {
		_, named := r.names.Func(r.key.Rank, trace.FuncID(fn))
		return !named
	})
	for i := range r.paths {
		e := &r.paths[i]
		name := callpath.OtherName
		if e.Func != callpath.Other {
			name, _ = r.names.Func(r.key.Rank, trace.FuncID(e.Func))
		}
		list = append(list, callpath.NamedEntry{Parent: e.Parent, Name: name, Sums: e.Sums})
	}
	return list, waiting
}

// sumPaths returns the call paths of all ranks by program. For traces that were being
// written it returns none, because each step has contributed its own.
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

package paramserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// pathsTo returns the calls of a program by call path; nil if there is nothing to
// tell. number returns the numbers of functions, all of which must have one.
func pathsTo(program trace.Program, p *callpath.Profile, number func(trace.FuncKey) uint32) *protocol.PathProfile {
	list := p.Append(nil)
	if len(list) == 0 && p.Depth() == callpath.MaxDepth {
		return nil
	}
	for i := range list {
		if e := &list[i]; e.Func != callpath.Other {
			e.Func = number(trace.FuncKey{Program: program, Name: p.Name(e.Func)})
		}
	}
	return &protocol.PathProfile{Program: uint32(program), Depth: uint32(p.Depth()), Paths: callpath.AppendBinary(nil, list)}
}

// pathDelta is a protocol.PathProfile.
type pathDelta struct {
	program trace.Program
	depth   int
	list    []callpath.Entry
}

// readPaths decodes a protocol.PathProfile.
func (x *request) readPaths(r *reader, b []byte) {
	p := grow(&x.paths)
	*p = pathDelta{list: p.list[:0]}
	for f, b := r.next(b); f.tag != 0; f, b = r.next(b) {
		switch f.tag {
		case 1<<3 | number:
			p.program = trace.Program(f.value)
		case 2<<3 | number:
			p.depth = int(min(f.value, callpath.MaxDepth))
		case 3<<3 | text:
			var err error
			if p.list, err = callpath.Decode(p.list[:0], f.content); err != nil {
				r.fail("call paths")
			}
		}
	}
}

// addPaths merges calls by call path.
func (s *State) addPaths(p *pathDelta) {
	t := s.paths[p.program]
	if t == nil {
		t = callpath.New(callpath.MaxPaths)
		s.paths[p.program] = t
	}
	t.Merge(p.depth, p.list)
}

// pathMessages are the call paths of all programs. Equal ones give equal messages.
func (s *State) pathMessages() (all []*protocol.PathProfile) {
	for _, program := range slices.Sorted(maps.Keys(s.paths)) {
		t := s.paths[program]
		list := callpath.Sort(t.Append(nil, nil), func(a, b uint32) int { return cmp.Compare(a, b) })
		all = append(all, &protocol.PathProfile{Program: uint32(program), Depth: uint32(t.Depth()), Paths: callpath.AppendBinary(nil, list)})
	}
	return all
}

// restorePaths puts back what pathMessages gave.
func (s *State) restorePaths(all []*protocol.PathProfile) error {
	for _, m := range all {
		list, err := callpath.Decode(nil, m.GetPaths())
		if err != nil {
			return err
		}
		for i := range list {
			if err := s.knows(list[i].Func); err != nil {
				return err
			}
		}
		s.addPaths(&pathDelta{trace.Program(m.GetProgram()), int(min(m.GetDepth(), callpath.MaxDepth)), list})
	}
	return nil
}

// knows says that a function of a call path has no name.
func (s *State) knows(fn uint32) error {
	if fn == callpath.Other || s.index == nil {
		return nil
	}
	if _, ok := s.index.Name(fn); !ok {
		return fmt.Errorf("function %d has calls, but no name in the index; restore the index", fn)
	}
	return nil
}

// sumPaths adds the call paths of all programs to what came of the run.
func (s *State) sumPaths(o *summary.Outcome) {
	names := s.index.all()
	for _, program := range slices.Sorted(maps.Keys(s.paths)) {
		o.AddPaths(program, s.paths[program].Append(nil, nil), func(fn uint32) (id int, name string) {
			return int(fn), names[fn].Name
		})
	}
}

// Paths returns all calls so far by call path, by program and names. Only the first
// shard has them.
func (s *State) Paths() []summary.Path {
	var o summary.Outcome
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index != nil {
		s.sumPaths(&o)
	}
	return o.Paths
}

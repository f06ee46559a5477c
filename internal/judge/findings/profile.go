package findings

import (
	"regexp"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Profile contains the calls and times of a run by call path, and its ranks.
type Profile struct {
	paths     map[pathKey]usage
	functions map[trace.FuncKey]usage
	programs  map[trace.Program]usage // sums of functions that do not wait
	ranks     map[trace.Program]int
	contexts  map[pathKey]callpath.Context // of paths including addresses
	modes     map[callpath.Context]*summary.Mode
}

type pathKey struct {
	program trace.Program
	path    string
}

// pathOf returns the key of the call path of an anomaly.
func (c *conclusion) pathOf(a *blame.Anomaly) pathKey {
	return pathKey{a.Program, c.names.stable(a.Path)}
}

// usage is a number of calls with their exclusive time.
type usage struct {
	function  string // the last of the path
	calls     int64
	exclusive trace.Ticks
	waits     bool
	sends     bool // communicates, but does not wait
	wakes     bool // sends, or calls a function that does, and so wakes other processes
}

func (u usage) plus(calls int64, exclusive trace.Ticks) usage {
	u.calls, u.exclusive = u.calls+calls, u.exclusive+exclusive
	return u
}

// NewProfile returns the profile of call paths, each listed after its parent, of ranks, and of slow modes.
func NewProfile(stats []provenance.PathStats, ranks []trace.RankKey, modes []summary.Mode) *Profile {
	p := &Profile{
		paths: make(map[pathKey]usage), functions: make(map[trace.FuncKey]usage), programs: make(map[trace.Program]usage),
		ranks: make(map[trace.Program]int), contexts: make(map[pathKey]callpath.Context), modes: make(map[callpath.Context]*summary.Mode),
	}
	type node struct {
		program trace.Program
		node    int
	}
	var waits blame.Run // for its cache
	paths, cache := make(map[node]string), make(names)
	for i := range stats {
		s := &stats[i]
		name, hash, parent := s.Func, callpath.Hash(0), ""
		if s.Parent != 0 {
			parent = paths[node{s.PID, s.Parent}]
			name, hash = parent+" > "+name, p.contexts[pathKey{s.PID, parent}].Path
		}
		paths[node{s.PID, s.Node}] = name
		k, f := pathKey{s.PID, cache.stable(name)}, trace.FuncKey{Program: s.PID, Name: s.Func}
		p.contexts[pathKey{s.PID, name}] = callpath.Context{FuncKey: f, Path: hash.Then(s.Func)}
		u := p.paths[k].plus(s.Calls, s.Exclusive)
		u.function, u.waits = s.Func, waits.WaitOf(s.Func) != blame.Nothing
		if u.sends = !u.waits && sends(s.Func); u.sends {
			u.wakes = true
			p.wake(pathKey{s.PID, cache.stable(parent)})
		}
		p.paths[k] = u
		p.functions[f] = p.functions[f].plus(s.Calls, s.Exclusive)
		if !u.waits {
			p.programs[s.PID] = p.programs[s.PID].plus(s.Calls, s.Exclusive)
		}
	}
	for i := range modes {
		m := &modes[i]
		p.modes[callpath.Context{FuncKey: trace.FuncKey{Program: m.Program, Name: m.Function}, Path: m.Path}] = m
	}
	seen := make(map[trace.RankKey]bool)
	for _, r := range ranks {
		if !seen[r] {
			seen[r] = true
			p.ranks[r.Program]++
		}
	}
	return p
}

// sends reports whether a function communicates: an MPI function that does not read or write files.
func sends(name string) bool {
	return !provenance.Useful(name) && !strings.Contains(strings.ToLower(name), "mpi_file_")
}

// wake marks a path as calling a function that sends.
func (p *Profile) wake(k pathKey) {
	if u, ok := p.paths[k]; ok {
		u.wakes = true
		p.paths[k] = u
	}
}

// names caches names and call paths with addresses replaced.
type names map[string]string

// address matches an address in the name of a thread or function, which differs from process to process.
var address = regexp.MustCompile("0x[0-9a-f]+")

// stable returns a name with addresses replaced, so that it is the same in all processes.
func (n names) stable(name string) string {
	if !strings.Contains(name, "0x") {
		return name
	}
	s, ok := n[name]
	if !ok {
		s = address.ReplaceAllString(name, "0x…")
		n[name] = s
	}
	return s
}

// mode returns the slow mode of which an anomaly is an example, or nil.
func (p *Profile) mode(a *blame.Anomaly) *summary.Mode {
	if a.Kind != provenance.Recurring {
		return nil
	}
	path := p.contexts[pathKey{a.Program, a.Path}].Path
	for _, path := range []callpath.Hash{path.With(callpath.ClassOf(uint32(a.Children))), path.With(callpath.AnyClass), 0} {
		if m := p.modes[callpath.Context{FuncKey: trace.FuncKey{Program: a.Program, Name: a.Func}, Path: path}]; m != nil {
			return m
		}
	}
	return nil
}

// calls returns the number of calls of a call path, or of its function if the path is unknown.
func (p *Profile) calls(program trace.Program, path, function string) int64 {
	if u, ok := p.paths[pathKey{program, path}]; ok {
		return u.calls
	}
	return p.functions[trace.FuncKey{Program: program, Name: function}].calls
}

// computing returns the sums over the functions of a program that do not wait.
func (p *Profile) computing(program trace.Program) usage { return p.programs[program] }

// Ranks returns the number of ranks of each program.
func (p *Profile) Ranks() map[trace.Program]int { return p.ranks }

// allRanks returns the number of ranks of all programs.
func (p *Profile) allRanks() (n int) {
	for _, ranks := range p.ranks {
		n += ranks
	}
	return max(1, n)
}

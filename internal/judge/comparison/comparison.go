// Package comparison holds two runs against each other: what became new, gone, worse
// or better, how far the times of functions moved, what else about the runs differs,
// and all of it in a sentence; and many runs, to tell since which of them something is
// different. What is compared of a run is a Run, which has sums and models but no records,
// so it is small and can be kept when the run itself is gone.
// The package is pure: where the runs come from its callers know.
package comparison

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// The kinds of changes.
const (
	New    = "new"
	Gone   = "gone"
	Worse  = "worse"
	Better = "better"
	Same   = "same"
)

// Kinds are all kinds of changes, in the order in which they are told.
var Kinds = []string{New, Worse, Better, Gone, Same}

// SameShare is the share of the larger value below which a change is none.
const SameShare = 0.1

// Change is what became of the anomalies of a call path between two runs, which are A
// and B.
type Change struct {
	Kind      string   `json:"change"` // one of Kinds, by lost time
	Program   int64    `json:"program"`
	Function  string   `json:"function"`
	CallPath  string   `json:"call_path"`
	Anomalies [2]int64 `json:"anomalies"`
	Lost      [2]int64 `json:"lost_us"`
	Times
	// Hosts are those that lost most, at most MaxHosts.
	Hosts [2][]string `json:"hosts"`

	mostly [2]float64 // share of the lost time that was lost on the first of Hosts
}

// Times are how long all calls of a function took, on all paths.
type Times struct {
	Calls [2]int64 `json:"calls"`
	// Mean is the mean exclusive time in microseconds.
	Mean [2]float64 `json:"mean_us"`
	// Distance is how far apart the distributions of the times are: the largest
	// difference of their cumulative shares, from 0 to 1. It is nil where one of the
	// runs has no histogram.
	Distance *float64 `json:"distance"`
	// Moved is by how much the time of a call differs on average, if the shortest of A
	// is compared with the shortest of B and so on: the earth mover's distance, in
	// microseconds. It is nil where Distance is.
	Moved *float64 `json:"moved_us"`
}

// FunctionChange is what became of the time of all calls of a function.
type FunctionChange struct {
	Kind      string     `json:"change"` // one of Kinds, by exclusive time
	Program   int64      `json:"program"`
	Function  string     `json:"function"`
	Exclusive [2]float64 `json:"exclusive_us"`
	Lost      [2]int64   `json:"lost_us"`
	Times
}

// Difference is what changed from run A to run B.
type Difference struct {
	Verdict   Verdict          `json:"verdict"`
	Changes   []Change         `json:"changes"`   // of call paths with anomalies, the largest change of lost time first
	Functions []FunctionChange `json:"functions"` // the largest change of exclusive time first
	Facts     []FactChange     `json:"metadata"`
	Calls     [2]int64         `json:"calls"`
	Exclusive [2]float64       `json:"exclusive_us"`
	Lost      [2]int64         `json:"lost_us"`
	Anomalies [2]int64         `json:"anomalies"`
	// LostPercent is the share of all time that was lost to anomalies.
	LostPercent [2]float64 `json:"lost_percent"`
}

// Count returns how many changes of call paths are of a kind.
func (d *Difference) Count(kind string) (n int) {
	for i := range d.Changes {
		if d.Changes[i].Kind == kind {
			n++
		}
	}
	return n
}

// pathKey names a call path in any run.
type pathKey struct {
	trace.FuncKey
	callPath string
}

// side is a run, looked up by names.
type side struct {
	paths map[pathKey]*Path
	funcs map[trace.FuncKey]*Function
	lost  map[trace.FuncKey]int64
}

// Diff joins two runs by program, function and call path. What only one of them has is
// there too. only chooses a program of both, nil is all.
func Diff(a, b *Run, only *trace.Program) *Difference {
	sides := [2]*side{a.side(only), b.side(only)}
	d := &Difference{Changes: []Change{}, Functions: []FunctionChange{}, Facts: facts(a, b, only)}
	for i, s := range sides {
		for _, f := range s.funcs {
			d.Calls[i] += f.Calls
			d.Exclusive[i] += f.Exclusive
		}
		for _, p := range s.paths {
			d.Anomalies[i] += p.Anomalies
			d.Lost[i] += p.Lost
		}
		if d.Exclusive[i] > 0 {
			d.LostPercent[i] = 100 * float64(d.Lost[i]) / d.Exclusive[i]
		}
	}
	times := make(map[trace.FuncKey]Times)
	for key := range either(sides[0].funcs, sides[1].funcs) {
		times[key] = timesOf(key, sides)
		d.Functions = append(d.Functions, functionChange(key, sides, times[key]))
	}
	for key := range either(sides[0].paths, sides[1].paths) {
		d.Changes = append(d.Changes, pathChange(key, sides, times[key.FuncKey]))
	}
	slices.SortFunc(d.Changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(apart(y.Lost), apart(x.Lost)), cmp.Compare(x.Program, y.Program), cmp.Compare(x.Function, y.Function),
			cmp.Compare(x.CallPath, y.CallPath))
	})
	slices.SortFunc(d.Functions, func(x, y FunctionChange) int {
		return cmp.Or(cmp.Compare(apart(y.Exclusive), apart(x.Exclusive)), cmp.Compare(x.Program, y.Program), cmp.Compare(x.Function, y.Function))
	})
	d.Verdict = d.verdict(a, b)
	return d
}

// apart is how far two values are from each other.
func apart[T int64 | float64](v [2]T) T { return max(v[1]-v[0], v[0]-v[1]) }

// either yields the keys that at least one of two maps has, each once.
func either[K comparable, V any](a, b map[K]V) map[K]bool {
	keys := make(map[K]bool, max(len(a), len(b)))
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}

// side looks the parts of a run up that are of a program.
func (r *Run) side(only *trace.Program) *side {
	s := &side{paths: make(map[pathKey]*Path), funcs: make(map[trace.FuncKey]*Function), lost: make(map[trace.FuncKey]int64)}
	for i := range r.Functions {
		if f := &r.Functions[i]; only == nil || f.Program == *only {
			s.funcs[trace.FuncKey{Program: f.Program, Name: f.Name}] = f
		}
	}
	texts := make([]string, len(r.Paths))
	for i := range r.Paths {
		p := &r.Paths[i]
		texts[i] = p.Function
		if p.Parent >= 0 {
			texts[i] = texts[p.Parent] + " > " + p.Function
		}
		if p.Anomalies > 0 && (only == nil || p.Program == *only) {
			s.paths[pathKey{trace.FuncKey{Program: p.Program, Name: p.Function}, texts[i]}] = p
			s.lost[trace.FuncKey{Program: p.Program, Name: p.Function}] += p.Lost
		}
	}
	return s
}

func pathChange(key pathKey, sides [2]*side, times Times) Change {
	c := Change{Program: int64(key.Program), Function: key.Name, CallPath: key.callPath, Times: times, Hosts: [2][]string{{}, {}}}
	var in [2]bool
	for i, s := range sides {
		p := s.paths[key]
		if in[i] = p != nil; !in[i] {
			continue
		}
		c.Anomalies[i], c.Lost[i] = p.Anomalies, p.Lost
		for _, h := range p.Hosts {
			c.Hosts[i] = append(c.Hosts[i], h.Host)
		}
		if len(p.Hosts) > 0 && p.Lost > 0 {
			c.mostly[i] = float64(p.Hosts[0].Lost) / float64(p.Lost)
		}
	}
	c.Kind = kind(in, [2]float64{float64(c.Lost[0]), float64(c.Lost[1])})
	return c
}

func functionChange(key trace.FuncKey, sides [2]*side, times Times) FunctionChange {
	c := FunctionChange{Program: int64(key.Program), Function: key.Name, Times: times}
	var in [2]bool
	for i, s := range sides {
		if f := s.funcs[key]; f != nil {
			in[i], c.Exclusive[i] = true, f.Exclusive
		}
		c.Lost[i] = s.lost[key]
	}
	c.Kind = kind(in, c.Exclusive)
	return c
}

// kind returns what became of a value that A, B or both have.
func kind(in [2]bool, v [2]float64) string {
	differs := apart(v) > SameShare*max(v[0], v[1])
	switch {
	case !in[0]:
		return New
	case !in[1]:
		return Gone
	case differs && v[1] > v[0]:
		return Worse
	case differs:
		return Better
	}
	return Same
}

// timesOf is what both runs know of the calls of a function.
func timesOf(key trace.FuncKey, sides [2]*side) Times {
	var t Times
	var models [2]json.RawMessage
	for i, s := range sides {
		f := s.funcs[key]
		if f == nil {
			continue
		}
		models[i], t.Calls[i] = f.Model, f.Calls
		if f.Calls > 0 {
			t.Mean[i] = f.Exclusive / float64(f.Calls)
		}
	}
	if o := Overlay(models, 0); o != nil {
		t.Distance, t.Moved = &o.Distance, &o.Moved
	}
	return t
}

// FactChange is something that is told of both runs, or of one of them.
type FactChange struct {
	Kind    string    `json:"change"`  // new, gone, differs or same
	Section string    `json:"section"` // run, hosts, settings or metadata
	Program int64     `json:"program"` // of metadata
	Name    string    `json:"name"`
	Values  [2]string `json:"values"`
	// Expected says that it differs from run to run and tells nothing: times of day,
	// numbers of processes, where the run was written.
	Expected bool `json:"expected"`
}

// Differs is the kind of a fact that both runs have.
const Differs = "differs"

// facts lists what is told of runs: what differs first, in the order of sections.
func facts(a, b *Run, only *trace.Program) []FactChange {
	var all []FactChange
	add := func(section string, program trace.Program, name string, values [2]string, expected bool) {
		f := FactChange{Kind: Same, Section: section, Program: int64(program), Name: name, Values: values, Expected: expected}
		switch {
		case values[0] == values[1]:
		case values[0] == "":
			f.Kind = New
		case values[1] == "":
			f.Kind = Gone
		default:
			f.Kind = Differs
		}
		all = append(all, f)
	}
	for _, r := range []struct {
		name     string
		of       func(r *Run) string
		expected bool
	}{
		{"version of chimbuko", func(r *Run) string { return r.Version }, false},
		{"ranks", func(r *Run) string { return number(r.Ranks) }, false},
		{"hosts", func(r *Run) string { return number(int64(len(r.Hosts))) }, false},
		{"started", func(r *Run) string { return r.started() }, true},
		{"state", func(r *Run) string { return r.State }, false},
	} {
		add("run", 0, r.name, [2]string{r.of(a), r.of(b)}, r.expected)
	}
	hosts := [2]map[string]int64{a.hosts(), b.hosts()}
	for _, host := range slices.Sorted(maps.Keys(either(hosts[0], hosts[1]))) {
		add("hosts", 0, host, [2]string{ranks(hosts[0][host]), ranks(hosts[1][host])}, false)
	}
	for _, name := range slices.Sorted(maps.Keys(either(a.Settings, b.Settings))) {
		add("settings", 0, name, [2]string{a.Settings[name], b.Settings[name]}, plainSettings[name])
	}
	told := [2]map[trace.FuncKey]*Fact{a.facts(only), b.facts(only)}
	names := slices.SortedFunc(maps.Keys(either(told[0], told[1])), trace.FuncKey.Compare)
	for _, name := range names {
		x, y := told[0][name], told[1][name]
		add("metadata", name.Program, name.Name, [2]string{x.text(), y.text()}, passing(name.Name) || x.ofEachRank() && y.ofEachRank())
	}
	slices.SortStableFunc(all, func(x, y FactChange) int { return cmp.Compare(x.weight(), y.weight()) })
	return all
}

// weight orders facts: what differs first, what tells nothing last.
func (f *FactChange) weight() int {
	switch {
	case f.Kind == Same:
		return 2
	case f.Expected:
		return 1
	}
	return 0
}

// plainSettings are those that change nothing of what is found.
var plainSettings = map[string]bool{
	"out": true, "name": true, "force": true, "json": true, "records": true, "store": true, "store-delay": true, "workers": true,
	"save-model": true,
}

// passing reports whether a fact of a rank is another one whenever a program runs.
func passing(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"timestamp", "local time", "utc time", "process id", "job id", "jobid"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "pid" || strings.HasSuffix(name, " pid") || strings.HasSuffix(name, "_pid")
}

// finite reports whether a number may be in a Run.
func finite(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

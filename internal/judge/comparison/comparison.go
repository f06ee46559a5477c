// Package comparison compares two runs: changes of functions and call paths, distances of times, differences of metadata, and a
// verdict in a sentence. It also finds trends over many runs. A Run contains the comparable data of a run: sums and models
// without records, small enough to keep as a baseline after the run is deleted. All functions of the package are pure.
package comparison

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// The kinds of changes.
const (
	New    = "new"
	Gone   = "gone"
	Worse  = "worse"
	Better = "better"
	Same   = "same"
)

// Differs is the kind of metadata that both runs have with different values.
const Differs = "differs"

// SameShare is the share of the larger of two values by which they may differ and still count as the same.
const SameShare = 0.1

// pathKey identifies a call path in all runs.
type pathKey struct {
	trace.FuncKey
	callPath string
}

// side indexes a run by name.
type side struct {
	paths map[pathKey]*Path
	funcs map[trace.FuncKey]*Function
	lost  map[trace.FuncKey]float64
}

// Diff compares two runs by program, function and call path, including those in only one run. only selects a program; nil
// selects all.
func Diff(a, b *Run, only *trace.Program) *api.Difference {
	sides := [2]*side{a.side(only), b.side(only)}
	d := &api.Difference{
		Changes: []api.PathChange{}, Functions: []api.FunctionChange{}, Metadata: metadata(a, b, only),
		Counts: api.ChangeCounts{Changes: map[string]int64{}, Functions: map[string]int64{}, Metadata: map[string]int64{}},
	}
	for i, s := range sides {
		for _, f := range s.funcs {
			d.Calls[i] += f.Calls
			d.Exclusive[i] += f.Exclusive
		}
		for _, p := range s.paths {
			d.Anomalies[i] += p.Anomalies
			d.Lost[i] += p.Lost
		}
		d.LostPercent[i] = lostPercent(d.Lost[i], d.Exclusive[i])
	}
	times := make(map[trace.FuncKey]api.CallTimes)
	for key := range union(sides[0].funcs, sides[1].funcs) {
		times[key] = callTimes(key, sides)
		d.Functions = append(d.Functions, functionChange(key, sides, times[key]))
	}
	for key := range union(sides[0].paths, sides[1].paths) {
		d.Changes = append(d.Changes, pathChange(key, sides, times[key.FuncKey]))
	}
	slices.SortFunc(d.Changes, func(x, y api.PathChange) int {
		return cmp.Or(cmp.Compare(distance(y.Lost), distance(x.Lost)), cmp.Compare(x.Program, y.Program), cmp.Compare(x.Function, y.Function),
			cmp.Compare(x.CallPath, y.CallPath))
	})
	slices.SortFunc(d.Functions, func(x, y api.FunctionChange) int {
		return cmp.Or(cmp.Compare(distance(y.Exclusive), distance(x.Exclusive)), cmp.Compare(x.Program, y.Program),
			cmp.Compare(x.Function, y.Function))
	})
	count(d)
	comparePeers(d, [2]*Run{a, b}, only)
	d.Verdict = verdict(d, [2]*Run{a, b}, sides)
	return d
}

// count sets the counts of changes by kind.
func count(d *api.Difference) {
	for i := range d.Changes {
		d.Counts.Changes[d.Changes[i].Kind]++
	}
	for i := range d.Functions {
		d.Counts.Functions[d.Functions[i].Kind]++
	}
	for i := range d.Metadata {
		f := &d.Metadata[i]
		d.Counts.Metadata[f.Kind]++
		if f.Expected && f.Kind != Same {
			d.Counts.Metadata["expected"]++
		}
	}
}

// lostPercent returns the percentage of the time of all calls that was lost; 0 if unknown.
func lostPercent(lost, exclusive float64) float64 {
	if exclusive <= 0 {
		return 0
	}
	return 100 * lost / exclusive
}

// distance returns the absolute difference of two values.
func distance[T int64 | float64](v [2]T) T { return max(v[1]-v[0], v[0]-v[1]) }

// similar reports whether two values differ by at most SameShare.
func similar[T int64 | float64](v [2]T) bool {
	return float64(distance(v)) <= SameShare*float64(max(v[0], v[1]))
}

// union returns a map with the keys of both maps.
func union[K comparable, V any](a, b map[K]V) map[K]V {
	all := make(map[K]V, max(len(a), len(b)))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// side indexes the functions and the call paths with anomalies.
func (r *Run) side(only *trace.Program) *side {
	s := &side{paths: make(map[pathKey]*Path), funcs: make(map[trace.FuncKey]*Function), lost: make(map[trace.FuncKey]float64)}
	for i := range r.Functions {
		if f := &r.Functions[i]; only == nil || f.Program == *only {
			s.funcs[f.Key()] = f
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
			key := trace.FuncKey{Program: p.Program, Name: p.Function}
			s.paths[pathKey{key, texts[i]}] = p
			s.lost[key] += p.Lost
		}
	}
	return s
}

func pathChange(key pathKey, sides [2]*side, times api.CallTimes) api.PathChange {
	c := api.PathChange{
		CallTimes: times, Program: int64(key.Program), Function: key.Name, CallPath: key.callPath, Hosts: [2][]string{{}, {}},
	}
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
	}
	c.Kind = kind(in, c.Lost)
	return c
}

func functionChange(key trace.FuncKey, sides [2]*side, times api.CallTimes) api.FunctionChange {
	c := api.FunctionChange{CallTimes: times, Program: int64(key.Program), Function: key.Name}
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

// kind returns the kind of change of a value that A, B or both have.
func kind(in [2]bool, v [2]float64) string {
	switch {
	case !in[0]:
		return New
	case !in[1]:
		return Gone
	case similar(v):
		return Same
	case v[1] > v[0]:
		return Worse
	}
	return Better
}

// callTimes returns the times of a function in both runs.
func callTimes(key trace.FuncKey, sides [2]*side) (t api.CallTimes) {
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

// metadata compares versions, hosts, settings and the metadata of ranks. It returns differences first, in the order of
// sections.
func metadata(a, b *Run, only *trace.Program) []api.FactChange {
	var all []api.FactChange
	add := func(section string, program trace.Program, name string, values [2]string, expected bool) {
		f := api.FactChange{Kind: Differs, Section: section, Program: int64(program), Name: name, Values: values, Expected: expected}
		switch {
		case values[0] == values[1]:
			f.Kind = Same
		case values[0] == "":
			f.Kind = New
		case values[1] == "":
			f.Kind = Gone
		}
		all = append(all, f)
	}
	add("run", 0, "version of chimbuko", [2]string{a.Version, b.Version}, false)
	add("run", 0, "ranks", [2]string{text.Int(a.Ranks), text.Int(b.Ranks)}, false)
	add("run", 0, "hosts", [2]string{text.Int(len(a.Hosts)), text.Int(len(b.Hosts))}, false)
	add("run", 0, "started", [2]string{a.started(), b.started()}, true)
	add("run", 0, "state", [2]string{a.State, b.State}, false)
	hosts := [2]map[string]int64{a.hosts(), b.hosts()}
	for _, host := range slices.Sorted(maps.Keys(union(hosts[0], hosts[1]))) {
		add("hosts", 0, host, [2]string{rankCount(hosts[0][host]), rankCount(hosts[1][host])}, false)
	}
	for _, name := range slices.Sorted(maps.Keys(union(a.Settings, b.Settings))) {
		add("settings", 0, name, [2]string{a.Settings[name], b.Settings[name]}, neutralSettings[name])
	}
	facts := [2]map[trace.FuncKey]*Fact{a.facts(only), b.facts(only)}
	for _, name := range slices.SortedFunc(maps.Keys(union(facts[0], facts[1])), trace.FuncKey.Compare) {
		x, y := facts[0][name], facts[1][name]
		expected := volatile(name.Name) || x.perRank() && y.perRank()
		add("metadata", name.Program, name.Name, [2]string{x.text(), y.text()}, expected)
	}
	slices.SortStableFunc(all, func(x, y api.FactChange) int { return cmp.Compare(order(&x), order(&y)) })
	return all
}

// order returns the rank of a fact in sorting: differences, expected differences, equal values.
func order(f *api.FactChange) int {
	switch {
	case f.Kind == Same:
		return 2
	case f.Expected:
		return 1
	}
	return 0
}

// neutralSettings do not affect results.
var neutralSettings = map[string]bool{
	"out": true, "name": true, "force": true, "json": true, "records": true, "store": true, "store-delay": true, "workers": true,
	"save-model": true,
}

// volatile reports whether metadata with this name differs in every run.
func volatile(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"timestamp", "local time", "utc time", "process id", "job id", "jobid"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "pid" || strings.HasSuffix(name, " pid") || strings.HasSuffix(name, "_pid")
}

// finite reports whether a Run may contain a number.
func finite(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

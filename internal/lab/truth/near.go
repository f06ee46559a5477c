package truth

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Tolerances between times of the text formats, taken inside a function, and times of
// the trace, taken around it.
const (
	slack   trace.Micros = 100     // usually
	nearby  trace.Micros = 1_000   // if the thread is interrupted in between
	pending trace.Micros = 200_000 // from the launch of a kernel to its start on a busy stream
)

// place must be equal for a flag to match a planted anomaly of the text formats.
type place struct {
	rank     trace.Rank
	function string // without arguments and location
}

// plainName returns apply_source for `apply_source() [{heat2d.cpp} {47,0}]`.
func plainName(function string) string {
	if i := strings.IndexAny(function, "( ["); i >= 0 {
		return function[:i]
	}
	return function
}

func (p *timedCall) place() place { return place{p.rank, plainName(p.function)} }

// candidate is a flag that may match a planted anomaly.
type candidate struct {
	entry, exit             trace.Micros
	launchEntry, launchExit trace.Micros
	kernel                  bool // its name may be that of a kernel
	launched                bool
	excused                 bool // if it matches no planted anomaly
}

func (m *Matcher) addNear(f *Flag, excused bool) {
	at := place{f.Rank, plainName(f.Function)}
	flags, ok := m.near[at]
	if !ok {
		return
	}
	arguments := f.Function[len(at.function):]
	m.near[at] = append(flags, candidate{
		entry: f.Entry, exit: f.Exit, kernel: arguments == "" || arguments[0] == '(',
		launched: f.Launched, launchEntry: f.LaunchEntry, launchExit: f.LaunchExit, excused: excused,
	})
}

// distance returns the time between a planted anomaly and a flag, and whether they may
// match.
func (p *timedCall) distance(f *candidate) (trace.Micros, bool) {
	away := func(t trace.Micros) trace.Micros { return max(t-p.entry, p.entry-t) }
	switch {
	case !p.kernel:
		covers := f.entry <= p.entry+slack && p.exit <= f.exit+slack
		overlaps := f.entry <= p.exit && p.entry <= f.exit
		return away(f.entry), covers || overlaps && away(f.entry) < max(nearby, p.injected/2)
	case !f.kernel:
		return 0, false
	case f.launched:
		running := f.launchExit == 0 || p.entry-nearby <= f.launchExit
		return away(f.launchEntry), f.launchEntry <= p.entry+slack && running
	}
	return away(f.entry), p.entry-nearby <= f.entry && f.entry <= p.entry+pending
}

// scoreNear matches planted anomalies of the text formats and flags one to one, the
// closest first.
func (m *Matcher) scoreNear(s *Score) {
	type pair struct {
		distance      trace.Micros
		planted, flag int
	}
	planted := m.truth.timed
	var pairs []pair
	for i := range planted {
		flags := m.near[planted[i].place()]
		for j := range flags {
			if d, ok := planted[i].distance(&flags[j]); ok {
				pairs = append(pairs, pair{d, i, j})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.planted, b.planted), cmp.Compare(a.flag, b.flag))
	})
	type flagID struct {
		place
		index int
	}
	found, used := make(map[int]bool), make(map[flagID]bool)
	for _, p := range pairs {
		id := flagID{planted[p.planted].place(), p.flag}
		if found[p.planted] || used[id] {
			continue
		}
		found[p.planted], used[id] = true, true
		s.Found++
		if m.near[id.place][p.flag].excused {
			s.Excused--
		}
	}
	s.Planted += len(planted)
	for i, p := range planted {
		if !found[i] {
			s.MissedList = append(s.MissedList, Missed{Rank: p.rank, Function: p.function, Entry: p.entry, Injected: p.injected})
		}
	}
}

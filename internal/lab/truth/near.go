package truth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Tolerances between times of the text formats, taken inside a function, and times of
// the trace, taken around it.
const (
	slack   trace.Ticks = 100     // usually
	nearby  trace.Ticks = 1_000   // if the thread is interrupted in between
	pending trace.Ticks = 200_000 // from the launch of a kernel to its start on a busy stream
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
	Flag
	kernel  bool // its name may be that of a kernel
	excused bool // if it matches no planted anomaly
}

func (m *Matcher) addNear(f *Flag, excused bool) {
	at := place{f.Rank, plainName(f.Function)}
	flags, ok := m.near[at]
	if !ok {
		return
	}
	arguments := f.Function[len(at.function):]
	m.near[at] = append(flags, candidate{*f, arguments == "" || arguments[0] == '(', excused})
}

// distance returns the time between a planted anomaly and a flag, and whether they may
// match.
func (p *timedCall) distance(f *candidate) (trace.Ticks, bool) {
	away := func(t trace.Ticks) trace.Ticks { return max(t-p.entry, p.entry-t) }
	switch {
	case !p.kernel:
		covers := f.Entry <= p.entry+slack && p.exit <= f.Exit+slack
		overlaps := f.Entry <= p.exit && p.entry <= f.Exit
		return away(f.Entry), covers || overlaps && away(f.Entry) < max(nearby, p.injected/2)
	case !f.kernel:
		return 0, false
	case f.Launched:
		running := f.LaunchExit == 0 || p.entry-nearby <= f.LaunchExit
		return away(f.LaunchEntry), f.LaunchEntry <= p.entry+slack && running
	}
	return away(f.Entry), p.entry-nearby <= f.Entry && f.Entry <= p.entry+pending
}

// nearMatches returns the flag of each planted anomaly of the text formats that has one. It matches them
// one to one, the closest first.
func (m *Matcher) nearMatches() map[int]*candidate {
	type pair struct {
		distance      trace.Ticks
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
	matches, used := make(map[int]*candidate), make(map[flagID]bool)
	for _, p := range pairs {
		id := flagID{planted[p.planted].place(), p.flag}
		if matches[p.planted] == nil && !used[id] {
			matches[p.planted], used[id] = &m.near[id.place][p.flag], true
		}
	}
	return matches
}

// scoreNear counts the planted anomalies of the text formats.
func (m *Matcher) scoreNear(s *Score) {
	matches := m.nearMatches()
	for _, c := range matches {
		s.Found++
		if c.excused {
			s.Excused--
		}
	}
	s.Planted += len(m.truth.timed)
	for i, p := range m.truth.timed {
		if matches[i] == nil {
			s.MissedList = append(s.MissedList, Missed{Rank: p.rank, Function: p.function, Entry: p.entry, Injected: p.injected})
		}
	}
}

// matchNear adds the flags of planted anomalies of the text formats to their troubles.
func (m *Matcher) matchNear() {
	for i, c := range m.nearMatches() {
		of := m.members[c.Finding]
		if of == nil {
			continue
		}
		p := &m.truth.timed[i]
		of.in += c.Lost
		of.add(&touch{trouble: int32(len(m.truth.Troubles)) + p.trouble, lost: max(0, p.injected)}, c.Lost)
	}
}

// groupTimed makes a trouble of the planted anomalies of each rank and function.
func (t *Truth) groupTimed() {
	groups := make(map[place]int32)
	for i := range t.timed {
		p := &t.timed[i]
		at := p.place()
		g, ok := groups[at]
		if !ok {
			g = int32(len(t.timedTroubles))
			groups[at] = g
			t.timedTroubles = append(t.timedTroubles, Trouble{
				Name: fmt.Sprintf("%s on rank %d", at.function, at.rank), Kind: "planted", Ranks: []trace.Rank{at.rank},
				Functions: []string{at.function}, From: p.entry, To: p.exit, Findings: []Finding{Outlier, Recurring},
			})
		}
		p.trouble = g
		group := &t.timedTroubles[g]
		group.From, group.To, group.Lost = min(group.From, p.entry), max(group.To, p.exit), group.Lost+max(0, p.injected)
		if p.kernel {
			group.To = max(group.To, p.exit+pending)
		}
	}
}

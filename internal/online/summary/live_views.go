package summary

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// Functions returns all functions of the run in order of their ids. They are
// those of the picture: later additions change them, the caller must not.
func (l *Live) Functions() []*FunctionStats {
	all := make([]*FunctionStats, 0, len(l.functions.list))
	for _, f := range l.functions.inOrder() {
		all = append(all, &f.FunctionStats)
	}
	return all
}

// Counters returns all counters of the run by program and name. They are those
// of the picture: later additions change them, the caller must not.
func (l *Live) Counters() []*Counter {
	all := make([]*Counter, 0, len(l.counters.list))
	for _, c := range l.counters.inOrder() {
		all = append(all, &c.Counter)
	}
	return all
}

// RankStatus is what is known of a rank at a glance.
type RankStatus struct {
	trace.RankKey
	Steps     uint64       // added so far
	Anomalies uint64       // as labeled then
	LastStep  int32        // the last with anomalies; -1 without
	LastTime  trace.Micros // of the last anomaly; 0 without
}

// Ranks returns what is known of all ranks, by program and rank.
func (l *Live) Ranks() []RankStatus {
	all := make([]RankStatus, 0, len(l.ranks.list))
	for _, r := range l.ranks.inOrder() {
		all = append(all, RankStatus{
			RankKey: r.RankKey, Steps: r.steps.Count(),
			Anomalies: r.anomalies, LastStep: r.lastStep, LastTime: r.lastTime,
		})
	}
	return all
}

// PathDeltas returns all calls by call path, by program. Equal pictures give equal
// lists.
func (l *Live) PathDeltas() (all []PathDelta) {
	for _, program := range slices.Sorted(maps.Keys(l.paths)) {
		t := l.paths[program]
		list := callpath.Sort(t.Append(nil, nil), func(a, b uint32) int { return cmp.Compare(a, b) })
		all = append(all, PathDelta{Program: program, Depth: t.Depth(), List: list})
	}
	return all
}

// AddPathsTo adds all calls by call path to the outcome; name returns the names of
// functions.
func (l *Live) AddPathsTo(o *Outcome, name func(id uint32) string) {
	for _, program := range slices.Sorted(maps.Keys(l.paths)) {
		o.AddPaths(program, l.paths[program].Append(nil, nil), func(fn uint32) (int, string) { return int(fn), name(fn) })
	}
}

// Discard takes the news as a packet does, and writes nothing. Who sends no
// packets must call it now and then, or the news fill the memory.
func (l *Live) Discard() {
	l.news = false
	l.steps = l.steps[:0]
	for i, m := range l.fresh {
		*m.fresh = Metrics{}
		l.spare = append(l.spare, m.fresh)
		m.fresh, l.fresh[i] = nil, nil
	}
	l.fresh = l.fresh[:0]
}

// table finds values by their keys and lists them in order. It sorts when it is
// asked for the list, not when something is added.
type table[K comparable, V any] struct {
	byKey    map[K]*V
	list     []*V
	unsorted bool
	compare  func(a, b *V) int
}

func newTable[K comparable, V any](compare func(a, b *V) int) table[K, V] {
	return table[K, V]{byKey: make(map[K]*V), compare: compare}
}

// get returns the value of a key, or nil.
func (t *table[K, V]) get(k K) *V { return t.byKey[k] }

// add adds a value under a key that has none yet.
func (t *table[K, V]) add(k K, v *V) *V {
	t.byKey[k] = v
	n := len(t.list)
	t.unsorted = t.unsorted || n > 0 && t.compare(t.list[n-1], v) > 0
	t.list = append(t.list, v)
	return v
}

func (t *table[K, V]) inOrder() []*V {
	if t.unsorted {
		slices.SortFunc(t.list, t.compare)
		t.unsorted = false
	}
	return t.list
}

// wholeNumber returns v as a count; what is none becomes the nearest.
func wholeNumber(v float64) uint64 {
	switch {
	case !(v > 0):
		return 0
	case v >= 1<<63:
		return math.MaxInt64
	}
	return uint64(v)
}

package summary

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// Functions returns the functions of the run in order of their ids. Later
// additions change them; the caller must not.
func (l *Live) Functions() []*FunctionStats {
	return slices.Clone(l.functions.inOrder())
}

// Counters returns the counters of the run by program and name. Later additions
// change them; the caller must not.
func (l *Live) Counters() []*Counter {
	return slices.Clone(l.counters.inOrder())
}

// RankStatus sums up a rank.
type RankStatus struct {
	trace.RankKey
	Steps     uint64      // added so far
	Anomalies uint64      // as labeled during the run
	LastStep  int32       // the last with anomalies; -1 without
	LastTime  trace.Ticks // of the last anomaly; 0 without
}

// Ranks returns the status of all ranks by program and rank.
func (l *Live) Ranks() []RankStatus {
	all := make([]RankStatus, 0, len(l.ranks.list))
	for _, r := range l.ranks.inOrder() {
		r.Steps = r.steps.Count()
		all = append(all, r.RankStatus)
	}
	return all
}

// PathDeltas returns all calls by call path, in order of programs and ids.
func (l *Live) PathDeltas() (all []PathDelta) {
	for _, program := range slices.Sorted(maps.Keys(l.paths)) {
		t := l.paths[program]
		list := callpath.Sort(t.Append(nil, nil), func(a, b uint32) int { return cmp.Compare(a, b) })
		all = append(all, PathDelta{Program: program, Depth: t.Depth(), List: list})
	}
	return all
}

// AddPathsTo adds all calls by call path to an outcome. name returns the name of a
// function.
func (l *Live) AddPathsTo(o *Outcome, name func(id uint32) string) {
	for _, program := range slices.Sorted(maps.Keys(l.paths)) {
		o.AddPaths(program, l.paths[program].Append(nil, nil), func(fn uint32) (int, string) { return int(fn), name(fn) })
	}
}

// Load returns a copy of the load of all ranks, with ids of functions and names of counters.
func (l *Live) Load() *workload.Load {
	load := l.load.Clone()
	for _, c := range l.counters.list {
		load.NameCounter(c.FuncKey)
	}
	return load
}

// News holds the additions since the last TakeNews.
type News struct {
	Any     bool          // something was added, even without anomalies
	Ranks   []RankNews    // with new anomalies, by program and rank
	Metrics []MetricsNews // of functions with new anomalies, by program, rank and function
}

// RankNews is a rank with new anomalies.
type RankNews struct {
	trace.RankKey
	PerStep stats.Sums // anomalies of each step since the start of the run
	Steps   []StepNews // in order
}

// StepNews is a step with anomalies. First and Last are times of its anomalies.
type StepNews struct {
	Step        int32
	First, Last trace.Ticks
	Scores      stats.RunStats
}

// Anomalies returns the number of anomalies.
func (s *StepNews) Anomalies() uint64 { return wholeNumber(s.Scores.N) }

// MetricsNews is a function on a rank with new anomalies. The times in its metrics are those of
// the first and last step, not of anomalies.
type MetricsNews struct {
	trace.RankKey
	Function int
	Index    uint64 // of program, rank and function; never changes during a run
	All, New Metrics
}

// TakeNews returns the news and drops them.
func (l *Live) TakeNews() News {
	n := News{Any: l.news}
	slices.SortStableFunc(l.steps, func(a, b liveStep) int { return cmp.Or(a.Compare(b.RankKey), cmp.Compare(a.Step, b.Step)) })
	for _, s := range l.steps {
		if last := len(n.Ranks) - 1; last < 0 || n.Ranks[last].RankKey != s.RankKey {
			n.Ranks = append(n.Ranks, RankNews{RankKey: s.RankKey, PerStep: l.ranks.get(s.RankKey).steps})
		}
		r := &n.Ranks[len(n.Ranks)-1]
		r.Steps = append(r.Steps, s.StepNews)
	}
	slices.SortFunc(l.fresh, l.metrics.compare)
	for _, m := range l.fresh {
		n.Metrics = append(n.Metrics, MetricsNews{m.RankKey, m.function, m.index, m.all, *m.fresh})
	}
	l.Discard()
	return n
}

// Discard drops the news. A run without packets must call it regularly, because news take memory.
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

// table holds values by key. inOrder sorts them when needed.
type table[K comparable, V any] struct {
	byKey      map[K]*V
	list       []*V
	unsorted   bool
	key        func(*V) K
	compareKey func(a, b K) int
}

func newTable[K comparable, V any](key func(*V) K, compare func(a, b K) int) table[K, V] {
	return table[K, V]{byKey: make(map[K]*V), key: key, compareKey: compare}
}

func (t *table[K, V]) compare(a, b *V) int { return t.compareKey(t.key(a), t.key(b)) }

// get returns the value of a key, or nil.
func (t *table[K, V]) get(k K) *V { return t.byKey[k] }

// add adds a value with a new key.
func (t *table[K, V]) add(v *V) *V {
	t.byKey[t.key(v)] = v
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

// wholeNumber returns the count nearest to v.
func wholeNumber(v float64) uint64 {
	switch {
	case !(v > 0):
		return 0
	case v >= 1<<63:
		return math.MaxInt64
	}
	return uint64(v)
}

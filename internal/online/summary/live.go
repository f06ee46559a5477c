package summary

import (
	"cmp"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// StepReport is what a rank found in a step that has anomalies, as labeled then.
type StepReport struct {
	trace.RankKey
	Step        int32
	First, Last trace.Micros    // earliest entry and latest exit of the step
	Scores      stats.RunStats  // of all its anomalies
	Functions   []FunctionStats // with anomalies
}

// Live is the running picture of a run, made of what its ranks add. It holds
// what was added since the start, and the news: what was added since the last
// packet. An addition that has no values is no news. Adding what is known
// already, such as more of a function, allocates nothing.
//
// Only one goroutine at a time may call it. It keeps nothing of what it is
// given but names.
type Live struct {
	functions table[int, liveFunction]
	counters  table[trace.FuncKey, liveCounter]
	ranks     table[trace.RankKey, liveRank]
	metrics   table[metricsKey, liveMetrics]
	paths     map[trace.Program]*callpath.Tree // functions by their ids

	news  bool
	steps []liveStep     // with anomalies, since the last packet
	fresh []*liveMetrics // those with anomalies since the last packet
	spare []*Metrics     // empty, for the next news
	size  int            // of the last packet
}

type liveFunction struct {
	FunctionStats
	quoted string // the name in JSON
}

type liveCounter struct {
	Counter
	quoted string
}

type liveRank struct {
	trace.RankKey
	steps     stats.Sums // anomalies of each step
	anomalies uint64
	lastStep  int32 // with anomalies
	lastTime  trace.Micros
}

type metricsKey struct {
	trace.RankKey
	function int
}

func (k metricsKey) compare(o metricsKey) int {
	return cmp.Or(k.Compare(o.RankKey), cmp.Compare(k.function, o.function))
}

// liveMetrics are those of a function on a rank. The times in them are those of
// the first and last step, not of anomalies.
type liveMetrics struct {
	metricsKey
	index uint64 // the same from first to last packet
	all   Metrics
	fresh *Metrics // since the last packet; nil without
}

// liveStep is a step with anomalies; its times are those of anomalies.
type liveStep struct {
	trace.RankKey
	step        int32
	first, last trace.Micros
	scores      stats.RunStats
}

// NewLive returns the picture of a run of which nothing is known.
func NewLive() *Live {
	return &Live{
		functions: newTable[int](func(a, b *liveFunction) int { return cmp.Compare(a.ID, b.ID) }),
		counters:  newTable[trace.FuncKey](func(a, b *liveCounter) int { return a.Compare(b.FuncKey) }),
		ranks:     newTable[trace.RankKey](func(a, b *liveRank) int { return a.Compare(b.RankKey) }),
		metrics:   newTable[metricsKey](func(a, b *liveMetrics) int { return a.compare(b.metricsKey) }),
		paths:     make(map[trace.Program]*callpath.Tree),
	}
}

// Add adds what ranks found.
func (l *Live) Add(d *Delta) {
	for i := range d.Functions {
		l.AddFunction(&d.Functions[i])
	}
	for i := range d.Ranks {
		l.AddRank(d.Ranks[i].RankKey, &d.Ranks[i].Anomalies)
	}
	for i := range d.Steps {
		l.AddStep(&d.Steps[i])
	}
	for i := range d.Counters {
		l.AddCounter(&d.Counters[i])
	}
	for i := range d.Paths {
		l.addPaths(&d.Paths[i])
	}
}

// AddFunction adds calls of a function. Program and name of an id are those that
// came first. Anomalies are added with their steps, not here.
func (l *Live) AddFunction(f *FunctionStats) {
	known := l.functions.get(f.ID)
	if known == nil {
		known = l.function(f.ID, trace.FuncKey{Program: f.Program, Name: strings.Clone(f.Name)})
		l.news = true
	}
	if f.Exclusive.Count() > 0 || f.Inclusive.Count() > 0 || f.PerStep.Count() > 0 {
		l.news = true
	}
	known.Exclusive.Merge(&f.Exclusive)
	known.Inclusive.Merge(&f.Inclusive)
	known.PerStep.Merge(&f.PerStep)
}

func (l *Live) function(id int, key trace.FuncKey) *liveFunction {
	return l.functions.add(id, &liveFunction{FunctionStats: FunctionStats{ID: id, FuncKey: key}, quoted: quote(key.Name)})
}

// AddRank adds steps of a rank: the number of anomalies of each, zeros included.
func (l *Live) AddRank(key trace.RankKey, steps *stats.Sums) {
	if steps.Count() > 0 {
		l.news = true
	}
	l.rank(key).steps.Merge(steps)
}

// rank returns what is known of a rank, which is little for a new one.
func (l *Live) rank(k trace.RankKey) *liveRank {
	if r := l.ranks.get(k); r != nil {
		return r
	}
	return l.ranks.add(k, &liveRank{RankKey: k, lastStep: -1})
}

// AddStep adds what a rank found in a step; one without anomalies is ignored.
func (l *Live) AddStep(r *StepReport) {
	if !(r.Scores.N > 0) {
		return
	}
	l.news = true
	rank := l.rank(r.RankKey)
	s := liveStep{RankKey: rank.RankKey, step: r.Step, first: r.First, last: r.Last, scores: r.Scores}
	found := false
	for i := range r.Functions {
		m := &r.Functions[i].Anomalies
		if m.Empty() {
			continue
		}
		l.addMetrics(metricsKey{rank.RankKey, r.Functions[i].ID}, r, m)
		if !found {
			s.first, s.last, found = m.First, m.Last, true
		}
		s.first, s.last = min(s.first, m.First), max(s.last, m.Last)
	}
	l.steps = append(l.steps, s)
	rank.anomalies += wholeNumber(r.Scores.N)
	rank.lastStep, rank.lastTime = max(rank.lastStep, r.Step), max(rank.lastTime, s.last)
}

func (l *Live) addMetrics(k metricsKey, r *StepReport, m *Metrics) {
	known := l.metrics.get(k)
	if known == nil {
		known = l.metrics.add(k, &liveMetrics{metricsKey: k, index: uint64(len(l.metrics.list))})
	}
	if known.fresh == nil {
		if n := len(l.spare); n > 0 {
			known.fresh, l.spare = l.spare[n-1], l.spare[:n-1]
		} else {
			known.fresh = new(Metrics)
		}
		l.fresh = append(l.fresh, known)
	}
	known.all.addStep(r, m)
	known.fresh.addStep(r, m)
}

// addStep adds anomalies o of a step. The times become those of the first and
// of the last step as the rank reported them.
func (m *Metrics) addStep(r *StepReport, o *Metrics) {
	switch {
	case m.Empty():
		m.FirstStep, m.First, m.LastStep, m.Last = r.Step, r.First, r.Step, r.Last
	case r.Step < m.FirstStep:
		m.FirstStep, m.First = r.Step, r.First
	case r.Step > m.LastStep:
		m.LastStep, m.Last = r.Step, r.Last
	}
	if r.Step == m.FirstStep {
		m.First = min(m.First, r.First)
	}
	if r.Step == m.LastStep {
		m.Last = max(m.Last, r.Last)
	}
	m.Count.Merge(&o.Count)
	m.Score.Merge(o.Score)
	m.Severity.Merge(&o.Severity)
}

// AddCounter adds values of a counter.
func (l *Live) AddCounter(c *Counter) {
	known := l.counters.get(c.FuncKey)
	if known == nil {
		known = l.counter(trace.FuncKey{Program: c.Program, Name: strings.Clone(c.Name)})
		l.news = true
	}
	if c.Values.Count() > 0 {
		l.news = true
	}
	known.Values.Merge(&c.Values)
}

func (l *Live) counter(key trace.FuncKey) *liveCounter {
	return l.counters.add(key, &liveCounter{Counter: Counter{FuncKey: key}, quoted: quote(key.Name)})
}

// addPaths adds calls by call path.
func (l *Live) addPaths(p *PathDelta) {
	t := l.paths[p.Program]
	if t == nil {
		t = callpath.New(callpath.MaxPaths)
		l.paths[p.Program] = t
	}
	t.Merge(p.Depth, p.List)
}

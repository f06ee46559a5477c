package summary

import (
	"cmp"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// StepReport is what a rank found in a step that has anomalies, as labeled then.
type StepReport struct {
	Program     trace.Program
	Rank        trace.Rank
	Step        int32
	First, Last trace.Micros   // earliest entry and latest exit of the step
	Scores      stats.RunStats // of all its anomalies
	Functions   []StepFunction // with anomalies
}

// StepFunction is what a rank found in one function in a step.
type StepFunction struct {
	Function int // global id
	Metrics  Metrics
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

	news  bool
	steps []liveStep     // with anomalies, since the last packet
	fresh []*liveMetrics // those with anomalies since the last packet
	spare []*Metrics     // empty, for the next news
	size  int            // of the last packet
}

type liveFunction struct {
	Function
	anomalies stats.Sums // for each rank and step with calls
	quoted    string     // the name in JSON
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
	return cmp.Or(k.RankKey.Compare(o.RankKey), cmp.Compare(k.function, o.function))
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
		counters: newTable[trace.FuncKey](func(a, b *liveCounter) int {
			return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Name, b.Name))
		}),
		ranks:   newTable[trace.RankKey](func(a, b *liveRank) int { return a.Compare(b.RankKey) }),
		metrics: newTable[metricsKey](func(a, b *liveMetrics) int { return a.compare(b.metricsKey) }),
	}
}

// AddFunction adds calls of a function: the times that f holds, and anomalies,
// the number of them for each rank and step with calls of it, zeros included.
// Program and name of an id are those that came first.
func (l *Live) AddFunction(f *Function, anomalies *stats.Sums) {
	known := l.functions.get(f.ID)
	if known == nil {
		known = l.function(f.ID, f.Program, strings.Clone(f.Name))
		l.news = true
	}
	if f.Exclusive.Count() > 0 || f.Inclusive.Count() > 0 || anomalies.Count() > 0 {
		l.news = true
	}
	known.Exclusive.Merge(&f.Exclusive)
	known.Inclusive.Merge(&f.Inclusive)
	known.anomalies.Merge(anomalies)
}

func (l *Live) function(id int, program trace.Program, name string) *liveFunction {
	return l.functions.add(id, &liveFunction{
		Function: Function{ID: id, Program: program, Name: name},
		quoted:   quote(name),
	})
}

// AddRank adds steps of a rank: the number of anomalies of each, zeros included.
func (l *Live) AddRank(program trace.Program, rank trace.Rank, steps *stats.Sums) {
	if steps.Count() > 0 {
		l.news = true
	}
	l.rank(trace.RankKey{Program: program, Rank: rank}).steps.Merge(steps)
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
	rank := l.rank(trace.RankKey{Program: r.Program, Rank: r.Rank})
	s := liveStep{RankKey: rank.RankKey, step: r.Step, first: r.First, last: r.Last, scores: r.Scores}
	found := false
	for i := range r.Functions {
		m := &r.Functions[i].Metrics
		if m.Empty() {
			continue
		}
		l.addMetrics(metricsKey{rank.RankKey, r.Functions[i].Function}, r, m)
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
func (l *Live) AddCounter(program trace.Program, name string, values *stats.Sums) {
	known := l.counters.get(trace.FuncKey{Program: program, Name: name})
	if known == nil {
		known = l.counter(program, strings.Clone(name))
		l.news = true
	}
	if values.Count() > 0 {
		l.news = true
	}
	known.Values.Merge(values)
}

func (l *Live) counter(program trace.Program, name string) *liveCounter {
	return l.counters.add(trace.FuncKey{Program: program, Name: name}, &liveCounter{
		Counter: Counter{Program: program, Name: name}, quoted: quote(name),
	})
}

package summary

import (
	"cmp"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// StepReport holds the anomalies of a step of a rank, as labeled during the run.
type StepReport struct {
	trace.RankKey
	Step        int32
	First, Last trace.Ticks     // earliest entry and latest exit of the step
	Scores      stats.RunStats  // of all its anomalies
	Functions   []FunctionStats // with anomalies
}

// Live holds the statistics of a run so far and its news: the additions since the
// last TakeNews. An addition without values is not news. Adding to known functions,
// counters and ranks allocates nothing.
//
// Live is not safe for concurrent use. It keeps no reference to its arguments.
type Live struct {
	functions table[int, FunctionStats]
	counters  table[trace.FuncKey, Counter]
	ranks     table[trace.RankKey, liveRank]
	metrics   table[metricsKey, liveMetrics]
	paths     map[trace.Program]*callpath.Tree // with ids of functions
	load      *workload.Load                   // with ids of functions

	news  bool
	steps []liveStep     // with anomalies
	fresh []*liveMetrics // those with anomalies
	spare []*Metrics     // empty, for the next news
}

type liveRank struct {
	RankStatus
	steps stats.Sums // anomalies of each step
}

type metricsKey struct {
	trace.RankKey
	function int
}

func (k metricsKey) compare(o metricsKey) int {
	return cmp.Or(k.Compare(o.RankKey), cmp.Compare(k.function, o.function))
}

// liveMetrics sum up the anomalies of a function on a rank. Their times are those
// of the first and last step, not of anomalies.
type liveMetrics struct {
	metricsKey
	index uint64 // never changes
	all   Metrics
	fresh *Metrics // of the news; nil without
}

// liveStep is a step with anomalies; its times are those of anomalies.
type liveStep struct {
	trace.RankKey
	StepNews
}

// NewLive returns the statistics of a run that has not begun.
func NewLive() *Live {
	return &Live{
		functions: newTable(func(f *FunctionStats) int { return f.ID }, cmp.Compare[int]),
		counters:  newTable(func(c *Counter) trace.FuncKey { return c.FuncKey }, trace.FuncKey.Compare),
		ranks:     newTable(func(r *liveRank) trace.RankKey { return r.RankKey }, trace.RankKey.Compare),
		metrics:   newTable(func(m *liveMetrics) metricsKey { return m.metricsKey }, metricsKey.compare),
		paths:     make(map[trace.Program]*callpath.Tree),
		load:      workload.New(),
	}
}

// Add adds a delta.
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
	if d.Load != nil {
		l.load.Merge(d.Load, nil)
	}
}

// AddFunction adds calls of a function, without its anomalies: AddStep adds those.
// The first call for an id sets its program and name.
func (l *Live) AddFunction(f *FunctionStats) {
	stored := l.functions.get(f.ID)
	if stored == nil {
		key := trace.FuncKey{Program: f.Program, Name: strings.Clone(f.Name)}
		stored = l.functions.add(&FunctionStats{ID: f.ID, FuncKey: key})
		l.news = true
	}
	if f.Exclusive.Count() > 0 || f.Inclusive.Count() > 0 || f.PerStep.Count() > 0 {
		l.news = true
	}
	stored.Exclusive.Merge(&f.Exclusive)
	stored.Inclusive.Merge(&f.Inclusive)
	stored.PerStep.Merge(&f.PerStep)
}

// AddRank adds the number of anomalies of each step of a rank, zeros included.
func (l *Live) AddRank(key trace.RankKey, steps *stats.Sums) {
	if steps.Count() > 0 {
		l.news = true
	}
	l.rank(key).steps.Merge(steps)
}

func (l *Live) rank(k trace.RankKey) *liveRank {
	if r := l.ranks.get(k); r != nil {
		return r
	}
	return l.ranks.add(&liveRank{RankStatus: RankStatus{RankKey: k, LastStep: -1}})
}

// AddStep adds the anomalies of a step of a rank, if it has any.
func (l *Live) AddStep(r *StepReport) {
	if !(r.Scores.N > 0) {
		return
	}
	l.news = true
	rank := l.rank(r.RankKey)
	s := liveStep{rank.RankKey, StepNews{Step: r.Step, First: r.First, Last: r.Last, Scores: r.Scores}}
	first := true
	for i := range r.Functions {
		m := &r.Functions[i].Anomalies
		if m.Empty() {
			continue
		}
		l.addMetrics(metricsKey{rank.RankKey, r.Functions[i].ID}, r, m)
		if first {
			s.First, s.Last, first = m.First, m.Last, false
		}
		s.First, s.Last = min(s.First, m.First), max(s.Last, m.Last)
	}
	l.steps = append(l.steps, s)
	rank.Anomalies += s.Anomalies()
	rank.LastStep, rank.LastTime = max(rank.LastStep, r.Step), max(rank.LastTime, s.Last)
}

func (l *Live) addMetrics(k metricsKey, r *StepReport, m *Metrics) {
	stored := l.metrics.get(k)
	if stored == nil {
		stored = l.metrics.add(&liveMetrics{metricsKey: k, index: uint64(len(l.metrics.list))})
	}
	if stored.fresh == nil {
		if n := len(l.spare); n > 0 {
			stored.fresh, l.spare = l.spare[n-1], l.spare[:n-1]
		} else {
			stored.fresh = new(Metrics)
		}
		l.fresh = append(l.fresh, stored)
	}
	stored.all.addStep(r, m)
	stored.fresh.addStep(r, m)
}

// addStep adds anomalies o of a step. The times are those of the first and of the
// last step as the rank reported them.
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
	stored := l.counters.get(c.FuncKey)
	if stored == nil {
		key := trace.FuncKey{Program: c.Program, Name: strings.Clone(c.Name)}
		stored = l.counters.add(&Counter{FuncKey: key})
		l.news = true
	}
	if c.Values.Count() > 0 {
		l.news = true
	}
	stored.Values.Merge(&c.Values)
}

func (l *Live) addPaths(p *PathDelta) {
	t := l.paths[p.Program]
	if t == nil {
		t = callpath.New(callpath.MaxPaths)
		l.paths[p.Program] = t
	}
	t.Merge(p.Depth, p.List)
}

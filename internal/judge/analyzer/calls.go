package analyzer

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/devices"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A step has more calls than fit into the processor's cache. They are learned soon after they end. Most can be judged together
// by their least and greatest time once the models of the step are complete.

// endedRun is a call that ended in the step, or several consecutive calls of a function that make no calls.
type endedRun struct {
	function    int32 // number in rank.all; -1 if the call is lost
	count       int32
	least, most uint32 // time for judging; longTime if it is longer or if the call is labeled
}

const longTime = math.MaxUint32

// endedCalls are the elements of thread.Done.
type endedCalls struct {
	thread   *callstack.Thread
	bit, own uint64 // bits of the thread in numbers of calls and in localFunc.settled
	runs     []endedRun
	outer    int // number of calls that are in no other call; scratch
}

// time returns the time for judging of a call of a run, given by its index in thread.Done.
func (e *endedCalls) time(run *endedRun, i int) uint32 {
	if run.count == 1 {
		return run.least
	}
	return uint32(e.thread.Calls[e.thread.Done[i]].Inclusive())
}

// endedOn returns the calls of a thread that ended in the step. Threads must be passed one after another.
func (r *rank) endedOn(t *callstack.Thread) *endedCalls {
	n := len(r.ended)
	if n > 0 && r.ended[n-1].thread == t {
		return &r.ended[n-1]
	}
	if n == cap(r.ended) {
		r.ended = append(r.ended, endedCalls{})
	}
	r.ended = r.ended[:n+1] // reuse the memory of an earlier step
	e := &r.ended[n]
	e.thread, e.runs, e.bit, e.own = t, e.runs[:0], r.laneBit(t.ID), stats.ThreadBit(uint32(t.ID))
	return e
}

// learnCalls adds calls that ended to the deltas of their functions.
func (r *rank) learnCalls(t *callstack.Thread, from int) {
	e, leaves := r.endedOn(t), t.Leaves
	for from < len(t.Done) {
		n := 0
		if len(leaves) > 0 && from >= leaves[0].Done {
			left := leaves[0].Done + leaves[0].Count - from
			if n = r.learnLeaves(e, t.Calls[t.Done[from]:][:left]); max(n, 1) == left {
				leaves = leaves[1:]
			}
		}
		if n == 0 {
			r.learnCall(e, t.Done[from])
			n = 1
		}
		from += n
	}
	if e.outer > 0 && r.outer[t.ID] < several {
		r.outer[t.ID] += e.outer
	}
	e.outer = 0
}

// learnLeaves learns the short calls at the beginning of leaves if their function was learned earlier in this step. It returns
// their number. Most calls are such calls, and learning them one at a time takes three times as long.
func (r *rank) learnLeaves(e *endedCalls, leaves []callstack.Call) (n int) {
	c, w := &leaves[0], &r.work
	f := r.of(c)
	if !f.touched || r.cfg.SkipFirst && f.settled&e.own == 0 || e.bit != 0 && !f.first.Many(e.bit) {
		return 0
	}
	d, end := f.pending, trace.Ticks(f.pending.Short.End())
	if r.profile {
		end = min(end, w.End())
	}
	if !d.Short.Includes(int64(c.Exit)) || r.profile && !w.Includes(c.Entry, c.Exit) {
		return 0
	}
	least, most, sum := uint32(longTime), uint32(0), uint64(0)
	for ; n < len(leaves); n++ {
		c := &leaves[n]
		time := uint64(c.Inclusive())
		if c.Exit >= end || !d.Short.AddIncluded(time) {
			break
		}
		least, most, sum = min(least, uint32(time)), max(most, uint32(time)), sum+time
	}
	if n == 0 {
		return 0
	}
	f.last, e.runs = leaves[n-1].Entry, append(e.runs, endedRun{f.number, int32(n), least, most})
	r.counts.Calls += int64(n)
	if r.profile {
		f.calls += uint64(n)
		w.Add(&f.window, c.Entry, leaves[n-1].Exit, uint64(n), sum)
	}
	return n
}

// learnCall adds a call that ended to the delta of its function.
func (r *rank) learnCall(e *endedCalls, i int32) {
	t := e.thread
	c := &t.Calls[i]
	if c.Lost() {
		e.runs = append(e.runs, endedRun{-1, 1, longTime, longTime})
		return
	}
	if c.ParentStep < 0 {
		e.outer++
	}
	f := r.of(c)
	f.last, f.most = c.Entry, max(f.most, c.Children)
	if !f.first.Many(e.bit) && e.bit != 0 {
		r.count(f, e.bit)
	}
	if !f.touched {
		r.touch(f)
	}
	r.counts.Calls++
	d, exclusive := f.delta(), uint64(max(c.Exclusive(), 0))
	if r.profile {
		f.calls++
		if r.work.Includes(c.Entry, c.Exit) {
			r.work.Add(&f.window, c.Entry, c.Exit, 1, exclusive)
		} else {
			r.addWork(t.ID, f, c.Entry, c.Exit, exclusive)
		}
	}
	time := r.time(c)
	label, excluded := uint32(min(max(time, 0), longTime)), false
	if f.settled&e.own == 0 && r.cfg.SkipFirst {
		if excluded = r.setUp(t.ID, f.allPaths); excluded {
			label = longTime
		}
		f.settled |= f.allPaths.settled & e.own
	}
	e.runs = append(e.runs, endedRun{f.number, 1, label, label})
	if c.Children == 0 && !excluded && d.Short.Add(exclusive, int64(c.Exit)) {
		return
	}
	d.Exclusive.Add(exclusive)
	d.Inclusive.Add(uint64(max(c.Inclusive(), 0)))
	if excluded {
		if c.Label = callstack.Excluded; r.mayBeRare(t, c, f) {
			c.Label = callstack.First
		}
		return
	}
	d.Model.Learn(time, int64(c.Exit))
	if c.Children > 0 {
		d.Model.LearnMade(c.Children)
	}
	if !d.Short.Includes(int64(c.Exit)) {
		d.AddShort()
		d.Short.Begin(&d.Model, int64(c.Exit))
	}
}

// learn completes the deltas of the step.
func (r *rank) learn() {
	r.state.Add(r.builder.NodeEvents())
	for _, f := range r.touched {
		if !f.shared {
			f.pending.AddShort()
		}
	}
	r.learner = nil
	if r.profile && !r.online {
		threads := r.builder.Threads()
		if r.devices == nil {
			r.devices = devices.New(r.names, r.key.Rank, r.cfg.Unit, threads)
		}
		if r.devices != nil {
			r.devices.AddCalls(threads, r.step, r.start)
		}
	}
}

// limit has times of a function that are normal for certain in the step.
type limit struct {
	step    int    // rank.steps when it was set
	low     uint32 // least time
	count   uint32
	byTime  bool       // no call made too many calls
	typical *localFunc // function with the paths of the calls of which a typical one is needed; nil if none is; scratch
}

// isOdd reports whether a call with a time may be other than normal.
func (r *rank) isOdd(f *localFunc, time int64) bool {
	by := f.model.by
	return by.judge.Suspect(time) || time >= by.usual+r.delayLimit
}

// setLimit sets the limit of a function for this step.
func (r *rank) setLimit(f *localFunc) {
	r.recent = append(r.recent, f)
	l := &r.limits[f.number]
	*l = limit{step: r.steps}
	if f.model == nil {
		return
	}
	j := f.model.by.judge
	if j == nil { // the function is ignored
		l.count = longTime
		return
	}
	most := f.most
	if f.most = 0; most > j.MostCalls() {
		return // some calls may have made too many calls
	}
	l.byTime = true
	low, high := j.NormalTimes()
	if high = min(high, f.model.by.usual+r.delayLimit, longTime); low < high {
		l.low, l.count = uint32(low), uint32(high-low)
	}
}

// judge labels the calls that ended in this step and captures outliers.
func (r *rank) judge() error {
	r.flagged = r.flagged[:0]
	r.delayLimit = r.leastDelay(r.start, delaySlack)
	r.limits = slices.Grow(r.limits, max(0, len(r.all)-len(r.limits)))[:len(r.all)]
	for k := range r.ended {
		e := &r.ended[k]
		next := 0
		for i := range e.runs {
			run := &e.runs[i]
			first := next
			next += int(run.count)
			if uint(run.function) >= uint(len(r.limits)) {
				continue
			}
			l := &r.limits[run.function]
			if l.step != r.steps {
				r.setLimit(r.all[run.function])
			}
			if run.least-l.low >= l.count || run.most-l.low >= l.count {
				r.judgeRun(e, run, l, first)
			}
		}
	}
	if err := r.complete(); err != nil {
		return err
	}
	if err := r.judgeHeld(); err != nil {
		return err
	}
	return r.keep()
}

// judgeRun judges the calls of a run of which some may not be normal. first is the index of the first in thread.Done.
func (r *rank) judgeRun(e *endedCalls, run *endedRun, l *limit, first int) {
	f := r.all[run.function]
	for i := first; i < first+int(run.count); i++ {
		if time := e.time(run, i); time-l.low >= l.count && (!l.byTime || time == longTime || r.isOdd(f, int64(time))) {
			r.judgeCall(e.thread, e.thread.Done[i], f)
		}
	}
}

// judgeCall judges a call that may not be normal.
func (r *rank) judgeCall(t *callstack.Thread, i int32, f *localFunc) {
	c := &t.Calls[i]
	switch c.Label {
	case callstack.First:
		r.judgeFirst(t, i)
		return
	case callstack.Excluded:
		c.Label = callstack.Normal
		return
	}
	if f.model == nil {
		c.Label = callstack.Unjudged
		r.flagged = append(r.flagged, suspect{t, i, f, -1, provenance.Unjudged})
		return
	}
	j := f.model.by.judge
	if j == nil { // the function is ignored
		return
	}
	if v := r.time(c); c.Children > j.MostCalls() || r.isOdd(f, v) {
		r.suspect(t, i, f, j, v)
	}
}

// keepTypical captures the most typical execution in this step of each function, or call path that is judged separately, that
// had an anomaly on the same thread in this or an earlier step. Of several with the lowest score, it captures the first.
func (r *rank) keepTypical() error {
	for i := range r.ended {
		e := &r.ended[i]
		r.findTypical(e)
		for _, f := range r.typicals {
			call := e.thread.Done[f.typical]
			of := r.all[f.typicalOf]
			f.typical = -1
			f.missingTypicals = slices.DeleteFunc(f.missingTypicals, func(id trace.Thread) bool { return id == e.thread.ID })
			r.missingTypicals--
			score, verdict := f.judge().Judge(r.time(&e.thread.Calls[call]))
			if verdict == outlier.NotJudged {
				continue
			}
			if err := r.spoolCall(suspect{e.thread, call, of, score, provenance.Typical}); err != nil {
				return err
			}
		}
	}
	return nil
}

// findTypical sets r.typicals to the functions that need a typical execution on the thread, and their field typical to the
// index of that call.
func (r *rank) findTypical(e *endedCalls) {
	r.typicals = r.typicals[:0]
	missing := false
	for _, f := range r.recent {
		l, peers := &r.limits[f.number], f.peers()
		if l.typical = nil; slices.Contains(peers.missingTypicals, e.thread.ID) {
			l.typical, missing = peers, true
		}
	}
	if !missing {
		return
	}
	next := 0
	for i := range e.runs {
		run := &e.runs[i]
		first := next
		next += int(run.count)
		if uint(run.function) >= uint(len(r.limits)) {
			continue
		}
		f := r.limits[run.function].typical
		if f == nil || f.typical >= 0 && run.most < 64 && ^f.rejected>>run.least<<(63-run.most+run.least) == 0 {
			continue
		}
		for i := first; i < next; i++ {
			r.compareTypical(e, run, f, i)
		}
	}
}

// compareTypical makes a call of a run the most typical one of f so far if it is.
func (r *rank) compareTypical(e *endedCalls, run *endedRun, f *localFunc, i int) {
	time := e.time(run, i)
	if f.typical >= 0 && time < 64 && f.rejected>>time&1 != 0 {
		return
	}
	c := &e.thread.Calls[e.thread.Done[i]]
	if c.Label != callstack.Normal {
		return
	}
	v := int64(time)
	if time == longTime {
		v = r.time(c)
	}
	odd := f.judge().Oddness(v)
	if f.typical < 0 {
		r.typicals = append(r.typicals, f)
		f.rejected = 0
	}
	if f.typical < 0 || odd < f.oddness {
		f.typical, f.typicalOf, f.oddness = int32(i), run.function, odd
	}
	f.rejected |= 1 << time // if it is below 64
}

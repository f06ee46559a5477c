package analyzer

import (
	"strconv"
	"strings"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// rank is one rank at work.
type rank struct {
	cfg     *Config
	key     trace.RankKey
	names   *tau.Names
	host    string
	tally   *tally.Tally
	builder *callstack.Builder
	funcs   []*localFunc // by number, for those that are small
	others  map[trace.FuncID]*localFunc
	touched []*localFunc          // since the last merge
	merged  []*localFunc          // in the last merge, or flagged since
	first   map[firstCall]uint8   // how many calls were left out as set-up
	met     map[trace.Thread]bool // threads that met all others in a collective call
	roles   map[trace.CounterID]callstack.CounterRole
	state   nodeState
	counter map[trace.CounterID]*stats.Sums

	step       int // at work; -1: nothing this round
	start, end trace.Micros
	spool      *spool            // captures in the order of steps
	late       *spool            // those that were held, in the order in which they were judged
	pending    []*pendingCapture // whose windows reach into the next step
	held       []*pendingCapture // whose functions are not known well enough yet
	flagged    []suspect
	found      []*localFunc // with a typical call, in a search
	wanted     int          // functions on threads that wait for a typical execution
	counts     rankCounts
	paths      []callpath.Entry // scratch

	// Of a trace that is being written.
	online    bool
	shared    Contribution
	anomalies []*provenance.Record // flagged in this step
	normal    []*provenance.Record // typical ones
}

// rankCounts is what came of a rank's calls.
type rankCounts struct {
	Calls   int64
	Flagged int64
}

// localFunc is a function as a rank numbers it.
type localFunc struct {
	id       trace.FuncID
	model    *scoped // nil until its name is known
	function *Function
	wait     provenance.Wait
	named    bool           // wait is known
	touched  bool           // something was learned that is not merged
	merged   bool           // something is there to forget
	learned  *learned       // nil: nothing was since it was forgotten
	wanted   []trace.Thread // those that wait for a typical execution
	typical  int32          // the most typical call found so far; -1: none
	oddness  float64        // of that call
}

// learned is what a rank learned of a function since the last merge, and found of it
// in this step.
type learned struct {
	summary.FunctionStats
	delta outlier.Model
}

// lessons are those that were forgotten, for any rank to take: there are functions on
// many thousands of ranks, but few at a time of which something is learned.
var lessons = sync.Pool{New: func() any { return new(learned) }}

// lesson returns what was learned of the function.
func (f *localFunc) lesson() *learned {
	if f.learned == nil {
		f.learned = lessons.Get().(*learned)
	}
	return f.learned
}

type firstCall struct {
	thread trace.Thread
	fn     trace.FuncID
}

// suspect is a call that is to be kept.
type suspect struct {
	thread *callstack.Thread
	call   int32
	score  float64
	kind   provenance.Kind
}

// denseFuncs is how many functions are found by index; more than that only
// damaged traces have, which a map serves well enough.
const denseFuncs = 1 << 16

func newRank(cfg *Config, key trace.RankKey, names *tau.Names, t *tally.Tally, uncoupled func(string) bool) *rank {
	r := &rank{
		cfg: cfg, key: key, names: names, host: "Unknown", tally: t, step: -1,
		others: make(map[trace.FuncID]*localFunc), first: make(map[firstCall]uint8), met: make(map[trace.Thread]bool),
		roles: make(map[trace.CounterID]callstack.CounterRole), counter: make(map[trace.CounterID]*stats.Sums),
	}
	bc := callstack.Default()
	bc.Window = max(cfg.Window, 1)
	bc.Role = r.role
	if len(cfg.Uncoupled) > 0 {
		bc.Uncoupled = func(id trace.FuncID) bool {
			name, ok := names.Func(r.key.Rank, id)
			return ok && uncoupled(name)
		}
	}
	r.builder = callstack.NewBuilder(bc, t)
	return r
}

const correlationName = "Correlation ID"

// role tells what a counter is for. It is asked again while a name is unknown.
func (r *rank) role(id trace.CounterID) callstack.CounterRole {
	role, ok := r.roles[id]
	if ok {
		return role
	}
	name, known := r.names.Counter(r.key.Rank, id)
	switch {
	case !known:
		return callstack.OfCall
	case name == correlationName:
		role = callstack.Correlation
	case r.cfg.StatePrefix != "" && strings.HasPrefix(name, r.cfg.StatePrefix):
		role = callstack.Apart
	}
	r.roles[id] = role
	return role
}

func (r *rank) slot(id trace.FuncID) *localFunc {
	if int(id) < len(r.funcs) {
		if f := r.funcs[id]; f != nil {
			return f
		}
	} else if f := r.others[id]; f != nil {
		return f
	}
	f := &localFunc{id: id, typical: -1}
	if id < denseFuncs {
		for int(id) >= len(r.funcs) {
			r.funcs = append(r.funcs, nil)
		}
		r.funcs[id] = f
	} else {
		r.others[id] = f
	}
	return f
}

// begin starts a step.
func (r *rank) begin(step int) {
	r.step = step
	r.start, r.end = 0, 0
	r.builder.Begin(step)
}

// add takes in the events of one of the rank's threads.
func (r *rank) add(b *trace.Batch) {
	r.builder.Add(b.Thread, b.Events) // which may put times right
	first, last := b.Events[0].Time, b.Events[len(b.Events)-1].Time
	if r.start == 0 || first < r.start {
		r.start = first
	}
	r.end = max(r.end, last)
}

func (r *rank) addReadings(b *trace.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		s := r.counter[e.Counter()]
		if s == nil {
			s = new(stats.Sums)
			r.counter[e.Counter()] = s
		}
		s.Add(e.Value)
	}
}

func (r *rank) addMetadata(m *trace.Metadata) {
	if m.Key == "Hostname" {
		r.host = m.Value
	}
}

// time is what a call is judged by.
func (r *rank) time(c *callstack.Call) int64 {
	if r.cfg.Inclusive {
		return int64(c.Inclusive())
	}
	return int64(c.Exclusive())
}

// learn adds the calls that ended in this step to what the rank learned.
func (r *rank) learn(profile bool) {
	r.state.add(r.builder.Apart())
	for _, t := range r.builder.Threads() {
		for _, i := range t.Done {
			c := &t.Calls[i]
			if c.Lost() {
				continue
			}
			f := r.slot(c.Func)
			if !f.touched {
				f.touched = true
				r.touched = append(r.touched, f)
			}
			r.counts.Calls++
			l := f.lesson()
			if profile {
				l.Exclusive.Add(uint64(max(c.Exclusive(), 0)))
				l.Inclusive.Add(uint64(max(c.Inclusive(), 0)))
			}
			if r.cfg.SkipFirst && r.setUp(t.ID, f) {
				c.Label = callstack.Normal
				continue
			}
			l.delta.Learn(r.time(c), int64(c.Exit))
		}
	}
}

// maxSetUp is how many waits of a function on a thread are left out at most.
const maxSetUp = 16

// setUp reports whether the next call of a function on a thread, in the order in which
// they end, is left out: the first, which may include its set-up, and waits for messages
// before the thread's first collective call. Ranks begin at different times, and until
// they have met each wait may be for one that still begins.
func (r *rank) setUp(thread trace.Thread, f *localFunc) bool {
	key := firstCall{thread, f.id}
	n := r.first[key]
	if !f.named {
		if name, ok := r.names.Func(r.key.Rank, f.id); ok {
			f.named = true
			if !r.cfg.Outlier.IncludeSelf { // the original judges them
				f.wait = provenance.WaitOf(name)
			}
		}
	}
	switch {
	case f.wait == provenance.Collective && n == 0:
		r.met[thread] = true
	case n == 0 || f.wait == provenance.PointToPoint && n < maxSetUp && !r.met[thread]:
	default:
		return false
	}
	r.first[key] = n + 1
	return true
}

// merge hands what was learned to the models. It runs while no rank judges, in
// the order of ranks.
func (r *rank) merge(m *Models, frozen, profile bool) {
	left := r.touched[:0]
	for _, f := range r.touched {
		if f.model == nil && !r.resolve(m, f) {
			left = append(left, f) // its name comes with a later step
			continue
		}
		if profile {
			f.function.Exclusive.Merge(&f.learned.Exclusive)
			f.function.Inclusive.Merge(&f.learned.Inclusive)
		}
		if !frozen {
			m.learn(f.model, &f.learned.delta)
			if r.cfg.RankScope { // what all ranks know is asked for at the end
				f.function.model.model.Merge(&f.learned.delta)
			}
		}
		f.touched = false
		r.note(f)
	}
	r.touched = left
}

// note has what was learned of a function, and found of it, forgotten later.
func (r *rank) note(f *localFunc) {
	if !f.merged {
		f.merged = true
		r.merged = append(r.merged, f)
	}
}

// forget drops what was merged, and if frugal leaves its memory to others.
func (r *rank) forget(frugal bool) {
	for _, f := range r.merged {
		f.merged = false
		f.learned.reset()
		if frugal {
			lessons.Put(f.learned)
			f.learned = nil
		}
	}
	r.merged = r.merged[:0]
}

// reset forgets everything and keeps the memory.
func (l *learned) reset() {
	l.delta.Reset()
	l.FunctionStats = summary.FunctionStats{}
}

// resolve finds the function that the rank's number stands for.
func (r *rank) resolve(m *Models, f *localFunc) bool {
	name, ok := r.names.Func(r.key.Rank, f.id)
	if !ok {
		return false
	}
	f.function = m.function(trace.FuncKey{Program: r.key.Program, Name: name})
	f.model = f.function.model
	if r.cfg.RankScope {
		f.model = &scoped{function: f.function}
	}
	m.touch(f.model)
	return true
}

// judge labels the calls that ended in this step and keeps those worth it.
func (r *rank) judge() error {
	r.flagged = r.flagged[:0]
	for _, t := range r.builder.Threads() {
		r.judgeThread(t)
	}
	if err := r.complete(); err != nil {
		return err
	}
	if err := r.judgeHeld(); err != nil {
		return err
	}
	return r.keep()
}

func (r *rank) judgeThread(t *callstack.Thread) {
	for _, i := range t.Done {
		c := &t.Calls[i]
		if c.Lost() || c.Label != callstack.Unjudged {
			continue
		}
		f := r.slot(c.Func)
		if f.model != nil {
			j := f.model.judge
			if j == nil { // ignored
				c.Label = callstack.Normal
				continue
			}
			if v := r.time(c); j.Suspect(v) {
				r.suspect(t, i, j, v)
			} else {
				c.Label = callstack.Normal
			}
			continue
		}
		r.flagged = append(r.flagged, suspect{t, i, -1, provenance.Held})
	}
}

func (r *rank) suspect(t *callstack.Thread, i int32, j *outlier.Judge, v int64) {
	score, verdict := j.Judge(v)
	c := &t.Calls[i]
	switch verdict {
	case outlier.NotJudged:
		r.flagged = append(r.flagged, suspect{t, i, score, provenance.Held})
	case outlier.Normal:
		c.Label = callstack.Normal
	case outlier.Candidate:
		c.Label = callstack.Normal
		if r.keepsCandidates() {
			r.flagged = append(r.flagged, suspect{t, i, score, provenance.Candidate})
		}
	case outlier.Outlier:
		c.Label = callstack.Anomalous
		r.flagged = append(r.flagged, suspect{t, i, score, provenance.Anomaly})
	}
}

// finishStep forgets what is not needed any more, and if frugal gives memory
// back that the next step will need again.
func (r *rank) finishStep(frugal bool) {
	r.builder.Trim()
	if frugal {
		r.builder.Shrink()
	}
	r.step = -1
}

// The methods of provenance.Source.

// Program returns the program that the rank belongs to.
func (r *rank) Program() trace.Program { return r.key.Program }

// Rank returns the rank's number.
func (r *rank) Rank() trace.Rank { return r.key.Rank }

// Host returns the name of the rank's host.
func (r *rank) Host() string { return r.host }

// Func returns the global number and the name of a function.
func (r *rank) Func(id trace.FuncID) (int, string) {
	if f := r.slot(id); f.function != nil {
		return f.function.ID, f.function.Name
	}
	if name, ok := r.names.Func(r.key.Rank, id); ok {
		return -1, name // it never ended, so it is in no model
	}
	return -1, "#" + strconv.FormatUint(uint64(id), 10)
}

// Counter returns the name of a counter.
func (r *rank) Counter(id trace.CounterID) string {
	name, ok := r.names.Counter(r.key.Rank, id)
	if !ok {
		return "#" + strconv.FormatUint(uint64(id), 10)
	}
	return name
}

func (r *rank) counterKey(id trace.CounterID) trace.FuncKey {
	return trace.FuncKey{Program: r.key.Program, Name: r.Counter(id)}
}

// StateField returns the name of a field of the node's state.
func (r *rank) StateField(id trace.CounterID) string {
	return strings.TrimPrefix(r.Counter(id), r.cfg.StatePrefix)
}

// GPU tells which stream of a GPU a thread stands for.
func (r *rank) GPU(thread trace.Thread) (trace.GPU, bool) { return r.names.GPU(r.key.Rank, thread) }

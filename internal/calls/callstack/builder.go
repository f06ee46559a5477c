// Package callstack turns enter and exit events into nested calls with their messages and counters, and joins launches with
// the GPU kernels that they started. It keeps open calls between steps, never reads a clock and starts no goroutines. A
// Builder serves one rank and is not safe for concurrent use.
//
// Any order of events is accepted. An exit that does not match the innermost call closes the nearest open call of its
// function and marks the calls inside it as lost; an exit without a match is dropped. All repairs and losses are tallied.
//
// Calls that ended and are not lost are counted by call path.
package callstack

import (
	"cmp"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// Config configures the limits of a Builder and how it joins calls.
type Config struct {
	Window    int // calls to keep per thread after a step
	MaxDepth  int // open calls of a thread; deeper calls are dropped
	MaxPinned int // correlation IDs that wait for their other half
	MaxSides  int // messages and counters to keep per thread after a step
	MaxPaths  int // distinct call paths, at most callpath.MaxPaths

	// Role returns the role of a counter. If it is nil, all counters are OfCall.
	Role func(trace.CounterID) CounterRole
	// Folded, if not nil, is called with the new node of each old node when paths are folded.
	Folded func(moved []callpath.Node)
	// Ended, if not nil, is called after every few calls that ended, while they are in the processor's cache. The new
	// calls are t.Done[from:].
	Ended func(t *Thread, from int)
	// Activities, if not nil, records the activities of threads and the messages that they send. Place, if not nil,
	// returns where a thread runs.
	Activities *activity.Recorder
	Place      func(trace.Thread) activity.Place
	// MaxSetback is the greatest setback of a clock that Add repairs by moving events.
	MaxSetback trace.Ticks
	// LongCall, if not 0, is the time after which code between the calls that a call makes becomes calls, too.
	LongCall trace.Ticks
	// IgnoresCorrelation, if not nil, reports whether to ignore the correlation IDs of a function.
	IgnoresCorrelation func(trace.FuncID) bool
}

// CounterRole is the purpose of a counter.
type CounterRole uint8

// The roles.
const (
	OfCall      CounterRole = iota // belongs to the call in which it was read
	Correlation                    // like OfCall, and joins launches with kernels
	NodeState                      // belongs to no call, such as the state of the node
)

const (
	longCall  = 10 * time.Millisecond // a delay of this length shows in the time of a shorter call
	workShare = 10                    // inverse of the share of its time that a long call must spend in its own code
)

// Default returns the usual limits, for ticks of a unit.
func Default(unit trace.Unit) Config {
	return Config{
		Window: 10, MaxDepth: 1 << 14, MaxPinned: 1 << 16, MaxSides: 1 << 12, MaxPaths: callpath.MaxPaths,
		MaxSetback: unit.Ticks(time.Second), LongCall: unit.Ticks(longCall),
	}
}

// Builder builds the calls of one rank.
type Builder struct {
	cfg        Config
	tally      *tally.Tally
	threads    []*Thread // in order of number
	paths      *callpath.Tree
	unmatched  map[uint64]half
	queue      []ticket // IDs in order of arrival, including some that no longer wait
	lastTicket uint64   // number of the newest ticket
	nodeEvents []trace.Event
	step       int32
}

// half is a call whose correlation ID was seen once.
type half struct {
	thread *Thread
	call   int32
	number uint64 // number of its ticket
}

// ticket is the place of a half in the queue.
type ticket struct{ value, number uint64 }

// NewBuilder returns a Builder that counts in t.
func NewBuilder(cfg Config, t *tally.Tally) *Builder {
	return &Builder{cfg: cfg, tally: t, paths: callpath.New(cfg.MaxPaths), unmatched: make(map[uint64]half)}
}

// Threads returns the threads in order of number.
func (b *Builder) Threads() []*Thread { return b.threads }

// Paths returns the counts of calls of all threads by call path, without lost calls, since the caller last reset them.
// Functions have their numbers in the trace. A path exists, and counts for folding, from the beginning of its first call.
func (b *Builder) Paths() *callpath.Tree { return b.paths }

// Unmatched returns the number of correlation IDs without their other half.
func (b *Builder) Unmatched() int { return len(b.unmatched) }

// OpenCalls returns the number of calls that have not ended.
func (b *Builder) OpenCalls() (n int) {
	for _, t := range b.threads {
		n += len(t.stack)
	}
	return n
}

// thread returns the thread with a number, and adds it if it is new.
func (b *Builder) thread(id trace.Thread) *Thread {
	i, ok := slices.BinarySearchFunc(b.threads, id, func(t *Thread, id trace.Thread) int { return cmp.Compare(t.ID, id) })
	if !ok {
		b.threads = slices.Insert(b.threads, i, &Thread{ID: id})
	}
	return b.threads[i]
}

// Begin starts a step. The caller must have called Trim after the previous step.
func (b *Builder) Begin(step int) {
	b.step = int32(step)
	b.nodeEvents = b.nodeEvents[:0]
}

// NodeEvents returns the counters of the step with the role NodeState, thread by thread.
func (b *Builder) NodeEvents() []trace.Event { return b.nodeEvents }

// blockSize is the number of events after which Config.Ended is called.
const blockSize = 1 << 11

// Add adds the events of one thread in the step. It repairs times in events that run backwards.
func (b *Builder) Add(id trace.Thread, events []trace.Event) {
	if len(events) == 0 {
		return
	}
	t := b.thread(id)
	b.advance(t, events)
	t.Calls, t.Done = withRoom(t.Calls, len(events)/2), withRoom(t.Done, len(events)/2)
	for rest := events; len(rest) > 0; {
		block := rest[:min(len(rest), blockSize)]
		rest = rest[len(block):]
		from := len(t.Done)
		t.Leaves = t.Leaves[:0]
		b.build(t, block)
		if b.cfg.Ended != nil && from < len(t.Done) {
			b.cfg.Ended(t, from)
		}
	}
	if b.cfg.Activities != nil {
		b.cfg.Activities.EndStep(&t.activity, events[0].Time)
	}
}

// withRoom returns s with room for n more elements. Unlike slices.Grow, it copies no memory after the end of s, which may be far
// larger than s after a large step.
func withRoom[T any](s []T, n int) []T {
	if n <= cap(s)-len(s) {
		return s
	}
	return append(make([]T, 0, max(len(s)+n, cap(s)/4*5)), s...)
}

// build builds the calls of some events of a thread.
func (b *Builder) build(t *Thread, events []trace.Event) {
	calls, stack, paths := t.Calls, t.stack, b.paths
	activities, place, classes := b.activities(t.ID)
	for i := 0; i < len(events); i++ {
		e := &events[i]
		switch e.Kind {
		case trace.Enter:
			if n := len(stack); n > 1 && i+1 < len(events) && events[i+1].Kind == trace.Exit {
				t.Calls = calls
				if leaves := b.addLeaves(t, stack, events[i:], classes); leaves > 0 {
					calls = t.Calls
					i += 2*leaves - 1
					continue
				}
			}
			if len(stack) >= b.cfg.MaxDepth {
				b.drop(t, e.Func())
				continue
			}
			if t.code.set {
				calls = b.addCode(t, calls, stack, e)
			}
			n, depth := len(calls), len(stack)
			calls = slices.Grow(calls, 1)[:n+1]
			c := &calls[n]
			c.begin(e, b.step)
			from := callpath.Root
			if depth > 0 {
				top := stack[depth-1]
				parent := &calls[top]
				parent.Children++
				from, c.Parent, c.ParentStep, c.ParentRow = parent.Path(), top, parent.Step, parent.Row
			}
			path := paths.Find(from, e.ID)
			if path == callpath.Root {
				t.Calls = calls[:n]
				path = b.newPath(from, e.ID)
			}
			c.path = uint16(path)
			if activities != nil {
				class, known := classes.Class(e.Func())
				if !known {
					class, classes = activities.Class(e.Func(), place), activities.Known(place)
				}
				if c.flags = uint8(class) << classBits; !t.activity.Switch(e.Time, class) {
					activities.Cross(&t.activity, e.Time, class)
				}
			}
			stack = append(stack, int32(n))
		case trace.Exit:
			n := len(stack)
			if len(t.dropped) > 0 && t.undrop(e.Func()) {
				continue
			}
			if n == 0 {
				b.tally.Add(tally.ExitWithoutEnter, 1)
				continue
			}
			if c := &calls[stack[n-1]]; c.Func == e.Func() && e.Time >= c.Entry {
				b.end(t, calls, stack, e)
				stack = stack[:n-1]
				continue
			}
			t.Calls, t.stack = calls, stack
			b.resynchronize(t, e)
			stack, t.code.set = t.stack, false
		default:
			t.Calls, t.stack = calls, stack
			b.addSide(t, e)
		}
	}
	t.Calls, t.stack = calls, stack
}

// end ends the last call on the stack.
func (b *Builder) end(t *Thread, calls []Call, stack []int32, e *trace.Event) {
	n := len(stack)
	c, class := &calls[stack[n-1]], activity.None
	c.Exit = e.Time
	if n > 1 {
		parent := &calls[stack[n-2]]
		parent.children += e.Time - c.Entry
		class = parent.class()
		b.noteExit(t, n-2, parent, class, c, e.Row)
	} else {
		t.code.set = false
	}
	if b.cfg.Activities != nil && !t.activity.Switch(e.Time, class) {
		b.cfg.Activities.Cross(&t.activity, e.Time, class)
	}
	if c.flags&flagLost == 0 {
		b.paths.Add(c.Path(), 1, uint64(max(c.Exclusive(), 0)))
	}
	t.Done = append(t.Done, stack[n-1])
}

// activities returns the recorder of activities, which may be nil, the place of a thread, and the classes for that place.
func (b *Builder) activities(id trace.Thread) (r *activity.Recorder, place activity.Place, classes activity.Known) {
	if r = b.cfg.Activities; r == nil {
		return nil, activity.Host, nil
	}
	if b.cfg.Place != nil {
		place = b.cfg.Place(id)
	}
	return r, place, r.Known(place)
}

// A tree has at most one path that ends in Other below each path and below the root.
const _ = uint(maxNode - 2*(callpath.MaxPaths+1) - 1)

// newPath adds a call path. A path that would be too deep ends in Other.
func (b *Builder) newPath(from callpath.Node, fn uint32) callpath.Node {
	path := b.paths.Child(from, fn)
	if !b.paths.ExceedsLimit() {
		return path
	}
	moved := b.paths.Fold()
	for _, t := range b.threads {
		for i := range t.Calls {
			c := &t.Calls[i]
			c.path = uint16(moved[c.path])
		}
	}
	if b.cfg.Folded != nil {
		b.cfg.Folded(moved)
	}
	return moved[path]
}

// advance prevents time from running backwards between two steps, as it does when the clock is set back. Events older than
// the last event of the previous step get the time of that event. After a large setback, or if the last time was wrong, the
// thread continues at the new time, and the durations of its open calls are unknown.
func (b *Builder) advance(t *Thread, events []trace.Event) {
	if len(events) == 0 {
		return
	}
	if events[0].Time < t.last-b.cfg.MaxSetback {
		b.tally.Add(tally.TimeBackwards, 1)
		t.code.set = false
		for _, o := range t.stack {
			c := &t.Calls[o]
			c.Entry = min(c.Entry, events[0].Time)
			c.flags |= flagLost
		}
		b.tally.Add(tally.SidesForgotten, int64(len(t.Sides)))
		t.Sides = t.Sides[:0] // they are found by time
	} else {
		n := 0
		for ; n < len(events) && events[n].Time < t.last; n++ {
			events[n].Time = t.last
		}
		b.tally.Add(tally.TimeBackwards, int64(n))
	}
	t.last = events[len(events)-1].Time
}

// maxDropped is the number of dropped entries to remember.
const maxDropped = 1 << 12

// drop drops an entry and remembers it, so that its exit can be dropped as well.
func (b *Builder) drop(t *Thread, fn trace.FuncID) {
	b.tally.Add(tally.StackTooDeep, 1)
	if len(t.dropped) == maxDropped {
		t.dropped = t.dropped[:0]
	}
	t.dropped = append(t.dropped, fn)
}

// undrop reports whether an exit belongs to the last dropped entry. If not, exits were lost, and undrop forgets all dropped
// entries.
func (t *Thread) undrop(fn trace.FuncID) bool {
	n := len(t.dropped) - 1
	if t.dropped[n] != fn {
		t.dropped = t.dropped[:0]
		return false
	}
	t.dropped = t.dropped[:n]
	return true
}

// resynchronize handles an exit that does not match the innermost call. It closes the nearest open call of the same function
// and the calls inside it, whose exits were lost. All of them count as lost, because the durations of the inner calls, and so
// the exclusive time of the outer call, are unknown.
func (b *Builder) resynchronize(t *Thread, e *trace.Event) {
	n := len(t.stack) - 1
	for ; n >= 0; n-- {
		if c := &t.Calls[t.stack[n]]; c.Func == e.Func() && e.Time >= c.Entry {
			break
		}
	}
	if n < 0 {
		b.tally.Add(tally.ExitWithoutEnter, 1)
		return
	}
	b.tally.Add(tally.ExitLost, int64(len(t.stack)-1-n))
	for len(t.stack) > n {
		top := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		c := &t.Calls[top]
		c.Exit = max(e.Time, c.Entry)
		c.flags |= flagLost
		if c.Parent >= 0 {
			t.Calls[c.Parent].children += c.Exit - c.Entry
		}
		t.Done = append(t.Done, top)
	}
	if b.cfg.Activities != nil {
		class := activity.None
		if n := len(t.stack); n > 0 {
			class = t.Calls[t.stack[n-1]].class()
		}
		if !t.activity.Switch(e.Time, class) {
			b.cfg.Activities.Cross(&t.activity, e.Time, class)
		}
	}
}

// addSide adds a message or counter to the innermost open call.
func (b *Builder) addSide(t *Thread, e *trace.Event) {
	role := OfCall
	if e.Kind == trace.Count && b.cfg.Role != nil {
		role = b.cfg.Role(e.Counter())
	}
	if e.Kind == trace.Send && b.cfg.Activities != nil {
		size, known := e.Size()
		b.cfg.Activities.AddMessage(e.Partner(), size, known)
	}
	n := len(t.stack)
	switch {
	case role == NodeState:
		b.nodeEvents = append(b.nodeEvents, *e)
		return
	case n == 0:
		b.tally.Add(tally.OutsideAnyCall, 1)
		return
	}
	call := t.stack[n-1]
	t.Calls[call].flags |= flagSides
	t.Sides = append(t.Sides, Side{Event: *e, Call: call})
	if role == Correlation {
		b.correlate(t, call, e.Value)
	}
}

// correlate joins a call with the call that has the same correlation ID on another thread, or keeps it until that call appears.
func (b *Builder) correlate(t *Thread, call int32, value uint64) {
	if b.cfg.IgnoresCorrelation != nil && b.cfg.IgnoresCorrelation(t.Calls[call].Func) {
		return
	}
	other, ok := b.unmatched[value]
	if ok && other.thread != t {
		delete(b.unmatched, value)
		o := other.thread
		o.Links = append(o.Links, Link{Call: other.call, Partner: call, Thread: t})
		t.Links = append(t.Links, Link{Call: call, Partner: other.call, Thread: o})
		return
	}
	b.lastTicket++
	b.unmatched[value] = half{t, call, b.lastTicket} // of two on the same thread, the newer one counts
	b.queue = append(b.queue, ticket{value, b.lastTicket})
	b.expire()
}

// expire drops the oldest correlation IDs if there are too many.
func (b *Builder) expire() {
	n := 0
	for ; len(b.unmatched) > b.cfg.MaxPinned; n++ {
		if b.waits(b.queue[n]) {
			delete(b.unmatched, b.queue[n].value)
			b.tally.Add(tally.CorrelationDropped, 1)
		}
	}
	b.queue = b.queue[n:]
	if len(b.queue) > 2*len(b.unmatched)+1024 { // most IDs no longer wait
		b.queue = slices.DeleteFunc(b.queue, func(q ticket) bool { return !b.waits(q) })
	}
}

// waits reports whether the ID of a ticket still waits: it was neither matched nor repeated on the same thread.
func (b *Builder) waits(q ticket) bool { return b.unmatched[q.value].number == q.number }

// Trim ends a step. It keeps only open calls, the last calls of each thread up to the window, and calls that wait for the
// other half of their correlation ID, with all their parents. The indices of calls change.
func (b *Builder) Trim() {
	for _, t := range b.threads {
		t.kept = append(t.kept[:0], t.stack...)
		for i := max(0, len(t.Calls)-b.cfg.Window); i < len(t.Calls); i++ {
			t.kept = append(t.kept, int32(i))
		}
	}
	for _, h := range b.unmatched {
		h.thread.keep(h.call)
	}
	for _, t := range b.threads {
		t.Links = slices.DeleteFunc(t.Links, func(l Link) bool {
			return !t.Calls[l.Call].IsOpen() && !l.Thread.Calls[l.Partner].IsOpen()
		})
		for _, l := range t.Links {
			t.keep(l.Call)
			l.Thread.keep(l.Partner)
		}
	}
	for _, t := range b.threads {
		slices.Sort(t.kept)
		t.kept = slices.Compact(t.kept)
	}
	for _, t := range b.threads {
		for i := range t.Links {
			l := &t.Links[i]
			l.Call, l.Partner = t.place(l.Call), l.Thread.place(l.Partner)
		}
	}
	for value, h := range b.unmatched {
		h.call = h.thread.place(h.call)
		b.unmatched[value] = h
	}
	for _, t := range b.threads {
		b.compact(t)
	}
}

// Shrink frees memory that only large steps need, for programs that build the calls of thousands of ranks.
func (b *Builder) Shrink() {
	for _, t := range b.threads {
		t.Calls, t.Sides = slices.Clip(slices.Clone(t.Calls)), slices.Clip(slices.Clone(t.Sides))
		t.Done, t.kept = nil, nil
	}
}

// keep marks a call and all its parents to be kept.
func (t *Thread) keep(call int32) {
	for c := range t.Stack(call) {
		t.kept = append(t.kept, c)
	}
}

// place returns the index of a call after compact, or -1.
func (t *Thread) place(call int32) int32 {
	if i, ok := slices.BinarySearch(t.kept, call); ok {
		return int32(i)
	}
	return -1
}

// compact moves the kept calls to the front.
func (b *Builder) compact(t *Thread) {
	b.compactSides(t)
	for i, old := range t.kept {
		c := t.Calls[old]
		if c.Parent >= 0 {
			c.Parent = t.place(c.Parent)
		}
		t.Calls[i] = c
	}
	t.Calls = t.Calls[:len(t.kept)]
	for i := range t.stack {
		t.stack[i] = t.place(t.stack[i])
	}
	t.Done = t.Done[:0]
}

// compactSides keeps the messages and counters of calls that are open or in the window. Those of other calls are never needed.
func (b *Builder) compactSides(t *Thread) {
	window := int32(len(t.Calls) - b.cfg.Window)
	n := 0
	for _, s := range t.Sides {
		if s.Call < window && !t.Calls[s.Call].IsOpen() {
			continue
		}
		s.Call = t.place(s.Call)
		t.Sides[n] = s
		n++
	}
	t.Sides = t.Sides[:n]
	if over := n - b.cfg.MaxSides; over > 0 {
		b.tally.Add(tally.SidesForgotten, int64(over))
		t.Sides = t.Sides[:copy(t.Sides, t.Sides[over:])]
	}
}

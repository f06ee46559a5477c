// Package provenance describes an execution with its context: call stack, counters, the
// calls before and after it on the same thread, messages, the GPU and the launch of a
// kernel, the state of the node. A Capture is taken while the step is in memory and has
// numbers only. A Record is made of it when it is written, in the schema of the provenance
// database.
package provenance

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// Kind is the reason why an execution is captured.
type Kind uint8

// The kinds.
const (
	Anomaly   Kind = iota // flagged
	Candidate             // close to being flagged
	Unjudged              // not judged: too few samples of its function
	Typical               // the most typical execution of a function with an anomaly
	First                 // not judged: the first of its function on its thread
)

// Frame is a call of a stack or a window.
type Frame struct {
	Func       trace.FuncID
	Step       int32
	Row        uint32
	Entry      trace.Ticks
	Exit       trace.Ticks // 0: open
	ParentStep int32       // -1: no parent
	ParentRow  uint32
	Anomalous  bool
}

// Comm is a message and the call it belongs to.
type Comm struct {
	trace.Event
	Step int32
	Row  uint32
}

// Partner is a call with the same correlation id: the launch of a kernel, or a kernel of a
// launch.
type Partner struct {
	Thread trace.Thread
	Stack  []Frame // the call first
}

// Field is one value of the state of the node.
type Field struct {
	Counter trace.CounterID
	Value   uint64
}

// Capture is an execution and its context. Functions and counters have the numbers of their
// trace.
type Capture struct {
	Kind      Kind
	Context   int32 // number of the models that judge it, for the caller
	Thread    trace.Thread
	IOStep    int32 // in which the execution ended
	StepStart trace.Ticks
	StepEnd   trace.Ticks
	Exclusive trace.Ticks
	Children  uint32 // calls that it made directly
	Score     float64
	Sent      bool // the store may have a provisional record

	Stack     []Frame // the execution first
	Counters  []trace.Event
	Window    []Frame
	Comms     []Comm
	Partners  []Partner // of a GPU kernel: usually one
	NodeTime  trace.Ticks
	NodeState []Field
}

// Call returns the execution itself.
func (c *Capture) Call() *Frame { return &c.Stack[0] }

// Work returns the calls that the execution made.
func (c *Capture) Work() outlier.Work {
	return outlier.Work{Calls: c.Children, Time: int64(c.Call().Exit - c.Call().Entry - c.Exclusive)}
}

// ID returns the id of the execution.
func (c *Capture) ID(rank trace.Rank) trace.EventID {
	return trace.EventID{Rank: rank, Step: int(c.Stack[0].Step), Row: c.Stack[0].Row}
}

// Mark sets whether the execution is anomalous, in the stack and in the window.
func (c *Capture) Mark(anomalous bool) {
	call := c.Call()
	call.Anomalous = anomalous
	for i := range c.Window {
		if f := &c.Window[i]; f.Step == call.Step && f.Row == call.Row {
			f.Anomalous = anomalous
		}
	}
}

// Take fills c with a call of a thread, given by its index, and up to window calls before
// and after it. The caller sets the rest: Kind, Score, the step and the state of the node.
// Take reuses most of c's memory.
func (c *Capture) Take(t *callstack.Thread, call int32, window int) {
	c.Thread = t.ID
	c.Exclusive, c.Children = t.Calls[call].Exclusive(), t.Calls[call].Children
	c.Stack = stackOf(c.Stack[:0], t, call)
	c.Counters = c.Counters[:0]
	c.Window, c.Comms, c.Partners = c.Window[:0], c.Comms[:0], c.Partners[:0]
	var sides []trace.Event
	for _, e := range t.SidesOf(sides, call) {
		if e.Kind == trace.Count {
			c.Counters = append(c.Counters, e)
		}
	}
	c.addWindow(t, max(0, int(call)-window), min(len(t.Calls), int(call)+window+1))
	for thread, partner := range t.Partners(call) {
		c.Partners = append(c.Partners, Partner{Thread: thread.ID, Stack: stackOf(nil, thread, partner)})
	}
}

// addWindow adds the calls [from, to) of a thread and their messages to the window.
func (c *Capture) addWindow(t *callstack.Thread, from, to int) {
	var sides []trace.Event
	for i := from; i < to; i++ {
		f := frameOf(&t.Calls[i])
		c.Window = append(c.Window, f)
		for _, e := range t.SidesOf(sides, int32(i)) {
			if e.Kind == trace.Send || e.Kind == trace.Recv {
				c.Comms = append(c.Comms, Comm{Event: e, Step: f.Step, Row: f.Row})
			}
		}
	}
}

// Extend appends up to n calls of a later step to the window.
func (c *Capture) Extend(t *callstack.Thread, n int) {
	last := &c.Window[len(c.Window)-1]
	at := slices.IndexFunc(t.Calls, func(call callstack.Call) bool { return call.Step == last.Step && call.Row == last.Row })
	if at >= 0 {
		c.addWindow(t, at+1, min(len(t.Calls), at+1+n))
	}
}

func stackOf(dst []Frame, t *callstack.Thread, call int32) []Frame {
	for i := range t.Stack(call) {
		dst = append(dst, frameOf(&t.Calls[i]))
	}
	return dst
}

func frameOf(c *callstack.Call) Frame {
	return Frame{
		Func: c.Func, Step: c.Step, Row: c.Row, Entry: c.Entry, Exit: c.Exit,
		ParentStep: c.ParentStep, ParentRow: c.ParentRow, Anomalous: c.Label == callstack.Anomalous,
	}
}

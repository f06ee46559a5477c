package callstack

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// Open is the exit time of a call that has not ended.
const Open trace.Ticks = 0

// Call is one execution of a function. It has no pointers. Within a step, its index in Thread.Calls identifies it.
type Call struct {
	Entry    trace.Ticks
	Exit     trace.Ticks // Open until it ends
	children trace.Ticks // inclusive time of the direct children

	Func   trace.FuncID
	Step   int32  // step of the entry
	Row    uint32 // row of the entry
	Parent int32  // index of the parent; -1 if it has none, or if the parent was dropped

	ParentStep int32 // step of the parent's entry; -1 if there is no parent
	ParentRow  uint32

	Children uint32 // number of direct children
	Label    Label
	flags    uint8
	path     uint16 // a callpath.Node of at most maxNode
}

// begin sets all fields for a call without a parent. It sets them one by one, because copying a call that was just written
// would stall the processor.
func (c *Call) begin(e *trace.Event, step int32) {
	c.Entry, c.Exit, c.children, c.Children, c.Label, c.flags, c.path = e.Time, Open, 0, 0, Normal, 0, 0
	c.Func, c.Step, c.Row = e.Func(), step, e.Row
	c.Parent, c.ParentStep, c.ParentRow = -1, -1, 0
}

// maxNode is the greatest node of a Builder's paths. It leaves no gap in Call.
const maxNode = math.MaxUint16

// Label is the verdict about a call. The caller sets it.
type Label int8

// The labels.
const (
	Normal Label = iota // or not labeled yet
	Anomalous
	Excluded // not judged: set-up
	First    // not judged: set-up that may be a rare call
	Unjudged // too few samples
)

const (
	flagSides uint8 = 1 << iota // it has messages or counters
	flagLost                    // its times, or those of its children, are invalid
)

// classBits are the bits of flags below the class of activity.
const classBits = 4

func (c *Call) class() activity.Class { return activity.Class(c.flags >> classBits) }

// Inclusive returns the time from entry to exit.
func (c *Call) Inclusive() trace.Ticks { return c.Exit - c.Entry }

// Exclusive returns the inclusive time without that of the children.
func (c *Call) Exclusive() trace.Ticks { return c.Exit - c.Entry - c.children }

// Path returns the node of the call in Builder.Paths.
func (c *Call) Path() callpath.Node { return callpath.Node(c.path) }

// IsOpen reports whether the call has not ended.
func (c *Call) IsOpen() bool { return c.Exit == Open }

// Lost reports whether the call's times are invalid: its exit, or that of a call inside it, was lost, or the clock was set back.
func (c *Call) Lost() bool { return c.flags&flagLost != 0 }

// ID returns the event ID of the call on a rank.
func (c *Call) ID(rank trace.Rank) trace.EventID {
	return trace.EventID{Rank: rank, Step: int(c.Step), Row: c.Row}
}

// ParentID returns the event ID of the call's parent, or false if there is none.
func (c *Call) ParentID(rank trace.Rank) (trace.EventID, bool) {
	return trace.EventID{Rank: rank, Step: int(c.ParentStep), Row: c.ParentRow}, c.ParentStep >= 0
}

// Side is a message or a counter and its call: the innermost call that was open at its time, including both ends.
type Side struct {
	trace.Event
	Call int32 // index in Thread.Calls
}

// Thread contains the calls of one thread: all calls of the current step, and those of earlier steps that are open, in the
// window or waiting for their partner.
type Thread struct {
	ID    trace.Thread
	Calls []Call  // in order of entry
	Done  []int32 // indices of the calls that ended in this step, in order of exit
	Sides []Side  // in order of time
	Links []Link  // partners of calls of this thread

	// Leaves are the sequences of calls built together among those that are new when Config.Ended is called.
	Leaves []Leaves

	stack   []int32        // calls that have not ended, the outermost first
	kept    []int32        // calls that Trim keeps
	dropped []trace.FuncID // dropped entries whose exits are expected
	last    trace.Ticks
	code    codeStart
	long    []longCaller // by depth; those of calls that ended are invalid

	activity activity.Meter
}

// Leaves are consecutive calls of one function on one path, with the same parent, that make no calls and are not lost. Each
// begins when or after the one before has ended. They are also consecutive in Thread.Done.
type Leaves struct {
	Done  int // index of the first in Thread.Done
	Count int
}

// Active reports whether the thread ever entered a function whose activities are recorded.
func (t *Thread) Active() bool { return t.activity.Used() }

// Link joins a call to its partner on another thread, through a correlation id.
type Link struct {
	Call    int32
	Partner int32   // index in Thread.Calls
	Thread  *Thread // thread of the partner
}

// Stack yields the indices of a call and of its parents, as far as they were kept.
func (t *Thread) Stack(call int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for ; call >= 0; call = t.Calls[call].Parent {
			if !yield(call) {
				return
			}
		}
	}
}

// SidesOf appends the messages and counters that belong to a call to dst, in order of time.
func (t *Thread) SidesOf(dst []trace.Event, call int32) []trace.Event {
	c := &t.Calls[call]
	if c.flags&flagSides == 0 {
		return dst
	}
	first, _ := slices.BinarySearchFunc(t.Sides, c.Entry, func(s Side, entry trace.Ticks) int { return cmp.Compare(s.Time, entry) })
	for i := first; i < len(t.Sides); i++ {
		s := &t.Sides[i]
		if !c.IsOpen() && s.Time > c.Exit {
			break
		}
		if s.Call == call {
			dst = append(dst, s.Event)
		}
	}
	return dst
}

// Partners yields the calls to which a call is joined.
func (t *Thread) Partners(call int32) iter.Seq2[*Thread, int32] {
	return func(yield func(*Thread, int32) bool) {
		for _, l := range t.Links {
			if l.Call == call && !yield(l.Thread, l.Partner) {
				return
			}
		}
	}
}

package callstack

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// Open is the exit time of a call that has not ended.
const Open trace.Micros = 0

// Call is one execution of a function. It holds no pointers; its place in the
// list of its thread is its identity while the step lasts.
type Call struct {
	Entry    trace.Micros
	Exit     trace.Micros // Open while it runs
	children trace.Micros // inclusive time of the direct children

	Func   trace.FuncID
	Step   int32  // with Row the event id: step and row of the entry
	Row    uint32 //
	Parent int32  // place in the list; -1: none, or no longer held

	ParentStep int32 // event id of the parent; -1: none
	ParentRow  uint32

	Children uint32 // number of direct children
	Label    Label
	flags    uint8
}

// Label is what is known of a call's judgment. The caller sets it.
type Label int8

// The labels.
const (
	Unjudged Label = iota
	Normal
	Anomalous
)

const (
	flagSides uint8 = 1 << iota // messages or counters belong to it
	flagLost                    // its own times, or those of what it called, mean nothing
)

// Inclusive is the time from entry to exit.
func (c *Call) Inclusive() trace.Micros { return c.Exit - c.Entry }

// Exclusive is the inclusive time without that of the children.
func (c *Call) Exclusive() trace.Micros { return c.Exit - c.Entry - c.children }

// IsOpen reports whether the call has not ended.
func (c *Call) IsOpen() bool { return c.Exit == Open }

// Lost reports whether the call's times are not to be learned or judged: its
// exit was lost, or that of a call in it, or the clock was set back.
func (c *Call) Lost() bool { return c.flags&flagLost != 0 }

// ID names the call on a rank.
func (c *Call) ID(rank trace.Rank) trace.EventID {
	return trace.EventID{Rank: rank, Step: int(c.Step), Row: c.Row}
}

// ParentID names the call's parent; false for a call without one.
func (c *Call) ParentID(rank trace.Rank) (trace.EventID, bool) {
	return trace.EventID{Rank: rank, Step: int(c.ParentStep), Row: c.ParentRow}, c.ParentStep >= 0
}

// Side is a message or a counter, and the call it belongs to: the innermost
// that was open at its time, both ends included.
type Side struct {
	trace.Event
	Call int32 // place in the list of the thread
}

// Thread holds the calls of one thread: those of the step at work, and of
// earlier ones those that are open, in the window or pinned.
type Thread struct {
	ID    trace.Thread
	Calls []Call  // in order of entry
	Done  []int32 // places of the calls that ended in this step, in order of exit
	Sides []Side  // in order of time
	Links []Link  // partners of calls of this thread

	stack   []open
	kept    []int32        // those that a trim keeps
	dropped []trace.FuncID // entries that were dropped and whose exits are to come
	last    trace.Micros
}

// open is a call that has not ended.
type open struct {
	call int32         // place in the list
	path callpath.Node // its call path
}

// Link joins a call to its partner on another thread, through a correlation id.
type Link struct {
	Call    int32
	Partner int32   // place in the list of Thread
	Thread  *Thread // of the partner
}

// Stack yields the places of a call and of all above it that are held.
func (t *Thread) Stack(call int32) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		for ; call >= 0; call = t.Calls[call].Parent {
			if !yield(call) {
				return
			}
		}
	}
}

// SidesOf appends to dst the messages and counters that belong to a call, in
// order of time.
func (t *Thread) SidesOf(dst []trace.Event, call int32) []trace.Event {
	c := &t.Calls[call]
	if c.flags&flagSides == 0 {
		return dst
	}
	for i := firstAt(t.Sides, c.Entry); i < len(t.Sides); i++ {
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

// firstAt returns the place of the first side that is not before time.
func firstAt(sides []Side, time trace.Micros) int {
	lo, hi := 0, len(sides)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); sides[mid].Time < time {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Partners yields the calls that are joined to a call.
func (t *Thread) Partners(call int32) func(yield func(*Thread, int32) bool) {
	return func(yield func(*Thread, int32) bool) {
		for _, l := range t.Links {
			if l.Call == call && !yield(l.Thread, l.Partner) {
				return
			}
		}
	}
}

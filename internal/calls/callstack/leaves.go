package callstack

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// Most calls make no calls, and often one follows another of the same function. Building such calls together takes a third of
// the time: what they share is looked up once, and loops are so short that their variables stay in registers.

// addLeaves builds the calls at the beginning of events that are of one function and make no calls, as calls of the last call
// on the stack. It returns their number. The number is 0 if they must be built one at a time, for example in the first call
// of a path.
func (b *Builder) addLeaves(t *Thread, stack []int32, events []trace.Event, classes activity.Known) int {
	fn, caller := events[0].Func(), stack[len(stack)-1]
	parent := &t.Calls[caller]
	path := b.paths.Find(parent.Path(), uint32(fn))
	if path == callpath.Root || len(stack) >= b.cfg.MaxDepth || len(t.dropped) > 0 {
		return 0
	}
	class, since, left := activity.None, events[0].Time, uint64(math.MaxUint64)
	if b.cfg.Activities != nil {
		var known bool
		if class, known = classes.Class(fn); !known {
			return 0
		}
		since, left = t.activity.Rest(parent.class())
		if b.cfg.LongCall > 0 && parent.class() == activity.Own { // of a long call, code between calls becomes calls
			left = min(left, uint64(max(0, parent.Entry+b.cfg.LongCall-since)))
		}
	}
	n, time := countLeaves(fn, events, since, left)
	if n == 0 {
		return 0
	}
	parent.Children += uint32(n)
	parent.children += time
	b.paths.Add(path, uint64(n), uint64(time))
	if b.cfg.Activities != nil {
		t.activity.Visit(class, uint64(time), events[2*n-1].Time)
	}
	call := Call{
		Func: fn, Step: b.step, Parent: caller, ParentStep: parent.Step, ParentRow: parent.Row,
		flags: uint8(class) << classBits, path: uint16(path),
	}
	first := len(t.Calls)
	t.Calls, t.Done = slices.Grow(t.Calls, n)[:first+n], slices.Grow(t.Done, n)
	added := t.Calls[first:]
	for i := range added {
		c, entry, exit := &added[i], &events[2*i], &events[2*i+1]
		*c = call
		c.Entry, c.Exit, c.Row = entry.Time, exit.Time, entry.Row
	}
	t.Leaves = append(t.Leaves, Leaves{len(t.Done), n})
	for i := range n {
		t.Done = append(t.Done, int32(first+i))
	}
	return n
}

// countLeaves returns the number of calls of a function at the beginning of events that make no calls, and the sum of their
// times. They end before left time has passed since since.
func countLeaves(fn trace.FuncID, events []trace.Event, since trace.Ticks, left uint64) (n int, time trace.Ticks) {
	for last := since; len(events) > 1; events = events[2:] {
		entry, exit := &events[0], &events[1]
		if entry.Kind != trace.Enter || exit.Kind != trace.Exit || entry.Func() != fn || exit.Func() != fn {
			break
		}
		if entry.Time < last || exit.Time < entry.Time || uint64(exit.Time-since) >= left {
			break
		}
		last = exit.Time
		time += exit.Time - entry.Time
		n++
	}
	return n, time
}

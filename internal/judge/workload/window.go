package workload

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// CallWindow is a window of time in which calls of a thread are summed up by function. The zero value includes no calls.
type CallWindow struct {
	begin, end  trace.Ticks
	first, last trace.Ticks // first entry and last exit of the sums
}

// Begin moves the window to a time and restarts it. shift is the binary logarithm of its width.
func (w *CallWindow) Begin(at trace.Ticks, shift uint8) {
	w.begin = at >> shift << shift
	w.end = w.begin + 1<<shift
	w.Restart()
}

// Includes reports whether a call entered and exited in the window.
func (w *CallWindow) Includes(entry, exit trace.Ticks) bool { return entry >= w.begin && exit < w.end }

// End returns the end of the window.
func (w *CallWindow) End() trace.Ticks { return w.end }

// Add adds calls in the window, from the first entry to the last exit, to the sums of their function.
func (w *CallWindow) Add(s *callpath.Sums, entry, exit trace.Ticks, calls, time uint64) {
	s.Calls += calls
	s.Exclusive += time
	w.first, w.last = min(w.first, entry), exit
}

// Restart returns the first entry and the last exit of the sums, and clears them.
func (w *CallWindow) Restart() (first, last trace.Ticks) {
	first, w.first = w.first, math.MaxInt64
	return first, w.last
}

// Package devices finds the work of GPUs among the calls of a rank: training steps, and the activities of streams with
// their launches. It passes them to a breakdown.
package devices

import (
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
)

// Times feeds the breakdown of a rank with GPUs.
type Times struct {
	*breakdown.Rank
	names    *trace.Names
	rank     trace.Rank
	kinds    map[trace.FuncID]breakdown.Kind // kinds of activity of functions on streams
	steps    map[trace.FuncID]int64          // training steps of functions on the host; stepOfTrace and noStep are special
	launches []trace.Ticks                   // of the calls of a stream; scratch
}

// stepName begins the names of the calls that PyTorch's profiler records for training steps; # and a number follow.
const stepName = "ProfilerStep"

// Special values of Times.steps.
const (
	noStep      = -1 // not a training step
	stepOfTrace = -2 // a training step with the number of the step of the trace
)

// noActivity is the kind of calls of a stream that are not work of the GPU.
const noActivity breakdown.Kind = 0xff

// New returns the times of a rank, or nil if none of its threads is a stream.
func New(names *trace.Names, rank trace.Rank, unit trace.Unit, threads []*callstack.Thread) *Times {
	t := &Times{names: names, rank: rank}
	if !slices.ContainsFunc(threads, t.isStream) {
		return nil
	}
	t.Rank = breakdown.NewRank(breakdown.Default(unit))
	t.kinds, t.steps = make(map[trace.FuncID]breakdown.Kind), make(map[trace.FuncID]int64)
	return t
}

// AddCalls adds the calls of a step of the trace, which begins at start.
func (t *Times) AddCalls(threads []*callstack.Thread, step int, start trace.Ticks) {
	// Streams may be written late. What began before this step is complete.
	settled := start
	for _, thread := range threads {
		if !t.isStream(thread) {
			t.addSteps(thread, step)
			continue
		}
		t.addActivities(thread)
		for i := range thread.Calls {
			if c := &thread.Calls[i]; c.IsOpen() {
				settled = min(settled, c.Entry)
			}
		}
	}
	t.Settle(settled)
}

func (t *Times) isStream(thread *callstack.Thread) bool {
	_, ok := t.names.GPU(t.rank, thread.ID)
	return ok
}

// addSteps adds the training steps that began on a thread of the host in a step of the trace.
func (t *Times) addSteps(thread *callstack.Thread, step int) {
	for _, c := range slices.Backward(thread.Calls) {
		if int(c.Step) != step {
			return
		}
		number, known := t.steps[c.Func]
		if !known {
			var ok bool
			if number, ok = t.stepNumber(c.Func); ok {
				t.steps[c.Func] = number
			}
		}
		switch number {
		case noStep:
		case stepOfTrace:
			t.BeginStep(int64(c.Step), c.Entry)
		default:
			t.BeginStep(number, c.Entry)
		}
	}
}

// stepNumber returns the number of the training step that a function represents, stepOfTrace or noStep. final is false if
// the function may get a name later.
func (t *Times) stepNumber(fn trace.FuncID) (number int64, final bool) {
	switch t.names.Work(fn) {
	case trace.UnknownWork:
	case trace.StepWork:
		return stepOfTrace, true
	case trace.HostWork, trace.Compute, trace.Communication, trace.MemoryCopy:
		return noStep, true
	}
	name, ok := t.names.Func(t.rank, fn)
	digits, isStep := strings.CutPrefix(name, stepName+"#")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !isStep || err != nil || n < 0 {
		n = noStep
	}
	return n, ok
}

// activity returns the kind of activity that a function on a stream represents. final is false if the function may get a
// name later.
func (t *Times) activity(fn trace.FuncID) (kind breakdown.Kind, final bool) {
	switch t.names.Work(fn) {
	case trace.Compute:
		return breakdown.Compute, true
	case trace.Communication:
		return breakdown.Communication, true
	case trace.MemoryCopy:
		return breakdown.Memory, true
	case trace.HostWork, trace.StepWork:
		return noActivity, true
	case trace.UnknownWork:
	}
	name, ok := t.names.Func(t.rank, fn)
	if strings.HasPrefix(name, trace.WholeThread) {
		return noActivity, ok
	}
	return breakdown.KindOf(name), ok
}

// addActivities adds the calls of a stream that ended in this step. Calls that contain others are annotations.
func (t *Times) addActivities(thread *callstack.Thread) {
	t.launches = slices.Grow(t.launches[:0], len(thread.Calls))[:len(thread.Calls)]
	for i := range t.launches {
		t.launches[i] = breakdown.NoLaunch
	}
	for _, l := range thread.Links {
		if l.Call >= 0 && l.Partner >= 0 && !t.isStream(l.Thread) {
			t.launches[l.Call] = l.Thread.Calls[l.Partner].Entry
		}
	}
	for _, i := range thread.Done {
		c := &thread.Calls[i]
		if c.Lost() || c.Children > 0 {
			continue
		}
		kind, known := t.kinds[c.Func]
		if !known {
			var ok bool
			if kind, ok = t.activity(c.Func); ok {
				t.kinds[c.Func] = kind
			}
		}
		if kind == noActivity {
			continue
		}
		t.Add(breakdown.Activity{Start: c.Entry, End: c.Exit, Launch: t.launches[i], Stream: thread.ID, Kind: kind})
	}
}

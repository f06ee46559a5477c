package analyzer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
)

// deviceTimes feeds the breakdown of a rank with GPUs.
type deviceTimes struct {
	*breakdown.Rank
	kinds    map[trace.FuncID]breakdown.Kind // of functions on streams
	steps    map[trace.FuncID]int64          // numbers of training steps, stepOfTrace, or noStep for other functions on the host
	launches []trace.Ticks                   // of the calls of a stream; scratch
}

// stepName is the name of the calls that PyTorch's profiler makes of training steps, with # and
// its number.
const stepName = "ProfilerStep"

// Numbers of functions on the host that are no numbers of training steps.
const (
	noStep      = -1 // not a training step
	stepOfTrace = -2 // its number is that of the step of the trace
)

// noActivity is the kind of calls of a stream that are no work of the GPU.
const noActivity breakdown.Kind = 0xff

// addDevices adds the calls of the step to the breakdown. Ranks without GPUs have none.
func (r *rank) addDevices() {
	threads := r.builder.Threads()
	if r.devices == nil {
		if !slices.ContainsFunc(threads, r.isStream) {
			return
		}
		r.devices = &deviceTimes{
			Rank:  breakdown.NewRank(breakdown.Default(r.cfg.Unit)),
			kinds: make(map[trace.FuncID]breakdown.Kind), steps: make(map[trace.FuncID]int64),
		}
	}
	// Streams may be written with some delay. What began before this step is complete.
	settled := r.start
	for _, t := range threads {
		if !r.isStream(t) {
			r.addSteps(t)
			continue
		}
		r.addActivities(t)
		for i := range t.Calls {
			if c := &t.Calls[i]; c.IsOpen() {
				settled = min(settled, c.Entry)
			}
		}
	}
	r.devices.Settle(settled)
}

func (r *rank) isStream(t *callstack.Thread) bool {
	_, ok := r.GPU(t.ID)
	return ok
}

// addSteps adds the training steps that began on a thread of the host in this step.
func (r *rank) addSteps(t *callstack.Thread) {
	d := r.devices
	for _, c := range slices.Backward(t.Calls) {
		if int(c.Step) != r.step {
			return
		}
		number, known := d.steps[c.Func]
		if !known {
			var ok bool
			if number, ok = r.stepNumber(c.Func); ok {
				d.steps[c.Func] = number
			}
		}
		switch number {
		case noStep:
		case stepOfTrace:
			d.BeginStep(int64(c.Step), c.Entry)
		default:
			d.BeginStep(number, c.Entry)
		}
	}
}

// stepNumber returns the number of the training step that a function represents, stepOfTrace or noStep, and
// false if the function may get a name later.
func (r *rank) stepNumber(fn trace.FuncID) (number int64, final bool) {
	switch r.names.Work(fn) {
	case trace.UnknownWork:
	case trace.StepWork:
		return stepOfTrace, true
	case trace.HostWork, trace.Compute, trace.Communication, trace.MemoryCopy:
		return noStep, true
	}
	name, ok := r.names.Func(r.key.Rank, fn)
	digits, isStep := strings.CutPrefix(name, stepName+"#")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !isStep || err != nil || n < 0 {
		n = noStep
	}
	return n, ok
}

// activity returns the kind of activity that a function on a stream represents, and false if the function may get
// a name later.
func (r *rank) activity(fn trace.FuncID) (kind breakdown.Kind, final bool) {
	switch r.names.Work(fn) {
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
	name, ok := r.names.Func(r.key.Rank, fn)
	if strings.HasPrefix(name, trace.WholeThread) {
		return noActivity, ok
	}
	return breakdown.KindOf(name), ok
}

// addActivities adds the calls of a stream that ended in this step. Calls with others inside are
// annotations.
func (r *rank) addActivities(t *callstack.Thread) {
	d := r.devices
	d.launches = slices.Grow(d.launches[:0], len(t.Calls))[:len(t.Calls)]
	for i := range d.launches {
		d.launches[i] = breakdown.NoLaunch
	}
	for _, l := range t.Links {
		if l.Call >= 0 && l.Partner >= 0 && !r.isStream(l.Thread) {
			d.launches[l.Call] = l.Thread.Calls[l.Partner].Entry
		}
	}
	for _, i := range t.Done {
		c := &t.Calls[i]
		if c.Lost() || c.Children > 0 {
			continue
		}
		kind, known := d.kinds[c.Func]
		if !known {
			var ok bool
			if kind, ok = r.activity(c.Func); ok {
				d.kinds[c.Func] = kind
			}
		}
		if kind == noActivity {
			continue
		}
		d.Add(breakdown.Activity{Start: c.Entry, End: c.Exit, Launch: d.launches[i], Stream: t.ID, Kind: kind})
	}
}

// breakdown returns the breakdown of the ranks with GPUs, and the collective operations of all, or nil if
// there is none.
func (a *Analyzer) breakdown() *breakdown.Run {
	var run breakdown.Run
	logs := make(map[trace.Program][]breakdown.RankLog)
	for _, s := range a.sources {
		if in := &s.input; in.Collectives.Log != nil && !in.Collectives.Empty() {
			logs[in.Program] = append(logs[in.Program], in.Collectives)
		}
		for _, r := range s.ranks {
			if r.devices == nil {
				continue
			}
			run.Ranks = append(run.Ranks, breakdown.RankResult{RankKey: r.key, Result: *r.devices.Finish()})
			r.devices = nil
		}
	}
	if len(run.Ranks) == 0 && len(logs) == 0 {
		return nil
	}
	slices.SortFunc(run.Ranks, func(a, b breakdown.RankResult) int { return a.Compare(b.RankKey) })
	for program, of := range logs {
		run.Collectives = append(run.Collectives, breakdown.ProgramComparison{Program: program, Comparison: *breakdown.Compare(of)})
	}
	slices.SortFunc(run.Collectives, func(a, b breakdown.ProgramComparison) int { return cmp.Compare(a.Program, b.Program) })
	return &run
}

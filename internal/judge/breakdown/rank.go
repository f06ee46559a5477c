package breakdown

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Activity is a kernel or a memory copy on a stream of a GPU.
type Activity struct {
	Start, End trace.Ticks
	Launch     trace.Ticks // time at which the host began to launch it, or NoLaunch
	Stream     trace.Thread
	Kind       Kind
}

// NoLaunch is the launch time of an activity whose launch is unknown.
const NoLaunch trace.Ticks = math.MinInt64

// Step is a training step. It lasts until the next step begins. Only the part between the first and the last activity of the
// rank counts.
type Step struct {
	Number int64
	Start  trace.Ticks // on the host
	Sums
}

// Stream has the times of a stream of a GPU.
type Stream struct {
	Thread     trace.Thread
	Activities int64
	Busy       trace.Ticks // time in which an activity ran
	// Idle divides the gaps between the activities of the stream, like HTA's idle time breakdown. Other streams may be
	// active in these gaps.
	Idle Reasons
	// Overlap is the time by which activities began before the end of the previous one. HTA subtracts it from the kernel
	// wait.
	Overlap trace.Ticks

	last trace.Ticks // end of the last activity
}

// Result is the breakdown of a rank.
type Result struct {
	Sums                     // from the start of the first to the end of the last activity
	First, Last  trace.Ticks // start of the first and end of the last activity
	Activities   int64
	NoLaunch     int64    // activities whose launch is unknown
	Steps        []Step   // in order of time
	Streams      []Stream // in order of number
	StepsOmitted int64    // steps that only the sums of the rank include
	Late         int64    // activities and steps that began before the time of an earlier Settle
}

// Rank adds up the activities of one rank.
type Rank struct {
	cfg     Config
	pending []Activity
	coming  []Step // steps that begin after the sweep
	streams map[trace.Thread]*Stream

	result  Result
	ends    [numKinds]trace.Ticks // latest ends of activities up to the sweep, by kind
	sweep   trace.Ticks           // the sums include all time before it
	started bool
	step    int // index of the current step in result.Steps, or noStep
}

// noStep is the current step before the first step, and after the last one to keep.
const noStep = -1

// NewRank returns a Rank without activities.
func NewRank(cfg Config) *Rank {
	return &Rank{cfg: cfg, streams: make(map[trace.Thread]*Stream), step: noStep}
}

// Add adds an activity. An activity that ends before it starts has length 0.
func (r *Rank) Add(a Activity) {
	a.End = max(a.End, a.Start)
	r.pending = append(r.pending, a)
}

// BeginStep records that a training step begins on the host.
func (r *Rank) BeginStep(number int64, start trace.Ticks) {
	if r.started && start < r.sweep {
		r.result.Late++
		start = r.sweep
	}
	i, _ := slices.BinarySearchFunc(r.coming, start, func(s Step, t trace.Ticks) int {
		return cmp.Or(cmp.Compare(s.Start, t), -1) // after steps that begin at the same time
	})
	r.coming = slices.Insert(r.coming, i, Step{Number: number, Start: start})
}

// Settle promises that all activities and steps that begin before a time have been added, and adds them to the sums. Later
// additions that begin earlier are cut off at that time and counted in Result.Late.
func (r *Rank) Settle(before trace.Ticks) {
	slices.SortFunc(r.pending, compare)
	n, _ := slices.BinarySearchFunc(r.pending, before, func(a Activity, t trace.Ticks) int { return cmp.Compare(a.Start, t) })
	n = max(n, len(r.pending)-r.cfg.MaxPending)
	for i := range r.pending[:n] {
		r.advance(&r.pending[i])
	}
	r.pending = r.pending[:copy(r.pending, r.pending[n:])]
}

// compare orders activities by start, and then by the other fields to make the order unique.
func compare(a, b Activity) int {
	if c := cmp.Compare(a.Start, b.Start); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.End, b.End), cmp.Compare(a.Launch, b.Launch), cmp.Compare(a.Kind, b.Kind))
}

// Finish settles all activities and returns the breakdown. The Rank must not be used afterwards.
func (r *Rank) Finish() *Result {
	r.Settle(math.MaxInt64)
	res := &r.result
	if r.started {
		res.Last = slices.Max(r.ends[:])
		r.account(res.Last, noReason)
	}
	for len(r.coming) > 0 {
		r.nextStep() // a step without activities
	}
	for _, s := range r.streams {
		res.Streams = append(res.Streams, *s)
	}
	slices.SortFunc(res.Streams, func(a, b Stream) int { return cmp.Compare(a.Thread, b.Thread) })
	r.pending, r.streams = nil, nil
	return res
}

// advance moves the sweep to the start of the next activity.
func (r *Rank) advance(a *Activity) {
	start, end := a.Start, a.End
	if !r.started {
		r.started, r.sweep, r.result.First = true, start, start
		for i := range r.ends {
			r.ends[i] = start
		}
	}
	if start < r.sweep {
		r.result.Late++
		start, end = r.sweep, max(end, r.sweep)
	}
	if idleFrom := slices.Max(r.ends[:]); start > idleFrom {
		r.account(idleFrom, noReason)
		r.account(start, r.reason(a.Launch, idleFrom, start))
	} else {
		r.account(start, noReason)
	}
	r.ends[a.Kind] = max(r.ends[a.Kind], end)
	r.result.Activities++
	if a.Launch == NoLaunch {
		r.result.NoLaunch++
	}

	s := r.streams[a.Stream]
	if s == nil {
		s = &Stream{Thread: a.Stream, last: start}
		r.streams[a.Stream] = s
	}
	if start > s.last {
		s.Idle.addTime(r.reason(a.Launch, s.last, start), start-s.last)
	} else {
		s.Overlap += s.last - start
	}
	s.Busy += max(end-max(start, s.last), 0)
	s.Activities++
	s.last = max(s.last, end)
}

// reason returns the reason why an activity did not start at the end of the previous one.
func (r *Rank) reason(launch, previousEnd, start trace.Ticks) reason {
	switch {
	case launch > previousEnd: // false for NoLaunch
		return hostWait
	case start-previousEnd < r.cfg.KernelDelay:
		return kernelWait
	}
	return otherWait
}

// account adds the time up to to. Within that time there is no gap, or a single gap with a reason.
func (r *Rank) account(to trace.Ticks, why reason) {
	for r.sweep < to {
		for len(r.coming) > 0 && r.coming[0].Start <= r.sweep {
			r.nextStep()
		}
		until := to
		if len(r.coming) > 0 {
			until = min(until, r.coming[0].Start)
		}
		var active Set
		for kind, end := range r.ends {
			if end > r.sweep {
				active |= 1 << kind
				until = min(until, end)
			}
		}
		r.result.add(active, until-r.sweep, why)
		if r.step != noStep {
			r.result.Steps[r.step].add(active, until-r.sweep, why)
		}
		r.sweep = until
	}
}

func (s *Sums) add(active Set, t trace.Ticks, why reason) {
	s.BySet[active] += t
	if active == 0 {
		s.Idle.addTime(why, t)
	}
}

// nextStep makes the next coming step the current one.
func (r *Rank) nextStep() {
	next := r.coming[0]
	r.coming = r.coming[:copy(r.coming, r.coming[1:])]
	if len(r.result.Steps) >= r.cfg.MaxSteps {
		r.result.StepsOmitted++
		r.step = noStep
		return
	}
	r.result.Steps = append(r.result.Steps, next)
	r.step = len(r.result.Steps) - 1
}

package analyzer

import (
	"encoding/json"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A function that is called too rarely to be judged by its own calls is judged by its caller, if that is called often: the
// caller usually does without it, so all of its time is lost. A kernel without a caller is judged by the steps of the trace.
//
// Set-up is rare as well. It happens early: a call path that begins on a thread before its caller has been called
// manyCalls times there is never judged so. Neither is one whose caller often calls rare functions, nor a wait for other
// ranks or threads, which depends on those.

// manyCalls is how often a caller must have run before something new in it is not set-up, and how many calls it must have
// for each rare one. It is the inverse of the greatest share of calls that may be slow without being usual.
const manyCalls = stats.ManyCalls

// anyStream is the bit of all GPU streams: kernels run on any of them.
const anyStream = 1 << 63

// laneBit is threadBit for threadCounts.
func (r *rank) laneBit(thread trace.Thread) uint64 {
	if _, onDevice := r.GPU(thread); onDevice {
		return anyStream
	}
	return stats.ThreadBit(uint32(thread)) &^ anyStream
}

// count counts one of the first calls of a function with a path on a thread.
func (r *rank) count(f *localFunc, bit uint64) {
	if f.first.None(bit) && r.beginsLate(f, bit) {
		f.late |= bit
	}
	f.first.Add(bit)
}

// beginsLate reports whether the first call of a path on a thread is after the set-up of its caller, and not a wait for others.
func (r *rank) beginsLate(f *localFunc, bit uint64) bool {
	if r.caller(f, bit) == nil && (bit != anyStream || r.steps <= manyCalls) {
		return false
	}
	name, ok := r.names.Func(r.key.Rank, f.id)
	wait := blame.WaitOf(name)
	return ok && (wait == blame.Nothing || wait == blame.Device)
}

// caller returns the innermost function around the calls of a path that has been called manyCalls times on a thread, or nil.
func (r *rank) caller(f *localFunc, bit uint64) *localFunc {
	if f.node == callpath.Root {
		return nil
	}
	for n, _ := r.builder.Paths().Last(f.node); n != callpath.Root; n, _ = r.builder.Paths().Last(n) {
		if int(n) >= len(r.nodes) {
			continue
		}
		for c := r.nodes[n]; c != nil; c = c.next {
			if c.first.Many(bit) {
				return c
			}
		}
	}
	return nil
}

// mayBeRare reports whether the caller of a call that its own function cannot judge may judge it at the end of the run.
func (r *rank) mayBeRare(t *callstack.Thread, c *callstack.Call, f *localFunc) bool {
	return f.late&r.laneBit(t.ID) != 0 && r.time(c) >= r.cfg.Outlier.LeastLoss
}

// judgeFirst keeps the first call of a function on a thread as long as the function is rare.
func (r *rank) judgeFirst(t *callstack.Thread, i int32) {
	c := &t.Calls[i]
	f := r.of(c)
	c.Label = callstack.Normal
	if j := f.judge(); f.model == nil || j != nil && !j.Enough() {
		r.flagged = append(r.flagged, suspect{t, i, f, -1, provenance.First})
		r.noteRare(t, c, f)
	}
}

// noteRare counts a call that mayBeRare as one of its caller.
func (r *rank) noteRare(t *callstack.Thread, call *callstack.Call, f *localFunc) {
	if call.ParentStep >= 0 {
		if r.rareInside == nil {
			r.rareInside = make(map[callKey]uint32)
		}
		r.rareInside[callKey{call.ParentStep, call.ParentRow}]++
	}
	if c := r.caller(f, r.laneBit(t.ID)); c != nil {
		c.rareCalls++
	} else {
		r.rareCalls++
	}
}

// withoutRare returns the work of a call without rare calls, which are anomalies themselves, or by design.
func (r *rank) withoutRare(w outlier.Work, of callKey) outlier.Work {
	w.Calls -= min(w.Calls, r.rareInside[of])
	return w
}

// rarely is how a rare call is judged.
type rarely struct {
	judge *outlier.Judge
	by    string // the caller; empty for the steps of the trace
	of    uint64 // calls of it on the rank
}

// rare returns how to judge the calls of a function on a thread that has too few to judge itself, or nil.
func (r *rank) rare(f *localFunc, thread trace.Thread) *rarely {
	bit := r.laneBit(thread)
	if f.late&bit == 0 || f.whole.models == nil {
		return nil
	}
	x := rarely{of: uint64(r.steps)}
	rareCalls, usual := r.rareCalls, float64(r.end-r.firstEvent)/float64(max(1, r.steps))
	least := uint64(r.cfg.Outlier.MinSamples)
	if c := r.caller(f, bit); c != nil {
		j := c.judge()
		if j == nil || !j.Enough() {
			return nil
		}
		function := c.whole.models.function
		x.by, x.of, rareCalls, least = function.Name, 0, 0, 0
		for w := r.nodes[c.node]; w != nil; w = w.next {
			x.of += w.calls
			rareCalls += w.rareCalls
		}
		usual = function.Inclusive.RunStats().Mean
	}
	if x.of < least || rareCalls*manyCalls > x.of {
		return nil
	}
	x.judge = r.rules.NewRareJudge(f.whole.models.function.Name, &f.whole.models.whole.model, x.of, int64(usual/manyCalls))
	return &x
}

// judgeOf returns the judge of a captured call, and how it is judged if it is rare. The judge is nil if the function is ignored.
func (r *rank) judgeOf(f *localFunc, c *provenance.Capture) (*outlier.Judge, *rarely) {
	j := f.judge()
	if j == nil || j.Enough() {
		return j, nil
	}
	if x := r.rare(f, c.Thread); x != nil {
		return x.judge, x
	}
	return j, nil
}

// rareAnomaly returns the record of a rare call. All of its time is lost.
func (r *rank) rareAnomaly(x *rarely, c *provenance.Capture, time int64, status provenance.Status) *provenance.Record {
	model, err := json.Marshal(x.judge)
	if err != nil {
		model = nil
	}
	record := r.record(c, model)
	record.LostTime = trace.Ticks(time)
	d := x.judge.Describe(time)
	record.ExplainRare(&d, x.by, x.of, status)
	return record
}

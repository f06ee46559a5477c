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

// A function with too few calls to judge them by themselves is judged by its caller, if that is called often: the caller
// usually works without it, so all of its time is lost. A kernel without a caller is judged by the steps of the trace.
//
// Set-up is rare as well, but early. Therefore a call path is not judged in this way if it begins on a thread before its
// caller has been called manyCalls times there. Neither are paths whose caller often calls rare functions, or waits for other
// ranks or threads, whose time depends on those.

// manyCalls is how often a caller must have been called before new calls in it are not set-up, and how many calls it must
// have for each rare call. It is the inverse of the greatest share of calls that may be slow without being usual.
const manyCalls = stats.ManyCalls

// anyStream is the bit of all GPU streams: kernels run on any of them.
const anyStream = 1 << 63

// laneBit is like stats.ThreadBit, with a single bit for all streams of GPUs.
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

// beginsLate reports whether the first call of a path on a thread comes after the set-up of its caller and does not wait for
// others.
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

// mayBeRare reports whether, at the end of the run, the caller of a call may judge it if its own function cannot.
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

// noteRare counts a call for which mayBeRare is true as one of its caller.
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

// withoutRare returns the work of a call without rare calls, which are anomalies themselves or by design.
func (r *rank) withoutRare(w outlier.Work, of callKey) outlier.Work {
	w.Calls -= min(w.Calls, r.rareInside[of])
	return w
}

// rareCall describes how a rare call is judged.
type rareCall struct {
	judge *outlier.Judge
	by    string // name of the caller; empty for the steps of the trace
	of    uint64 // number of its calls on the rank
}

// rare returns how to judge the calls of a function on a thread that has too few to judge them by themselves, or nil.
func (r *rank) rare(f *localFunc, thread trace.Thread) *rareCall {
	bit := r.laneBit(thread)
	if f.late&bit == 0 || f.allPaths.models == nil {
		return nil
	}
	x := rareCall{of: uint64(r.steps)}
	rareCalls, usual := r.rareCalls, float64(r.end-r.firstEvent)/float64(max(1, r.steps))
	least := uint64(r.cfg.Outlier.MinSamples)
	if c := r.caller(f, bit); c != nil {
		j := c.judge()
		if j == nil || !j.Enough() {
			return nil
		}
		function := c.allPaths.models.function
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
	x.judge = r.rules.NewRareJudge(f.allPaths.models.function.Name, &f.allPaths.models.allCalls.model, x.of, int64(usual/manyCalls))
	return &x
}

// judgeOf returns the judge of a captured call, and how it is judged if it is rare. The judge is nil if the function is ignored.
func (r *rank) judgeOf(f *localFunc, c *provenance.Capture) (*outlier.Judge, *rareCall) {
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
func (r *rank) rareAnomaly(x *rareCall, c *provenance.Capture, time int64, status provenance.Status) *provenance.Record {
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

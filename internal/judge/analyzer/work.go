package analyzer

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// workCounter sums up the calls of a rank for its load. It needs no names, and allocates only
// if a step has more records than any before it.
type workCounter struct {
	shift   uint8        // that of the load in the last merge, or less
	window  trace.Micros // of the sums: their exits divided by its width
	busy    []*localFunc // with sums
	records []workRecord
	cells   []workload.Cell // scratch
}

// workSums has calls that entered and exited in the same window of time.
type workSums struct {
	callpath.Sums
	first, last trace.Micros // from the first entry to the last exit
}

// workRecord has calls of a function on a thread: one call, or several in a window.
type workRecord struct {
	function int32 // number in rank.all
	thread   trace.Thread
	workSums
}

// maxUnnamed limits the records of functions without a name. Only those of damaged traces have
// none in the long run.
const maxUnnamed = 1 << 12

// add adds a call of a thread. Calls come in the order of exits.
func (w *workCounter) add(thread trace.Thread, f *localFunc, entry, exit trace.Micros, time uint64) {
	window := exit >> w.shift
	if window != w.window {
		w.flush(thread)
		w.window = window
	}
	if entry>>w.shift != window {
		w.records = append(w.records, workRecord{f.number, thread, workSums{callpath.Sums{Calls: 1, Exclusive: time}, entry, exit}})
		return
	}
	s := &f.pending.work
	if s.Calls == 0 {
		s.first = entry
		w.busy = append(w.busy, f)
	}
	s.Calls++
	s.Exclusive += time
	s.first, s.last = min(s.first, entry), exit
}

// flush makes records of the sums of a thread.
func (w *workCounter) flush(thread trace.Thread) {
	for _, f := range w.busy {
		w.records = append(w.records, workRecord{f.number, thread, f.pending.work})
		f.pending.work = workSums{}
	}
	w.busy = w.busy[:0]
}

// mergeWork moves the records of functions that have names to the load.
func (r *rank) mergeWork() {
	w, load := &r.work, r.load
	for i := range w.records { // first, because this may change the numbers of work
		if f := r.all[w.records[i].function]; f.whole.models != nil && f.whole.models.function.useful {
			load.Work(r.workOf(f))
		}
	}
	left := w.records[:0]
	cells := w.cells[:0]
	var lane *workload.Lane
	var sum workRecord // of cells
	add := func() {
		if len(cells) > 0 {
			load.Add(lane, sum.first, sum.last, cells)
			cells = cells[:0]
		}
	}
	for _, rec := range w.records {
		f := r.all[rec.function]
		if f.whole.models == nil {
			left = append(left, rec)
			continue
		}
		if lane == nil || rec.thread != sum.thread || rec.last>>w.shift != sum.last>>w.shift {
			add()
			lane, sum = r.lane(rec.thread), rec
		}
		if function := f.whole.models.function; !function.useful {
			load.AddWait(lane, rec.first, rec.last, rec.Exclusive, function.collective)
			continue
		}
		sum.first, sum.last = min(sum.first, rec.first), max(sum.last, rec.last)
		cells = append(cells, workload.Cell{Work: load.Work(r.workOf(f)), Sums: rec.Sums})
	}
	add()
	w.cells, w.shift = cells, load.Shift()
	w.records = left[max(len(left)-maxUnnamed, 0):]
}

func (r *rank) workOf(f *localFunc) workload.Work {
	return workload.Work{Program: r.key.Program, Function: uint32(f.whole.models.function.ID), Path: f.path}
}

// lane returns the lane of a thread.
func (r *rank) lane(thread trace.Thread) *workload.Lane {
	lane := r.load.Lane(workload.LaneKey{RankKey: r.key, Thread: thread})
	if r.host != unknownHost {
		lane.Host = max(lane.Host, r.host)
	}
	if _, gpu := r.GPU(thread); gpu {
		lane.Device = true
	}
	return lane
}

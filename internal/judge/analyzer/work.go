package analyzer

import (
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// workCounter sums up the calls of a rank for its load. It needs no names, and allocates memory only if a step has more
// records than any earlier step.
type workCounter struct {
	workload.CallWindow
	shift   uint8 // at most the shift of the load in the last merge
	records []workRecord
	cells   []workload.Cell // scratch
}

// workRecord contains calls of a function on a thread: one call, or several that entered and exited in the same window of time.
type workRecord struct {
	function int32 // number in rank.all
	thread   trace.Thread
	callpath.Sums
	first, last trace.Ticks // limits of a call, or of all calls of the thread in the window
}

// maxUnnamed limits the records of functions without a name. Only damaged traces have such functions to the end.
const maxUnnamed = 1 << 12

// addWork adds a call of a thread in any window. Calls come in the order of exits.
func (r *rank) addWork(thread trace.Thread, f *localFunc, entry, exit trace.Ticks, time uint64) {
	w := &r.work
	if !w.Includes(exit, exit) {
		r.endWindow(thread)
		w.Begin(exit, w.shift)
	}
	if w.Includes(entry, exit) {
		w.Add(&f.window, entry, exit, 1, time)
		return
	}
	w.records = append(w.records, workRecord{f.number, thread, callpath.Sums{Calls: 1, Exclusive: time}, entry, exit})
}

// endWindow turns the sums of a thread into records.
func (r *rank) endWindow(thread trace.Thread) {
	w := &r.work
	first, last := w.Restart()
	for _, f := range r.touched {
		if s := &f.window; s.Calls > 0 {
			w.records = append(w.records, workRecord{f.number, thread, *s, first, last})
			*s = callpath.Sums{}
		}
	}
}

// mergeWork moves the records of functions with names to the load.
func (r *rank) mergeWork() {
	w, load := &r.work, r.load
	for i := range w.records { // first, because it may change the numbers of work
		if f := r.all[w.records[i].function]; f.allPaths.models != nil && f.allPaths.models.function.useful {
			load.Work(r.kindOfWork(f))
		}
	}
	left := w.records[:0]
	cells := w.cells[:0]
	var lane *workload.Lane
	var sum workRecord // sum of cells
	add := func() {
		if len(cells) > 0 {
			load.Add(lane, sum.first, sum.last, cells)
			cells = cells[:0]
		}
	}
	for _, rec := range w.records {
		f := r.all[rec.function]
		if f.allPaths.models == nil {
			left = append(left, rec)
			continue
		}
		if lane == nil || rec.thread != sum.thread || rec.last>>w.shift != sum.last>>w.shift {
			add()
			lane, sum = r.lane(rec.thread), rec
		}
		if function := f.allPaths.models.function; !function.useful {
			load.AddWait(lane, rec.first, rec.last, rec.Exclusive, function.collective)
			continue
		}
		sum.first, sum.last = min(sum.first, rec.first), max(sum.last, rec.last)
		cells = append(cells, workload.Cell{Work: load.Work(r.kindOfWork(f)), Sums: rec.Sums})
	}
	add()
	w.cells, w.shift = cells, load.Shift()
	excess := max(len(left)-maxUnnamed, 0)
	for i := range left[:excess] {
		r.tally.Add(tally.WorkUnnamed, int64(left[i].Calls))
	}
	w.records = left[:copy(left, left[excess:])]
}

func (r *rank) kindOfWork(f *localFunc) workload.Work {
	return workload.Work{Program: r.key.Program, Function: uint32(f.allPaths.models.function.ID), Path: f.path}
}

// lane returns the lane of a thread.
func (r *rank) lane(thread trace.Thread) *workload.Lane {
	lane := r.load.Lane(workload.LaneKey{RankKey: r.key, Thread: thread})
	if r.host != unknownHost {
		lane.Host = max(lane.Host, r.host)
	}
	if gpu, ok := r.GPU(thread); ok {
		lane.Device = true
		if number, err := strconv.ParseUint(gpu.Device, 10, 64); err == nil {
			lane.GPU = number
		}
	}
	lane.Gaps = lane.Gaps || r.outer[thread] >= several
	return lane
}

// mergeActivities moves the activities of the step to the load if profile is true, and otherwise drops them.
func (r *rank) mergeActivities(profile bool) {
	if !profile {
		r.activities.MoveTo(nil, r.key)
		return
	}
	for _, t := range r.builder.Threads() {
		if t.Active() {
			r.lane(t.ID) // so that the load is not empty
		}
	}
	r.activities.MoveTo(r.load.Activities(), r.key)
}

// placeOf returns the place of a thread.
func (r *rank) placeOf(thread trace.Thread) activity.Place {
	if _, ok := r.GPU(thread); ok {
		return activity.Device
	}
	return activity.Host
}

// several is the number of calls in no other call from which on a thread has no call that includes all others, such as the
// main program.
const several = 2

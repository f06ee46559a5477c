package tau

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// lane holds events of one step, grouped into runs of the same thread.
type lane struct {
	events []trace.Event
	runs   []run
	cur    run                   // not yet among the runs
	rows   map[trace.Rank]uint32 // rows read per rank, in shared files
	sides  *lane                 // its events are inserted into this lane as it grows
	spare  []trace.Event         // scratch for sorting
}

// laneKey is a thread of a rank; it sorts by rank, then by thread.
type laneKey uint64

func keyOf(rank trace.Rank, thread uint64) laneKey {
	return laneKey(uint64(uint32(rank))<<32 | thread)
}

func (k laneKey) rank() trace.Rank     { return trace.Rank(int32(k >> 32)) }
func (k laneKey) thread() trace.Thread { return trace.Thread(k) }

// run is a sequence of events of one thread.
type run struct {
	key        laneKey
	thread     uint64 // as in the key; noThread without a run
	start, end int
	last       trace.Ticks // time of the last event
	disorder   int64       // events older than their predecessor

	// Events of the lane's sides that belong to the thread and are not inserted yet, and
	// the time of the first of them.
	sides []trace.Event
	due   trace.Ticks
}

const (
	noThread = math.MaxUint64
	never    = trace.Ticks(math.MaxInt64)
)

func (l *lane) reset(sides *lane) {
	l.events, l.runs, l.cur, l.sides = l.events[:0], l.runs[:0], run{thread: noThread}, sides
	if l.rows == nil {
		l.rows = make(map[trace.Rank]uint32)
	}
	clear(l.rows)
}

// grow makes room for n more events. Unlike slices.Grow, it does not copy the memory of
// earlier steps after the end of the events.
func (l *lane) grow(n int) {
	if n > cap(l.events)-len(l.events) {
		l.events = append(make([]trace.Event, 0, max(len(l.events)+n, cap(l.events)/4*5)), l.events...)
	}
}

// resume returns the current run, which decoding loops keep by value. If the rank has
// changed it ends the run first.
func (l *lane) resume(rank trace.Rank) run {
	if l.cur.thread != noThread && l.cur.key.rank() != rank {
		l.finish()
	}
	return l.cur
}

// finish ends the current run: it appends the rest of its sides and adds it to the runs.
func (l *lane) finish() {
	if l.cur.thread != noThread {
		l.events = append(l.events, l.cur.sides...)
		l.cur.end = len(l.events)
		l.cur.sides = nil
		l.runs = append(l.runs, l.cur)
		l.cur.thread = noThread
	}
}

// begin ends cur and returns a new run of another thread at the end of events.
func (l *lane) begin(cur run, rank trace.Rank, thread uint64) run {
	l.cur = cur
	l.finish()
	next := run{key: keyOf(rank, thread), thread: thread, start: len(l.events), last: math.MinInt64, due: never}
	if l.sides != nil {
		next.sides = l.sides.take(next.key)
		next.setDue()
	}
	return next
}

func (r *run) setDue() {
	r.due = never
	if len(r.sides) > 0 {
		r.due = r.sides[0].Time
	}
}

// take returns the events of a thread once; a thread may have several runs. The lane
// must be ordered.
func (l *lane) take(key laneKey) []trace.Event {
	i, ok := slices.BinarySearchFunc(l.runs, key, func(r run, key laneKey) int { return cmp.Compare(r.key, key) })
	if !ok {
		return nil
	}
	r := &l.runs[i]
	events := l.events[r.start:r.end]
	r.start = r.end
	return events
}

// insert writes those of cur's sides that come before the next function event into
// events from index n, and returns the index after them.
func insert(events []trace.Event, n int, cur *run, next trace.Ticks, kind trace.Kind) int {
	for len(cur.sides) > 0 && (cur.due < next || cur.due == next && kind != trace.Enter) {
		events[n] = cur.sides[0]
		n++
		cur.sides = cur.sides[1:]
		cur.setDue()
	}
	return n
}

// order sorts the runs by rank and thread, joins those of the same thread and sorts
// their events by time. It reports whether a thread had several runs.
func (l *lane) order(t *tally.Tally) (scattered bool) {
	l.finish()
	byKey := func(a, b run) int { return cmp.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(l.runs, byKey) {
		slices.SortStableFunc(l.runs, byKey)
	}
	for i := 1; i < len(l.runs) && !scattered; i++ {
		scattered = l.runs[i-1].key == l.runs[i].key
	}
	if scattered {
		l.gather()
	}
	for i := range l.runs {
		if r := &l.runs[i]; r.disorder > 0 {
			t.Add(tally.OutOfOrder, l.repair(l.events[r.start:r.end]))
			r.disorder = 0
		}
	}
	return scattered
}

// gather joins the runs of the same thread, without sorting their events.
func (l *lane) gather() {
	l.spare = slices.Grow(l.spare[:0], len(l.events))
	n := 0
	for _, r := range l.runs {
		start := len(l.spare)
		l.spare = append(l.spare, l.events[r.start:r.end]...)
		r.start, r.end = start, len(l.spare)
		if n > 0 && l.runs[n-1].key == r.key {
			l.runs[n-1].end = r.end
			l.runs[n-1].disorder++
			continue
		}
		l.runs[n] = r
		n++
	}
	l.runs = l.runs[:n]
	l.events, l.spare = l.spare, l.events
}

// repair sorts the events of a thread and returns how many were older than their
// predecessor of the same table. Events at the same time keep their order.
func (l *lane) repair(events []trace.Event) (disorder int64) {
	l.spare = slices.Grow(l.spare[:0], len(events))
	var parts [3][]trace.Event
	for i, kinds := range [][2]trace.Kind{{trace.Enter, trace.Exit}, {trace.Send, trace.Recv}, {trace.Count, trace.Count}} {
		start := len(l.spare)
		for _, e := range events {
			if e.Kind != kinds[0] && e.Kind != kinds[1] {
				continue
			}
			if len(l.spare) > start && e.Time < l.spare[len(l.spare)-1].Time {
				disorder++
			}
			l.spare = append(l.spare, e)
		}
		parts[i] = l.spare[start:]
		slices.SortStableFunc(parts[i], func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	}
	funcs, comms, counters := parts[0], parts[1], parts[2]
	for i := range events {
		from := &counters
		if len(counters) == 0 || len(comms) > 0 && comms[0].Time <= counters[0].Time {
			from = &comms
		}
		if len(funcs) > 0 && (len(*from) == 0 || funcs[0].Time < (*from)[0].Time ||
			funcs[0].Time == (*from)[0].Time && funcs[0].Kind == trace.Enter) {
			from = &funcs
		}
		events[i] = (*from)[0]
		*from = (*from)[1:]
	}
	return disorder
}

// join makes l the ordered union of two ordered lanes, messages and counters.
// At equal times messages come first.
func (l *lane) join(comms, counters *lane) {
	l.reset(nil)
	l.grow(len(comms.events) + len(counters.events))
	for a, b := comms.runs, counters.runs; len(a)+len(b) > 0; {
		var first, second []trace.Event
		r := run{start: len(l.events)}
		if len(b) == 0 || len(a) > 0 && a[0].key <= b[0].key {
			r.key = a[0].key
			first = comms.events[a[0].start:a[0].end]
			a = a[1:]
		} else {
			r.key = b[0].key
		}
		if len(b) > 0 && b[0].key == r.key {
			second = counters.events[b[0].start:b[0].end]
			b = b[1:]
		}
		for len(first) > 0 && len(second) > 0 {
			if first[0].Time <= second[0].Time {
				l.events, first = append(l.events, first[0]), first[1:]
			} else {
				l.events, second = append(l.events, second[0]), second[1:]
			}
		}
		l.events = append(append(l.events, first...), second...)
		r.end = len(l.events)
		l.runs = append(l.runs, r)
	}
}

// adopt adds runs for threads of the sides that have no run in this lane.
func (l *lane) adopt() {
	own := l.runs
	for _, r := range l.sides.runs {
		_, ok := slices.BinarySearchFunc(own, r.key, func(r run, key laneKey) int { return cmp.Compare(r.key, key) })
		if ok {
			continue
		}
		start := len(l.events)
		l.events = append(l.events, l.sides.events[r.start:r.end]...)
		l.runs = append(l.runs, run{key: r.key, start: start, end: len(l.events)})
	}
	if len(l.runs) > len(own) {
		slices.SortFunc(l.runs, func(a, b run) int { return cmp.Compare(a.key, b.key) })
	}
}

// batches appends the runs as batches to dst.
func (l *lane) batches(dst []trace.Batch, program trace.Program) []trace.Batch {
	for _, r := range l.runs {
		dst = append(dst, trace.Batch{
			Program: program, Rank: r.key.rank(), Thread: r.key.thread(), Events: l.events[r.start:r.end:r.end],
		})
	}
	return dst
}

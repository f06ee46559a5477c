package nccl

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// maxLanes limits the operations of a rank that run at once, on different communicators.
const maxLanes = 64

// layout assigns each operation to the first free thread. Time without any operation is a call on thread 0.
type layout struct {
	lanes   []lane
	busy    int64 // end of the last operation
	begun   bool
	row     uint32
	between uint32
	tally   *tally.Tally
}

type lane struct {
	end    int64
	events []trace.Event
}

func (l *layout) begin() {
	l.row = 0
	for i := range l.lanes {
		l.lanes[i].events = l.lanes[i].events[:0]
	}
}

func (l *layout) release() {
	for i := range l.lanes {
		l.lanes[i].events = nil
	}
}

// add adds an operation. They come in order of their starts, except for the first ones of a step.
func (l *layout) add(r *record) {
	start, end := r.start, r.start+r.duration
	if len(l.lanes) == 0 {
		l.lanes = append(l.lanes, lane{})
	}
	if l.begun && start > l.busy {
		l.call(&l.lanes[0], l.between, l.busy, start)
	}
	at := slices.IndexFunc(l.lanes, func(of lane) bool { return of.end <= start })
	switch {
	case at >= 0:
	case len(l.lanes) < maxLanes:
		at = len(l.lanes)
		l.lanes = append(l.lanes, lane{})
	default:
		at = maxLanes - 1
		start = l.lanes[at].end
		end = max(end, start)
		l.tally.Add(tally.CallsOverlap, 1)
	}
	l.call(&l.lanes[at], r.function, start, end)
	l.busy, l.begun = max(l.busy, end), true
}

func (l *layout) call(of *lane, function uint32, start, end int64) {
	of.events = append(of.events,
		trace.Event{Time: trace.Ticks(start), Row: l.row, ID: function, Kind: trace.Enter},
		trace.Event{Time: trace.Ticks(end), Row: l.row + 1, ID: function, Kind: trace.Exit})
	of.end = end
	l.row += 2
}

// place sets the starts of records that have none, and sorts all by their starts. An operation ended when it was written, or
// before. Operations of a communicator run one after another: several that were written at once are spread evenly over the time
// since the previous one.
func (r *Reader) place() {
	for i := range r.records {
		rec := &r.records[i]
		if rec.timed {
			continue
		}
		c := &r.comms[rec.comm]
		if n := len(c.run); n > 0 && rec.dumped-rec.duration >= r.records[c.run[n-1]].dumped {
			r.spread(c)
		}
		c.run = append(c.run, int32(i))
	}
	for i := range r.comms {
		if c := &r.comms[i]; len(c.run) > 0 {
			r.spread(c)
		}
	}
	slices.SortStableFunc(r.records, func(a, b record) int { return cmp.Compare(a.start, b.start) })
}

// spread sets the starts of the records of a run.
func (r *Reader) spread(c *comm) {
	first, last := &r.records[c.run[0]], &r.records[c.run[len(c.run)-1]]
	from, sum := c.end, int64(0)
	for _, i := range c.run {
		sum += r.records[i].duration
	}
	gap, gaps := int64(0), int64(len(c.run))
	if from == 0 || gaps == 1 && first.dumped-first.duration >= from {
		from, gaps = first.dumped-first.duration, gaps-1
	}
	if free := last.dumped - from - sum; free > 0 && gaps > 0 {
		gap = free / gaps
	}
	at := from
	for n, i := range c.run {
		if n > 0 || int(gaps) == len(c.run) {
			at += gap
		}
		r.records[i].start = at
		at += r.records[i].duration
	}
	c.end, c.run = at, c.run[:0]
}

package profile

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// stepEvents is the number of events of the file after which a step ends unless a profiler step
// does first. A profiler step may have maxStepEvents; with more, steps are not numbered like those
// of the profiler.
const (
	stepEvents    = 1 << 16
	maxStepEvents = 1 << 20
)

// Reader returns the steps of a file.
type Reader struct {
	file  *File
	names trace.Names
	it    *iterator
	tally *tally.Tally
	step  trace.Step
	lanes []openLane
	rows  []uint32       // of each rank in this step
	async []asyncLane    // of all ranks
	next  []trace.Thread // number of the next async lane of each rank

	byProfiler bool // steps are those of the profiler
	nextStep   int  // index in file.steps
	index      int
	read       int64  // events
	held       record // read, but of the next step
	holds      bool
	began      bool
	ended      bool
}

// openLane is the state of a lane.
type openLane struct {
	events   []trace.Event
	readings []trace.Event // counters of the file among events
	stack    []openCall
}

type openCall struct {
	fn  uint32
	end int64 // forever if unknown
}

const forever = int64(1<<63 - 1)

// asyncLane is a thread for one asynchronous operation of a lane at a time, because they overlap.
type asyncLane struct {
	openLane
	of     uint16
	number trace.Thread
	key    uint64 // of the open operation; 0 without one
}

// maxAsync is the number of operations of a lane at the same time.
const maxAsync = 16

// correlationCounter is the counter that joins kernels with their launches.
const correlationCounter = "Correlation ID"

// Steps returns a reader of the steps. Several may be in use. It counts repairs in t.
func (f *File) Steps(t *tally.Tally) (*Reader, error) {
	it, err := f.sorted.iterate()
	if err != nil {
		return nil, err
	}
	gpus := make(map[trace.Rank]map[trace.Thread]trace.GPU)
	for i := range f.lanes.all {
		l := &f.lanes.all[i]
		if !l.device {
			continue
		}
		rank := f.Ranks[l.rank]
		if gpus[rank] == nil {
			gpus[rank] = make(map[trace.Thread]trace.GPU)
		}
		gpus[rank][l.number] = trace.GPU{Device: l.process, Stream: l.thread}
	}
	counters := append([]string{correlationCounter}, f.counters.names...)
	functions, works := f.functions()
	r := &Reader{
		file: f, byProfiler: f.byProfiler, it: it, tally: t, names: trace.NewNames(f.program, functions, counters, gpus),
		lanes: make([]openLane, len(f.lanes.all)), rows: make([]uint32, len(f.Ranks)), next: f.lanes.counts(len(f.Ranks)),
	}
	r.names.SetWorks(works)
	t.Merge(&f.tally)
	return r, nil
}

// Progress returns the numbers of events that were read, and of all.
func (r *Reader) Progress() (read, of int64) { return r.read, r.file.events }

// Names returns the names of the numbers in steps.
func (r *Reader) Names() *trace.Names { return &r.names }

// Release frees the memory of the last step.
func (r *Reader) Release() {
	for i := range r.lanes {
		r.lanes[i].events = nil
	}
}

// Next returns the next step, valid until the next call, or io.EOF.
func (r *Reader) Next(ctx context.Context) (*trace.Step, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.ended {
		if r.file.Err != nil {
			return nil, r.file.Err
		}
		return nil, io.EOF
	}
	r.begin()
	limit := forever // end of the step
	if r.byProfiler && r.nextStep < len(r.file.steps) {
		limit = r.file.steps[r.nextStep].start
	}
	count := 0
	var rec record
	for {
		if r.holds {
			rec, r.holds = r.held, false
		} else {
			ok, err := r.it.next(&rec)
			if err != nil {
				return nil, err
			}
			if !ok {
				r.ended = true
				r.closeUntil(forever)
				break
			}
		}
		full := count >= stepEvents
		if r.byProfiler {
			full = rec.start >= limit
		}
		if full {
			r.held, r.holds = rec, true
			r.closeUntil(rec.start)
			break
		}
		count++
		r.read++
		r.add(&rec)
	}
	r.assemble()
	return &r.step, nil
}

// begin starts a step.
func (r *Reader) begin() {
	metadata := r.step.Metadata[:0]
	if !r.began {
		metadata = append(metadata, r.file.metadata...)
	}
	r.step = trace.Step{Index: r.index, Metadata: metadata, Batches: r.step.Batches[:0], Readings: r.step.Readings[:0]}
	if r.byProfiler {
		first := r.file.steps[0].number
		if !r.began && first > 0 { // the part before the first profiler step
			r.step.Index = int(first) - 1
		} else {
			r.step.Index = int(r.file.steps[r.nextStep].number)
			r.nextStep++
		}
	}
	r.index++
	r.began = true
	clear(r.rows)
	for i := range r.lanes {
		r.lanes[i].events, r.lanes[i].readings = r.lanes[i].events[:0], r.lanes[i].readings[:0]
	}
	for i := range r.async {
		r.async[i].events = r.async[i].events[:0]
	}
}

// add adds the events of a record.
func (r *Reader) add(rec *record) {
	lane := &r.file.lanes.all[rec.lane]
	open := &r.lanes[rec.lane]
	rank, time := lane.rank, rec.start
	fn := rec.fn + uint32(lane.stage*len(r.file.names.names))
	switch rec.kind {
	case Counter:
		open.closeUntil(r, rank, time)
		open.put(r, rank, trace.Event{Time: r.ticks(time), Value: uint64(rec.duration), ID: rec.fn + 1, Kind: trace.Count})
		open.readings = append(open.readings, open.events[len(open.events)-1])
		r.step.Counters++
	case Send, Receive:
		kind, size := trace.Send, uint64(rec.duration)
		if rec.kind == Receive {
			kind = trace.Recv
		}
		if rec.duration > trace.MaxSize {
			size = trace.UnknownSize
		}
		open.closeUntil(r, rank, time-1) // it is inside a call that ends now
		partner, tag := uint32(rec.correlation>>32), int32(uint32(rec.correlation))
		open.put(r, rank, trace.Event{Time: r.ticks(time), ID: partner, Tag: tag, Value: size, Kind: kind})
		r.step.Comms++
	case Complete:
		open.closeUntil(r, rank, time)
		end := r.fit(open, rank, time, time+rec.duration)
		open.enter(r, rank, time, end, fn)
		if rec.correlation != 0 {
			open.put(r, rank, trace.Event{Time: r.ticks(time), Value: rec.correlation, Kind: trace.Count})
			r.step.Counters++
		}
	case Begin:
		open.closeUntil(r, rank, time)
		open.enter(r, rank, time, forever, fn)
	case End:
		open.closeUntil(r, rank, time)
		n := len(open.stack)
		if n == 0 || open.stack[n-1].end != forever {
			r.tally.Add(tally.ExitWithoutEnter, 1)
			return
		}
		open.exit(r, rank, time)
	case AsyncBegin:
		if l := r.asyncLane(rec.lane, 0); l != nil {
			l.key = rec.correlation
			l.enter(r, rank, time, forever, fn)
		} else {
			r.tally.Add(tally.AsyncDropped, 1)
		}
	case AsyncEnd:
		if l := r.asyncLane(rec.lane, rec.correlation); l != nil {
			l.key = 0
			l.exit(r, rank, time)
		} else {
			r.tally.Add(tally.ExitWithoutEnter, 1)
		}
	}
}

// ticks converts a time of the file to a time of the run.
func (r *Reader) ticks(time int64) trace.Ticks { return trace.Ticks(time + r.file.offset) }

// fit makes a call fit into the calls that are open on its lane and returns its end. Of two
// calls that overlap, the one that loses less is shortened.
func (r *Reader) fit(open *openLane, rank int, start, end int64) int64 {
	for n := len(open.stack); n > 0; n = len(open.stack) {
		top := &open.stack[n-1]
		if end <= top.end {
			break
		}
		r.tally.Add(tally.CallsOverlap, 1)
		if end-top.end <= top.end-start {
			return top.end
		}
		top.end = start
		open.exit(r, rank, start)
	}
	return end
}

func (l *openLane) put(r *Reader, rank int, e trace.Event) {
	e.Row = r.rows[rank]
	r.rows[rank]++
	l.events = append(l.events, e)
}

func (l *openLane) enter(r *Reader, rank int, time, end int64, fn uint32) {
	l.stack = append(l.stack, openCall{fn, end})
	l.put(r, rank, trace.Event{Time: r.ticks(time), ID: fn, Kind: trace.Enter})
	r.step.Funcs++
}

// exit ends the innermost call.
func (l *openLane) exit(r *Reader, rank int, time int64) {
	n := len(l.stack) - 1
	l.put(r, rank, trace.Event{Time: r.ticks(time), ID: l.stack[n].fn, Kind: trace.Exit})
	l.stack = l.stack[:n]
	r.step.Funcs++
}

// closeUntil ends the calls that end at a time or before it.
func (l *openLane) closeUntil(r *Reader, rank int, time int64) {
	for n := len(l.stack); n > 0 && l.stack[n-1].end <= time && l.stack[n-1].end != forever; n = len(l.stack) {
		l.exit(r, rank, l.stack[n-1].end)
	}
}

// closeUntil ends the calls of all lanes that end at a time or before it.
func (r *Reader) closeUntil(time int64) {
	for i := range r.lanes {
		r.lanes[i].closeUntil(r, r.file.lanes.all[i].rank, time)
	}
}

// asyncLane returns the lane of an operation, or a free one if key is 0. It returns nil if there
// are too many.
func (r *Reader) asyncLane(of uint16, key uint64) *asyncLane {
	n := 0
	for i := range r.async {
		l := &r.async[i]
		if l.of != of {
			continue
		}
		if l.key == key {
			return l
		}
		n++
	}
	if key != 0 || n == maxAsync {
		return nil
	}
	rank := r.file.lanes.all[of].rank
	r.async = append(r.async, asyncLane{of: of, number: r.next[rank]})
	r.next[rank]++
	return &r.async[len(r.async)-1]
}

// assemble creates the batches of the step.
func (r *Reader) assemble() {
	add := func(to []trace.Batch, lane *lane, number trace.Thread, events []trace.Event) []trace.Batch {
		if len(events) == 0 {
			return to
		}
		return append(to, trace.Batch{Program: r.file.opt.Program, Rank: r.file.Ranks[lane.rank], Thread: number, Events: events})
	}
	s := &r.step
	for i := range r.lanes {
		lane := &r.file.lanes.all[i]
		s.Batches = add(s.Batches, lane, lane.number, r.lanes[i].events)
		s.Readings = add(s.Readings, lane, lane.number, r.lanes[i].readings)
	}
	for i := range r.async {
		s.Batches = add(s.Batches, &r.file.lanes.all[r.async[i].of], r.async[i].number, r.async[i].events)
	}
	for _, batches := range [][]trace.Batch{s.Batches, s.Readings} {
		slices.SortFunc(batches, func(a, b trace.Batch) int {
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Thread, b.Thread))
		})
	}
}

package otf2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// The types of events that are read, and their fields.
const (
	bufferFlush     = 10
	enter           = 12
	leave           = 13
	mpiSend         = 14
	mpiIsend        = 15
	mpiSent         = 16 // a request is complete
	mpiRequest      = 17
	mpiRecv         = 18
	mpiIrecv        = 19
	mpiTest         = 20
	mpiCanceled     = 21
	mpiCollective   = 23 // its end
	ompFork         = 24
	ompTaskCreate   = 28
	ompTaskSwitch   = 29
	ompTaskComplete = 30
	metric          = 31
	parameterUint   = 34
	rmaPut          = 46
	rmaGet          = 47
	contextEnter    = 66
	contextLeave    = 67
	ioComplete      = 78
	mpiIcollective  = 86 // its end
	typeInt64       = 8
	typeFloat       = 9
	typeDouble      = 10
)

// stepEvents is the number of events of a step.
const stepEvents = 1 << 16

// Reader reads the events of a rank in steps.
type Reader struct {
	archive *Archive
	rank    trace.Rank
	tally   *tally.Tally
	names   trace.Names
	lanes   []*lane
	length  trace.Ticks // of a window
	linker  *linker     // nil until it is needed
	step    trace.Step
	index   int
	row     uint32
	err     error // reported after the last step
	done    bool
}

// lane reads the events of a location.
type lane struct {
	*place
	*local
	chunks  *chunks     // at the type of the next record that is not a timestamp
	now     trace.Ticks // time of the next record
	flushed bool        // the next event is the end of a flush, not the next record
	ended   bool        // the location has no more records
	records uint64      // of events so far
	regions []uint32    // global numbers of small local ones
	metric  uint32      // the last metric
	members []uint32    // its counters, nil if there was none
	stream  uint64      // that the entry of the current call names, or none
	events  []trace.Event
	counts  []trace.Event // counters among events, if mixed
	mixed   bool          // not all events are counters
	room    int           // expected number of events in a step

	given      attributes // of the next event, if attributed
	attributed bool
}

// open opens the files of a lane. A location without events may have none.
func (r *Reader) open(l *lane) error {
	var err error
	if l.local, err = readLocal(r.archive.file(l.location, ".def"), r.archive.anchor.defChunk); err != nil {
		r.fail(err)
	}
	if l.local == nil {
		l.local = new(local)
	}
	if l.regions = r.archive.known.near; len(l.maps[mapRegion].near) > 0 {
		l.regions = make([]uint32, len(l.maps[mapRegion].near))
		for id := range l.regions {
			l.regions[id] = r.archive.known.of(l.maps[mapRegion].of(uint32(id)))
		}
	}
	l.chunks, err = openChunks(r.archive.file(l.location, ".evt"), r.archive.anchor.eventChunk)
	if errors.Is(err, os.ErrNotExist) {
		l.chunks = &chunks{last: true}
		if l.location.events > 0 {
			r.fail(fmt.Errorf("%s: location %d has %d events, but no file: %w", r.archive.Path, l.id, l.location.events, err))
		}
		return nil
	}
	return err
}

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *Reader) close() {
	for _, l := range r.lanes {
		if l.chunks != nil {
			l.chunks.close()
		}
		l.free()
	}
}

// free frees the memory of the last step.
func (l *lane) free() {
	eventMemory.put(l.events)
	eventMemory.put(l.counts)
	l.events, l.counts = nil, nil
}

// Names returns the names of the numbers in steps.
func (r *Reader) Names() *trace.Names { return &r.names }

// Release closes files and frees the memory of the last step, which is no longer valid.
func (r *Reader) Release() {
	for _, l := range r.lanes {
		l.free()
		l.chunks.release()
	}
}

// Next returns the next step, valid until the next call, or io.EOF. It returns all steps before a damaged part, and
// then the error.
func (r *Reader) Next(ctx context.Context) (*trace.Step, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.done {
		r.close()
		if r.err != nil {
			return nil, r.err
		}
		return nil, io.EOF
	}
	r.begin()
	for _, l := range r.lanes {
		l.resume(r)
	}
	for r.row < stepEvents && !r.done {
		r.window()
	}
	r.assemble()
	return &r.step, nil
}

// The length of windows changes such that the lane with most events in a window adds about windowEvents. A lane adds at most
// maxWindowEvents, and the rest in the next window.
const (
	windowEvents    = 64
	maxWindowEvents = 256
)

// window adds the events of a short time, lane by lane. So lanes never differ by more than that time.
func (r *Reader) window() {
	left, first := 0, trace.Ticks(math.MaxInt64)
	for _, l := range r.lanes {
		if !l.ended {
			left++
			first = min(first, l.now)
		}
	}
	r.done = left == 0
	until := first + r.length
	if until < first || left == 1 {
		until = math.MaxInt64
	}
	most := uint32(0)
	for _, l := range r.lanes {
		if !l.ended && l.now <= until {
			before := r.row
			l.run(r, until)
			most = max(most, r.row-before)
		}
	}
	switch {
	case most > 2*windowEvents:
		r.length /= 2
	case most < windowEvents/2 && r.length < 1<<62:
		r.length = 2*r.length + 1
	}
}

func (r *Reader) begin() {
	metadata := r.step.Metadata[:0]
	if r.index == 0 {
		for _, l := range r.lanes {
			if l.thread > 0 {
				continue
			}
			m := trace.Metadata{Program: r.archive.Program, Rank: r.rank}
			for _, fact := range [][2]string{{"Hostname", l.host}, {"OTF2 Creator", r.archive.Creator}} {
				if m.Key, m.Value = fact[0], fact[1]; m.Value != "" {
					metadata = append(metadata, m)
				}
			}
		}
	}
	r.step = trace.Step{Index: r.index, Metadata: metadata, Batches: r.step.Batches[:0], Readings: r.step.Readings[:0]}
	r.index++
	r.row = 0
	for _, l := range r.lanes {
		l.events, l.counts, l.mixed = l.events[:0], l.counts[:0], false
	}
}

// assemble creates the batches of the step.
func (r *Reader) assemble() {
	add := func(to []trace.Batch, l *lane, events []trace.Event) []trace.Batch {
		if len(events) == 0 {
			return to
		}
		return append(to, trace.Batch{Program: r.archive.Program, Rank: r.rank, Thread: l.thread, Events: events})
	}
	for _, l := range r.lanes {
		r.step.Batches = add(r.step.Batches, l, l.events)
		counts := l.events
		if l.mixed {
			counts = l.counts
		}
		r.step.Readings = add(r.step.Readings, l, counts)
	}
}

// seek moves to the next record that is not a timestamp, and reports whether there is one.
func (l *lane) seek(r *Reader) bool {
	c := l.chunks
	for {
		// Nearly all records are in the current chunk.
		if c.err == nil && c.pos < len(c.data) && c.data[c.pos] > timestamp {
			if c.data[c.pos] != attributeList {
				l.records++
			}
			return true
		}
		t, ok := c.record()
		switch {
		case !ok:
			if l.records < l.location.events {
				c.fail(fmt.Errorf("only %d of %d events", l.records, l.location.events))
			}
			if c.err != nil {
				r.fail(c.err)
			}
			return false
		case t != timestamp:
			if c.pos--; t < timestamp { // it is unknown; others are found above
				l.records++
				return true
			}
		default:
			if time := c.u64(); c.err == nil {
				l.now = r.archive.ticks(l.correct(time))
			}
		}
	}
}

// resume restores what Release has freed, and in the first step moves to the first event.
func (l *lane) resume(r *Reader) {
	if l.ended {
		return
	}
	if l.chunks.file == nil && !l.chunks.last {
		l.chunks.restore()
	}
	if r.index == 1 {
		l.ended = !l.seek(r)
	}
}

// run adds the events until the given time, but not too many.
func (l *lane) run(r *Reader, until trace.Ticks) {
	for most := r.row + maxWindowEvents; l.now <= until && r.row < most; {
		l.read(r)
		if !l.flushed && !l.seek(r) {
			l.ended = true
			return
		}
	}
}

// read reads the next record, which may give no event.
func (l *lane) read(r *Reader) {
	if l.flushed {
		l.flushed = false
		l.call(r, trace.Event{ID: flush, Kind: trace.Exit})
		return
	}
	c := l.chunks
	if c.pos >= len(c.data) {
		return // the file cannot be read any more
	}
	t := c.data[c.pos]
	c.pos++
	switch {
	case t == enter || t == leave:
		l.readCall(r, t == enter)
	case t == metric:
		c.begin()
		l.addMetric(r, &c.cursor)
		c.finish()
	case isShort(t):
		c.number()
		r.tally.Add(tally.RecordsSkipped, 1)
	case t == attributeList:
		c.begin()
		l.readAttributes(r, &c.cursor)
		c.finish()
		return
	default:
		if c.begin(); c.err == nil {
			l.readLong(r, t, &c.cursor)
		}
		c.finish()
	}
	l.attributed = false
}

// isShort reports whether a record has one number, and no length.
func isShort(t byte) bool {
	switch t {
	case enter, leave, mpiSent, mpiRequest, mpiTest, mpiCanceled, ompFork, ompTaskCreate, ompTaskSwitch, ompTaskComplete:
		return true
	}
	return false
}

// readCall reads an entry or exit of a region.
func (l *lane) readCall(r *Reader, entry bool) {
	id := l.chunks.id()
	if l.chunks.err != nil {
		return
	}
	if uint(id) < uint(len(l.regions)) {
		id = l.regions[id]
	} else {
		id = r.archive.known.of(l.maps[mapRegion].of(id))
	}
	if !entry {
		l.call(r, trace.Event{ID: id, Kind: trace.Exit})
		return
	}
	l.enter(r, id)
}

// enter adds an entry of a region.
func (l *lane) enter(r *Reader, region uint32) {
	l.call(r, trace.Event{ID: region, Kind: trace.Enter})
	if r.archive.defs.marks.any {
		l.linkEntered(r, region)
	}
}

// add adds an event at the time of the lane.
func (l *lane) add(r *Reader, e trace.Event) {
	e.Time, e.Row = l.now, r.row
	r.row++
	if len(l.events) == cap(l.events) {
		l.events = l.grow(l.events)
	}
	l.events = append(l.events, e)
}

// grow returns events with room for more.
func (l *lane) grow(events []trace.Event) []trace.Event {
	more := append(eventMemory.get(max(2*len(events), l.room, 16)), events...)
	eventMemory.put(events)
	return more
}

// mix begins the list of counters before the first event that is not a counter.
func (l *lane) mix() {
	l.mixed = true
	l.counts = append(l.counts[:0], l.events...)
}

// call adds an entry or exit.
func (l *lane) call(r *Reader, e trace.Event) {
	if !l.mixed {
		l.mix()
	}
	l.add(r, e)
	r.step.Funcs++
}

// count adds a value of a counter.
func (l *lane) count(r *Reader, c trace.CounterID, v uint64) {
	l.add(r, trace.Event{ID: uint32(c), Value: v, Kind: trace.Count})
	if l.mixed {
		if len(l.counts) == cap(l.counts) {
			l.counts = l.grow(l.counts)
		}
		l.counts = append(l.counts, l.events[len(l.events)-1])
	}
	r.step.Counters++
}

// readLong adds the events of a record with a length.
func (l *lane) readLong(r *Reader, t byte, b *cursor) {
	switch t {
	case mpiSend, mpiIsend, mpiRecv, mpiIrecv:
		partner, comm, tag, size := b.id(), l.maps[mapComm].of(b.id()), b.id(), b.number()
		if size > trace.MaxSize {
			size = trace.UnknownSize
		}
		kind := trace.Send
		if t == mpiRecv || t == mpiIrecv {
			kind = trace.Recv
		}
		if !l.mixed {
			l.mix()
		}
		l.add(r, trace.Event{ID: uint32(r.archive.partner(comm, partner)), Tag: int32(tag), Value: size, Kind: kind})
		r.step.Comms++
	case bufferFlush:
		l.call(r, trace.Event{ID: flush, Kind: trace.Enter})
		l.now, l.flushed = max(l.now, r.archive.ticks(l.correct(b.u64()))), true
	case rmaPut, rmaGet:
		b.id() // window
		b.id() // partner
		counter := bytesPut
		if t == rmaGet {
			counter = bytesGot
		}
		l.count(r, counter, b.number())
	case ioComplete:
		b.id() // handle of a file
		l.count(r, bytesIO, b.number())
	case mpiCollective, mpiIcollective:
		b.skip(1) // operation
		b.id()    // communicator
		b.id()    // root
		l.count(r, bytesSent, b.number())
		l.count(r, bytesReceived, b.number())
	case contextEnter, contextLeave:
		region, ok := r.archive.defs.contexts[l.maps[mapContext].of(b.id())]
		if !ok {
			r.tally.Add(tally.IDImplausible, 1)
			return
		}
		if region = r.archive.known.of(region); t == contextEnter {
			l.enter(r, region)
		} else {
			l.call(r, trace.Event{ID: region, Kind: trace.Exit})
		}
	default:
		if path, ok := l.pathOf(r, t, b); ok {
			l.link(r, path, l.stream)
			return
		}
		r.tally.Add(tally.RecordsSkipped, 1)
	}
}

// addMetric adds the values of a metric. Negative values and fractions become whole numbers ≥ 0.
func (l *lane) addMetric(r *Reader, b *cursor) {
	if id := b.id(); id != l.metric || l.members == nil {
		l.metric, l.members = id, r.archive.defs.metric(l.maps[mapMetric].of(id))
	}
	types := b.take(int(b.byte()))
	for i := range types {
		v := b.number()
		if b.err != nil {
			return
		}
		switch types[i] {
		case typeDouble:
			v = toCount(math.Float64frombits(v))
		case typeFloat:
			v = toCount(float64(math.Float32frombits(uint32(v))))
		case typeInt64:
			v = uint64(max(0, int64(v)))
		}
		if i >= len(l.members) {
			r.tally.Add(tally.IDImplausible, 1)
			continue
		}
		l.count(r, trace.CounterID(l.members[i]), v)
	}
}

// toCount returns the nearest whole number ≥ 0.
func toCount(v float64) uint64 {
	if !(v > 0) {
		return 0
	}
	return uint64(math.Round(min(v, 1<<62)))
}

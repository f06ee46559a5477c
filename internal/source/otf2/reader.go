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
	rmaPut          = 46
	rmaGet          = 47
	contextEnter    = 66
	contextLeave    = 67
	ioComplete      = 78
	mpiIcollective  = 86 // its end
	typeInt64       = 8
	typeFloat       = 9
	typeDouble      = 10
	maxMetricValues = 256
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
	chunks *chunks
	time   uint64      // of the last timestamp
	now    trace.Ticks // the same
	queue  []trace.Event
	next   int // in queue
	events []trace.Event
	counts []trace.Event // counters among events
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
	}
}

// Names returns the names of the numbers in steps.
func (r *Reader) Names() *trace.Names { return &r.names }

// Release closes files and frees the memory of the last step.
func (r *Reader) Release() {
	for _, l := range r.lanes {
		l.events, l.counts = nil, nil
		l.chunks.release()
	}
}

// Next returns the next step, valid until the next call, or io.EOF. What precedes a damaged part is returned before the
// error.
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
	for n := 0; n < stepEvents; {
		l, limit := r.earliest()
		if l == nil {
			r.done = true
			break
		}
		for ; n < stepEvents && l.ready(r) && l.queue[l.next].Time <= limit; n++ {
			l.put(r)
		}
	}
	r.assemble()
	return &r.step, nil
}

// earliest returns the lane with the earliest event, and until when it is the earliest; nil if there are no events.
func (r *Reader) earliest() (first *lane, until trace.Ticks) {
	until = math.MaxInt64
	for _, l := range r.lanes {
		if !l.ready(r) {
			continue
		}
		switch at := l.queue[l.next].Time; {
		case first == nil:
			first = l
		case at < first.queue[first.next].Time:
			first, until = l, first.queue[first.next].Time
		default:
			until = min(until, at)
		}
	}
	return first, until
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
		l.events, l.counts = l.events[:0], l.counts[:0]
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
		r.step.Readings = add(r.step.Readings, l, l.counts)
	}
}

// put moves the next event to the step.
func (l *lane) put(r *Reader) {
	e := l.queue[l.next]
	l.next++
	e.Row = r.row
	r.row++
	l.events = append(l.events, e)
	switch e.Kind {
	case trace.Enter, trace.Exit:
		r.step.Funcs++
	case trace.Count:
		l.counts = append(l.counts, e)
		r.step.Counters++
	default:
		r.step.Comms++
	}
}

// ready makes sure that the queue has an event, and reports whether there is one.
func (l *lane) ready(r *Reader) bool {
	for l.next == len(l.queue) {
		l.queue, l.next = l.queue[:0], 0
		if !l.read(r) {
			return false
		}
	}
	return true
}

// read reads a record, which may give no event, and reports whether there was one.
func (l *lane) read(r *Reader) bool {
	c := l.chunks
	t, ok := c.record()
	if !ok {
		if c.err != nil {
			r.fail(c.err)
			c.last, c.err, c.data, c.pos = true, nil, nil, 0
		}
		return false
	}
	switch t {
	case timestamp:
		l.time = c.u64()
		l.now = r.archive.ticks(l.correct(l.time))
	case enter:
		l.add(trace.Event{ID: r.archive.known.of(l.maps[mapRegion].of(c.id())), Kind: trace.Enter})
	case leave:
		l.add(trace.Event{ID: r.archive.known.of(l.maps[mapRegion].of(c.id())), Kind: trace.Exit})
	case mpiSent, mpiRequest, mpiTest, mpiCanceled, ompFork, ompTaskCreate, ompTaskSwitch, ompTaskComplete:
		c.number() // like enter and leave, these have no length
		r.tally.Add(tally.RecordsSkipped, 1)
	default:
		b := c.body()
		l.other(r, t, &b)
		if b.err != nil && c.err == nil {
			c.err = b.err
		}
	}
	return true
}

// add adds an event at the time of the lane to the queue.
func (l *lane) add(e trace.Event) {
	e.Time = l.now
	l.queue = append(l.queue, e)
}

// count adds a value of a counter.
func (l *lane) count(c trace.CounterID, v uint64) {
	l.add(trace.Event{ID: uint32(c), Value: v, Kind: trace.Count})
}

// other adds the events of a record with a length.
func (l *lane) other(r *Reader, t byte, b *cursor) {
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
		l.add(trace.Event{ID: uint32(r.archive.partner(comm, partner)), Tag: int32(tag), Value: size, Kind: kind})
	case bufferFlush:
		l.add(trace.Event{ID: flush, Kind: trace.Enter})
		l.queue = append(l.queue, trace.Event{ID: flush, Kind: trace.Exit, Time: max(l.now, r.archive.ticks(l.correct(b.u64())))})
	case rmaPut, rmaGet:
		b.id() // window
		b.id() // partner
		counter := bytesPut
		if t == rmaGet {
			counter = bytesGot
		}
		l.count(counter, b.number())
	case ioComplete:
		b.id() // handle of a file
		l.count(bytesIO, b.number())
	case mpiCollective, mpiIcollective:
		b.skip(1) // operation
		b.id()    // communicator
		b.id()    // root
		l.count(bytesSent, b.number())
		l.count(bytesReceived, b.number())
	case metric:
		l.addMetric(r, b)
	case contextEnter, contextLeave:
		kind := trace.Enter
		if t == contextLeave {
			kind = trace.Exit
		}
		region, ok := r.archive.defs.contexts[l.maps[mapContext].of(b.id())]
		if !ok {
			r.tally.Add(tally.IDImplausible, 1)
			return
		}
		l.add(trace.Event{ID: r.archive.known.of(region), Kind: kind})
	case attributeList:
	default:
		r.tally.Add(tally.RecordsSkipped, 1)
	}
}

// addMetric adds the values of a metric. Negative values and fractions become whole numbers from 0 on.
func (l *lane) addMetric(r *Reader, b *cursor) {
	members := r.archive.defs.metric(l.maps[mapMetric].of(b.id()))
	var types [maxMetricValues]byte
	n := int(b.byte())
	copy(types[:], b.take(n))
	for i := range n {
		v := b.number()
		if b.err != nil {
			return
		}
		switch types[i] {
		case typeDouble:
			v = whole(math.Float64frombits(v))
		case typeFloat:
			v = whole(float64(math.Float32frombits(uint32(v))))
		case typeInt64:
			v = uint64(max(0, int64(v)))
		}
		if i >= len(members) {
			r.tally.Add(tally.IDImplausible, 1)
			continue
		}
		l.count(trace.CounterID(members[i]), v)
	}
}

// whole returns the nearest whole number from 0 on.
func whole(v float64) uint64 {
	if !(v > 0) {
		return 0
	}
	return uint64(math.Round(min(v, 1<<62)))
}

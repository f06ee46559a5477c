package simulate

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// output is the output of a rank in a step. It is reused.
type output struct {
	lanes    []lane // by thread
	calls    []truth.Call
	rows     []uint32 // of the entries of calls, on their threads
	arrivals []arrival
	counters []*trace.Event // of all threads
}

// lane has the events of a thread, in the order of a trace.Batch. Rows count on the
// thread until the step is complete.
type lane struct {
	events                 []trace.Event
	funcs, comms, counters uint32
	first                  uint32 // row of its first function in the step
}

// arrival is a received message.
type arrival struct {
	at        int64
	from, tag int
	bytes     int64
}

func (o *output) reset() {
	for i := range o.lanes {
		o.lanes[i] = lane{events: o.lanes[i].events[:0]}
	}
	o.calls, o.rows = o.calls[:0], o.rows[:0]
}

func (o *output) lane(thread int) *lane {
	for len(o.lanes) <= thread {
		o.lanes = append(o.lanes, lane{})
	}
	return &o.lanes[thread]
}

// function emits an entry or exit and returns its row. An entry precedes counters of the
// same time.
func (l *lane) function(kind trace.Kind, fn trace.FuncID, at int64) uint32 {
	row := l.funcs
	l.funcs++
	e := trace.Event{Time: trace.Ticks(at), Row: row, ID: uint32(fn), Kind: kind}
	n := len(l.events)
	for kind == trace.Enter && n > 0 && l.events[n-1].Time == e.Time && l.events[n-1].Kind > trace.Exit {
		n--
	}
	l.events = slices.Insert(l.events, n, e)
	return row
}

func (l *lane) count(id trace.CounterID, value uint64, at int64) {
	l.side(trace.Event{Time: trace.Ticks(at), Value: value, Row: l.counters, ID: uint32(id), Kind: trace.Count})
	l.counters++
}

func (l *lane) message(kind trace.Kind, partner, tag int, bytes uint64, at int64) {
	l.side(trace.Event{
		Time: trace.Ticks(at), Value: bytes, Row: l.comms, ID: uint32(partner), Tag: int32(tag), Kind: kind,
	})
	l.comms++
}

// side emits a message or counter: before the first exit of the same time, and messages
// before counters.
func (l *lane) side(e trace.Event) {
	at := len(l.events)
	for i := at - 1; i >= 0 && l.events[i].Time == e.Time; i-- {
		if k := l.events[i].Kind; k == trace.Exit || k == trace.Count && e.Kind != trace.Count {
			at = i
		}
	}
	l.events = slices.Insert(l.events, at, e)
}

// received emits the arrivals.
func (o *output) received(l *lane) {
	slices.SortStableFunc(o.arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	for _, a := range o.arrivals {
		l.message(trace.Recv, a.from, a.tag, uint64(a.bytes), a.at)
	}
}

// number sets the rows of all events in the tables of the step, in TAU's order: functions
// by thread, others by time.
func (o *output) number(id trace.EventID) (funcs, comms, counters uint32) {
	reading := 0 // threads with counters
	for t := range o.lanes {
		l := &o.lanes[t]
		l.first = funcs
		for i := range l.events {
			if funcs == 0 {
				break // the rows are right already
			}
			if e := &l.events[i]; e.Kind <= trace.Exit {
				e.Row += l.first
			}
		}
		if l.counters > 0 {
			reading++
		}
		funcs, counters = funcs+l.funcs, counters+l.counters
		comms += l.comms // only one thread sends and receives
	}
	if reading > 1 {
		o.numberCounters()
	}
	for i := range o.calls {
		c := &o.calls[i]
		id.Row = o.lanes[c.Thread].first + o.rows[i]
		c.Event = id.String()
	}
	return funcs, comms, counters
}

// numberCounters numbers the counters of several threads.
func (o *output) numberCounters() {
	o.counters = o.counters[:0]
	for t := range o.lanes {
		for i := range o.lanes[t].events {
			if e := &o.lanes[t].events[i]; e.Kind == trace.Count {
				o.counters = append(o.counters, e)
			}
		}
	}
	slices.SortStableFunc(o.counters, func(a, b *trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	for row, e := range o.counters {
		e.Row = uint32(row)
	}
}

// call adds a call that a trouble affected. number sets its event.
func (o *output) call(w *walker, fn trace.FuncID, row uint32, entry int64, h hit, role truth.Role) *truth.Call {
	o.rows = append(o.rows, row)
	o.calls = append(o.calls, truth.Call{
		Role: role, Trouble: w.e.scenario.Troubles[h.trouble].Name, Program: trace.Program(w.e.p.index),
		Rank: trace.Rank(w.rank), Thread: trace.Thread(w.thread), Function: w.e.p.funcs[fn],
		Entry: trace.Ticks(entry), Exit: trace.Ticks(w.st.clock), Injected: trace.Ticks(h.added),
	})
	return &o.calls[len(o.calls)-1]
}

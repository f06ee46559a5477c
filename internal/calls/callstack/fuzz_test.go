package callstack_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
)

// FuzzBuilder builds calls of events that come from bytes, see randomEvents,
// and compares them with a model; see checkAgainstModel.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte("\x02\x04\x00"))
	f.Add([]byte{0x02, 0x04, 0x10, 0x08, 0, 0x08, 1, 0x0d, 7, 0x0c, 1, 0x0a, 0, 0x0a, 0})
	f.Add([]byte{0x01, 0x02, 0x00, 0, 0, 0, 1, 0, 2, 0, 3, 3, 0, 3, 1, 7, 0, 0, 4, 2, 0})
	f.Add([]byte{0x01, 0x03, 0x00, 0, 0, 6, 5, 2, 0, 7, 0, 7, 1, 0, 1, 6, 5, 7, 0, 2, 0, 6, 5, 0, 0, 2, 0})
	f.Add([]byte{0x80, 0x04, 0x00, 0, 9, 4, 200, 1, 1, 5, 3, 2, 0, 3, 77, 7, 4, 3, 0, 0, 4, 7, 8, 3, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 3000 {
			checkAgainstModel(t, data)
		}
	})
}

// randomEvents turns bytes into bounds and steps of events. The first three bytes are
// the bounds; then each event has two bytes: its kind and the time since the last event
// of its thread, and its function, value or thread. Between steps the clock may be set
// back. If ordered is false time sometimes also runs backwards within a step, which no
// decoder allows.
func randomEvents(data []byte) (cfg callstack.Config, steps [][]trace.Batch, ordered bool) {
	var head [3]byte
	data = data[copy(head[:], data):]
	ordered = head[0] < 0x80
	cfg = config()
	cfg.Window, cfg.MaxPinned = int(head[0]&7), 1+int(head[0]>>3&15)
	cfg.MaxDepth = 1 + int(head[1]&15)
	cfg.MaxSides = int(head[2] & 31)
	if most := int(head[1] >> 4); most > 0 {
		cfg.MaxPaths = most
	}
	if uncoupled := trace.FuncID(head[2] >> 5); uncoupled > 0 {
		cfg.IgnoresCorrelation = func(id trace.FuncID) bool { return id == uncoupled }
	}
	threads := make(map[trace.Thread][]trace.Event)
	rows := make(map[trace.Kind]uint32)
	times := make(map[trace.Thread]trace.Ticks)
	inner := make(map[trace.Thread][]uint32) // functions entered and not left
	thread := trace.Thread(1)
	for ; len(data) >= 2; data = data[2:] {
		op, arg := data[0], uint32(data[1])
		e := trace.Event{ID: arg % 6, Value: uint64(arg)}
		stack := inner[thread]
		switch op & 7 {
		case 0, 1:
			e.Kind = trace.Enter
			inner[thread] = append(stack, e.ID)
		case 2:
			e.Kind = trace.Exit
			if n := len(stack); n > 0 {
				e.ID, inner[thread] = stack[n-1], stack[:n-1]
			}
		case 3:
			e.Kind = trace.Exit
		case 4:
			e.Kind, e.Tag = trace.Send+trace.Kind(arg&1), int32(arg)
		case 5:
			e.Kind = trace.Count
			if arg >= 200 {
				e.ID = nodeCounter
			}
		case 6:
			e.Kind, e.ID, e.Value = trace.Count, idCounter, uint64(arg%16)
		case 7:
			if thread = trace.Thread(arg % 4); arg >= 192 {
				steps, rows = append(steps, batches(threads)), make(map[trace.Kind]uint32)
				threads = make(map[trace.Thread][]trace.Event)
				back := max(0, trace.Ticks(arg>>2&15)-8)
				for id := range times {
					times[id] -= min(back, times[id])
				}
			}
			continue
		}
		times[thread] += trace.Ticks(op >> 3 & 3)
		if !ordered && op >= 0xf0 {
			times[thread] -= min(trace.Ticks(arg), times[thread])
		}
		e.Time = 1 + times[thread]
		e.Row = rows[table(e.Kind)]
		rows[table(e.Kind)]++
		threads[thread] = append(threads[thread], e)
	}
	return cfg, append(steps, batches(threads)), ordered
}

// checkAgainstModel builds calls and checks, in each step, that they are those
// of the model and that every event is accounted for.
func checkAgainstModel(t *testing.T, data []byte) {
	t.Helper()
	cfg, steps, ordered := randomEvents(data)
	var counts tally.Tally
	b := callstack.NewBuilder(cfg, &counts)
	m := model{cfg: cfg, threads: make(map[trace.Thread]*modelThread)}
	books := ledger{ended: make(map[trace.EventID]bool), lastChild: make(map[trace.EventID]trace.Ticks)}
	for i, step := range steps {
		b.Begin(i)
		m.begin(i)
		for _, batch := range step {
			m.addBatch(batch.Thread, batch.Events)
			b.Add(batch.Thread, batch.Events)
			for i := range batch.Events {
				books.add(&batch.Events[i])
			}
		}
		books.check(t, b, &counts, ordered)
		m.compare(t, b, ordered)
		m.comparePaths(t, b)
		for _, th := range b.Threads() { // labels stay with their calls
			for _, c := range th.Done {
				th.Calls[c].Label = labelOf(th.Calls[c].Row)
			}
		}
		b.Trim()
		m.trim()
		books.kept = countSides(b)
		m.compare(t, b, ordered)
		if got, want := totals(&counts), totals(&m.tally); got != want {
			t.Fatalf("step %d: counted %s, want %s", i, got, want)
		}
		if t.Failed() {
			t.Fatalf("in step %d of %v", i, steps)
		}
	}
}

func labelOf(row uint32) callstack.Label { return callstack.Label(row % 3) }

// ledger counts events, and where they went.
type ledger struct {
	enters, exits, sides int64
	apart, attached      int64
	kept                 int64                         // messages and counters that were held when the step began
	ended                map[trace.EventID]bool        // calls that ended
	lastChild            map[trace.EventID]trace.Ticks // last exit of a call's children
}

func (l *ledger) add(e *trace.Event) {
	switch e.Kind {
	case trace.Enter:
		l.enters++
	case trace.Exit:
		l.exits++
	default:
		l.sides++
	}
}

// check checks the accounts at the end of a step, before it is trimmed.
func (l *ledger) check(t *testing.T, b *callstack.Builder, counts *tally.Tally, ordered bool) {
	t.Helper()
	open := int64(0)
	for _, th := range b.Threads() {
		l.checkDone(t, th, ordered)
		for i := range th.Calls {
			c := &th.Calls[i]
			if c.IsOpen() {
				open++
			}
			if ordered && c.Parent >= 0 && th.Calls[c.Parent].Entry > c.Entry {
				t.Errorf("call %v begins before its parent", c.ID(0))
			}
		}
	}
	if open != int64(b.OpenCalls()) {
		t.Errorf("%d calls have no exit, but %d are open", open, b.OpenCalls())
	}
	ended := int64(len(l.ended))
	if l.enters != ended+open+counts.Count(tally.StackTooDeep) {
		t.Errorf("%d entries, but %d calls ended and %d are open; counted %s", l.enters, ended, open, totals(counts))
	}
	// Exits of entries that were dropped are dropped without being counted.
	swallowed := l.exits - ended + counts.Count(tally.ExitLost) - counts.Count(tally.ExitWithoutEnter)
	if swallowed < 0 || swallowed > counts.Count(tally.StackTooDeep) {
		t.Errorf("%d exits, but %d calls ended; counted %s", l.exits, ended, totals(counts))
	}
	l.apart += int64(len(b.NodeEvents()))
	l.attached += countSides(b) - l.kept
	if l.sides != l.attached+l.apart+counts.Count(tally.OutsideAnyCall) {
		t.Errorf("%d messages and counters, but %d went to calls and %d stayed apart; counted %s", l.sides, l.attached, l.apart, totals(counts))
	}
}

func countSides(b *callstack.Builder) (n int64) {
	for _, th := range b.Threads() {
		n += int64(len(th.Sides))
	}
	return n
}

func (l *ledger) checkDone(t *testing.T, th *callstack.Thread, ordered bool) {
	t.Helper()
	for _, i := range th.Done {
		c := &th.Calls[i]
		id := c.ID(0)
		if l.ended[id] {
			t.Errorf("call %v ended twice", id)
		}
		l.ended[id] = true
		if c.IsOpen() || c.Exit < c.Entry || c.Inclusive() != c.Exit-c.Entry {
			t.Errorf("call %v ended with times %d to %d", id, c.Entry, c.Exit)
		}
		if !ordered {
			continue
		}
		if last := l.lastChild[id]; last > c.Exit || c.Exclusive() < 0 {
			t.Errorf("call %v ends at %d, its last child at %d; exclusive time %d", id, c.Exit, last, c.Exclusive())
		}
		if parent, ok := c.ParentID(0); ok {
			l.lastChild[parent] = max(l.lastChild[parent], c.Exit)
		}
	}
}

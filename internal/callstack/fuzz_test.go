package callstack_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/callstack"
	"github.com/chimbuko/chimbuko/internal/tally"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// FuzzBuilder builds calls of events that come from bytes, see randomEvents,
// and holds them against a model; see checkAgainstModel.
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

// randomEvents turns bytes into bounds and steps of events. Of the first three
// bytes come the bounds; then each event takes two, of which the first says
// what it is and how much time has passed on its thread, and the second the
// function, the value or the thread. Where ordered is false time runs backwards
// now and then, which no decoder lets happen within a step.
func randomEvents(data []byte) (cfg callstack.Config, steps [][]trace.Batch, ordered bool) {
	var head [3]byte
	data = data[copy(head[:], data):]
	ordered = head[0] < 0x80
	cfg = config()
	cfg.Window, cfg.MaxPinned = int(head[0]&7), 1+int(head[0]>>3&15)
	cfg.MaxDepth = 1 + int(head[1]&15)
	cfg.MaxSides = int(head[2] & 31)
	if uncoupled := trace.FuncID(head[2] >> 5); uncoupled > 0 {
		cfg.Uncoupled = func(id trace.FuncID) bool { return id == uncoupled }
	}
	threads := make(map[trace.Thread][]trace.Event)
	rows := make(map[trace.Kind]uint32)
	times := make(map[trace.Thread]trace.Micros)
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
			}
			continue
		}
		times[thread] += trace.Micros(op >> 3 & 3)
		if !ordered && op >= 0xf0 {
			times[thread] -= min(trace.Micros(arg), times[thread])
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
	m := model{cfg: cfg, threads: make(map[trace.Thread]*modelThread), waiting: make(map[uint64]*modelCall)}
	books := ledger{ended: make(map[trace.EventID]bool), lastChild: make(map[trace.EventID]trace.Micros)}
	for i, step := range steps {
		b.Begin(i)
		m.begin(i)
		for _, batch := range step {
			b.Add(batch.Thread, batch.Events)
			for _, e := range batch.Events {
				m.add(batch.Thread, e)
				books.add(&e)
			}
		}
		books.check(t, b, &counts, ordered)
		m.compare(t, b, ordered)
		for _, th := range b.Threads() { // labels stay with their calls
			for _, c := range th.Done {
				th.Calls[c].Label = labelOf(th.Calls[c].Row)
			}
		}
		b.Trim()
		m.trim()
		books.kept = heldSides(b)
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
	kept                 int64                          // messages and counters that were held when the step began
	ended                map[trace.EventID]bool         // calls that ended
	lastChild            map[trace.EventID]trace.Micros // last exit of a call's children
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
	if l.exits != ended-counts.Count(tally.ExitLost)+counts.Count(tally.ExitWithoutEnter) {
		t.Errorf("%d exits, but %d calls ended; counted %s", l.exits, ended, totals(counts))
	}
	l.apart += int64(len(b.Apart()))
	l.attached += heldSides(b) - l.kept
	if l.sides != l.attached+l.apart+counts.Count(tally.OutsideAnyCall) {
		t.Errorf("%d messages and counters, but %d went to calls and %d stayed apart; counted %s", l.sides, l.attached, l.apart, totals(counts))
	}
}

func heldSides(b *callstack.Builder) (n int64) {
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

// model builds calls in the plainest way: it forgets nothing, and calls know
// each other by pointers.
type model struct {
	cfg     callstack.Config
	threads map[trace.Thread]*modelThread
	waiting map[uint64]*modelCall
	pairs   [][2]*modelCall
	apart   []trace.Event
	tally   tally.Tally
	step    int
}

type modelThread struct {
	calls []*modelCall
	open  []*modelCall
	done  []*modelCall
	sides []modelSide // of calls that are held
}

type modelCall struct {
	thread      trace.Thread
	id          trace.EventID
	fn          trace.FuncID
	entry, exit trace.Micros
	open, lost  bool
	parent      *modelCall
	children    []*modelCall
	held        bool
	labelled    bool
}

type modelSide struct {
	trace.Event
	call *modelCall
}

func (m *model) begin(step int) {
	m.step, m.apart = step, nil
	for _, t := range m.threads {
		t.done = nil
	}
}

func (m *model) add(thread trace.Thread, e trace.Event) {
	if m.threads[thread] == nil {
		m.threads[thread] = new(modelThread)
	}
	t := m.threads[thread]
	n := len(t.open)
	switch {
	case e.Kind == trace.Enter && n >= m.cfg.MaxDepth:
		m.tally.Add(tally.StackTooDeep, 1)
	case e.Kind == trace.Enter:
		c := &modelCall{thread: thread, id: trace.EventID{Step: m.step, Row: e.Row}, fn: e.Func(), entry: e.Time, open: true, held: true}
		if n > 0 {
			c.parent = t.open[n-1]
			c.parent.children = append(c.parent.children, c)
		}
		t.open, t.calls = append(t.open, c), append(t.calls, c)
	case e.Kind == trace.Exit:
		fits := func(c *modelCall) bool { return c.fn == e.Func() && c.entry <= e.Time }
		if !slices.ContainsFunc(t.open, fits) {
			m.tally.Add(tally.ExitWithoutEnter, 1)
			return
		}
		for ended := false; !ended; {
			n--
			c := t.open[n]
			t.open, t.done = t.open[:n], append(t.done, c)
			ended = fits(c)
			c.open, c.lost, c.exit = false, !ended, max(c.entry, e.Time)
			if c.lost {
				m.tally.Add(tally.ExitLost, 1)
			}
		}
	case e.Kind == trace.Count && e.ID == nodeCounter:
		m.apart = append(m.apart, e)
	case n == 0:
		m.tally.Add(tally.OutsideAnyCall, 1)
	default:
		c := t.open[n-1]
		t.sides = append(t.sides, modelSide{e, c})
		if e.Kind == trace.Count && e.ID == idCounter && (m.cfg.Uncoupled == nil || !m.cfg.Uncoupled(c.fn)) {
			m.correlate(c, e.Value)
		}
	}
}

func (m *model) correlate(c *modelCall, id uint64) {
	other := m.waiting[id]
	switch {
	case other != nil && other.thread != c.thread:
		delete(m.waiting, id)
		m.pairs = append(m.pairs, [2]*modelCall{other, c})
	case other == nil && len(m.waiting) == m.cfg.MaxPinned:
		m.tally.Add(tally.CorrelationDropped, 1)
	default:
		m.waiting[id] = c
	}
}

func (m *model) trim() {
	held := make(map[*modelCall]bool)
	hold := func(c *modelCall) {
		for ; c != nil; c = c.parent {
			held[c] = true
		}
	}
	for _, t := range m.threads {
		for _, c := range t.open {
			held[c] = true
		}
		for _, c := range t.calls[max(0, len(t.calls)-m.cfg.Window):] {
			held[c] = true
		}
	}
	for _, c := range m.waiting {
		hold(c)
	}
	m.pairs = slices.DeleteFunc(m.pairs, func(p [2]*modelCall) bool { return !p[0].open && !p[1].open })
	for _, p := range m.pairs {
		hold(p[0])
		hold(p[1])
	}
	for _, t := range m.threads {
		for _, c := range t.calls {
			c.held = held[c]
		}
		for _, c := range t.done {
			c.labelled = true
		}
		t.done = nil
		t.sides = slices.DeleteFunc(t.sides, func(s modelSide) bool { return !s.call.held })
		if over := len(t.sides) - m.cfg.MaxSides; over > 0 {
			t.sides = slices.Delete(t.sides, 0, over)
			m.tally.Add(tally.SidesForgotten, int64(over))
		}
	}
}

// compare checks all that the builder holds.
func (m *model) compare(t *testing.T, b *callstack.Builder, ordered bool) {
	t.Helper()
	if b.Waiting() != len(m.waiting) {
		t.Errorf("%d ids wait, want %d", b.Waiting(), len(m.waiting))
	}
	if len(b.Threads()) != len(m.threads) || !slices.IsSortedFunc(b.Threads(), func(x, y *callstack.Thread) int { return int(x.ID) - int(y.ID) }) {
		t.Errorf("got threads %v, want %d in order", b.Threads(), len(m.threads))
	}
	if !slices.Equal(b.Apart(), m.apart) {
		t.Errorf("got %v apart from calls, want %v", b.Apart(), m.apart)
	}
	for _, th := range b.Threads() {
		m.compareThread(t, th, ordered)
	}
}

func (m *model) compareThread(t *testing.T, th *callstack.Thread, ordered bool) {
	t.Helper()
	want := m.threads[th.ID]
	var heldCalls []*modelCall
	for _, c := range want.calls {
		if c.held {
			heldCalls = append(heldCalls, c)
		}
	}
	if got, want := idsOf(th), modelIDs(heldCalls); !slices.Equal(got, want) {
		t.Fatalf("thread %d holds %v, want %v", th.ID, got, want)
	}
	var doneIDs []trace.EventID
	for _, i := range th.Done {
		doneIDs = append(doneIDs, th.Calls[i].ID(0))
	}
	if want := modelIDs(want.done); !slices.Equal(doneIDs, want) {
		t.Errorf("thread %d: ended %v, want %v", th.ID, doneIDs, want)
	}
	if len(th.Sides) != len(want.sides) {
		t.Errorf("thread %d: %d messages and counters, want %d", th.ID, len(th.Sides), len(want.sides))
	}
	for i, c := range heldCalls {
		if got, want := factsOf(th, int32(i)), c.facts(); got != want {
			t.Errorf("thread %d: got %+v, want %+v", th.ID, got, want)
		}
		var stack []trace.EventID
		for above := range th.Stack(int32(i)) {
			stack = append(stack, th.Calls[above].ID(0))
		}
		if want := modelIDs(c.stack()); !slices.Equal(stack, want) {
			t.Errorf("thread %d: the stack of %v is %v, want %v", th.ID, c.id, stack, want)
		}
		if got, want := partners(th, int32(i)), m.partners(c); got != want {
			t.Errorf("thread %d: %v has partners %s, want %s", th.ID, c.id, got, want)
		}
		if !ordered {
			continue // they are looked for by their times
		}
		var events []trace.Event
		for _, s := range want.sides {
			if s.call == c {
				events = append(events, s.Event)
			}
		}
		if got := th.SidesOf(nil, int32(i)); !slices.Equal(got, events) {
			t.Errorf("thread %d: %v has %v, want %v", th.ID, c.id, got, events)
		}
	}
}

func idsOf(th *callstack.Thread) (ids []trace.EventID) {
	for i := range th.Calls {
		ids = append(ids, th.Calls[i].ID(0))
	}
	return ids
}

func modelIDs(calls []*modelCall) (ids []trace.EventID) {
	for _, c := range calls {
		ids = append(ids, c.id)
	}
	return ids
}

// facts is all of a call but what belongs to it and what it is joined to.
type facts struct {
	id, parent           trace.EventID
	hasParent            bool
	fn                   trace.FuncID
	entry, exit          trace.Micros
	inclusive, exclusive trace.Micros // -1 where it is open
	children             uint32
	label                callstack.Label
	lost                 bool
}

func factsOf(th *callstack.Thread, call int32) facts {
	c := &th.Calls[call]
	f := facts{id: c.ID(0), fn: c.Func, entry: c.Entry, exit: c.Exit, inclusive: -1, exclusive: -1, children: c.Children, label: c.Label, lost: c.Lost()}
	if id, ok := c.ParentID(0); ok {
		f.parent, f.hasParent = id, true
	}
	if !c.IsOpen() {
		f.inclusive, f.exclusive = c.Inclusive(), c.Exclusive()
	}
	return f
}

func (c *modelCall) facts() facts {
	f := facts{id: c.id, fn: c.fn, entry: c.entry, exit: c.exit, inclusive: -1, exclusive: -1, children: uint32(len(c.children)), lost: c.lost}
	if c.parent != nil {
		f.parent, f.hasParent = c.parent.id, true
	}
	if c.labelled {
		f.label = labelOf(c.id.Row)
	}
	if !c.open {
		f.inclusive = c.exit - c.entry
		f.exclusive = f.inclusive
		for _, child := range c.children {
			f.exclusive -= child.exit - child.entry
		}
	}
	return f
}

// stack returns the call and those above it as far as they are held.
func (c *modelCall) stack() (calls []*modelCall) {
	for ; c != nil && c.held; c = c.parent {
		calls = append(calls, c)
	}
	return calls
}

// partners tells a call's partners with their stacks.
func partners(th *callstack.Thread, call int32) (s string) {
	for other, partner := range th.Partners(call) {
		s += fmt.Sprintf("@%d", other.ID)
		for i := range other.Stack(partner) {
			s += " " + other.Calls[i].ID(0).String()
		}
	}
	return s
}

func (m *model) partners(c *modelCall) (s string) {
	for _, p := range m.pairs {
		other := p[0]
		switch c {
		case p[0]:
			other = p[1]
		case p[1]:
		default:
			continue
		}
		s += fmt.Sprintf("@%d", other.thread)
		for ; other != nil; other = other.parent {
			s += " " + other.id.String()
		}
	}
	return s
}

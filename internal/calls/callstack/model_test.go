package callstack_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
)

// model builds calls in the plainest way: it forgets nothing, and calls know
// each other by pointers.
type model struct {
	cfg     callstack.Config
	threads map[trace.Thread]*modelThread
	waiting []modelHalf // the oldest first
	pairs   [][2]*modelCall
	apart   []trace.Event
	tally   tally.Tally
	step    int
}

type modelThread struct {
	calls   []*modelCall
	open    []*modelCall
	dropped string // functions of entries too deep, without their exits, a rune each
	done    []*modelCall
	sides   []modelSide // that are held
	last    trace.Ticks
}

// modelHalf is a call whose correlation id was seen once.
type modelHalf struct {
	value uint64
	call  *modelCall
}

type modelCall struct {
	thread      trace.Thread
	id          trace.EventID
	fn          trace.FuncID
	entry, exit trace.Ticks
	open, lost  bool
	parent      *modelCall
	children    []*modelCall
	held        bool
	labeled     bool
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

// addBatch adds events of which those at the beginning may be older than the
// last of the step before.
func (m *model) addBatch(thread trace.Thread, events []trace.Event) {
	if m.threads[thread] == nil {
		m.threads[thread] = new(modelThread)
	}
	t := m.threads[thread]
	before, last := t.last, t.last
	for _, e := range events {
		if e.Time >= before {
			before = 0
		} else {
			e.Time = before
			m.tally.Add(tally.TimeBackwards, 1)
		}
		last = e.Time
		m.add(thread, e)
	}
	t.last = last
}

func (m *model) add(thread trace.Thread, e trace.Event) {
	t := m.threads[thread]
	n := len(t.open)
	fn := string(rune(e.ID%0xd000) + 1)
	if e.Kind == trace.Exit && !strings.HasSuffix(t.dropped, fn) {
		t.dropped = "" // an exit was lost, or there are none
	}
	switch {
	case e.Kind == trace.Enter && n >= m.cfg.MaxDepth:
		m.tally.Add(tally.StackTooDeep, 1)
		t.dropped += fn
	case e.Kind == trace.Exit && t.dropped != "":
		t.dropped = strings.TrimSuffix(t.dropped, fn)
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
		lost := !fits(t.open[n-1])
		for ended := false; !ended; {
			n--
			c := t.open[n]
			t.open, t.done = t.open[:n], append(t.done, c)
			ended = fits(c)
			c.open, c.lost, c.exit = false, lost, max(c.entry, e.Time)
			if !ended {
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
		if e.Kind == trace.Count && e.ID == idCounter && (m.cfg.IgnoresCorrelation == nil || !m.cfg.IgnoresCorrelation(c.fn)) {
			m.correlate(c, e.Value)
		}
	}
}

func (m *model) correlate(c *modelCall, id uint64) {
	i := slices.IndexFunc(m.waiting, func(h modelHalf) bool { return h.value == id })
	if i >= 0 {
		other := m.waiting[i].call
		m.waiting = slices.Delete(m.waiting, i, i+1)
		if other.thread != c.thread {
			m.pairs = append(m.pairs, [2]*modelCall{other, c})
			return
		}
	}
	m.waiting = append(m.waiting, modelHalf{id, c})
	if len(m.waiting) > m.cfg.MaxPinned {
		m.waiting = slices.Delete(m.waiting, 0, 1)
		m.tally.Add(tally.CorrelationDropped, 1)
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
	inWindow := maps.Clone(held) // or open
	for _, h := range m.waiting {
		hold(h.call)
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
			c.labeled = true
		}
		t.done = nil
		t.sides = slices.DeleteFunc(t.sides, func(s modelSide) bool { return !inWindow[s.call] })
		if over := len(t.sides) - m.cfg.MaxSides; over > 0 {
			t.sides = slices.Delete(t.sides, 0, over)
			m.tally.Add(tally.SidesForgotten, int64(over))
		}
	}
}

// compare checks the content of the builder.
func (m *model) compare(t *testing.T, b *callstack.Builder, ordered bool) {
	t.Helper()
	if b.Unmatched() != len(m.waiting) {
		t.Errorf("%d ids wait, want %d", b.Unmatched(), len(m.waiting))
	}
	if len(b.Threads()) != len(m.threads) || !slices.IsSortedFunc(b.Threads(),
		func(x, y *callstack.Thread) int { return int(x.ID) - int(y.ID) }) {
		t.Errorf("got threads %v, want %d in order", b.Threads(), len(m.threads))
	}
	if !slices.Equal(b.NodeEvents(), m.apart) {
		t.Errorf("got %v apart from calls, want %v", b.NodeEvents(), m.apart)
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

// facts returns the properties of a call except its sides and partners.
type facts struct {
	id, parent           trace.EventID
	hasParent            bool
	fn                   trace.FuncID
	entry, exit          trace.Ticks
	inclusive, exclusive trace.Ticks // -1 where it is open
	children             uint32
	label                callstack.Label
	lost                 bool
}

func factsOf(th *callstack.Thread, call int32) facts {
	c := &th.Calls[call]
	f := facts{
		id: c.ID(0), fn: c.Func, entry: c.Entry, exit: c.Exit, inclusive: -1, exclusive: -1, children: c.Children, label: c.Label,
		lost: c.Lost(),
	}
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
	if c.labeled {
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

// stack returns the call and its parents as far as they are kept.
func (c *modelCall) stack() (calls []*modelCall) {
	for ; c != nil && c.held; c = c.parent {
		calls = append(calls, c)
	}
	return calls
}

// partners returns a call's partners with their stacks.
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

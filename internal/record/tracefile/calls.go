package tracefile

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// call is a call of a thread.
type call struct {
	thread  *track
	id      string
	parent  string // noParent; unknown if "" or not in the record
	name    string
	fid     int
	anomaly bool
	entry   trace.Ticks
	exit    trace.Ticks // 0: it was open when the record was taken
	details []arg
	flows   []flow
	marks   []event // events within the call, sorted by time

	// Set by nest.
	depth int
	end   trace.Ticks
	open  bool // without an end
}

// noParent is the parent of an outermost call.
const noParent = "root"

// calls are the distinct calls of several threads.
type calls struct {
	list []*call
	byID map[string]*call
}

// add adds c. If its id already exists, add only completes the exit and the anomaly flag of
// that call. It returns the call with the id.
func (cs *calls) add(c call) *call {
	if old := cs.byID[c.id]; old != nil {
		old.exit = cmp.Or(old.exit, c.exit)
		old.anomaly = old.anomaly || c.anomaly
		return old
	}
	cs.list = append(cs.list, &c)
	if c.id != "" {
		cs.byID[c.id] = &c
	}
	return &c
}

// of returns the calls of a thread, in the order of add.
func (cs *calls) of(thread *track) []*call {
	var list []*call
	for _, c := range cs.list {
		if c.thread == thread {
			list = append(list, c)
		}
	}
	return list
}

// nest sorts the calls of a thread by entry, and sets their depths and ends. Of calls with
// the same entry, the first in the list is the outer one. A call lies in its parent if the
// record has it, else in the last earlier call that has not ended.
func nest(list []*call) {
	slices.SortStableFunc(list, func(a, b *call) int { return cmp.Compare(a.entry, b.entry) })
	var stack []*call
	for _, c := range list {
		stack = enclosing(stack, c)
		c.depth = len(stack)
		c.end, c.open = max(c.entry, c.exit), c.exit == 0
		if len(stack) > 0 {
			c.endBy(stack[len(stack)-1])
		}
		stack = append(stack, c)
	}
}

// enclosing returns the part of a stack that c lies in. The other calls end before c begins.
func enclosing(stack []*call, c *call) []*call {
	depth := parentDepth(stack, c)
	if depth < 0 { // by time
		depth = len(stack)
		for depth > 0 && !stack[depth-1].open && stack[depth-1].end <= c.entry {
			depth--
		}
	}
	for _, ended := range stack[depth:] {
		ended.endBy(&call{end: c.entry})
	}
	return stack[:depth]
}

// parentDepth returns the length of the stack up to the parent of c, or -1 if the parent is
// not in it or ends too early.
func parentDepth(stack []*call, c *call) int {
	if c.parent == noParent {
		return 0
	}
	for i, p := range slices.Backward(stack) {
		if p.id == c.parent && p.id != "" && (p.open || p.end >= c.entry) {
			return i + 1
		}
	}
	return -1
}

// endBy ends c with another call, unless that is open or c ends earlier.
func (c *call) endBy(other *call) {
	if !other.open && (c.open || c.end > other.end) {
		c.end, c.open = other.end, false
	}
}

// draw adds the calls of a thread and the events within them to the model.
func (m *model) draw(list []*call) {
	nest(list)
	var stack []*call
	closeTo := func(depth int) {
		for ; len(stack) > depth; stack = stack[:len(stack)-1] {
			c := stack[len(stack)-1]
			m.events = append(m.events, c.marks...)
			if !c.open {
				m.add(event{kind: end, track: c.thread, time: c.end, order: inRecord})
			}
		}
	}
	for _, c := range list {
		closeTo(c.depth)
		if len(stack) > 0 {
			outer := stack[len(stack)-1]
			n := 0
			for n < len(outer.marks) && outer.marks[n].time <= c.entry {
				n++
			}
			m.events = append(m.events, outer.marks[:n]...)
			outer.marks = outer.marks[n:]
		}
		m.add(c.event())
		stack = append(stack, c)
	}
	closeTo(0)
}

// event returns the event that begins a call.
func (c *call) event() event {
	e := event{
		kind: begin, track: c.thread, time: c.entry, span: c.end - c.entry, order: inRecord,
		name: c.name, categories: []string{"call"}, flows: c.flows,
		args: []arg{{"event_id", c.id}, {"fid", int64(c.fid)}, {"is_anomaly", c.anomaly}},
	}
	if c.anomaly {
		e.categories = append(e.categories, "anomaly")
	}
	if c.parent != "" {
		e.args = append(e.args, arg{"parent_event_id", c.parent})
	}
	if c.exit == 0 {
		e.args = append(e.args, arg{"exit", "unknown"})
	} else if c.exit != c.end {
		e.args = append(e.args, arg{"exit", int64(c.exit)})
	}
	if c.open {
		e.span = toLastEvent
	}
	e.args = append(e.args, c.details...)
	return e
}

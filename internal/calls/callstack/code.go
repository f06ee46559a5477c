package callstack

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// codeStart is where code between two calls may begin: at the exit of the first, if a long call made it.
type codeStart struct {
	at    trace.Ticks
	after trace.FuncID
	step  int32
	row   uint32
	set   bool // otherwise the other fields are invalid
}

// noteExit notes the exit of a call that a call of a class made, at a depth of the stack. It sets fields one by one, because
// copying what was just written would stall the processor.
func (b *Builder) noteExit(t *Thread, depth int, caller *Call, class activity.Class, c *Call, row uint32) {
	s, long := &t.code, b.cfg.LongCall
	if s.set = c.Exit-caller.Entry >= long && long > 0 && class == activity.Own && b.works(t, depth, caller, c.Exit); s.set {
		s.at, s.after, s.step, s.row = c.Exit, c.Func, b.step, row
	}
}

// longCaller is a long call that made calls.
type longCaller struct {
	step int32
	row  uint32
	from trace.Ticks // exit of the first call that it made after it became long
	rest trace.Ticks // time of its children before from, and of its code that became calls
}

// works reports whether a long call at a depth of the stack spends much of its time in its own code. What ran before its first
// calls does not count, because it is often the start of the program.
func (b *Builder) works(t *Thread, depth int, c *Call, now trace.Ticks) bool {
	for depth >= len(t.long) {
		t.long = append(t.long, longCaller{step: -1})
	}
	l := &t.long[depth]
	if l.step != c.Step || l.row != c.Row {
		*l = longCaller{c.Step, c.Row, now, c.children}
	}
	time := now - l.from
	return time >= b.cfg.LongCall && time-(c.children-l.rest) >= time/workShare
}

// addCode adds a call to calls for the code that a long call ran between two calls, if e begins the second of these. If a tracer
// records only communication and a few functions, nothing else shows when a program worked. The row of the call is that of the
// exit where it began, which identifies no other call.
func (b *Builder) addCode(t *Thread, calls []Call, stack []int32, e *trace.Event) []Call {
	caller := stack[len(stack)-1]
	t.code.set = false
	id, ok := trace.CodeBetween(t.code.after, e.Func())
	if !ok || e.Time <= t.code.at {
		return calls
	}
	parent := &calls[caller]
	parent.children += e.Time - t.code.at
	t.long[len(stack)-1].rest += e.Time - t.code.at
	c := Call{
		Entry: t.code.at, Exit: e.Time, Func: id, Step: t.code.step, Row: t.code.row,
		Parent: caller, ParentStep: parent.Step, ParentRow: parent.Row, flags: uint8(activity.Own) << classBits,
	}
	path := b.paths.Find(parent.Path(), uint32(id))
	if path == callpath.Root {
		t.Calls = calls
		path = b.newPath(parent.Path(), uint32(id))
	}
	c.path = uint16(path)
	b.paths.Add(path, 1, uint64(c.Exclusive()))
	t.Done = append(t.Done, int32(len(calls)))
	return append(calls, c)
}

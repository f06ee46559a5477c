package callstack

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// codeStart is where code between two communication calls may begin: at the exit of a call that the outermost call made.
type codeStart struct {
	at    trace.Ticks
	after trace.FuncID
	step  int32
	row   uint32
	set   bool // that call was communication; otherwise the other fields are invalid
}

// noteExit notes the exit of a call, the last of n on the stack; n is 1 or 2. It sets fields one by one, because copying what
// was just written would stall the processor.
func (t *Thread) noteExit(n int, c *Call, step int32, row uint32) {
	s := &t.code
	if s.set = n == 2 && c.class() == activity.MPI; s.set {
		s.at, s.after, s.step, s.row = c.Exit, c.Func, step, row
	}
}

// addCode adds a call to calls for the code that the outermost call ran between two communication calls, if e begins the
// second of these. If a tracer records only communication, nothing else shows the work of a program. The row of the call is
// that of the exit where it began, which identifies no other call.
func (b *Builder) addCode(t *Thread, calls []Call, outermost int32, e *trace.Event, place activity.Place) []Call {
	t.code.set = false
	id, ok := trace.CodeBetween(t.code.after, e.Func())
	if !ok || e.Time <= t.code.at || b.cfg.Activities.Class(e.Func(), place) != activity.MPI {
		return calls
	}
	parent := &calls[outermost]
	parent.Children++
	parent.children += e.Time - t.code.at
	c := Call{
		Entry: t.code.at, Exit: e.Time, Func: id, Step: t.code.step, Row: t.code.row,
		Parent: outermost, ParentStep: parent.Step, ParentRow: parent.Row, flags: uint8(activity.Own) << classBits,
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

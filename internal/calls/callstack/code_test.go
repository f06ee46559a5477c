package callstack_test

import (
	"fmt"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
)

// compareCode compares the calls that end in a script, lost ones marked by !, as the builder makes them with the activities of
// functions.
func compareCode(t *testing.T, events, want string) (counted string) {
	t.Helper()
	names := trace.NewNames("", parse(t, events).names, nil, nil)
	name := func(id trace.FuncID) (string, bool) { return names.Func(0, id) }
	cfg := config()
	cfg.Activities = activity.NewRecorder(trace.Microsecond, name)
	got, counted := build(t, cfg, events, func(_ *script, b *callstack.Builder) string {
		return eachThread(b, func(t *callstack.Thread) (calls []string) {
			for _, i := range t.Done {
				c := &t.Calls[i]
				mark := "="
				if c.Lost() {
					mark = "!"
				}
				name, _ := name(c.Func)
				calls = append(calls, fmt.Sprintf("%s[%d,%d]%s%d", name, c.Entry, c.Exit, mark, c.Exclusive()))
			}
			return calls
		})
	}, nil)
	compare(t, events, got, want)
	return counted
}

// TestCodeBetweenCommunicationIsCall builds calls of programs of which the tracer recorded the outermost call and MPI.
func TestCodeBetweenCommunicationIsCall(t *testing.T) {
	f := func(events, want string) {
		t.Helper()
		compare(t, events, compareCode(t, events, want), "")
	}
	f("enter main 1; enter MPI_Send 2; exit MPI_Send 3; enter MPI_Recv 7; exit MPI_Recv 8; exit main 9",
		"MPI_Send[2,3]=1 code between MPI_Send and MPI_Recv[3,7]=4 MPI_Recv[7,8]=1 main[1,9]=2")
	// It may extend over steps.
	f("enter main 1; enter MPI_Send 2; exit MPI_Send 3 | enter MPI_Send 7; exit MPI_Send 8; exit main 9",
		"MPI_Send[2,3]=1|code between MPI_Send and MPI_Send[3,7]=4 MPI_Send[7,8]=1 main[1,9]=2")
	// There is none between calls without time between them.
	f("enter main 1; enter MPI_Send 2; exit MPI_Send 3; enter MPI_Recv 3; exit MPI_Recv 8; exit main 9",
		"MPI_Send[2,3]=1 MPI_Recv[3,8]=5 main[1,9]=2")
	// The tracer recorded what the program does between them.
	f("enter main 1; enter MPI_Send 2; exit MPI_Send 3; enter f 4; exit f 5; enter MPI_Recv 7; exit MPI_Recv 8; exit main 9",
		"MPI_Send[2,3]=1 f[4,5]=1 MPI_Recv[7,8]=1 main[1,9]=5")
	// Inner calls have a caller that can be judged.
	f("enter main 1; enter f 2; enter MPI_Send 3; exit MPI_Send 4; enter MPI_Recv 6; exit MPI_Recv 7; exit f 8; exit main 9",
		"MPI_Send[3,4]=1 MPI_Recv[6,7]=1 f[2,8]=4 main[1,9]=2")
	// Threads are apart.
	f("enter main 1; enter MPI_Send 2; exit MPI_Send 3; @1 enter main 4; enter MPI_Send 5; exit MPI_Send 6; exit main 7; @0 exit main 9",
		"MPI_Send[2,3]=1 main[1,9]=7; @1 MPI_Send[5,6]=1 main[4,7]=2")
}

// TestCodeBetweenDamagedCalls loses events around code between communication calls.
func TestCodeBetweenDamagedCalls(t *testing.T) {
	// The exit of the second call is lost, so what ran until the third is unknown.
	compareCode(t, "enter main 1; enter MPI_Send 2; exit MPI_Send 3; enter MPI_Send 4; exit main 5; enter main 6; enter MPI_Send 7; exit MPI_Send 8",
		"MPI_Send[2,3]=1 code between MPI_Send and MPI_Send[3,4]=1 MPI_Send[4,5]!1 main[1,5]!1 MPI_Send[7,8]=1")
	// The outermost call ends between two calls.
	compareCode(t, "enter main 1; enter MPI_Send 2; exit MPI_Send 3; exit main 4; enter main 6; enter MPI_Send 7; exit MPI_Send 8",
		"MPI_Send[2,3]=1 main[1,4]=2 MPI_Send[7,8]=1")
}

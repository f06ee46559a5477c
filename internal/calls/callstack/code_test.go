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
	cfg.LongCall = 10
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

// TestCodeBetweenCallsOfLongCallIsCall builds calls of programs of which the tracer recorded only some functions. Calls are long
// after 10 ticks.
func TestCodeBetweenCallsOfLongCallIsCall(t *testing.T) {
	f := func(events, want string) {
		t.Helper()
		compare(t, events, compareCode(t, events, want), "")
	}
	// From the first call on that ended after main became long, main must be seen for as long again.
	f("enter main 1; enter f 12; exit f 13; enter f 15; exit f 16; enter MPI_Send 24; exit MPI_Send 25; enter f 33; exit f 34; exit main 36",
		"f[12,13]=1 f[15,16]=1 MPI_Send[24,25]=1 code between MPI_Send and f[25,33]=8 f[33,34]=1 main[1,36]=23")
	// It may extend over steps.
	f("enter main 1; enter f 12; exit f 13; enter f 24; exit f 25 | enter g 33; exit g 34; exit main 36",
		"f[12,13]=1 f[24,25]=1|code between f and g[25,33]=8 g[33,34]=1 main[1,36]=24")
	// There is none between calls without time between them.
	f("enter main 1; enter f 12; exit f 13; enter f 24; exit f 25; enter g 25; exit g 26; exit main 36",
		"f[12,13]=1 f[24,25]=1 g[25,26]=1 main[1,36]=32")
	// Inner calls may be long, too, and calls that they make are no calls of their callers.
	f("enter main 1; enter g 2; enter f 13; exit f 14; enter f 25; exit f 26; enter f 28; exit f 29; exit g 30; exit main 31",
		"f[13,14]=1 f[25,26]=1 code between f and f[26,28]=2 f[28,29]=1 g[2,30]=23 main[1,31]=2")
	// A call that spends nearly all of its time in calls that it makes has little code, whatever it did before.
	f("enter main 1; enter f 90; exit f 91; enter f 92; exit f 192; enter f 193; exit f 293; enter f 294; exit f 295; exit main 296",
		"f[90,91]=1 f[92,192]=100 f[193,293]=100 f[294,295]=1 main[1,296]=93")
	// Short calls can be judged themselves.
	f("enter main 1; enter f 2; exit f 3; enter MPI_Send 4; exit MPI_Send 5; enter f 6; exit f 7; exit main 9",
		"f[2,3]=1 MPI_Send[4,5]=1 f[6,7]=1 main[1,9]=5")
	// Communication is no code of the program.
	f("enter MPI_Init 1; enter f 12; exit f 13; enter f 24; exit f 25; enter f 33; exit f 34; exit MPI_Init 36",
		"f[12,13]=1 f[24,25]=1 f[33,34]=1 MPI_Init[1,36]=32")
	// A call after a long one at the same depth begins anew.
	f("enter main 1; enter f 12; exit f 13; enter f 24; exit f 25; exit main 26; enter main 27; enter f 28; exit f 29; enter f 30; exit f 31; exit main 32",
		"f[12,13]=1 f[24,25]=1 main[1,26]=23 f[28,29]=1 f[30,31]=1 main[27,32]=3")
	// Threads are apart.
	f("enter main 1; enter f 12; exit f 13; enter f 24; exit f 25; @1 enter main 24; enter f 25; exit f 26; exit main 27; @0 enter f 30; exit f 31; exit main 32",
		"f[12,13]=1 f[24,25]=1 code between f and f[25,30]=5 f[30,31]=1 main[1,32]=23; @1 f[25,26]=1 main[24,27]=2")
}

// TestCodeBetweenDamagedCalls loses events around code between calls.
func TestCodeBetweenDamagedCalls(t *testing.T) {
	// The exit of the second call is lost, so what ran until the next is unknown.
	compareCode(t, "enter main 1; enter f 12; exit f 13; enter f 24; exit f 25; enter f 30; exit main 31; enter main 32; enter f 33; exit f 34",
		"f[12,13]=1 f[24,25]=1 code between f and f[25,30]=5 f[30,31]!1 main[1,31]!22 f[33,34]=1")
	// The caller ends between two calls.
	compareCode(t, "enter main 1; enter f 12; exit f 13; enter f 24; exit f 25; exit main 26; enter main 27; enter f 33; exit f 34",
		"f[12,13]=1 f[24,25]=1 main[1,26]=23 f[33,34]=1")
}

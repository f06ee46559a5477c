package trace_test

import (
	"testing"
	"unsafe"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

func TestEventSize(t *testing.T) {
	if size := unsafe.Sizeof(trace.Event{}); size != 32 {
		t.Errorf("an event takes %d bytes, want 32", size)
	}
}

func TestKindNames(t *testing.T) {
	for _, k := range []trace.Kind{trace.Enter, trace.Exit, trace.Send, trace.Recv, trace.Count} {
		if got, ok := trace.ParseKind(k.String()); !ok || got != k {
			t.Errorf("%v is parsed as %v, %v", k, got, ok)
		}
	}
	for _, name := range []string{"", "kind(0)", "ENTRY"} {
		if k, ok := trace.ParseKind(name); ok {
			t.Errorf("%q is parsed as %v", name, k)
		}
	}
}

func TestExtremeEventIDsAndPartners(t *testing.T) {
	if got := (trace.EventID{Rank: 12, Step: 345, Row: 4294967295}).String(); got != "12:345:4294967295" {
		t.Errorf("got %s", got)
	}
	e := trace.Event{ID: 0xffffffff} // MPI_ANY_SOURCE
	if e.Partner() != -1 || e.Func() != 4294967295 || e.Counter() != 4294967295 {
		t.Errorf("got %d, %d, %d", e.Partner(), e.Func(), e.Counter())
	}
}

func TestKeyOrder(t *testing.T) {
	if (trace.RankKey{1, 0}).Compare(trace.RankKey{0, 9}) <= 0 || (trace.RankKey{1, 2}).Compare(trace.RankKey{1, 3}) >= 0 {
		t.Error("rank keys are out of order")
	}
	if (trace.FuncKey{1, "a"}).Compare(trace.FuncKey{0, "b"}) <= 0 || (trace.FuncKey{1, "a"}).Compare(trace.FuncKey{1, "a"}) != 0 {
		t.Error("function keys are out of order")
	}
}

func TestNamesOfCodeBetweenCalls(t *testing.T) {
	names := trace.NewNames("", []string{"MPI_Wait()", "MPI_Send()"}, nil, nil)
	f := func(first, second trace.FuncID, want string, wantOK bool) {
		t.Helper()
		id, ok := trace.CodeBetween(first, second)
		if !ok {
			t.Fatalf("the code between %d and %d has no number", first, second)
		}
		if got, ok := names.Func(3, id); got != want || ok != wantOK {
			t.Errorf("between %d and %d: got %q, %t, want %q, %t", first, second, got, ok, want, wantOK)
		}
	}
	f(0, 1, "code between MPI_Wait and MPI_Send", true)
	f(1, 0, "code between MPI_Send and MPI_Wait", true)
	f(1, 1, "code between MPI_Send and MPI_Send", true)
	f(0, 2, "", false)
	f(2, 0, "", false)
	if _, ok := trace.CodeBetween(0, 1<<15); ok {
		t.Error("functions with large numbers have code between them")
	}
	names.DefineFunc(trace.AnyRank, 1<<30|1, "damaged")
	if got, _ := names.Func(3, 1<<30|1); got != "damaged" {
		t.Errorf("a function of the trace is called %q", got)
	}
}

package trace_test

import (
	"testing"
	"unsafe"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

func TestAnEventIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(trace.Event{}); size != 32 {
		t.Errorf("an event takes %d bytes, want 32", size)
	}
}

func TestKindsAreKnownByTheirNames(t *testing.T) {
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

func TestEventIDsAndPartnersMayBeOddButAreExact(t *testing.T) {
	if got := (trace.EventID{Rank: 12, Step: 345, Row: 4294967295}).String(); got != "12:345:4294967295" {
		t.Errorf("got %s", got)
	}
	e := trace.Event{ID: 0xffffffff} // MPI_ANY_SOURCE
	if e.Partner() != -1 || e.Func() != 4294967295 || e.Counter() != 4294967295 {
		t.Errorf("got %d, %d, %d", e.Partner(), e.Func(), e.Counter())
	}
}

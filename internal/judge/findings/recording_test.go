package findings_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// recorded adds a slow call during which the trace was written, or not. Steps of the trace take half a second.
func (s *scene) recorded(name string, rank int, at, lost trace.Ticks, recorded bool) {
	a := s.call(name, rank, at, lost)
	a.Recorded, a.StepTime = recorded, second/2
	s.Anomalies = append(s.Anomalies, a)
}

func TestWritingTheTraceIsNotBlamedOnFunctions(t *testing.T) {
	s := newScene(4, "step 20000 4000000", "halo 20000 4000000", "guilty 20000 4000000")
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 40 {
		name := "step"
		if i%4 == 0 {
			name = "halo"
		}
		s.recorded(name, i%4, trace.Ticks(i/4)*second, 900+trace.Ticks(rng.IntN(200)), true)
		s.recorded("guilty", i%4, trace.Ticks(rng.IntN(10*second)), 500<<(i%6), i == 7)
	}
	got := s.conclude()
	want := []string{"interference  [0 1 2 3]", "outlier guilty [0 1 2 3]"}
	if list := of(got); !slices.Equal(slices.Sorted(slices.Values(list)), want) {
		t.Fatalf("got %q, want %q", list, want)
	}
	for i := range got.Findings {
		x := &got.Findings[i]
		if x.Kind == provenance.Interference && (x.Form != provenance.Recording || x.Severity != provenance.Note || x.Calls != 40 ||
			!strings.HasPrefix(x.Summary, "Writing the trace delayed 4 ranks (node0, node1) 40 times by about 1")) {
			t.Errorf("got %s %s finding of %d calls: %s", x.Severity, x.Form, x.Calls, x.Summary)
		}
	}
}

func TestWritingTheTraceIsDetectedWithFewCallsPerFunction(t *testing.T) {
	s := newScene(1, "a 300 1000000", "b 300 1000000", "c 300 1000000", "d 300 1000000")
	for i, name := range []string{"a", "b", "c", "d"} {
		s.recorded(name, 0, trace.Ticks(i+1)*2*second, 800, true)
	}
	if list, want := of(s.conclude()), []string{"interference  [0]"}; !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
}

func TestCallsThatSpanStepsByChanceAreNotDelayedByThem(t *testing.T) {
	f := func(what string, lost trace.Ticks, hits, n int) {
		t.Helper()
		s := newScene(4, "slow 20000 4000000")
		for i := range n {
			s.recorded("slow", i%4, trace.Ticks(1+i)*second/5, lost<<(i%3), i < hits)
		}
		if list, want := of(s.conclude()), []string{"outlier slow [0 1 2 3]"}; !slices.Equal(list, want) {
			t.Errorf("%s: got %q, want %q", what, list, want)
		}
	}
	f("calls as long as steps", 400_000, 20, 20)
	f("one of many", 2000, 1, 40)
}

func TestLongDelayDuringWritingIsItsOwnFinding(t *testing.T) {
	s := newScene(4, "step 20000 4000000")
	for i := range 40 {
		s.recorded("step", i%4, trace.Ticks(i/4)*second, 900+10*trace.Ticks(i), true)
	}
	s.recorded("step", 2, 5*second+1, 300_000, true)
	got := of(s.conclude())
	if want := []string{"interference  [0 1 2 3]", "outlier step [2]"}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWritingTheTraceCausesWaits(t *testing.T) {
	f := func(what string, step trace.Ticks, want ...string) *findings.Result {
		t.Helper()
		s := newScene(4, "step 20000 4000000", "MPI_Barrier() 20000 4000000")
		for i := range 40 {
			at := trace.Ticks(i/4) * second
			s.recorded("step", i%4, at, 900+10*trace.Ticks(i), true)
			s.recorded("MPI_Barrier()", i%4, at+second/2, 800+10*trace.Ticks(i), i%4 == i/4%4)
			s.Anomalies[len(s.Anomalies)-1].StepTime = step
		}
		got := s.conclude()
		if list := of(got); !slices.Equal(list, want) {
			t.Errorf("%s: got %q, want %q", what, list, want)
		}
		return got
	}
	got := f("short calls", second/2, "interference  [0 1 2 3]", "wait MPI_Barrier() [0 1 2 3]")
	if x := &got.Findings[0]; x.Calls != 50 || x.Waits != 30 || got.Findings[1].Cause != 1 {
		t.Errorf("got %d delays and %d waits, of which the cause is %d", x.Calls, x.Waits, got.Findings[1].Cause)
	}
	f("calls as long as steps", 2000, "interference  [0 1 2 3]", "recurring MPI_Barrier() [0 1 2 3]")
}

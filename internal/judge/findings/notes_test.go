package findings_test

import (
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// waits returns a scene with n calls of a function that waits, of unknown cause and of lengths that are not alike, at random times
// on ranks from first.
func waits(function string, n, first int) *scene {
	s, rng := newScene(4, "work 4000 1000000", function+" 40000 1000000"), rand.New(rand.NewPCG(3, 3))
	for range n {
		s.slow(function, first+rng.IntN(4-first), trace.Ticks(rng.IntN(10*second)), 500<<rng.IntN(5))
	}
	return s
}

func TestWaitsOfUnknownCauseAreNote(t *testing.T) {
	f := func(what string, s *scene, noted bool) {
		t.Helper()
		got := s.conclude().Findings
		if len(got) != 1 || got[0].Noted() != noted || got[0].Listed() == noted {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	two := func(name string, lost trace.Ticks) *scene {
		s := newScene(4, "work 4000 1000000", name+" 40000 1000000")
		s.slow(name, 1, 3*second, lost)
		s.slow(name, 1, 9*second, lost)
		return s
	}
	f("two for a rank", two("MPI_Recv()", 40_000), true)
	f("for a GPU, 0.75 % of the time", waits("cudaDeviceSynchronize()", 100, 1), false)
	f("two for a GPU, 0.05 % of the time", two("cudaDeviceSynchronize()", 10_000), true)
	f("no waits", two("work", 10_000), false)

	held := two("MPI_Recv()", 40_000) // rank 1 waits for nobody and makes rank 0 wait
	held.slow("MPI_Recv()", 0, 3*second, 40_100)
	if x := held.conclude().Findings[0]; x.Role != provenance.Culprit || x.Waits != 1 || x.Noted() {
		t.Errorf("wait that others waited for: got %+v", x)
	}
}

func TestCallsThatExplainFewWaitsAreNote(t *testing.T) {
	f := func(what string, unknown int, usual, noted bool) {
		t.Helper()
		s := newScene(2, "work 4000 1000000", "MPI_Barrier() 4000 1000000", "cudaDeviceSynchronize() 40000 1000000")
		for i := range 3 {
			s.slow("work", 0, trace.Ticks(1+i)*second, 50_000)
			s.Anomalies[len(s.Anomalies)-1].Usual = usual
			s.slow("MPI_Barrier()", 1, trace.Ticks(1+i)*second, 51_000)
		}
		for i := range unknown {
			s.slow("cudaDeviceSynchronize()", 1, 5*second+trace.Ticks(i)*10_000, 5000)
		}
		for _, x := range s.conclude().Findings {
			if x.Func == "work" && (x.Waits != 3 || x.Noted() != noted) {
				t.Errorf("%s: got %+v", what, x)
			}
		}
	}
	f("usual, like one wait in twenty", 60, true, true)
	f("usual, all waits", 0, true, false)
	f("unusual", 60, false, false)
}

func TestFunctionWithOtherWorkIsNote(t *testing.T) {
	f := func(madeBefore, madeAfter float64, unrecorded string, noted bool) {
		t.Helper()
		s := newScene(2, "step 4000 1000000")
		change := summary.Change{
			Function: "step", Kind: "shift", Since: 5 * second, Before: 100, After: 200, Calls: 2000, Lost: 200_000,
			MadeBefore: madeBefore, MadeAfter: madeAfter, Unrecorded: unrecorded,
		}
		got := findings.Conclude(&s.Run, blame.Find(&s.Run), []summary.Change{change}, s.profile(), nil).Findings
		if len(got) != 1 || got[0].Kind != provenance.LastingChange || got[0].Noted() != noted || got[0].Listed() == noted {
			t.Errorf("%g calls, then %g: got %+v", madeBefore, madeAfter, got)
		}
	}
	f(10, 20, "", true)
	f(10, 19, "", false)
	f(0, 0, "", false)
	f(10, 0, "", false)
	f(10, 0, "cell", true) // calls of cell count as step
}

func TestNotesFollowFindings(t *testing.T) {
	s := newScene(4, "work 4000 1000000", "MPI_Recv() 40000 1000000")
	s.slow("MPI_Recv()", 1, 5*second, 40_000)
	s.slow("work", 0, second/2, 20_000)
	got := s.conclude().Findings
	if len(got) != 2 || got[0].Func != "work" || !got[1].Noted() || got[1].Lost <= got[0].Lost {
		t.Errorf("got %+v", got)
	}
}

func TestSlowModeWithinMomentDoesNotRecur(t *testing.T) {
	f := func(length trace.Ticks, want provenance.FindingKind) {
		t.Helper()
		s := newScene(1, "work 4000 1000000")
		for i := range trace.Ticks(40) {
			a := s.call("work", 0, second+i*length/40, 5000)
			a.Kind = provenance.Recurring
			s.Anomalies = append(s.Anomalies, a)
		}
		if got := s.conclude().Findings; len(got) != 1 || got[0].Kind != want {
			t.Errorf("within %d us: got %+v, want %s", length, got, want)
		}
	}
	f(8*second, provenance.RecurringMode)
	f(second/2, provenance.Outlier)
}

func TestCulpritsAmongEvenWaitsAreFinding(t *testing.T) {
	s := waits("MPI_Recv()", 100, 0)
	for _, x := range s.conclude().Findings {
		if x.Kind == provenance.Waiting && x.Waits > 0 && x.Noted() {
			t.Errorf("got %+v", x)
		}
	}
}

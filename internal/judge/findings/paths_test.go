package findings_test

import (
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
)

// onPath adds a slow call of a function with a caller.
func (s *scene) onPath(caller, name string, rank int, at, lost trace.Ticks) {
	a := s.call(name, rank, at, lost)
	a.Path = caller + " > " + name
	s.Anomalies = append(s.Anomalies, a)
}

func TestFindingsOfCallPathsThatAreAlikeAreOne(t *testing.T) {
	f := func(what, name string, lost trace.Ticks, want ...string) *findings.Result {
		t.Helper()
		s := newScene(4, name+" 4000 4000000")
		for i := range 3 {
			s.onPath("worker", name, i, trace.Ticks(3*i)*second, 5000)
			s.onPath("main", name, 3, trace.Ticks(3*i)*second+3*second/2, lost)
		}
		got := s.conclude()
		if list := of(got); !slices.Equal(list, want) {
			t.Errorf("%s: got %q, want %q", what, list, want)
		}
		return got
	}
	all := f("like times", "sleep", 4000, "outlier sleep [0 1 2 3]")
	if x := &all.Findings[0]; x.Path != "" || x.Calls != 6 || x.LostOwn != 27_000 || x.OfCalls != 4000 {
		t.Errorf("got %d of %d calls on path %q that lost %d us, want 6 of 4000 on several that lost 27000",
			x.Calls, x.OfCalls, x.Path, x.LostOwn)
	}
	f("other times", "sleep", 50_000, "outlier sleep [3]", "outlier sleep [0 1 2]")
	f("waits", "MPI_Send()", 1000, "wait MPI_Send() [0 1 2 3]")
}

func TestMergedPathsKeepTheirVictims(t *testing.T) {
	s := newScene(4, "work 4000 4000000", "MPI_Barrier() 400 400000")
	for i := range 2 {
		s.onPath([]string{"a", "b"}[i], "work", i, trace.Ticks(i+1)*second, 100_000)
		s.onPath("main", "MPI_Barrier()", 2, trace.Ticks(i+1)*second, 100_000)
	}
	got := s.conclude()
	want := []string{"outlier work [0 1]", "wait MPI_Barrier() [2]"}
	if list := of(got); !slices.Equal(list, want) {
		t.Fatalf("got %q, want %q", list, want)
	}
	if work, barrier := &got.Findings[0], &got.Findings[1]; work.Waits != 2 || work.LostCaused != 200_000 || barrier.Cause != work.Number {
		t.Errorf("got %d waits that lost %d us, because of finding %d", work.Waits, work.LostCaused, barrier.Cause)
	}
	for i := range got.Links {
		if n := got.Links[i].Finding; n != 1 && n != 2 {
			t.Errorf("an anomaly is of finding %d", n)
		}
	}
}

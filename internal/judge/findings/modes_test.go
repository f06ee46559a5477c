package findings_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// sampled returns a program whose function work has examples of a slow mode.
func sampled(mode *summary.Mode) *scene {
	s := newScene(4, "work 100000 40000000", "rest 10000 1000000")
	rng := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		s.slow("work", rng.IntN(4), trace.Ticks(rng.IntN(10*second)), 1000)
		s.Anomalies[len(s.Anomalies)-1].Kind = provenance.Recurring
	}
	mode.Function = "work"
	s.modes = append(s.modes, *mode)
	return s
}

func TestRecurringFindingCountsByTheModel(t *testing.T) {
	work := callpath.Hash(0).Then("work")
	for name, test := range map[string]struct {
		mode  summary.Mode
		calls int64
		lost  trace.Ticks
	}{
		"of the path":        {summary.Mode{Path: work.With(callpath.AnyClass), Calls: 5000, Lost: 5_100_000, Kept: 0.02}, 5000, 5_100_000},
		"of the same work":   {summary.Mode{Path: work.With(callpath.ClassOf(0)), Calls: 5000, Lost: 5_100_000, Kept: 0.02}, 5000, 5_100_000},
		"of other work":      {summary.Mode{Path: work.With(callpath.ClassOf(9)), Calls: 5000, Lost: 5_100_000, Kept: 0.02}, 100, 100_000},
		"of the function":    {summary.Mode{Calls: 5000, Lost: 5_100_000, Kept: 0.02}, 5000, 5_100_000},
		"of all calls":       {summary.Mode{Calls: 100, Lost: 101_000, Kept: 1}, 100, 100_000},
		"with older calls":   {summary.Mode{Kept: 0.25}, 400, 400_000},
		"of another path":    {summary.Mode{Path: 1, Calls: 5000, Lost: 5_100_000, Kept: 0.02}, 100, 100_000},
		"missed at the time": {summary.Mode{Calls: 130, Lost: 130_000, Kept: 1}, 130, 130_000},
	} {
		t.Run(name, func(t *testing.T) {
			x := sampled(&test.mode).conclude().Findings[0]
			if x.Kind != provenance.RecurringMode || x.Calls != test.calls || x.LostOwn != test.lost {
				t.Errorf("%s of %d calls that lost %d us", x.Kind, x.Calls, x.LostOwn)
			}
			if share := float64(x.Lost) / (4 * 10 * second); math.Abs(x.Share-share) > 1e-9 {
				t.Error(x.Share)
			}
		})
	}
}

// TestModeIsComparedWithAllCalls has calls of a slow mode that are three times as frequent in the first half of the run.
func TestModeIsComparedWithAllCalls(t *testing.T) {
	parts := func(calls ...float64) (all []outlier.Part) {
		for i, n := range calls {
			all = append(all, outlier.Part{Until: int64(i+1) * 10 * second / int64(len(calls)), Calls: n})
		}
		return all
	}
	for name, test := range map[string]struct {
		parts []outlier.Part
		note  bool
	}{
		"like all calls":           {parts(30_000, 30_000, 10_000, 10_000), true},
		"more often than others":   {parts(20_000, 20_000, 20_000, 20_000), false},
		"all calls of few moments": {parts(60_000, 20_000), false},
	} {
		s := newScene(4, "work 80000 40000000", "rest 10000 1000000")
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range 400 {
			at := rng.IntN(5 * second)
			if i%4 == 0 {
				at += 5 * second
			}
			s.slow("work", rng.IntN(4), trace.Ticks(at), 1000)
			s.Anomalies[len(s.Anomalies)-1].Kind = provenance.Recurring
		}
		s.modes = append(s.modes, summary.Mode{Function: "work", Calls: 400, Lost: 400_000, Kept: 1, Parts: test.parts})
		if x := s.conclude().Findings[0]; x.Kind != provenance.RecurringMode || (x.Severity == provenance.Note) != test.note {
			t.Errorf("%s: %s, %s: %s", name, x.Kind, x.Severity, x.Summary)
		}
	}
}

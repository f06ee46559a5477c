package quality

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestSlowPeersAreComparedWithTruth(t *testing.T) {
	tracetest.SkipShort(t, "measures quality")
	f := func(c peerCase) {
		t.Helper()
		s, err := c.scenario()
		if err == nil {
			s.Seed = fitSeed
			err = s.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := ComparePeers(t.Context(), s, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if !r.Troubled || !r.Named || !r.closeCost() || math.Abs(r.Start) > 0.5 || r.blames() {
			t.Errorf("%+v: got %+v", c, r)
		}
	}
	f(peerCase{name: "slow-rank"})
	f(peerCase{name: "slow-rank", fromStart: true})
}

// TestFunctionsThatAreSlowAtOnePlaceAreNamed has random programs with a function that is slow on one of two hosts, on one of eight
// hosts, and on one rank.
func TestFunctionsThatAreSlowAtOnePlaceAreNamed(t *testing.T) {
	tracetest.SkipShort(t, "measures quality")
	for _, seed := range []int{9, 13, 18} {
		r, err := simulated(fmt.Sprintf("%s-%d", scenario.RandomPlaceName, seed), 0, 0)(t.Context(), DefaultDetector, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings; f.Troubles != 1 || f.Named != 1 || f.Covered < 0.7*f.Lost {
			t.Errorf("seed %d: got %+v", seed, f)
		}
	}
}

func TestPeerTableCountsRuns(t *testing.T) {
	nan := math.NaN()
	results := []*PeerResult{
		{
			Data: "slow", Fit: []*PeerRun{{Troubled: true, Start: nan, Cost: nan}},
			Report: []*PeerRun{
				{Troubled: true, Named: true, First: true, Start: -0.5, Cost: 1.1},
				{Troubled: true, Named: true, Start: 0.25, Cost: 0.5, Blamed: []string{"rank 7"}},
			},
		},
		{Data: "quiet", Report: []*PeerRun{{Start: nan, Cost: nan, Blamed: []string{"rank 1"}}, {Start: nan, Cost: nan}}},
	}
	var got []string
	for line := range strings.Lines(PeerTable(results)) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"| slow | fit | 1 | 0/1 | 0/1 | – | – | – | 0/1 |",
		"| slow | report | 2 | 2/2 | 1/2 | 0.38, 0.50 | 0.80 (0.50–1.10) | 1/2 | 1/2 |",
		"| quiet | report | 2 | – | – | – | – | – | 1/2 |",
	}
	if !slices.Equal(got[2:], want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got[2:], "\n"), strings.Join(want, "\n"))
	}
	targets := strings.Join(peerTargets(results), "\n")
	for _, want := range []string{"**0 of 1 data sets; not slow 1/2**", "not quiet 1/2**"} {
		if !strings.Contains(strings.Join(strings.Fields(targets), " "), want) {
			t.Errorf("no %q in\n%s", want, targets)
		}
	}
	if lines := results[0].Failures(results[0].Report); len(lines) != 2 || !strings.Contains(lines[0], "cost 0.50") {
		t.Errorf("failures: %q", lines)
	}
}

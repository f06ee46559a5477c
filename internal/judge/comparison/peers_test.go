package comparison_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// comparedRun is a run with that efficiency and slow places.
func comparedRun(parallel float64, slow ...comparison.Slow) *comparison.Run {
	return &comparison.Run{
		Functions:  []comparison.Function{{Name: "f", Calls: 10, Exclusive: 1e6}},
		Efficiency: []comparison.Efficiency{{Parallel: parallel, LoadBalance: parallel, Communication: 1}}, Slow: slow,
	}
}

func TestDiffComparesEfficiencyAndSlowPeers(t *testing.T) {
	old := comparison.Slow{Place: "rank 3", Pattern: "always", Ratio: 1.2, Share: 0.05}
	both := comparison.Slow{Place: "rank 9", Pattern: "always", Ratio: 1.2, Share: 0.02}
	node := comparison.Slow{Place: "node02", Pattern: "since", Ratio: 1.9, Share: 0.14}
	d := comparison.Diff(comparedRun(0.91, old, both), comparedRun(0.73, node, both), nil)
	if len(d.Efficiency) != 1 || *d.Efficiency[0].Parallel[0] != 0.91 || *d.Efficiency[0].Parallel[1] != 0.73 {
		t.Errorf("%+v", d.Efficiency)
	}
	var kinds []string
	for _, s := range d.Slow {
		kinds = append(kinds, s.Kind+" "+s.Place)
	}
	if want := []string{"new node02", "gone rank 3", "same rank 9"}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	for _, part := range []string{
		"Parallel efficiency 91 % → 73 %.", "Slow in B only: node02 (1.9× as slow as its peers, 14.0 % of the run).",
		"Slow in A only: rank 3 (1.2×",
	} {
		if !strings.Contains(d.Verdict.Sentence, part) {
			t.Errorf("%s\nhas no %q", d.Verdict.Sentence, part)
		}
	}
	if d.Verdict.Level != api.LevelBad {
		t.Errorf("level %s", d.Verdict.Level)
	}
}

func TestDiffWithoutComparisonOfRanks(t *testing.T) {
	a, b := comparedRun(0.9), comparedRun(0.7, comparison.Slow{Place: "node02", Share: 0.1})
	a.Efficiency = nil
	d := comparison.Diff(a, b, nil)
	if len(d.Efficiency) != 1 || d.Efficiency[0].Parallel[0] != nil || len(d.Slow) != 0 || strings.Contains(d.Verdict.Sentence, "efficiency") {
		t.Errorf("%+v, %+v, %s", d.Efficiency, d.Slow, d.Verdict.Sentence)
	}
	same := comparison.Diff(b, b, nil)
	if strings.Contains(same.Verdict.Sentence, "efficiency") || same.Verdict.Level != api.LevelGood {
		t.Errorf("%+v", same.Verdict)
	}
}

func TestBaselineKeepsEfficiency(t *testing.T) {
	r := comparedRun(0.7, comparison.Slow{Place: "node02", Share: 0.1})
	var b bytes.Buffer
	if err := r.Encode(&b); err != nil {
		t.Fatal(err)
	}
	got, err := comparison.Decode(&b)
	if err != nil || !reflect.DeepEqual(got.Efficiency, r.Efficiency) || !reflect.DeepEqual(got.Slow, r.Slow) {
		t.Errorf("%+v, %v", got, err)
	}
}

package sample_test

import (
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/sample"
)

func TestSmallerSampleIsPartOfLarger(t *testing.T) {
	const all = 100_000
	before := make(map[uint64]bool)
	for i := range uint64(all) {
		before[i] = true
	}
	for _, share := range []float64{1, 0.3, 0.1, 0.01, 0} {
		now := make(map[uint64]bool)
		for i := range uint64(all) {
			if sample.Has(share, i) {
				now[i] = true
				if !before[i] {
					t.Errorf("share %g has %d, a larger one does not", share, i)
				}
			}
		}
		if want := share * all; math.Abs(float64(len(now))-want) > 5*math.Sqrt(want) {
			t.Errorf("share %g has %d of %d calls", share, len(now), all)
		}
		before = now
	}
}

func TestAlikeKeepsFewOfManyCalls(t *testing.T) {
	for _, n := range []int{sample.Few, 10_000, 1_000_000} {
		var a sample.Alike
		kept, lost := 0, int64(0)
		for i := range n {
			own := int64(1024 + i*7919%1000)
			lost += own
			like, keep := a.Keep(3, own, uint64(i))
			if like.Calls != int64(i+1) || like.Lost != lost {
				t.Fatalf("call %d: got %+v, want %d calls that lost %d", i, like, i+1, lost)
			}
			if keep {
				kept++
			} else if i < sample.Few {
				t.Errorf("call %d of %d is not kept", i, n)
			}
		}
		if left := int(a.Left()); left != n-kept {
			t.Errorf("%d of %d calls are kept and %d left", kept, n, left)
		}
		want := sample.Few * (1 + math.Log(float64(n)/sample.Few))
		if math.Abs(float64(kept)-want) > 5*math.Sqrt(want) {
			t.Errorf("%d of %d calls are kept, want about %.0f", kept, n, want)
		}
	}
}

func TestAlikeKeepsEachUnusualCall(t *testing.T) {
	var a sample.Alike
	must := func(why string, kind int32, lost int64) {
		t.Helper()
		for number := range uint64(sample.Few) { // whatever their numbers
			if _, keep := a.Keep(kind, lost, number*31); !keep {
				t.Errorf("a call is not kept, number %d: %s", number, why)
			}
		}
	}
	for i := range uint64(100_000) {
		a.Keep(1, 1500, i)
	}
	must("it lost more than twice as much", 1, 4000)
	must("it lost less than half as much", 1, 700)
	must("it is of another kind", 2, 1500)
	must("it lost nothing", 1, -3)
	for i := range int64(100) {
		if _, keep := a.Keep(1, 1501+i, uint64(i)); !keep {
			t.Errorf("the call that lost %d, the longest so far, is not kept", 1501+i)
		}
	}
}

func TestAlikeKeepsTheSameCallsAgain(t *testing.T) {
	// A restarted analyzer reads its traces again, and may flag fewer calls than before.
	var a, b sample.Alike
	before, again, added := make(map[uint64]bool), 0, 0
	for i := range uint64(50_000) {
		if _, keep := a.Keep(1, 1500, i); keep {
			before[i] = true
		}
	}
	for i := range uint64(50_000) {
		if i%10 == 0 {
			continue
		}
		if _, keep := b.Keep(1, 1500, i); keep {
			again++
			if !before[i] {
				added++
			}
		}
	}
	if added > again/8 {
		t.Errorf("%d of %d calls were not kept before", added, again)
	}
}

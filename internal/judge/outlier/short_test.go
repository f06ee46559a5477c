package outlier_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

func TestShortTimesEqualTimesLearnedOneByOne(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		var want, got outlier.Model
		var wantSums, gotSums stats.Sums
		var short outlier.ShortTimes
		at, counted := int64(0), 0
		for range 2000 {
			at += r.Int64N(1 << r.IntN(20))
			if r.IntN(50) == 0 {
				at -= min(at, r.Int64N(1<<18)) // another thread
			}
			v := r.Int64N(2 << r.IntN(10))
			want.Learn(v, at)
			wantSums.Add(uint64(v))
			if short.Add(uint64(v), at) {
				counted++
				continue
			}
			got.Learn(v, at)
			gotSums.Add(uint64(v))
			if !short.Includes(at) {
				sums := short.MoveTo(&got)
				gotSums.Merge(&sums)
				short.Begin(&got, at)
			}
		}
		sums := short.MoveTo(&got)
		gotSums.Merge(&sums)
		if !bytes.Equal(got.AppendBinary(nil), want.AppendBinary(nil)) {
			t.Errorf("seed %d: models differ: %d and %d times", seed, got.Count(), want.Count())
		}
		if gotSums != wantSums {
			t.Errorf("seed %d: sums are %+v, want %+v", seed, gotSums, wantSums)
		}
		if counted < 200 {
			t.Errorf("seed %d: only %d times were counted as short", seed, counted)
		}
	}
}

func TestShortTimesAreLimited(t *testing.T) {
	var m outlier.Model
	var short outlier.ShortTimes
	if short.Add(1, 1) {
		t.Error("counted before Begin")
	}
	m.Learn(1, 1)
	short.Begin(&m, 1)
	for _, x := range []struct {
		v    uint64
		at   int64
		want bool
	}{{0, 1, true}, {outlier.ShortTime - 1, 1, true}, {outlier.ShortTime, 1, false}, {0, 1 << 40, false}} {
		if got := short.Add(x.v, x.at); got != x.want {
			t.Errorf("Add(%d, %d) = %v", x.v, x.at, got)
		}
	}
	if sums := short.MoveTo(&m); sums.Count() != 2 || m.Count() != 3 {
		t.Errorf("%d times were moved, the model has %d", sums.Count(), m.Count())
	}
	if sums := short.MoveTo(&m); sums.Count() != 0 {
		t.Errorf("%d times were moved again", sums.Count())
	}
}

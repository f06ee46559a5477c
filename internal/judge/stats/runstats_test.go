package stats_test

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// rounding is the error that moments may have, as a share of the sum that they
// would be if no terms canceled.
const rounding = 1e-12

// exact has the expected values of RunStats with 150 digits.
type exact struct {
	n      int
	mean   *big.Float
	power  [5]*big.Float // sums of powers of the distances from the mean
	size   [5]float64    // the same with all terms positive
	lo, hi float64
}

func exactly(values []float64) exact {
	e := exact{n: len(values), lo: slices.Min(values), hi: slices.Max(values)}
	sum := number(0)
	for _, v := range values {
		sum.Add(sum, number(v))
	}
	e.mean = number(0).Quo(sum, number(float64(e.n)))
	for p := range e.power {
		e.power[p] = number(0)
	}
	for _, v := range values {
		d := number(0).Sub(number(v), e.mean)
		term := number(1)
		for p := range e.power {
			e.power[p].Add(e.power[p], term)
			e.size[p] += math.Abs(float(term))
			term = number(0).Mul(term, d)
		}
	}
	return e
}

// stddev, skewness and kurtosis follow the textbook.
func (e exact) stddev() float64 {
	return float(number(0).Sqrt(number(0).Quo(e.power[2], number(float64(e.n-1)))))
}

func (e exact) skewness() float64 {
	// The third moment by the second to the power of one and a half.
	n := number(float64(e.n))
	second, third := number(0).Quo(e.power[2], n), number(0).Quo(e.power[3], n)
	return float(third.Quo(third, second.Mul(second, number(0).Sqrt(second))))
}

func (e exact) kurtosis() float64 {
	n := number(float64(e.n))
	second, fourth := number(0).Quo(e.power[2], n), number(0).Quo(e.power[4], n)
	fourth.Quo(fourth, second.Mul(second, second))
	return float(fourth.Sub(fourth, number(3)))
}

func number(v float64) *big.Float { return new(big.Float).SetPrec(500).SetFloat64(v) }

func float(v *big.Float) float64 {
	f, _ := v.Float64()
	return f
}

func near(t *testing.T, what string, got, want, size float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > rounding*size {
		t.Errorf("%s: got %v, want %v to within %.0e", what, got, want, rounding*size)
	}
}

// agrees compares moments with exact ones.
func agrees(t *testing.T, name string, got stats.RunStats, values []float64) {
	t.Helper()
	want := exactly(values)
	if got.N != float64(want.n) || got.Min != want.lo || got.Max != want.hi {
		t.Errorf("%s: got %v values from %v to %v, want %d from %v to %v",
			name, got.N, got.Min, got.Max, want.n, want.lo, want.hi)
	}
	near(t, name+": mean", got.Mean, float(want.mean), math.Abs(float(want.mean))+want.size[1]/float64(want.n))
	near(t, name+": M2", got.M2, float(want.power[2]), want.size[2])
	near(t, name+": M3", got.M3, float(want.power[3]), want.size[3])
	near(t, name+": M4", got.M4, float(want.power[4]), want.size[4])
}

func of(values ...float64) (s stats.RunStats) {
	for _, v := range values {
		s.Add(v)
	}
	return s
}

// samples are of the kinds that times and counters come in.
func samples(r *rand.Rand) map[string][]float64 {
	draw := func(n int, value func() float64) (values []float64) {
		for range n {
			values = append(values, value())
		}
		return values
	}
	return map[string][]float64{
		"normal":     draw(100, func() float64 { return math.Round(1000 + 50*r.NormFloat64()) }),
		"heavy tail": draw(100, func() float64 { return math.Round(math.Exp(7 + 2*r.NormFloat64())) }),
		"any sign":   draw(100, func() float64 { return r.NormFloat64() - 0.3 }),
		"tiny":       draw(100, func() float64 { return 1e-5 * r.Float64() }),
		"two values": draw(100, func() float64 { return float64(10 + r.IntN(2)) }),
		"few":        {3, 1, 4, 1, 5},
		"pair":       {-2.5, 1e6},
	}
}

func TestMomentsOfOriginalExample(t *testing.T) {
	s := of(160, 150, 140, 122, 103, 77, 33, 22, 19, 7, 1)
	near(t, "mean", s.Mean, 75.81818181818181, 76)
	near(t, "stddev", s.Stddev(), 61.541560236669625, 62)
	near(t, "skewness", s.Skewness(), 0.10133602740697617, 1)
	near(t, "kurtosis", s.Kurtosis(), -1.631133689528503, 3)
	near(t, "sum", s.Sum(), 834, 834)
	if s.Min != 1 || s.Max != 160 || s.N != 11 {
		t.Errorf("got %v values from %v to %v, want 11 from 1 to 160", s.N, s.Min, s.Max)
	}
}

func TestSingleValue(t *testing.T) {
	s := of(5)
	if s.Mean != 5 || s.Min != 5 || s.Max != 5 || s.Sum() != 5 {
		t.Errorf("mean %v, min %v, max %v, sum %v: want 5 each", s.Mean, s.Min, s.Max, s.Sum())
	}
	if s.Variance() != 0 || s.Stddev() != 0 || s.Skewness() != 0 || s.Kurtosis() != 0 {
		t.Errorf("variance %v, stddev %v, skewness %v, kurtosis %v: want 0 each",
			s.Variance(), s.Stddev(), s.Skewness(), s.Kurtosis())
	}
}

func TestEqualValuesHaveNoShape(t *testing.T) {
	var s, parts stats.RunStats
	for range 1000 {
		s.Add(0.1)
		s.Add(0.1)
		parts.Merge(of(0.1, 0.1))
	}
	for _, s := range []stats.RunStats{s, parts} {
		if s.Skewness() != 0 || s.Kurtosis() != 0 {
			t.Errorf("skewness %v, kurtosis %v of %v equal values: want 0", s.Skewness(), s.Kurtosis(), s.N)
		}
	}
}

// The original's empty sample has a maximum of 2.2e-308, which then is that of
// negative values, too.
func TestMergeEmptyKeepsExtremes(t *testing.T) {
	f := func(s stats.RunStats) {
		t.Helper()
		if s.Max != -3 || s.Min != -5 {
			t.Errorf("{-3,-5} with nothing: got %v to %v, want -5 to -3", s.Min, s.Max)
		}
	}
	s := of(-3, -5)
	s.Merge(stats.RunStats{})
	f(s)
	s = stats.RunStats{}
	s.Merge(of(-3, -5))
	f(s)
}

// The original returns 0 for both, because it ignores so small a spread.
func TestSmallValuesHaveAShape(t *testing.T) {
	values := []float64{1e-5, 2e-5, 4e-5}
	s, want := of(values...), exactly(values)
	near(t, "skewness", s.Skewness(), want.skewness(), 1)
	near(t, "kurtosis", s.Kurtosis(), want.kurtosis(), 3)
	if s.Skewness() < 0.3 || s.Kurtosis() > -1 {
		t.Errorf("skewness %v, kurtosis %v: want about 0.38 and -1.5", s.Skewness(), s.Kurtosis())
	}
}

func TestMomentsAgreeWithExactArithmetic(t *testing.T) {
	for name, values := range samples(rand.New(rand.NewPCG(1, 1))) {
		s, want := of(values...), exactly(values)
		agrees(t, name, s, values)
		near(t, name+": stddev", s.Stddev(), want.stddev(), want.stddev())
		near(t, name+": skewness", s.Skewness(), want.skewness(), 10+math.Abs(want.skewness()))
		near(t, name+": kurtosis", s.Kurtosis(), want.kurtosis(), 10+want.kurtosis())
	}
}

func TestVarianceWithLargeOffset(t *testing.T) {
	var s stats.RunStats
	for i := range 1000 {
		s.Merge(of(1e9+float64(i%10), 1e9+float64(i%10)))
	}
	want := 8.25 * 2000 / 1999
	if got := s.Variance(); math.Abs(got-want) > 1e-5 {
		t.Errorf("variance of 1e9+{0…9}: got %v, want %v", got, want)
	}
}

func TestMergeEmptyChangesNoBit(t *testing.T) {
	for name, values := range samples(rand.New(rand.NewPCG(1, 2))) {
		want := of(values...)
		got := want
		got.Merge(stats.RunStats{})
		if got != want {
			t.Errorf("%s and nothing: got %+v, want %+v", name, got, want)
		}
		got = stats.RunStats{}
		got.Merge(want)
		if got != want {
			t.Errorf("nothing and %s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestMomentsInAnyGrouping(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for name, values := range samples(r) {
		for range 5 {
			r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
			agrees(t, name, grouped(r, values), values)
		}
	}
}

// grouped cuts values in two at random, and the parts again, and merges them.
func grouped(r *rand.Rand, values []float64) stats.RunStats {
	if len(values) < 2 || r.IntN(8) == 0 {
		return of(values...)
	}
	cut := r.IntN(len(values) + 1)
	a, b := grouped(r, values[:cut]), grouped(r, values[cut:])
	if r.IntN(2) == 0 {
		a, b = b, a
	}
	a.Merge(b)
	return a
}

func TestRemoveUndoesAdd(t *testing.T) {
	for name, values := range samples(rand.New(rand.NewPCG(1, 4))) {
		all := exactly(values)
		for i := range min(len(values), 8) {
			s := of(values...)
			s.Remove(values[i])
			rest := slices.Delete(slices.Clone(values), i, i+1)
			want := exactly(rest)
			if s.N != float64(len(rest)) {
				t.Errorf("%s without %v: got %v values, want %d", name, values[i], s.N, len(rest))
			}
			near(t, name+": mean", s.Mean, float(want.mean), math.Abs(float(all.mean))*float64(all.n)+all.size[1])
			near(t, name+": M2", s.M2, float(want.power[2]), all.size[2])
			if len(rest) > 1 {
				near(t, name+": variance", s.Variance(), float(want.power[2])/float64(want.n-1), all.size[2])
			}
		}
	}
	s := of(7)
	s.Remove(7)
	if s != (stats.RunStats{}) {
		t.Errorf("{7} without 7: got %+v, want the empty sample", s)
	}
}

func TestSummaryKeysFollowSchema(t *testing.T) {
	f := func(s stats.RunStats, want map[string]float64) {
		t.Helper()
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("got %s\nwant %v", b, want)
		}
	}
	f(stats.RunStats{}, map[string]float64{
		"accumulate": 0, "count": 0, "kurtosis": 0, "maximum": 0, "mean": 0, "minimum": 0, "skewness": 0, "stddev": 0,
	})
	f(of(1, 3, 8), map[string]float64{
		"accumulate": 12, "count": 3, "kurtosis": -1.5, "maximum": 8, "mean": 4, "minimum": 1,
		"skewness": exactly([]float64{1, 3, 8}).skewness(), "stddev": math.Sqrt(13),
	})
}

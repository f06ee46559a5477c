package stats

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// sample draws values of many magnitudes, some as large as they can be.
func sample(seed uint64, n int) []uint64 {
	r := rand.New(rand.NewPCG(seed, 1))
	values := make([]uint64, n)
	for i := range values {
		values[i] = r.Uint64() >> r.UintN(64)
	}
	return values
}

func sumsOf(values []uint64) (s Sums) {
	for _, v := range values {
		s.Add(v)
	}
	return s
}

func TestSumsDoNotDependOnOrderOrGrouping(t *testing.T) {
	t.Parallel()
	values := sample(1, 1000)
	want := sumsOf(values)
	r := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		var got Sums
		for left := values; len(left) > 0; {
			n := min(len(left), 1+r.IntN(100))
			part := sumsOf(left[:n])
			got.Merge(&part)
			left = left[n:]
		}
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

func TestSumsAgreeWithMomentsOfFloats(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]uint64{
		"times":    {12, 15, 11, 4000, 13, 12, 0, 99},
		"alike":    {7, 7, 7, 7},
		"one":      {5},
		"32 bits":  {1 << 32, 1<<32 - 1, 1<<32 + 1, 3 << 32},
		"the most": {math.MaxUint64, math.MaxUint64, math.MaxUint64 - 1<<40, 0},
	} {
		s := sumsOf(values)
		var f RunStats
		for _, v := range values {
			f.Add(float64(v))
		}
		got, want := s.Summary(), f.Summary()
		close := func(what string, a, b float64) {
			if math.Abs(a-b) > 1e-9*max(math.Abs(a), math.Abs(b), 1e-3) {
				t.Errorf("%s: %s is %v, with floats %v", name, what, a, b)
			}
		}
		close("sum", got.Accumulate, want.Accumulate)
		close("count", got.Count, want.Count)
		close("mean", got.Mean, want.Mean)
		close("deviation", got.Stddev, want.Stddev)
		close("skewness", got.Skewness, want.Skewness)
		close("kurtosis", got.Kurtosis, want.Kurtosis)
		close("minimum", got.Minimum, want.Minimum)
		close("maximum", got.Maximum, want.Maximum)
	}
}

func TestSumsWithLargeOffset(t *testing.T) {
	t.Parallel()
	const far = 1 << 60
	s := sumsOf([]uint64{far, far + 1, far + 2})
	if r := s.RunStats(); r.M2 != 2 || r.M3 != 0 || r.M4 != 2 {
		t.Errorf("moments are %v, %v, %v; want 2, 0, 2", r.M2, r.M3, r.M4)
	}
}

func TestSumsEncodingRoundTrip(t *testing.T) {
	t.Parallel()
	for n := range 50 {
		s := sumsOf(sample(uint64(n), n))
		got, rest, err := readSums(append(s.AppendBinary(nil), "rest"...))
		if err != nil || got != s || string(rest) != "rest" {
			t.Fatalf("got %+v, %q, %v; want %+v", got, rest, err, s)
		}
	}
}

func TestSumsAddDoesNotAllocate(t *testing.T) {
	var s Sums
	if n := testing.AllocsPerRun(100, func() { s.Add(1 << 20); s.Add(1 << 40) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// readSums decodes sums from the start of b and returns the rest.
func readSums(b []byte) (s Sums, rest []byte, err error) {
	rest, err = s.Decode(b)
	return s, rest, err
}

func FuzzReadSums(f *testing.F) {
	s := sumsOf(sample(3, 10))
	f.Add(s.AppendBinary(nil))
	f.Add([]byte{0})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, rest, err := readSums(b)
		if err != nil {
			return
		}
		r := s.RunStats()
		if math.IsNaN(r.M2) || math.IsNaN(r.M4) || r.M2 < 0 {
			t.Errorf("moments %+v", r)
		}
		used := b[:len(b)-len(rest)]
		if again := s.AppendBinary(nil); len(again) > len(used) || len(again) == len(used) && !bytes.Equal(again, used) {
			t.Errorf("%x became %x", used, again)
		}
	})
}

func BenchmarkSumsAdd(b *testing.B) {
	values := sample(4, 1024)
	for i := range values {
		values[i] >>= 40
	}
	var s Sums
	i := 0
	for b.Loop() {
		s.Add(values[i&1023])
		i++
	}
}

func BenchmarkSumsMoments(b *testing.B) {
	s := sumsOf(sample(5, 1000))
	for b.Loop() {
		_ = s.RunStats()
	}
}

package outlier_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

const start = 1_700_000_000 * second

// run learns calls of a function, 50 in each of so many seconds; draw gives the time
// of a call at a moment, in seconds from the start.
func run(seed uint64, seconds int, draw func(r *rand.Rand, at float64) float64) *outlier.Model {
	return runOf(seed, seconds, 50, draw)
}

func runOf(seed uint64, seconds, rate int, draw func(r *rand.Rand, at float64) float64) *outlier.Model {
	r := rand.New(rand.NewPCG(18, seed))
	m := new(outlier.Model)
	for i := range seconds * rate {
		at := float64(i) / float64(rate)
		m.Learn(int64(draw(r, at)), start+int64(at*second))
	}
	return m
}

// spread5 is a time with a deviation of 5 %.
func spread5(r *rand.Rand, level float64) float64 { return level * (1 + 0.05*r.NormFloat64()) }

func expectShift(t *testing.T, what string, m *outlier.Model, since, before, after float64, drift bool) {
	t.Helper()
	s, ok := m.Shift()
	if !ok {
		t.Errorf("%s: no change was found", what)
		return
	}
	spans := m.Times.Spans()
	length := float64(spans[0].To-spans[0].From) / second
	within := length
	if !drift {
		within /= 4 // the span of a jump shows when it was
	}
	if at := float64(s.Since-start) / second; math.Abs(at-since) > within {
		t.Errorf("%s: it came after %.1f s instead of %v, and a span is %.1f s", what, at, since, length)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 0.08*want }
	if !near(s.Before, before) || !near(s.After, after) || s.Drift != drift {
		t.Errorf("%s: from %.0f to %.0f, drift %v; want from %v to %v, drift %v", what, s.Before, s.After, s.Drift, before, after, drift)
	}
	calls := 0.0
	for _, x := range spans {
		if x.To > s.Since && x.Total >= 10 {
			calls += float64(x.Total) * min(1, float64(x.To-s.Since)/float64(x.To-x.From))
		}
	}
	if math.Abs(float64(s.Calls)-calls) > 1.5 {
		t.Errorf("%s: %d calls since, of %.0f there are", what, s.Calls, calls)
	}
}

func expectNoShift(t *testing.T, what string, m *outlier.Model) {
	t.Helper()
	if s, ok := m.Shift(); ok {
		t.Errorf("%s: a change was found: %+v, %.1f s after the start", what, s, float64(s.Since-start)/second)
	}
}

func TestShiftIsFound(t *testing.T) {
	for _, seconds := range []int{10, 60, 1000} {
		for _, share := range []float64{0.2, 0.3, 0.5, 0.71, 0.8} {
			for _, levels := range [][2]float64{{500, 1000}, {1000, 500}, {1000, 1200}, {200_000, 230_000}, {60, 90}} {
				since := share * float64(seconds)
				m := run(1, seconds, func(r *rand.Rand, at float64) float64 {
					if at < since {
						return spread5(r, levels[0])
					}
					return spread5(r, levels[1])
				})
				expectShift(t, "level shift", m, since, levels[0], levels[1], false)
			}
		}
	}
}

// TestShiftOfTwoModesIsFound has a change after which the short mode is between the two before.
func TestShiftOfTwoModesIsFound(t *testing.T) {
	m := run(1, 60, func(r *rand.Rand, at float64) float64 {
		level := 180.0
		if r.Float64() < 0.57 {
			level = 950
		}
		if at < 10 {
			return spread5(r, level)
		}
		return spread5(r, 2.95*level)
	})
	if s, ok := m.Shift(); !ok || s.Drift || math.Abs(float64(s.Since-start)/second-10) > 1 {
		t.Errorf("got %+v, %v", s, ok)
	}
}

// Of calls that differ by half their time, half of which are slower, the median lies
// between.
func TestJumpWithinSpanIsNotDrift(t *testing.T) {
	for seed := range uint64(40) {
		since := 100 + float64(seed)
		m := run(seed, 250, func(r *rand.Rand, at float64) float64 {
			if at < since {
				return 1000 * (1 + 0.3*r.Float64())
			}
			return 1300 * (1 + 0.3*r.Float64())
		})
		expectShift(t, "jump", m, since, 1150, 1495, false)
	}
}

func TestDriftIsFound(t *testing.T) {
	f := func(first, last, from, to float64) {
		t.Helper()
		m := run(2, 200, func(r *rand.Rand, at float64) float64 {
			return spread5(r, first+(last-first)*min(max((at-from)/(to-from), 0), 1))
		})
		expectShift(t, "drift", m, from, first, last, true)
	}
	f(300, 900, 0, 200)
	f(900, 300, 0, 200)
	f(1000, 2000, 30, 190)
	f(1000, 2000, 0, 150)
	f(1000, 4000, 70, 130)
}

// Programs of a second have changes, too.
func TestChangesOfShortRunsAreFound(t *testing.T) {
	short := func(level func(at float64) float64) *outlier.Model {
		r := rand.New(rand.NewPCG(18, 3))
		m := new(outlier.Model)
		for i := range 1000 {
			at := float64(i) / 1000
			m.Learn(int64(spread5(r, level(at))), start+int64(at*second))
		}
		return m
	}
	expectShift(t, "shift", short(func(at float64) float64 {
		if at < 0.4 {
			return 500
		}
		return 900
	}), 0.4, 500, 900, false)
	expectShift(t, "drift", short(func(at float64) float64 { return 500 + 900*min(max((at-0.3)/0.4, 0), 1) }), 0.3, 500, 1400, true)
}

func TestLostTimeOfChange(t *testing.T) {
	f := func(what string, want float64, draw func(r *rand.Rand, at float64) float64) {
		t.Helper()
		s, ok := run(4, 100, draw).Shift()
		if !ok || math.Abs(s.Lost-want) > 0.05*want {
			t.Errorf("%s: lost %.0f us, want %.0f (found: %v)", what, s.Lost, want, ok)
		}
	}
	f("shift", 60*50*1000, func(r *rand.Rand, at float64) float64 {
		if at < 40 {
			return spread5(r, 1000)
		}
		return spread5(r, 2000)
	})
	f("drift", (40.0/2+40)*50*3000, func(r *rand.Rand, at float64) float64 {
		return spread5(r, 1000+3000*min(max((at-20)/40, 0), 1))
	})
	f("shift of two modes", 50*50*(0.7*500+0.3*2000), func(r *rand.Rand, at float64) float64 {
		level := 500.0
		if r.IntN(10) >= 7 {
			level = 2000
		}
		if at >= 50 {
			level *= 2
		}
		return spread5(r, level)
	})
	f("faster", 0, func(r *rand.Rand, at float64) float64 {
		if at < 40 {
			return spread5(r, 2000)
		}
		return spread5(r, 1000)
	})
}

func TestPassingChangesAreNotShifts(t *testing.T) {
	level := func(slow func(at float64) bool) func(*rand.Rand, float64) float64 {
		return func(r *rand.Rand, at float64) float64 {
			if slow(at) {
				return spread5(r, 3000)
			}
			return spread5(r, 1000)
		}
	}
	for seed := range uint64(5) {
		for _, s := range shapes() {
			expectNoShift(t, "clean "+s.name, run(seed, 40, func(r *rand.Rand, _ float64) float64 { return s.draw(r) }))
		}
		const seconds = 200
		for _, periods := range []float64{2, 3, 4, 5, 8, 20, 100} {
			for _, phase := range []float64{0, 0.25, 0.5} {
				expectNoShift(t, "periodic", run(seed, seconds, level(func(at float64) bool {
					return math.Mod(at/seconds*periods+phase, 1) >= 0.5
				})))
			}
		}
		for _, from := range []float64{0.1, 0.3, 0.5, 0.6} {
			for _, share := range []float64{0.02, 0.1, 0.3, 0.38} {
				expectNoShift(t, "slow for a while", run(seed, seconds, level(func(at float64) bool {
					return at >= from*seconds && at < (from+share)*seconds
				})))
			}
		}
		expectNoShift(t, "slow for most of the run, but not at its end", run(seed, seconds, level(func(at float64) bool {
			return at >= 0.2*seconds && at < 0.9*seconds
		})))
		expectNoShift(t, "a quarter of the calls is slow, those of a rank, from the middle on", run(seed, seconds,
			func(r *rand.Rand, at float64) float64 {
				if at > seconds/2 && r.IntN(4) == 0 {
					return spread5(r, 3000)
				}
				return spread5(r, 1000)
			}))
	}
}

func TestSmallChangesAreNotShifts(t *testing.T) {
	f := func(before, after float64, want bool) {
		t.Helper()
		m := run(3, 100, func(_ *rand.Rand, at float64) float64 {
			if at < 50 {
				return before
			}
			return after
		})
		if s, ok := m.Shift(); ok != want {
			t.Errorf("from %v to %v: %v, %+v", before, after, ok, s)
		}
	}
	f(10, 28, false) // by less than 20 µs
	f(10, 32, true)
	f(10_000, 10_200, false) // by less than a tenth, and most of a bin
	f(10_000, 13_000, true)
	f(13_000, 10_000, true)
}

func TestFewCallsAreNotShift(t *testing.T) {
	for n := 1; n <= 200; n += 7 {
		m := new(outlier.Model)
		for i := range n {
			level := int64(1000)
			if 2*i >= n {
				level = 3000
			}
			m.Learn(level, start+int64(i)*4*second/int64(n))
		}
		_, ok := m.Shift()
		if n < 100 && ok || n > 150 && !ok {
			t.Errorf("of %d calls the second half took three times as long: found %v", n, ok)
		}
	}
	expectNoShift(t, "nothing", new(outlier.Model))
	expectNoShift(t, "one span", run(1, 1, func(*rand.Rand, float64) float64 { return 5 }))
}

// The calls of the first second are often slow.
func TestShiftAfterSlowStart(t *testing.T) {
	m := runOf(4, 15, 30, func(r *rand.Rand, at float64) float64 {
		switch {
		case at < 0.5:
			return spread5(r, 20_000)
		case at < 8:
			return spread5(r, 1000)
		}
		return spread5(r, 2000)
	})
	expectShift(t, "after a slow start", m, 8, 1000, 2000, false)
}

func TestShiftIsIndependentOfGrouping(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 5))
	all := new(outlier.Model)
	ranks := make([]outlier.Model, 7)
	for range 5000 {
		at := r.Int64N(100 * second)
		v := int64(spread5(r, 1000))
		if at > 60*second {
			v *= 2
		}
		all.Learn(v, start+at)
		ranks[r.IntN(len(ranks))].Learn(v, start+at)
	}
	merged := new(outlier.Model)
	for _, i := range r.Perm(len(ranks)) {
		merged.Merge(&ranks[i])
	}
	want, ok := all.Shift()
	if got, okToo := merged.Shift(); got != want || !ok || !okToo {
		t.Errorf("all at once %+v, %v; in parts %+v, %v", want, ok, got, okToo)
	}
}

// A change of short calls is found if the clock is fine enough, because together many calls take much time.
func TestShiftOfShortCallsInNanoseconds(t *testing.T) {
	m := new(outlier.Model)
	r := rand.New(rand.NewPCG(18, 1))
	const calls = 20_000
	for i := range calls {
		level := 5000.0 // ns
		if i >= calls/2 {
			level = 6000
		}
		m.Learn(int64(spread5(r, level)), 1000*start+int64(i)*1_000_000)
	}
	s, ok := m.Shift()
	if lost := float64(calls/2) * 1000; !ok || math.Abs(s.Lost-lost) > 0.1*lost {
		t.Errorf("found %v: %+v", ok, s)
	}
}

func TestPartsHaveEquallyManyCalls(t *testing.T) {
	var all, early outlier.Model
	for i := range int64(4000) {
		at := i * 1000 // 1000 calls a second
		if i >= 2000 {
			at = 2_000_000 + (i-2000)*4000
		}
		all.Learn(10, at)
		if i < 1000 {
			early.Learn(10, at)
		}
	}
	check := func(others []*outlier.Model, want ...float64) {
		t.Helper()
		parts := all.Parts(4, others)
		if len(parts) != len(want) {
			t.Fatalf("got %+v", parts)
		}
		sum := 0.0
		for i, p := range parts {
			if sum += p.Calls; math.Abs(float64(p.Until)/1e6-want[i]) > 1 { // a span takes 0.5 to 1 s
				t.Errorf("got %+v, want the ends %v", parts, want)
			}
		}
		if total := float64(all.Count()); len(others) == 0 && sum != total || len(others) > 0 && math.Abs(sum-3000) > 1 {
			t.Errorf("%g of %g calls", sum, total)
		}
	}
	check(nil, 1, 2, 6, 10)
	check([]*outlier.Model{&early}, 1.75, 4, 7, 10)
	if parts := new(outlier.Model).Parts(4, nil); parts != nil {
		t.Errorf("an empty model has %+v", parts)
	}
}

func TestSlowdownIsFound(t *testing.T) {
	f := func(what string, seconds int, from, to, factor float64) {
		t.Helper()
		at := []float64{from * float64(seconds), to * float64(seconds)}
		lost := 0.0
		m := run(4, seconds, func(r *rand.Rand, now float64) float64 {
			v := spread5(r, 1000)
			if at[0] <= now && now < at[1] {
				lost += (factor - 1) * v
				return factor * v
			}
			return v
		})
		s, ok := m.Slowdown()
		if !ok {
			t.Fatalf("%s: not found", what)
		}
		length := float64(m.Times.Spans()[0].To-m.Times.Spans()[0].From) / second
		for i, got := range []int64{s.Since, s.Until} {
			if d := float64(got-start)/second - at[i]; math.Abs(d) > length/4 {
				t.Errorf("%s: limit %d is %.2f s off, and a span is %.2f s", what, i, d, length)
			}
		}
		if math.Abs(s.Before-1000) > 50 || math.Abs(s.After-1000*factor) > 80*factor {
			t.Errorf("%s: from %.0f to %.0f", what, s.Before, s.After)
		}
		if math.Abs(s.Lost/lost-1) > 0.1 || math.Abs(float64(s.Calls)/(50*(at[1]-at[0]))-1) > 0.1 {
			t.Errorf("%s: %d calls lost %.0f of %.0f", what, s.Calls, s.Lost, lost)
		}
		if _, ok := m.Shift(); ok {
			t.Errorf("%s: it is a lasting change, too", what)
		}
	}
	f("a third of the run", 60, 0.3, 0.63, 1.5)
	f("a tenth of the run", 60, 0.5, 0.6, 3)
	f("most of the run", 1000, 0.2, 0.85, 1.3)
	f("a short run", 10, 0.35, 0.65, 2)
}

func TestOtherChangesAreNotSlowdowns(t *testing.T) {
	f := func(what string, level func(share float64) float64) {
		t.Helper()
		const seconds = 60
		m := run(5, seconds, func(r *rand.Rand, now float64) float64 { return spread5(r, level(now/seconds)) })
		if s, ok := m.Slowdown(); ok {
			t.Errorf("%s: %+v", what, s)
		}
	}
	if s, ok := run(5, 60, func(r *rand.Rand, now float64) float64 {
		if now > 20 && now < 40 && r.IntN(3) == 0 {
			return spread5(r, 3000)
		}
		return spread5(r, 1000)
	}).Slowdown(); ok {
		t.Errorf("a third of the calls: %+v", s)
	}
	step := func(high bool) float64 {
		if high {
			return 2000
		}
		return 1000
	}
	f("none", func(float64) float64 { return 1000 })
	f("lasting change", func(x float64) float64 { return step(x > 0.4) })
	f("slow start", func(x float64) float64 { return step(x < 0.4) })
	f("drift", func(x float64) float64 { return 1000 + 1000*x })
	f("faster for a while", func(x float64) float64 { return step(x < 0.3 || x > 0.6) })
	f("alternating phases", func(x float64) float64 { return step(int(x*8)%2 == 1) })
	f("too small", func(x float64) float64 { return 1000 + 0.05*step(x > 0.3 && x < 0.6) })
}

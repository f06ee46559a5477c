package simulate_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// draws are many numbers of a distribution, in order of their size.
type draws []float64

func (d draws) mean() (sum float64) {
	for _, v := range d {
		sum += v
	}
	return sum / float64(len(d))
}

func (d draws) deviation() float64 {
	mean, sum := d.mean(), 0.0
	for _, v := range d {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(d)))
}

func (d draws) quantile(q float64) float64 { return d[int(q*float64(len(d)-1))] }

// share is how many of them lie from a to b.
func (d draws) share(a, b float64) float64 {
	n := 0
	for _, v := range d {
		if v >= a && v <= b {
			n++
		}
	}
	return float64(n) / float64(len(d))
}

// draw has a function called very often, and returns its times.
func draw(t *testing.T, times string) draws {
	t.Helper()
	s := parse(t, fmt.Sprintf(`
seed = 77
steps = 10
iterations = 10
[[program]]
name = "p"
ranks = 2
body = ["200 f"]
[program.functions]
f = { %s }
`, times))
	var all draws
	for _, r := range record(t, s) {
		for _, c := range r.of("f") {
			all = append(all, float64(c.took()))
		}
	}
	slices.Sort(all)
	if len(all) != 40_000 {
		t.Fatalf("%d calls", len(all))
	}
	return all
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestTimesFollowDistributions(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	f := func(times string, check func(t *testing.T, d draws)) {
		t.Run(times, func(t *testing.T) { check(t, draw(t, times)) })
	}
	always := func(v float64) func(*testing.T, draws) {
		return func(t *testing.T, d draws) {
			near(t, "the least", d[0], v, 0)
			near(t, "the most", d[len(d)-1], v, 0)
		}
	}
	f("", always(0))
	f("time = { fixed = 75 }", always(75))
	f("time = { fixed = 75.5 }", always(76))
	f("time = { fixed = -5 }", always(0))
	f("time = { fixed = 3e13 }", always(3e13))
	f("time = { normal = [400, 15] }", func(t *testing.T, d draws) {
		near(t, "the mean", d.mean(), 400, 0.5)
		near(t, "the deviation", d.deviation(), 15, 0.3)
		near(t, "the median", d.quantile(0.5), 400, 1)
		near(t, "the share within one deviation", d.share(385, 415), 0.6827, 0.03)
	})
	f("time = { normal = [0, 100] }", func(t *testing.T, d draws) {
		near(t, "the share of nothing", d.share(0, 0), 0.5, 0.02)
		near(t, "nine tenths", d.quantile(0.9), 128, 4)
	})
	f("time = { lognormal = [1000, 0.5] }", func(t *testing.T, d draws) {
		near(t, "the median", d.quantile(0.5), 1000, 15)
		near(t, "the mean", d.mean(), 1000*math.Exp(0.125), 15)
		near(t, "84 of 100", d.quantile(0.8413), 1000*math.Exp(0.5), 30)
		near(t, "16 of 100", d.quantile(0.1587), 1000*math.Exp(-0.5), 15)
	})
	f("time = { uniform = [300, 500] }", func(t *testing.T, d draws) {
		near(t, "the mean", d.mean(), 400, 1.5)
		near(t, "the deviation", d.deviation(), 200/math.Sqrt(12), 1)
		near(t, "the least", d[0], 300, 1)
		near(t, "the most", d[len(d)-1], 500, 1)
	})
	f("time = { integers = [4, 9] }", func(t *testing.T, d draws) {
		for v := 4.0; v <= 9; v++ {
			near(t, fmt.Sprintf("the share of %v", v), d.share(v, v), 1.0/6, 0.01)
		}
	})
	f("time = { pareto = [40, 4] }", func(t *testing.T, d draws) {
		near(t, "the least", d[0], 40, 0)
		near(t, "the median", d.quantile(0.5), 40*math.Pow(2, 0.25), 1)
		near(t, "the share beyond twice the least", d.share(80.5, math.Inf(1)), math.Pow(80.5/40, -4), 0.006)
	})
	f("time = { modes = [{ weight = 6, normal = [120, 4] }, { weight = 3, fixed = 340 }, { weight = 1, uniform = [900, 950] }] }",
		func(t *testing.T, d draws) {
			near(t, "the share of the first", d.share(90, 150), 0.6, 0.01)
			near(t, "the share of the second", d.share(340, 340), 0.3, 0.01)
			near(t, "the share of the third", d.share(900, 950), 0.1, 0.005)
		})
	f("message = { fixed = 1000 }, time = { fixed = 10, per_byte = 0.25 }", always(260))
	f("message = { fixed = 1000 }, time = { per_byte = 0.25 }", always(250))
	f("message = { fixed = 1000 }, time = { per_byte = 0.25, modes = [{ weight = 1, fixed = 10, per_byte = 1 }, { weight = 1, fixed = "+
		"20, per_byte = 1 }] }", func(t *testing.T, d draws) {
		near(t, "the share of the first", d.share(1260, 1260), 0.5, 0.01)
		near(t, "the share of the second", d.share(1270, 1270), 0.5, 0.01)
	})
	f("message = { modes = [{ weight = 3, fixed = 100 }, { weight = 1, fixed = 9000 }] }, time = { per_byte = 0.5 }",
		func(t *testing.T, d draws) {
			near(t, "the share of small messages", d.share(50, 50), 0.75, 0.01)
			near(t, "the share of large messages", d.share(4500, 4500), 0.25, 0.01)
		})
}

// TestOwnTimeIsSpreadOverCall has a function call others: what it takes by
// itself is as if it called none.
func TestOwnTimeIsSpreadOverCall(t *testing.T) {
	s := parse(t, `
steps = 2
iterations = 3
[[program]]
name = "p"
ranks = 1
body = ["outer"]
[program.functions]
outer = { time = { fixed = 103 }, calls = ["3 leaf"] }
leaf = { time = { fixed = 50 } }
`)
	r := record(t, s)[0]
	for i, outer := range r.of("outer") {
		leaves := r.of("leaf")[3*i : 3*i+3]
		if outer.own != 103 || leaves[0].entry-outer.entry != 25 || leaves[1].entry-leaves[0].exit != 25 || outer.exit-leaves[2].exit != 28 {
			t.Errorf("outer takes %d by itself: %d before the first leaf, %d after the last", outer.own, leaves[0].entry-outer.entry,
				outer.exit-leaves[2].exit)
		}
	}
}

// TestWaitsDrawMessagesToo gives functions that wait a message and a time that
// depends on it.
func TestWaitsDrawMessagesToo(t *testing.T) {
	s := parse(t, `
steps = 2
iterations = 3
[[program]]
name = "p"
ranks = 2
setup = ["all"]
body = ["all", "sync"]
[program.functions]
all = { kind = "collective", message = { fixed = 800 }, time = { fixed = 10, per_byte = 0.5 } }
sync = { kind = "device-sync", message = { fixed = 100 }, time = { per_byte = 0.3 } }
`)
	for _, r := range record(t, s) {
		for _, c := range r.of("all")[1:] {
			if c.took() != 410 {
				t.Errorf("rank %d: the collective takes %d, want 410", r.rank, c.took())
			}
		}
		for _, c := range r.of("sync") {
			if c.took() != 30 {
				t.Errorf("rank %d: the sync takes %d, want 30", r.rank, c.took())
			}
		}
	}
}

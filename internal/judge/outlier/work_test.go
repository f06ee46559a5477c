package outlier_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// judgeOfWork returns the judge of a function whose calls take 10 us themselves and make these
// numbers of calls.
func judgeOfWork(t testing.TB, algorithm outlier.Algorithm, made []uint32) *outlier.Judge {
	t.Helper()
	cfg := outlier.Default()
	cfg.Algorithm = algorithm
	m := new(outlier.Model)
	for i, n := range made {
		m.Learn(10, int64(i))
		if n > 0 {
			m.LearnMade(n)
		}
	}
	return outlier.NewRules(cfg).NewJudge("f", m)
}

// numbers returns n numbers of calls, each of which is in all but some calls usual, and else more.
func numbers(n, some int, usual, more uint32) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		if all[i] = usual; i*some/n != (i+1)*some/n {
			all[i] = more
		}
	}
	return all
}

func TestTenTimesTheCallsAreExcessWork(t *testing.T) {
	f := func(calls, some int, usual, more uint32, want bool) {
		t.Helper()
		j := judgeOfWork(t, outlier.Tail, numbers(calls, some, usual, more))
		inside := outlier.Work{Calls: more, Time: int64(more) * 1000}
		lost, got := j.Excess(inside)
		_, verdict := j.JudgeCall(10, inside)
		if (lost > 0) != want || (verdict == outlier.Excess) != want || want && (got != usual || lost != int64(more-usual)*1000) {
			t.Errorf("%d of %d calls make %d calls instead of %d: got %d us lost, %d usual, verdict %d, want excess: %t",
				some, calls, more, usual, lost, got, verdict, want)
		}
		for _, w := range []outlier.Work{{Calls: usual, Time: 1e9}, {Calls: usual / 2, Time: 1e9}, {Calls: more, Time: 100}, {}} {
			if lost, _ := j.Excess(w); lost > 0 {
				t.Errorf("%d of %d calls: %+v lost %d us", some, calls, w, lost)
			}
		}
	}
	f(1000, 14, 6, 60, true)
	f(1000, 1, 6, 60, true)
	f(1_000_000, 1, 6, 60, true)
	f(200, 6, 2, 20, true)
	f(1000, 30, 100, 1000, true)
	f(1000, 100, 6, 60, false) // one in ten: usual
	f(1000, 0, 6, 60, true)    // not learned yet
	f(20, 1, 6, 60, false)     // too few calls
	j := judgeOfWork(t, outlier.Tail, append(make([]uint32, 1000), 1, 1, 1, 10))
	if lost, _ := j.Excess(outlier.Work{Calls: 10, Time: 1e6}); lost > 0 {
		t.Errorf("too few calls that make calls: got %d us lost", lost)
	}
}

func TestOnlyTailFindsExcessWork(t *testing.T) {
	for _, a := range outlier.Algorithms() {
		j := judgeOfWork(t, a, numbers(1000, 10, 6, 60))
		if lost, _ := j.Excess(outlier.Work{Calls: 60, Time: 1e6}); (lost > 0) != (a == outlier.Tail) {
			t.Errorf("%s: got %d us lost", a, lost)
		}
	}
}

// TestUsualNumbersOfCalls checks that programs in which functions make very different numbers of
// calls have no excess work.
func TestUsualNumbersOfCalls(t *testing.T) {
	shapes := map[string]func(r *rand.Rand) float64{
		"uniform":     func(r *rand.Rand) float64 { return 1 + float64(r.IntN(100)) },
		"two numbers": func(r *rand.Rand) float64 { return 3 + 18*float64(r.IntN(11)/10) },
		"poisson": func(r *rand.Rand) float64 {
			n, left := 0.0, 5.0
			for ; left > 0; n++ {
				left -= r.ExpFloat64()
			}
			return n
		},
		"geometric": func(r *rand.Rand) float64 { return 1 + math.Floor(5*r.ExpFloat64()) },
		"lognormal": func(r *rand.Rand) float64 { return 1 + math.Floor(20*math.Exp(0.5*r.NormFloat64())) },
		"pareto 3":  func(r *rand.Rand) float64 { return math.Floor(4 * math.Pow(r.Float64(), -1./3)) },
	}
	for name, draw := range shapes {
		for _, n := range []int{200, 5000, 100_000} {
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(n)))
				made := make([]uint32, n)
				for i := range made {
					made[i] = uint32(draw(r))
				}
				j, flagged := judgeOfWork(t, outlier.Tail, made), 0
				for _, m := range made {
					if lost, _ := j.Excess(outlier.Work{Calls: m, Time: 1e9}); lost > 0 {
						flagged++
					}
				}
				if flagged > 1 {
					t.Errorf("got %d of %d calls flagged", flagged, n)
				}
			})
		}
	}
}

func TestOneExtraCallIsNotExcessWork(t *testing.T) {
	made := make([]uint32, 10_000)
	for i := range made {
		if made[i] = 23; i%50 == 0 {
			made[i] = 24
		}
	}
	j := judgeOfWork(t, outlier.Tail, made)
	if lost, _ := j.Excess(outlier.Work{Calls: 24, Time: 10_000}); lost > 0 {
		t.Errorf("24 calls instead of 23 lost %d us", lost)
	}
}

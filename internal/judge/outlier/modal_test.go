package outlier_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

const second = 1_000_000

// shape draws times of a kind.
type shape struct {
	name string
	draw func(r *rand.Rand) float64
}

func (s shape) times(r *rand.Rand, n int) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(s.draw(r))
	}
	return values
}

// shapes are those of the workloads and others that functions have.
func shapes() []shape {
	all := []shape{
		{"uniform", func(r *rand.Rand) float64 { return 500 + 1000*r.Float64() }},
		{"uniform from 0", func(r *rand.Rand) float64 { return 1000 * r.Float64() }},
		{"exponential", func(r *rand.Rand) float64 { return 1000 * r.ExpFloat64() }},
		{"short exponential", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }},
		{"exponential from 1000", func(r *rand.Rand) float64 { return 1000 + 500*r.ExpFloat64() }},
		{"gamma", func(r *rand.Rand) float64 {
			return 250 * (r.ExpFloat64() + r.ExpFloat64() + r.ExpFloat64() + r.ExpFloat64())
		}},
		{"wide lognormal", func(r *rand.Rand) float64 { return math.Exp(6.9 + r.NormFloat64()) }},
		{"weibull", func(r *rand.Rand) float64 { return 1000 * math.Pow(r.ExpFloat64(), 2) }},
		{"three modes", func(r *rand.Rand) float64 {
			return []float64{100, 300, 5000}[r.IntN(3)] * (1 + 0.03*r.NormFloat64())
		}},
		{rareMode, func(r *rand.Rand) float64 {
			if r.IntN(20) == 0 {
				return 5000 + 200*r.NormFloat64()
			}
			return 1000 + 30*r.NormFloat64()
		}},
		{"0 or 1", func(r *rand.Rand) float64 { return float64(r.IntN(2)) }},
		{"constant", func(*rand.Rand) float64 { return 777 }},
		{"of 4 decades", func(r *rand.Rand) float64 { return math.Pow(10, 2+4*r.Float64()) }},
		pareto(1.5), pareto(3), laplace,
	}
	for _, w := range workloads {
		all = append(all, shape{w.name, w.draw})
	}
	return all
}

// pareto has a tail in which the logarithm of times falls off exponentially: the
// heaviest that modal allows for.
func pareto(exponent float64) shape {
	return shape{fmt.Sprintf("pareto %v", exponent), func(r *rand.Rand) float64 {
		return 100 * math.Pow(1-r.Float64(), -1/exponent)
	}}
}

// laplace falls off exponentially on both sides of a peak.
var laplace = shape{"laplace", func(r *rand.Rand) float64 {
	if r.IntN(2) == 0 {
		return 1000 - 50*r.ExpFloat64()
	}
	return 1000 + 50*r.ExpFloat64()
}}

const rareMode = "a mode of one in twenty"

// counted has a histogram of values, and nothing else, which is all that is needed.
func counted(values []int64) *outlier.Model {
	m := new(outlier.Model)
	for _, v := range values {
		m.Hist.Add(v)
	}
	return m
}

// flagged counts the outliers among values.
func flagged(j *outlier.Judge, values []int64) (n int) {
	for _, v := range values {
		if !j.Suspect(v) {
			continue
		}
		if _, verdict := j.Judge(v); verdict == outlier.Outlier {
			n++
		}
	}
	return n
}

// limits returns the normal ranges of a judge from its JSON.
func limits(t *testing.T, j *outlier.Judge) (normal [][2]int64) {
	t.Helper()
	b, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Normal [][2]int64 `json:"normal"`
	}
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return p.Normal
}

// Detection and false alarms.

// The original finds from none to all of these, and flags up to 569 of 20 000
// normal calls. Of a lognormal distribution the nearest anomalies are only 4.5
// standard deviations out; it takes about 1000 times to know that they are not of its
// tail.
func TestModalFindsAnomaliesOfFourDataSets(t *testing.T) {
	rules := outlier.NewRules(outlier.Default())
	table := "                    each step         steps ≥ 50        in the end\n" +
		"                    TP   FN   FP      TP   FN   FP      TP   FN   FP\n"
	for _, w := range workloads {
		for _, calls := range []int{20, 200} {
			var online, late, final quality
			runs := 800 / calls
			for seed := range runs {
				steps := w.steps(rand.New(rand.NewPCG(5, uint64(seed))), calls)
				var m outlier.Model
				for s, step := range steps {
					for _, c := range step {
						m.Learn(c.time, int64(s)*second)
					}
					j := rules.NewJudge("f", &m)
					online.add(j, step)
					if s >= 50 {
						late.add(j, step)
					}
				}
				j := rules.NewJudge("f", &m)
				for _, step := range steps {
					final.add(j, step)
				}
			}
			name := fmt.Sprintf("%s %d", w.name, calls)
			table += fmt.Sprintf("%-16s  %s    %s    %s\n", name, online, late, final)
			inRun := 0.9
			if name == "lognormal 20" {
				inRun = 0.75 // the rest is found at the end
			}
			online.within(t, name+" in each step", inRun, 100e-6, runs*100*calls)
			late.within(t, name+" in later steps", 0.95, 100e-6, runs*50*calls)
			final.within(t, name+" in the end", 0.95, 60e-6, runs*100*calls)
			for _, q := range []quality{online, late, final} {
				if precision := float64(q.found) / float64(q.found+q.wrong); precision < 0.95 {
					t.Errorf("%s: of %d flags %d are wrong", name, q.found+q.wrong, q.wrong)
				}
			}
		}
	}
	t.Logf("found, missed and flagged falsely, in runs of 80 000 calls together:\n%s", table)
}

// With hbos the original flags up to 20 of 20, with copod up to 172 of 200.
func TestCleanFirstStepHasNoFlags(t *testing.T) {
	const seeds = 200
	f := func(s shape, n, most int) {
		t.Helper()
		flags := 0
		for seed := range uint64(seeds) {
			values := s.times(rand.New(rand.NewPCG(6, seed)), n)
			flags += flagged(judge(outlier.Default(), counted(values)), values)
		}
		if flags > most {
			t.Errorf("%s: %d flags in %d first steps of %d clean calls, want at most %d", s.name, flags, seeds, n, most)
		}
		if most > 0 {
			t.Logf("%s: %d flags in %d first steps of %d clean calls", s.name, flags, seeds, n)
		}
	}
	for _, s := range shapes() {
		f(s, 20, 0)
		if s.name == rareMode { // of which there are three times, or two
			f(s, 60, 2*seeds)
			f(s, 200, seeds/10)
			continue
		}
		f(s, 60, seeds/20)
		f(s, 200, seeds/100)
	}
}

func TestFalseAlarmsOfMillionCleanCalls(t *testing.T) {
	const seeds, n = 2, 1_000_000
	for _, s := range tracetest.Sample(shapes(), 4) {
		flags := uint64(0)
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(7, seed))
			m := new(outlier.Model)
			for range n {
				m.Hist.Add(int64(s.draw(r)))
			}
			j := judge(outlier.Default(), m)
			for bin, n := range m.Hist.Bins() {
				flags += n * uint64(len(outliers(j, int64(stats.BinMiddle(bin)))))
			}
		}
		if each := float64(flags) / seeds; each > 10 {
			t.Errorf("%s: %.1f flags among a million clean calls", s.name, each)
		} else {
			t.Logf("%s: %.1f", s.name, each)
		}
	}
}

// Two thousand are few to know a tail by, and a program has many functions.
func TestFalseAlarmsOfSmallCleanSets(t *testing.T) {
	const sets, n = 200, 2000
	for _, s := range tracetest.Sample(shapes(), 3) {
		flags := 0
		for seed := range uint64(sets) {
			values := s.times(rand.New(rand.NewPCG(16, seed)), n)
			flags += flagged(judge(outlier.Default(), counted(values)), values)
		}
		if most := sets * n * 10 / 1_000_000; flags > most {
			t.Errorf("%s: %d flags among %d clean calls, want at most %d", s.name, flags, sets*n, most)
		}
	}
}

// The original finds none of 54.
func TestModalWithOneHugeTime(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(8, seed))
		rules := outlier.NewRules(outlier.Default())
		m := learned(append(normal(r, 1000), 1e7)...)
		found := 0
		for range 54 { // events of 40 standard deviations
			for _, v := range append(normal(r, 200), 3000) {
				m.Learn(v, 0)
			}
			found += len(outliers(rules.NewJudge("f", m), 3000))
		}
		if all := outliers(rules.NewJudge("f", m), 3000, 1e7); found != 54 || len(all) != 2 {
			t.Errorf("found %d of 54, in the end %v", found, all)
		}
	}
}

// The original's hbos finds 1 of 42.
func TestRecurringAnomalyIsFlagged(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(9, seed))
		rules := outlier.NewRules(outlier.Default())
		m := new(outlier.Model)
		found, planted := 0, 0
		for step := range 50 {
			values := normal(r, 200)
			if step >= 8 {
				values[0] = 3000
				planted++
			}
			for _, v := range values {
				m.Learn(v, int64(step)*second)
			}
			if step >= 8 {
				found += len(outliers(rules.NewJudge("f", m), 3000))
			}
		}
		if planted != 42 || found < 40 {
			t.Errorf("found %d of %d", found, planted)
		}
	}
}

// A second usual time is accepted if one call in a hundred takes it. Up to four times
// the 99th percentile it is normal as soon as more than 0.75 % of the calls are above the
// first, by two standard deviations of their number.
func TestSecondModeNeedsOnePercent(t *testing.T) {
	f := func(usual, others int, other int64, want outlier.Verdict) {
		t.Helper()
		for seed := range uint64(5) {
			values := append(normal(rand.New(rand.NewPCG(10, seed)), usual), times(others, other)...)
			if score, got := judge(outlier.Default(), counted(values)).Judge(other); got != want {
				t.Errorf("%d calls of %d beside %d of about 1000: score %v, verdict %d, want %d", others, other, usual, score, got, want)
			}
		}
	}
	f(9901, 99, 9000, outlier.Outlier)
	f(9900, 100, 9000, outlier.Normal)
	f(99_001, 999, 9000, outlier.Outlier)
	f(99_000, 1000, 9000, outlier.Normal)
	f(991, 9, 9000, outlier.Outlier)
	f(990, 10, 9000, outlier.Candidate) // fewer than a hundred are not certain

	f(9908, 92, 3000, outlier.Outlier) // 75 and twice their root
	f(9907, 93, 3000, outlier.Candidate)
	f(9900, 100, 3000, outlier.Normal)
	f(99_196, 804, 3000, outlier.Outlier)
	f(99_195, 805, 3000, outlier.Candidate)
}

// A second time that only a phase of the run had takes three calls in a hundred.
func TestSecondModeOfPhaseNeedsThreePercent(t *testing.T) {
	f := func(share float64, phase bool, want outlier.Verdict) {
		t.Helper()
		r := rand.New(rand.NewPCG(10, 6))
		m := new(outlier.Model)
		const n = 20_000
		for i := range n {
			v, at := int64(spread5(r, 1000)), float64(i)/n
			if phase && at >= 0.5 && at < 0.75 && r.Float64() < 4*share || !phase && r.Float64() < share {
				v = 3000
			}
			m.Learn(v, int64(at*16*second))
		}
		if score, got := judge(outlier.Default(), m).Judge(3000); got != want {
			t.Errorf("%v of the calls, in a phase %v: score %v, verdict %d, want %d", share, phase, score, got, want)
		}
	}
	f(0.02, false, outlier.Normal)
	f(0.02, true, outlier.Outlier)
	f(0.025, true, outlier.Outlier)
	f(0.035, true, outlier.Candidate) // it may still turn out to be a phase that ends
	f(0.055, true, outlier.Candidate)
	f(0.065, true, outlier.Normal)
}

func TestShortWaitsAreNormal(t *testing.T) {
	cfg := outlier.Default()
	cfg.SlowOnly = func(name string) bool { return name == "MPI_Wait()" }
	m := counted(normal(rand.New(rand.NewPCG(10, 7)), 5000))
	f := func(name string, v int64, want outlier.Verdict) {
		t.Helper()
		if score, got := outlier.NewRules(cfg).NewJudge(name, m).Judge(v); got != want {
			t.Errorf("%s: %d among times of about 1000 has score %v, verdict %d, want %d", name, v, score, got, want)
		}
	}
	for v, want := range map[int64]outlier.Verdict{5: outlier.Outlier, 1000: outlier.Normal, 5000: outlier.Outlier} {
		f("solve", v, want)
	}
	for v, want := range map[int64]outlier.Verdict{0: outlier.Normal, 5: outlier.Normal, 1000: outlier.Normal, 5000: outlier.Outlier} {
		f("MPI_Wait()", v, want)
	}
}

// While other ranks are late, waits have any length. They are outliers although together
// they look like the tail of the usual waits, and only for functions that wait.
func TestLongWaitsOfPhaseAreNotTail(t *testing.T) {
	cfg := outlier.Default()
	cfg.SlowOnly = func(name string) bool { return name == "MPI_Wait()" }
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(17, seed))
		m := new(outlier.Model)
		for s := range 12 {
			for i := range 1000 {
				wait := 150 * math.Abs(r.NormFloat64())
				if s == 5 && i%5 == 0 {
					wait = 300 + 3000*r.Float64()
				}
				m.Learn(int64(wait), int64(s)*second)
			}
		}
		rules := outlier.NewRules(cfg)
		if found := outliers(rules.NewJudge("MPI_Wait()", m), 800, 1500, 2500, 3300); len(found) < 3 {
			t.Errorf("of waits from 800 to 3300 us beside usual ones of up to 600 only %v are found", found)
		}
		if found := outliers(rules.NewJudge("solve", m), 800, 1500, 2500, 3300); len(found) == 4 {
			t.Errorf("times of which 1.6 in a hundred calls take some are no outliers, but %v are", found)
		}
	}
}

// What the judgment depends on.

func TestJudgmentIsIndependentOfGrouping(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	type call struct{ time, at int64 }
	for _, s := range shapes() {
		for _, cfg := range []outlier.Config{outlier.Default(), {Algorithm: outlier.Modal, MinSamples: 1, HalfLife: 7 * second}} {
			calls := make([]call, 500+r.IntN(1500))
			for i := range calls {
				calls[i] = call{int64(s.draw(r)), r.Int64N(90 * second)}
				if r.IntN(200) == 0 {
					calls[i].time *= 1 + r.Int64N(50)
				}
			}
			all := new(outlier.Model)
			for _, c := range calls {
				all.Learn(c.time, c.at)
			}
			want, wantJudge := all.AppendBinary(nil), judge(cfg, all)
			wantJSON, _ := json.Marshal(wantJudge)
			for range 5 {
				ranks := make([]*outlier.Model, 1+r.IntN(8))
				for i := range ranks {
					ranks[i] = new(outlier.Model)
				}
				r.Shuffle(len(calls), func(i, k int) { calls[i], calls[k] = calls[k], calls[i] })
				for step := range slices.Chunk(calls, 1+r.IntN(400)) {
					var part outlier.Model // the delta of a rank in a step
					for _, c := range step {
						part.Learn(c.time, c.at)
					}
					sent, _, err := outlier.ReadModel(part.AppendBinary(nil))
					if err != nil {
						t.Fatal(err)
					}
					ranks[r.IntN(len(ranks))].Merge(&sent)
				}
				for len(ranks) > 1 { // in a tree of any shape
					i, k := r.IntN(len(ranks)), len(ranks)-1
					if i == k {
						i = 0
					}
					ranks[i].Merge(ranks[k])
					ranks = ranks[:k]
				}
				if got := ranks[0].AppendBinary(nil); !bytes.Equal(got, want) {
					t.Fatalf("%s: in parts\n%x, all at once\n%x", s.name, got, want)
				}
				j := judge(cfg, ranks[0])
				if got, _ := json.Marshal(j); !bytes.Equal(got, wantJSON) {
					t.Fatalf("%s: the judge became %s instead of %s", s.name, got, wantJSON)
				}
				for _, c := range calls {
					for _, v := range []int64{c.time, 2 * c.time, c.time / 3} {
						score, verdict := wantJudge.Judge(v)
						if x, y := j.Judge(v); x != score || y != verdict || j.Suspect(v) != wantJudge.Suspect(v) {
							t.Fatalf("%s: %d has score %v, verdict %d; in parts %v, %d", s.name, v, score, verdict, x, y)
						}
					}
				}
			}
		}
	}
}

// Above the resolution of clocks, and where small losses do not count, only the
// proportion of times matters. Twice as long all are as many bins further, and nothing
// changes; three times as long they are in other bins together.
func TestModalIsScaleInvariant(t *testing.T) {
	for _, s := range shapes() {
		if s.name == "0 or 1" || s.name == "constant" || s.name == "quantized" {
			continue // of so few times the loss in microseconds matters
		}
		values := s.times(rand.New(rand.NewPCG(12, 1)), 5000)
		for i := range values {
			values[i] = 1000 * max(values[i], 100)
		}
		values = append(values, 20*slices.Max(values), 1000*slices.Max(values))
		j := judge(outlier.Default(), counted(values))
		for factor, most := range map[int64]int{2: 0, 4: 0, 1024: 0, 3: 2, 10: 2, 1000: 2} {
			longer := slices.Clone(values)
			for i := range longer {
				longer[i] *= factor
			}
			k := judge(outlier.Default(), counted(longer))
			differ := 0
			for i := range values {
				_, a := j.Judge(values[i])
				_, b := k.Judge(longer[i])
				if (a == outlier.Outlier) != (b == outlier.Outlier) {
					differ++
				}
			}
			if differ > most {
				t.Errorf("%s: %d times as long, %d of %d are judged differently", s.name, factor, differ, len(values))
			}
			want, got := limits(t, j), limits(t, k)
			same := len(got) == len(want)
			for i := 0; i < len(got) && same && most == 0; i++ {
				for side := range 2 {
					wanted := float64(factor * want[i][side])
					same = same && math.Abs(float64(got[i][side])-wanted) <= 0.01*wanted
				}
			}
			if !same {
				t.Errorf("%s: %v is normal; %d times as long %v", s.name, want, factor, got)
			}
		}
	}
}

func TestLongerThanOutlierIsOutlier(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	all, _ := models(r, 400)
	for _, m := range all {
		j := judge(outlier.Default(), m)
		top := int64(0)
		for _, span := range limits(t, j) {
			top = max(top, span[1])
		}
		if top == 0 {
			continue
		}
		before := 0.0
		for v := top + 1; v > 0 && v < math.MaxInt64/2; v += 1 + v/8 {
			score, verdict := j.Judge(v)
			if verdict != outlier.Outlier || score < before {
				t.Fatalf("%d is the longest normal time, but %d has score %v after %v, verdict %d", top, v, score, before, verdict)
			}
			before = score
		}
	}
}

// Between two modes a bin may be normal at both ends and not in its middle.
func TestModalSuspectsAllButNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 2))
	var cleared, odd int
	check := func(j *outlier.Judge, v int64) {
		_, verdict := j.Judge(v)
		if verdict != outlier.Normal {
			odd++
		}
		if j.Suspect(v) {
			return
		}
		cleared++
		if verdict != outlier.Normal {
			t.Fatalf("%d is not suspect, but has verdict %d; normal is %v", v, verdict, limits(t, j))
		}
	}
	all, values := models(r, 400)
	for i, m := range all {
		cfg := outlier.Default()
		cfg.Threshold = 1 + 6*r.Float64()
		j := judge(cfg, m)
		for _, v := range values[i] {
			check(j, v)
		}
	}
	for range 1000 {
		m := new(outlier.Model)
		low, apart := math.Exp(13+r.Float64()), 1+1.5*r.Float64()
		narrow, wide := 0.002+0.03*r.Float64(), 0.002+0.03*r.Float64()
		for range 300 + r.IntN(1000) {
			switch v := low * math.Exp(narrow*r.NormFloat64()); r.IntN(50) {
			case 0:
				m.Hist.Add(int64(low * (1 + (apart-1)*r.Float64())))
			case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15:
				m.Hist.Add(int64(low * apart * math.Exp(wide*r.NormFloat64())))
			default:
				m.Hist.Add(int64(v))
			}
		}
		cfg := outlier.Default()
		cfg.Threshold = 1 + 6*r.Float64()
		j := judge(cfg, m)
		for bin := range m.Hist.Bins() {
			first, last := stats.BinLow(bin), stats.BinLow(bin+1)-1
			for k := range int64(10) {
				check(j, first+(last-first)*k/9)
			}
		}
	}
	if cleared < 10_000 || odd < 10_000 {
		t.Errorf("%d times were cleared and %d not normal: too few to say", cleared, odd)
	}
}

// Functions of a few microseconds are the most frequent ones.
func TestEqualShortTimesJudgeLongOne(t *testing.T) {
	for v := range int64(100) {
		j := judge(outlier.Default(), counted(append(times(29, v), 1_000_000)))
		if score, verdict := j.Judge(1_000_000); verdict != outlier.Outlier {
			t.Errorf("a second among 29 times of %d has score %v, verdict %d", v, score, verdict)
		}
		if score, verdict := j.Judge(v); verdict == outlier.Outlier {
			t.Errorf("%d among 29 others and a second has score %v", v, score)
		}
	}
}

func TestSmallLossesAreNormal(t *testing.T) {
	f := func(usual, v int64, want outlier.Verdict, others ...int64) {
		t.Helper()
		values := append(append(times(10_000, usual), v), others...)
		if score, got := judge(outlier.Default(), counted(values)).Judge(v); got != want {
			t.Errorf("%d beside %d and %v: score %v, verdict %d, want %d", v, usual, others, score, got, want)
		}
	}
	f(0, 20, outlier.Candidate) // up to 20 µs
	f(0, 21, outlier.Outlier)
	f(3, 23, outlier.Candidate)
	f(3, 24, outlier.Outlier)
	f(60, 94, outlier.Candidate) // half as much again, with 8 µs added to both, is a gap
	f(60, 95, outlier.Outlier)
	f(10, 80, outlier.Outlier)
	f(10, 80, outlier.Candidate, 18, 30, 45, 60) // without a gap up to it
	f(10, 80, outlier.Outlier, 18, 30, 60)       // with one
	f(10, 120, outlier.Outlier, 18, 30, 45, 60, 80, 100, 110)
}

// With a wide distribution a limit can lie beyond all times that there are.
func TestLimitBeyondAllTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	for _, threshold := range []float64{0.1, 5, 100} {
		cfg := outlier.Default()
		cfg.Threshold = threshold
		for _, sigma := range []float64{1, 3, 6, 9} {
			m := new(outlier.Model)
			for range 5000 {
				m.Hist.Add(int64(min(math.Exp(12+sigma*r.NormFloat64()), 9e18)))
			}
			j := judge(cfg, m)
			for _, span := range limits(t, j) {
				if span[0] > span[1] {
					t.Errorf("threshold %v, width %v: normal from %d to %d", threshold, sigma, span[0], span[1])
				}
			}
			if score, verdict := j.Judge(160_000); verdict != outlier.Normal {
				t.Errorf("threshold %v, width %v: the median has score %v, verdict %d", threshold, sigma, score, verdict)
			}
		}
	}
}

// The execution that is kept to compare with should be one of many.
func TestMostFrequentTimeIsMostTypical(t *testing.T) {
	j := judge(outlier.Default(), counted(slices.Concat(slices.Repeat([]int64{500}, 70), slices.Repeat([]int64{900}, 30), []int64{700})))
	if !(j.Oddness(500) < j.Oddness(900) && j.Oddness(900) < j.Oddness(700) && j.Oddness(700) < j.Oddness(5000)) {
		t.Errorf("500, 900, 700 and 5000: %v, %v, %v and %v", j.Oddness(500), j.Oddness(900), j.Oddness(700), j.Oddness(5000))
	}
}

// What is a candidate.

// During a run only calls that are not normal are kept and judged again at its end. A call
// that is normal by the current model, and an outlier by the final one, is lost.
func TestLateOutliersWereCandidates(t *testing.T) {
	rules := outlier.NewRules(outlier.Default())
	table := "                              outliers  lost in their own step  by the model after any later step\n"
	data := slices.Clone(workloads)
	for _, s := range shapes() {
		if slices.Contains([]string{"exponential", "wide lognormal", rareMode, "0 or 1", "pareto 3"}, s.name) {
			r := rand.New(rand.NewPCG(16, 0))
			high := float64(slices.Max(s.times(r, 10_000)))
			data = append(data, workload{s.name, s.draw, 1.5*high + 30, 5*high + 100})
		}
	}
	for _, w := range data {
		for _, calls := range []int{20, 200} {
			outliers, lost, everLost := 0, 0, 0
			for seed := range uint64(1 + 40/calls) {
				steps := w.steps(rand.New(rand.NewPCG(16, seed)), calls)
				var m outlier.Model
				var judges []*outlier.Judge
				for _, step := range steps {
					for _, c := range step {
						m.Learn(c.time, 0)
					}
					now := m.Clone()
					judges = append(judges, rules.NewJudge("f", &now))
				}
				for s, step := range steps {
					for _, c := range step {
						if _, verdict := judges[len(judges)-1].Judge(c.time); verdict != outlier.Outlier {
							continue
						}
						outliers++
						normal := func(j *outlier.Judge) bool { return !j.Suspect(c.time) }
						if normal(judges[s]) {
							lost++
						}
						if slices.ContainsFunc(judges[s:], normal) {
							everLost++
						}
					}
				}
			}
			table += fmt.Sprintf("%-22s %4d    %5d             %5d                         %5d\n", w.name, calls, outliers, lost, everLost)
			if float64(lost) > 0.01*float64(outliers) || float64(everLost) > 0.02*float64(outliers) {
				t.Errorf("%s, %d calls a step: of %d outliers %d were normal in their own step, %d at some time",
					w.name, calls, outliers, lost, everLost)
			}
		}
	}
	t.Logf("\n%s", table)
}

// What is forgotten.

// shifted learns two hours of a function that takes 1000 µs at first and then 5000.
func shifted(r *rand.Rand, after int64) *outlier.Model {
	m := new(outlier.Model)
	for at := int64(0); at < 7200*second; at += second / 2 {
		level := 1000.0
		if at >= after {
			level = 5000
		}
		m.Learn(int64(level*(1+0.05*r.NormFloat64())), at)
	}
	return m
}

func TestHalfLifeForgetsFormerTime(t *testing.T) {
	cfg := outlier.Default()
	f := func(halfLife, after int64, want outlier.Verdict) {
		t.Helper()
		cfg.HalfLife = halfLife
		m := shifted(rand.New(rand.NewPCG(17, 1)), after)
		j := judge(cfg, m)
		if score, got := j.Judge(1000); got != want {
			t.Errorf("half-life %d s: %d s after the change the time before has score %v, verdict %d, want %d",
				halfLife/second, 7200-after/second, score, got, want)
		}
		if score, got := j.Judge(5000); got != outlier.Normal {
			t.Errorf("half-life %d s: %d s after the change the time since has score %v, verdict %d", halfLife/second, 7200-after/second, score, got)
		}
	}
	f(600*second, 2000*second, outlier.Outlier) // eight half-lives ago
	f(600*second, 6000*second, outlier.Normal)  // two
	f(0, 2000*second, outlier.Normal)           // nothing is forgotten
	f(1_000_000*second, 2000*second, outlier.Normal)
}

func TestShortRunForgetsNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 2))
	never, after600s := outlier.Default(), outlier.Default()
	never.HalfLife = 0
	for _, s := range shapes() {
		m := new(outlier.Model)
		for i := range int64(3000) {
			m.Learn(int64(s.draw(r)), 1_700_000_000*second+i*second*60/3000)
		}
		a, _ := json.Marshal(judge(never, m))
		if b, _ := json.Marshal(judge(after600s, m)); !bytes.Equal(a, b) {
			t.Errorf("%s: a minute with a half-life of ten became\n%s instead of\n%s", s.name, b, a)
		}
	}
}

// A model of an earlier run has no times; it is as old as the run.
func TestForgettingDependsOnCallTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3))
	early := shifted(r, 2000*second)
	later := new(outlier.Model)
	r = rand.New(rand.NewPCG(17, 3))
	for at := int64(0); at < 7200*second; at += second / 2 { // a day later, as far into a span
		level := 1000.0
		if at >= 2000*second {
			level = 5000
		}
		later.Learn(int64(level*(1+0.05*r.NormFloat64())), at+1<<40)
	}
	a, _ := json.Marshal(judge(outlier.Default(), early))
	if b, _ := json.Marshal(judge(outlier.Default(), later)); !bytes.Equal(a, b) {
		t.Errorf("twelve days later\n%s became\n%s", a, b)
	}
	old := counted(normal(r, 2000)) // of another run
	m := shifted(r, 0)
	m.Hist.Merge(&old.Hist)
	m.Stats.Merge(&shifted(r, 0).Stats)
	if score, verdict := judge(outlier.Default(), m).Judge(1000); verdict != outlier.Outlier {
		t.Errorf("the time of an earlier run has score %v, verdict %d after two hours", score, verdict)
	}
}

// What is called once in half an hour must not be forgotten in between.
func TestRareFunctionIsJudged(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 4))
	m := new(outlier.Model)
	for i := range int64(200) {
		m.Learn(100_000+r.Int64N(5000), i*1800*second)
		j := judge(outlier.Default(), m)
		if m.Count() < 30 {
			continue
		}
		if score, verdict := j.Judge(2_000_000); verdict != outlier.Outlier {
			t.Fatalf("after %d calls, one in half an hour, one of 20 times as long has score %v, verdict %d", i+1, score, verdict)
		}
		if n := flagged(j, []int64{100_000, 102_000, 105_000}); n > 0 {
			t.Fatalf("after %d calls, one in half an hour, %d usual ones are flagged", i+1, n)
		}
	}
}

// How large a model is.

// Those of the recorded traces and of all scenarios are at most 2 KB.
func TestModelSize(t *testing.T) {
	largest, of := 0, ""
	f := func(s shape, n, times int) {
		t.Helper()
		r := rand.New(rand.NewPCG(15, 1))
		m := new(outlier.Model)
		for i := range n {
			m.Learn(int64(s.draw(r)), 1<<50+int64(i)<<24/int64(n))
		}
		if spans := len(m.Times.Spans()); spans < 15 {
			t.Errorf("%s: only %d spans", s.name, spans)
		}
		for ; times > 1; times /= 2 {
			same := m.Clone()
			m.Merge(&same)
		}
		size := len(m.AppendBinary(nil))
		if size > 4096 {
			t.Errorf("%s: the model of %d calls has %d bytes", s.name, m.Count(), size)
		}
		if size > largest {
			largest, of = size, fmt.Sprintf("%s of %d calls", s.name, m.Count())
		}
	}
	for _, s := range shapes() {
		f(s, 2000, 1)
		f(s, 100_000, 1024)
	}
	for _, decades := range []float64{3, 6} {
		s := shape{fmt.Sprintf("%v decades", decades), func(r *rand.Rand) float64 { return 100 * math.Pow(10, decades*r.Float64()) }}
		f(s, 100_000, 64)
	}
	f(pareto(1), 100_000, 1)
	f(shape{"lognormal of width 2", func(r *rand.Rand) float64 { return 1000 * math.Exp(2*r.NormFloat64()) }}, 300_000, 32)
	t.Logf("the largest has %d bytes: %s", largest, of)
}

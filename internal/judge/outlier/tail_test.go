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
		pareto(1.5), pareto(3), laplace, student(5),
	}
	for _, w := range workloads {
		all = append(all, shape{w.name, w.draw})
	}
	return all
}

// pareto has a tail in which the logarithm of times falls off exponentially.
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

// student has Student's distribution with that many degrees of freedom.
func student(freedom int) shape {
	return shape{fmt.Sprintf("student %d", freedom), func(r *rand.Rand) float64 {
		sum := 0.0
		for range freedom {
			x := r.NormFloat64()
			sum += x * x
		}
		return 1000 + 50*r.NormFloat64()/math.Sqrt(sum/float64(freedom))
	}}
}

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

// withSmallLosses has the default settings without the limit of small losses.
func withSmallLosses() outlier.Config {
	cfg := outlier.Default()
	cfg.LeastLoss = 20
	return cfg
}

// TestTailFindsAnomaliesOfFourDataSets plants anomalies above a normal distribution, between
// two modes, in the tail of a lognormal distribution, from 4.5 standard deviations on, and
// above times that clocks round. What tail misses of the lognormal ones is close to
// normal times, so little of the lost time.
func TestTailFindsAnomaliesOfFourDataSets(t *testing.T) {
	tracetest.SkipShort(t, "judges millions of calls")
	rules := outlier.NewRules(withSmallLosses())
	for _, w := range workloads {
		for _, calls := range []int{20, 200} {
			var late, final quality
			lost, found := 0.0, 0.0
			runs := 8000 / calls
			for seed := range runs {
				steps := w.steps(rand.New(rand.NewPCG(5, uint64(seed))), calls)
				var m outlier.Model
				for s, step := range steps {
					for _, c := range step {
						m.Learn(c.time, int64(s)*second)
					}
					if s >= 50 {
						late.add(rules.NewJudge("f", &m), step)
					}
				}
				j := rules.NewJudge("f", &m)
				median := m.Hist.Quantile(0.5)
				for _, step := range steps {
					final.add(j, step)
					for _, c := range step {
						if c.odd {
							lost += float64(c.time) - median
							if _, verdict := j.Judge(c.time); verdict == outlier.Outlier {
								found += float64(c.time) - median
							}
						}
					}
				}
			}
			name := fmt.Sprintf("%s %d", w.name, calls)
			share, ofLost := 0.95, 0.98
			switch name { // with few times limits are wide
			case "lognormal 20":
				share, ofLost = 0.9, 0.95
			case "bimodal 20":
				share, ofLost = 0.9, 0.9
			case "quantized 20":
				share, ofLost = 0, 0
			}
			late.within(t, name+" in later steps", share, 20e-6, runs*50*calls)
			final.within(t, name+" in the end", share, 20e-6, runs*100*calls)
			if found < ofLost*lost {
				t.Errorf("%s: found %.3f of the lost time, want %v", name, found/lost, ofLost)
			}
			t.Logf("%s: found %v (late), %v (end), %.3f of the lost time", name, late, final, found/lost)
		}
	}
}

// Slow modes are found as a whole: their calls are outliers.
func slowMode(name string) bool { return name == rareMode }

func TestCleanFirstStepHasNoFlags(t *testing.T) {
	const seeds = 200
	for _, s := range shapes() {
		for _, n := range []int{20, 60, 200} {
			flags := 0
			for seed := range uint64(seeds) {
				values := s.times(rand.New(rand.NewPCG(6, seed)), n)
				flags += flagged(judge(outlier.Default(), counted(values)), values)
			}
			if most := n * seeds / 10_000; flags > most && !slowMode(s.name) {
				t.Errorf("%s: %d flags in %d first steps of %d clean calls, want at most %d", s.name, flags, seeds, n, most)
			}
		}
	}
}

func TestFalseAlarmsOfMillionCleanCalls(t *testing.T) {
	const seeds, n = 2, 1_000_000
	for _, s := range tracetest.Sample(shapes(), 4) {
		if slowMode(s.name) {
			continue
		}
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
		}
	}
}

func TestFalseAlarmsOfSmallCleanSets(t *testing.T) {
	const sets, n = 200, 2000
	for _, s := range tracetest.Sample(shapes(), 3) {
		if slowMode(s.name) {
			continue
		}
		flags := 0
		for seed := range uint64(sets) {
			values := s.times(rand.New(rand.NewPCG(16, seed)), n)
			flags += flagged(judge(outlier.Default(), counted(values)), values)
		}
		// At most 10 in a million, and as many by chance.
		if most := 2 * sets * n * 10 / 1_000_000; flags > most {
			t.Errorf("%s: %d flags among %d clean calls, want at most %d", s.name, flags, sets*n, most)
		}
	}
}

// TestTroubleCannotHideItself adds trouble of any share up to a tenth, of any length, to
// clean times. Its longer half is found, as if there were no other trouble.
func TestTroubleCannotHideItself(t *testing.T) {
	for _, w := range workloads[:3] {
		for _, share := range []float64{0.001, 0.01, 0.03, 0.1} {
			r := rand.New(rand.NewPCG(18, uint64(share*1000)))
			const n = 10_000
			var values, trouble []int64
			for range n {
				if r.Float64() < share {
					v := int64(10_000 * math.Pow(100, r.Float64())) // 10 ms to 1 s
					trouble = append(trouble, v)
					continue
				}
				values = append(values, int64(w.draw(r)))
			}
			j := judge(outlier.Default(), counted(append(values, trouble...)))
			slices.Sort(trouble)
			half := trouble[len(trouble)/2:]
			if found := outliers(j, half...); len(found) < len(half) {
				t.Errorf("%s with %v of trouble: found %d of its longer %d, from %d µs; normal is %v", w.name, share, len(found), len(half),
					half[0], limits(t, j))
			}
		}
	}
}

// The original finds none of 54.
func TestTailWithOneHugeTime(t *testing.T) {
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

// A rule that needs hundreds of calls misses most of what happens in the outer functions of a program.
func TestFewCallsJudgeLongOnes(t *testing.T) {
	for _, c := range []struct{ calls, long, factor, least int }{
		{140, 1, 10, 95}, {140, 3, 5, 90}, {300, 1, 5, 95}, {60, 3, 10, 50},
	} {
		found := 0
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(16, seed))
			planted := times(c.long, int64(1000*c.factor))
			for i := range planted {
				planted[i] += int64(r.IntN(500))
			}
			values := append(normal(r, c.calls-c.long), planted...)
			if flagged(judge(outlier.Default(), counted(values)), planted) == c.long {
				found++
			}
		}
		if found < c.least {
			t.Errorf("%d of %d calls take %d times as long: all found in %d of 100 programs", c.long, c.calls, c.factor, found)
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

// A slow mode of one in a hundred to one in eight calls is found as a whole. A larger one
// is a usual time.
func TestSlowModeIsFound(t *testing.T) {
	f := func(usual, others int, other int64, want outlier.Verdict) {
		t.Helper()
		for seed := range uint64(5) {
			values := append(normal(rand.New(rand.NewPCG(10, seed)), usual), times(others, other)...)
			if score, got := judge(outlier.Default(), counted(values)).Judge(other); got != want {
				t.Errorf("%d calls of %d beside %d of about 1000: score %v, verdict %d, want %d", others, other, usual, score, got, want)
			}
		}
	}
	for _, other := range []int64{3000, 9000, 1_000_000} {
		f(9950, 50, other, outlier.Outlier) // less than one in a hundred
		if other > 3000 {                   // else the gap may be by chance
			f(985, 15, other, outlier.Recurring)
		}
		f(9800, 200, other, outlier.Recurring)
		f(9500, 500, other, outlier.Recurring)
		f(460, 20, other, outlier.Recurring)
		f(9000, 1000, other, outlier.Recurring)
		f(8000, 2000, other, outlier.Normal)
		f(5000, 5000, other, outlier.Normal)
	}
}

// TestSlowModeAboveTwoModes has the times of a program in which one call in twenty takes a
// second, and the others a tenth or a fifth.
func TestSlowModeAboveTwoModes(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(21, seed))
		var values []int64
		for i := range 480 {
			typical := []float64{100_000, 200_000}[r.IntN(2)]
			if i%24 == 23 {
				typical = 1_000_000
			}
			values = append(values, int64(typical*(1+0.2*r.ExpFloat64())))
		}
		j := judge(outlier.Default(), counted(values))
		for _, v := range values {
			if _, verdict := j.Judge(v); (verdict >= outlier.Recurring) != (v >= 1_000_000) {
				t.Errorf("%d has verdict %d; normal is %v", v, verdict, limits(t, j))
			}
		}
	}
}

// TestOutlierAboveSlowMode has single times far above a slow mode.
func TestOutlierAboveSlowMode(t *testing.T) {
	values := normal(rand.New(rand.NewPCG(22, 1)), 9500)
	for range 500 {
		values = append(values, 10_000+int64(len(values)%100))
	}
	j := judge(outlier.Default(), counted(append(values, 500_000)))
	if _, verdict := j.Judge(500_000); verdict != outlier.Outlier {
		t.Errorf("500 ms above a mode of 10 ms has verdict %d", verdict)
	}
	if _, verdict := j.Judge(10_050); verdict != outlier.Recurring {
		t.Errorf("10 ms has verdict %d", verdict)
	}
}

// TestSampleOfSlowModeShrinks checks that calls that are kept of a large slow mode would
// also be kept if it were smaller, and that their number is bounded.
func TestSampleOfSlowModeShrinks(t *testing.T) {
	judges := make([]*outlier.Judge, 0, 3)
	for _, n := range []int{9_000, 1_000_000, 10_000_000} {
		m := counted(normal(rand.New(rand.NewPCG(22, 2)), 100))
		m.Hist.AddBin(stats.BinOf(1000), uint64(19*n))
		m.Hist.AddBin(stats.BinOf(50_000), uint64(n))
		judges = append(judges, judge(outlier.Default(), m))
	}
	kept := make([]int, len(judges))
	for i := range uint64(1_000_000) {
		before := true
		for k, j := range judges {
			keep := j.Keep(outlier.Recurring, i)
			if keep && !before {
				t.Fatalf("call %d is kept of a larger mode only", i)
			}
			if before = keep; keep {
				kept[k]++
			}
		}
	}
	if kept[0] != 1_000_000 || kept[1] < 9000 || kept[1] > 11_000 || kept[2] < 900 || kept[2] > 1100 {
		t.Errorf("of a million calls %v are kept, want all, one in a hundred and one in a thousand", kept)
	}
}

func TestShortTimesAreNormal(t *testing.T) {
	j := judge(outlier.Default(), counted(normal(rand.New(rand.NewPCG(10, 7)), 5000)))
	for v, want := range map[int64]outlier.Verdict{0: outlier.Normal, 5: outlier.Normal, 1000: outlier.Normal, 5000: outlier.Outlier} {
		if score, got := j.Judge(v); got != want {
			t.Errorf("%d among times of about 1000 has score %v, verdict %d, want %d", v, score, got, want)
		}
	}
}

func TestSmallLossesAreNormal(t *testing.T) {
	f := func(least, usual, v int64, want bool) {
		t.Helper()
		cfg := outlier.Default()
		cfg.LeastLoss = least
		if got := len(outliers(judge(cfg, counted(append(times(10_000, usual), v))), v)) == 1; got != want {
			t.Errorf("%d beside %d, least loss %d: outlier %v, want %v", v, usual, least, got, want)
		}
	}
	for _, usual := range []int64{0, 3, 60, 500} {
		f(200, usual, usual+200, false)
		f(200, usual, usual+230, true)
		f(1000, usual, usual+900, false)
		f(1000, usual, usual+1100, true)
	}
}

// What the judgment depends on.

// What the judgment depends on.
func TestJudgmentIsIndependentOfGrouping(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	type call struct{ time, at int64 }
	for _, s := range shapes() {
		for _, cfg := range []outlier.Config{outlier.Default(), {Algorithm: outlier.Tail, MinSamples: 1}} {
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
func TestTailSuspectsAllButNormal(t *testing.T) {
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
			if float64(lost) > max(3, 0.01*float64(outliers)) || float64(everLost) > max(5, 0.02*float64(outliers)) {
				t.Errorf("%s, %d calls a step: of %d outliers %d were normal in their own step, %d at some time",
					w.name, calls, outliers, lost, everLost)
			}
		}
	}
	t.Logf("\n%s", table)
}

// When all ranks but one wait once, early in the run, a third of the calls of a collective function is slow.
// Later calls show that this was unusual.
func TestEarlyClusterOfSlowCallsIsCandidate(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 1))
	var m outlier.Model
	learn := func(n int, median float64) {
		for range n {
			m.Learn(int64(median*math.Exp(0.3*r.NormFloat64())), 0)
		}
	}
	learn(32, 2000)
	for range 15 {
		m.Learn(2_740_000, 0)
	}
	early := m.Clone()
	if _, verdict := judge(outlier.Default(), &early).Judge(2_740_000); verdict != outlier.Candidate {
		t.Errorf("15 of 47 calls: verdict %d, want a candidate", verdict)
	}
	learn(150, 2000)
	if _, verdict := judge(outlier.Default(), &m).Judge(2_740_000); verdict < outlier.Recurring {
		t.Errorf("15 of 197 calls: verdict %d, want an outlier", verdict)
	}
	var even outlier.Model // half of the calls are fast
	for range 1000 {
		even.Learn(1000, 0)
		even.Learn(1_000_000, 0)
	}
	if _, verdict := judge(outlier.Default(), &even).Judge(1_000_000); verdict != outlier.Normal {
		t.Errorf("1000 of 2000 calls: verdict %d, want normal", verdict)
	}
}

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

func TestSlowModeCountsItsCalls(t *testing.T) {
	m := counted(normal(rand.New(rand.NewPCG(22, 2)), 1900))
	for i := range int64(100) {
		m.Hist.Add(50_000 + i)
	}
	j := judge(outlier.Default(), m)
	if all := j.SlowMode(nil); all.Total() != 100 {
		t.Errorf("%d calls are in the slow mode, want 100", all.Total())
	}
	part := counted(times(40, 50_000))
	if rest := j.SlowMode([]*outlier.Model{part}); rest.Total() != 60 {
		t.Errorf("%d other calls are in the slow mode, want 60", rest.Total())
	}
	for i := range int64(100) {
		if _, verdict := j.Judge(50_000 + i); verdict != outlier.Recurring {
			t.Fatalf("%d us has verdict %d", 50_000+i, verdict)
		}
	}
	if none := judge(outlier.Default(), counted(normal(rand.New(rand.NewPCG(22, 2)), 1900))).SlowMode(nil); none.Total() != 0 {
		t.Error(none.Total())
	}
}

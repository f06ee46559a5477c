package analyzer

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/spool"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestLearningAndJudgingDoNotAllocate repeats a recorded step until nothing in it is new
// or an outlier.
func TestLearningAndJudgingDoNotAllocate(t *testing.T) {
	byFunction, byPath := Default(), Default()
	byFunction.Outlier.Algorithm, byFunction.Outlier.Sigma = outlier.SSTD, 1e6
	byPath.Outlier.LeastLoss = 1e12
	for _, cfg := range []Config{byFunction, byPath} {
		t.Run(string(cfg.Outlier.Algorithm), func(t *testing.T) { testAllocations(t, cfg) })
	}
}

func testAllocations(t *testing.T, cfg Config) {
	t.Helper()
	r := newRepeated(t, cfg)
	if n := testing.AllocsPerRun(20, r.round); n > 20 || r.calls < 1000 { // a new span of time now and then
		t.Errorf("a step of %d calls made %v allocations", r.calls, n)
	}
}

// repeated is a rank that has learned a recorded step many times.
type repeated struct {
	tb     testing.TB
	rank   *rank
	step   *trace.Step
	models *Models
	calls  int64 // in the step
}

func newRepeated(tb testing.TB, cfg Config) *repeated {
	tb.Helper()
	reader, err := bp.Open(tracetest.Recorded(tb, "gpu-BP5")[0], bp.Default())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { reader.Close() })
	steps := tau.NewReader(reader, tau.Config{}, nil)
	r := &repeated{tb: tb, models: NewModels(outlier.NewRules(cfg.Outlier))}
	for range 3 { // to the middle of the run, after all names
		if r.step, err = steps.Next(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	r.rank = newRank(&cfg, trace.RankKey{}, &steps.Names, new(tally.Tally), nil)
	r.rank.load = workload.New()
	file := spool.NewFile(tb.TempDir())
	tb.Cleanup(file.Close)
	r.rank.spool, r.rank.late = file.New(), file.New()
	for range 50 { // learn until everything is known and all memory is there
		r.round()
		r.models.settle()
	}
	return r
}

// round learns and judges the step again, at a later time.
func (r *repeated) round() {
	r.read()
	r.learn()
	if err := r.rank.judge(); err != nil {
		r.tb.Fatal(err)
	}
	r.end()
}

// read builds and learns the calls of the step.
func (r *repeated) read() {
	before := r.rank.counts.Calls
	r.rank.begin(7, true)
	for i := range r.step.Batches {
		b := &r.step.Batches[i]
		span := b.Events[len(b.Events)-1].Time - b.Events[0].Time + 1
		for j := range b.Events {
			b.Events[j].Time += span
		}
		r.rank.add(b)
	}
	for i := range r.step.Readings {
		r.rank.addReadings(&r.step.Readings[i], true)
	}
	r.calls = r.rank.counts.Calls - before
}

func (r *repeated) learn() {
	r.rank.learn()
	r.rank.merge(r.models, false, true)
}

func (r *repeated) end() {
	r.rank.finishStep(false)
	r.rank.forget(false)
}

// BenchmarkLearn reports the time to build and learn a call: without reading and judging.
func BenchmarkLearn(b *testing.B) {
	cfg := Default()
	cfg.Outlier.LeastLoss = 1e12
	r := newRepeated(b, cfg)
	calls := int64(0)
	b.ResetTimer()
	for range b.N {
		r.read()
		r.learn()
		calls += r.calls
		b.StopTimer()
		r.end()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(calls), "ns/call")
}

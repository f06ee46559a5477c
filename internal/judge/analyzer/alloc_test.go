package analyzer

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
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
	r, err := bp.Open(tracetest.Recorded(t, "gpu-BP5")[0], bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	steps := tau.NewReader(r, tau.Config{}, nil)
	var step *tau.Step
	for range 3 { // to the middle of the run, after all names
		if step, err = steps.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	models := NewModels(outlier.NewRules(cfg.Outlier))
	var counts tally.Tally
	one := newRank(&cfg, trace.RankKey{}, &steps.Names, &counts, nil)
	one.load = workload.New()
	file := &spoolFile{dir: t.TempDir()}
	t.Cleanup(file.close)
	one.spool, one.late = &spool{file: file}, &spool{file: file}
	calls := int64(0)
	round := func() {
		one.begin(7)
		for i := range step.Batches {
			b := &step.Batches[i]
			span := b.Events[len(b.Events)-1].Time - b.Events[0].Time + 1
			for j := range b.Events {
				b.Events[j].Time += span
			}
			one.add(b)
		}
		before := one.counts.Calls
		one.learn(true)
		calls = one.counts.Calls - before
		one.merge(models, false, true)
		if err := one.judge(); err != nil {
			t.Fatal(err)
		}
		one.finishStep(false)
		one.forget(false)
	}
	for range 50 { // learn until everything is known and all memory is there
		round()
		models.settle()
	}
	if n := testing.AllocsPerRun(20, round); n > 20 || calls < 1000 { // a new span of time now and then
		t.Errorf("a step of %d calls made %v allocations", calls, n)
	}
}

package analyzer_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestFrozenModelWithoutFunctionsJudgesNothing(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	ring := analyze(t, tracetest.Recorded(t, "ring-BP4"), nil)
	before := ring.Models.AppendBinary(nil)
	loaded, err := analyzer.ReadModels(before, outlier.NewRules(outlier.Default()))
	if err != nil {
		t.Fatal(err)
	}
	a := analyze(t, tracetest.Recorded(t, "gpu-BP5"), func(c *analyzer.Config) {
		c.InitialModels, c.Freeze, c.SkipFirst = loaded, true, false
	})
	if a.Review.Anomalies != 0 || a.Review.NotJudged != a.Totals.Calls {
		t.Errorf("%d anomalies, %d of %d calls not judged, want none and all", a.Review.Anomalies, a.Review.NotJudged, a.Totals.Calls)
	}
	for i, f := range a.Functions {
		if f.Name == "run_step(int) [{gpuapp.cu} {80,0}]" && a.learned(i).Count() != 0 {
			t.Error("a frozen model learned")
		}
	}
}

func TestLoadedModelJudgesFirstStep(t *testing.T) {
	datasets := tracetest.Recorded(t, "gpu-BP5")
	first := analyze(t, datasets, func(c *analyzer.Config) { c.Passes = 2 })
	loaded, err := analyzer.ReadModels(first.Models.AppendBinary(nil), outlier.NewRules(outlier.Default()))
	if err != nil {
		t.Fatal(err)
	}
	again := analyze(t, datasets, func(c *analyzer.Config) { c.InitialModels, c.Freeze = loaded, true })
	if !maps.Equal(first.ids(t), again.ids(t)) {
		t.Errorf("two passes find %d, the saved model finds %d; they differ", len(first.ids(t)), len(again.ids(t)))
	}
}

func TestFrozenModelsDoNotLearn(t *testing.T) {
	for _, name := range []string{"ring-BP4", "gpu-BP5"} {
		t.Run(name, func(t *testing.T) {
			if name == "gpu-BP5" && tracetest.WithoutRace(t) {
				return
			}
			l := newLedger()
			l.frozen = true
			res, _ := follow(t, l, analyzer.Online{Find: inputsOf(tracetest.Recorded(t, name))})
			if i := slices.IndexFunc(res.Models.Functions(), func(f *analyzer.Function) bool { return f.Learned().Count() > 0 }); i >= 0 {
				t.Errorf("%s was learned", res.Models.Functions()[i].Name)
			}
		})
	}
}

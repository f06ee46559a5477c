package e2e

import (
	"bytes"
	"os"
	"testing"
)

func TestFrozenModelJudgesLaterRunUnchanged(t *testing.T) {
	t.Parallel()
	trained := newScene(t)
	r := threeRanks(t)
	serve := trained.serve("--ranks", "3", "--save-model", trained.path("model"))
	ads := trained.ads(r)
	succeed(trained.replay(r, "max"))
	succeed(append(ads, serve)...)
	model, err := os.ReadFile(trained.path("model"))
	if err != nil {
		t.Fatal(err)
	}

	later := recorded(t, "gpu-BP5")
	s := newScene(t)
	load := []string{"--load-model", trained.path("model"), "--freeze-model"}
	serve = s.serve(append(load, "--ranks", "1", "--save-model", s.path("model"))...)
	s.services()
	ads = s.ads(later, "--exchange", "1h") // so that models come before the first step or too late
	succeed(s.replay(later, "1"))
	succeed(append(ads, serve)...)
	got := outcomeOf(t, s.path("model"), s.run)
	agree(t, got, offlineOf(t, later, load...))
	if !bytes.Equal(got.model, model) {
		t.Error("the model was frozen and has changed")
	}
	if len(got.anomalies) == 0 || got.statuses["confirmed"] != len(got.anomalies) || got.statuses["withdrawn"] > 0 {
		t.Errorf("by a model that does not change the review changed something: %v", got.statuses)
	}
}

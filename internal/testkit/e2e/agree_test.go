package e2e

import (
	"strconv"
	"testing"
)

func TestOnlineAndOfflineAgree(t *testing.T) {
	t.Parallel()
	f := func(name string, find func(testing.TB) recording, speed string, args ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := find(t)
			s := newScene(t)
			serve := s.serve("--ranks", strconv.Itoa(len(r.traces)), "--save-model", s.path("model"))
			ads := s.ads(r, args...)
			succeed(s.replay(r, speed))
			succeed(append(ads, serve)...)
			got := outcomeOf(t, s.path("model"), s.run)
			agree(t, got, offlineOf(t, r, args...))
			t.Logf("%d anomalies, %v", len(got.anomalies), got.statuses)
		})
	}
	small := func(name string) func(testing.TB) recording {
		return func(t testing.TB) recording { return recorded(t, name) }
	}
	f("three ranks of BP4", threeRanks, "4")
	f("three ranks of BP4 at once", threeRanks, "max", "--algorithm", "sstd")
	f("BP5 with a GPU", small("gpu-BP5"), "max")
	f("two ranks of BP5 with few calls", small("ring-BP5"), "max", "--min-samples", "5")
	f("two ranks of BP4 with few calls", small("ring-BP4"), "max", "--min-samples", "5")
	f("two ranks in one dataset", small("ring-onefile-BP5"), "max", "--min-samples", "5")
	f("four ranks of BP5", func(t testing.TB) recording { return large(t, "heat2d-BP5") }, "max")
}

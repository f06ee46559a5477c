package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// What --compare names is there while the run continues and while the page stays.
func TestRunningRunIsComparedWithEarlierOne(t *testing.T) {
	t.Parallel()
	good := analyzed(t)
	s := newScene(t)
	baseline := s.path("good.baseline")
	must(t, "baseline", good, baseline)
	r := recorded(t, "gpu-BP5")
	serve := s.serve("--ranks", fmt.Sprint(len(r.traces)), "--compare", good, "--compare", baseline, "--stay")
	secret := s.services().Secret
	has := func() error {
		_, body := s.get("/api/v1/comparable", secret)
		if n := strings.Count(body, `"where"`); n < 2 || !strings.Contains(body, `"problems":[]`) {
			return fmt.Errorf("got %s", body)
		}
		return nil
	}
	eventually(t, "both can be compared", has)
	ads := s.ads(r)
	replay := s.replay(r, "2")
	replay.succeed()
	succeed(ads...)
	serve.awaitLog("the page of the run remains at ")
	eventually(t, "both can be compared when the run has ended", has)
}

func TestIncomparableRunEndsServicesAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.serve("--compare", s.path("nothing"))
	if code := p.wait(); code == 0 {
		t.Errorf("it ended well")
	}
	contains(t, p.stderr.String(), "--compare", "want a run directory, a database file")
}

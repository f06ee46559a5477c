package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// unfinished starts a replay and has its writer die after some steps, when prepared has returned.
func (s *scene) unfinished(r recording, steps int64, prepared func()) {
	s.t.Helper()
	replay := s.paused(r, int(steps)/len(r.traces))
	prepared()
	replay.signal(syscall.SIGINT)
	replay.resume()
	if code := replay.wait(); code != 1 {
		s.t.Errorf("a replay that was interrupted has exit code %d", code)
	}
}

// missing fails unless the services end with the exit code of a run that lacks data, and give the reason.
func (s *scene) missing(serve *process, reason string) {
	s.t.Helper()
	if code := serve.wait(); code != 1 {
		s.t.Errorf("services of a run that lacks data have exit code %d", code)
	}
	contains(s.t, serve.stdout.String(), "incomplete: ", reason)
	s.ended(reason)
}

// stored fails unless a run has ended, with all run-level data.
func (s *scene) stored() {
	s.t.Helper()
	o := outcomeOf(s.t, "", s.run)
	if len(o.anomalies) == 0 || o.statuses["provisional"] > 0 {
		s.t.Errorf("anomalies are %v", o.statuses)
	}
	for _, collection := range []string{"func_stats", "counter_stats", "ad_model"} {
		found := 0
		for name := range o.global {
			if strings.HasPrefix(name, collection) {
				found++
			}
		}
		if found < 10 {
			s.t.Errorf("%s has %d documents", collection, found)
		}
	}
	contains(s.t, must(s.t, "runs", s.run), "finished")
}

func TestStopEndsRunOfDeadProgram(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3")
	s.services()
	ads := s.ads(r)
	s.unfinished(r, 24, func() { s.steps(24) })
	_, stderr, code := run(t, "stop", s.run)
	contains(t, stderr, `run "run" is ending`)
	if code != 0 {
		t.Errorf("stop has exit code %d", code)
	}
	for _, ad := range ads {
		if code := ad.wait(); code != 1 {
			t.Errorf("an analyzer whose trace did not end has exit code %d", code)
		}
		contains(t, ad.stderr.String(), "the run was stopped before the trace ended")
	}
	s.missing(serve, "the run was stopped before the trace ended")
	s.stored()
	_, stderr, code = run(t, "stop", s.run)
	if code != 1 {
		t.Errorf("stop of a run that has ended: exit code %d", code)
	}
	contains(t, stderr, "the services do not respond")
}

func TestIdleTraceCountsAsEnded(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3")
	s.services()
	s.unfinished(r, 24, func() {})
	ads := s.ads(r, "--idle", "1500ms") // on a busy machine a trace that grows may be idle for so long
	for i, ad := range ads {
		if code := ad.wait(); code != 1 {
			t.Errorf("an analyzer whose trace did not end has exit code %d", code)
		}
		contains(t, ad.stderr.String(), s.live(r.traces[i]), "(1.5s): trace treated as ended")
	}
	s.missing(serve, "(1.5s): trace treated as ended")
	s.stored()
}

// The services wait for a receiver of statistics when the run has ended.
func TestSignalAfterEndOfRunKeepsItFinished(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3", "--stats-url", "http://127.0.0.1:1/", "--stats-flush", "80s")
	s.services()
	ads := s.ads(r)
	replay := s.replay(r, "0")
	eventually(t, "the run ends", func() error {
		if info, err := runfiles.ReadInfo(s.run); err != nil || info.State != "finished" {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	succeed(append(ads, replay)...)
	serve.signal(syscall.SIGTERM)
	serve.succeed()
	if text := serve.stderr.String(); strings.Contains(text, "incomplete") {
		t.Errorf("serve prints %s", text)
	}
	contains(t, serve.stdout.String(), "anomalies stored with their context")
	s.ended()
	s.stored()
}

func TestProcessesEndWhenRunDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	serve := s.serve()
	s.services()
	ad := s.ad("node", s.path("none"))
	ad.awaitLog("waiting for traces")
	if err := os.RemoveAll(s.run); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*process{serve, ad} {
		if code := p.wait(); code != 1 {
			t.Errorf("%s has exit code %d", p.name, code)
		}
		contains(t, p.stderr.String(), s.run, "the run directory was removed")
	}
	if _, err := os.Stat(s.run); err == nil {
		t.Error("the directory was made again")
	}
}

func TestRunningRunCanBeQueried(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3", "--stats-period", "20ms")
	s.services()
	ads := s.ads(r)
	replay := s.paused(r, 10)
	eventually(t, "calls can be queried by call path", func() error {
		stdout, stderr, code := run(t, "query", s.run, "SELECT 'calls' FROM path_stats HAVING sum(calls) > 0", "--format", "csv")
		if code != 0 || !strings.Contains(stdout, "\ncalls") {
			return fmt.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
		return nil
	})
	eventually(t, "anomalies can be queried", func() error {
		stdout, stderr, code := run(t, "anomalies", s.run, "--format", "csv")
		if code != 0 || !strings.Contains(stdout, "provisional") {
			return fmt.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
		for _, other := range []string{"confirmed", "promoted", "withdrawn"} {
			if strings.Contains(stdout, other) {
				t.Errorf("before the review something is %s", other)
			}
		}
		return nil
	})
	contains(t, must(t, "top", s.run), "FUNCTION")
	replay.resume()
	replay.succeed()
	succeed(append(ads, serve)...)
	s.stored()
	if text := must(t, "anomalies", s.run, "--format", "csv", "--limit", "5000"); strings.Contains(text, "provisional") {
		t.Error("anomalies are provisional after the end")
	}
}

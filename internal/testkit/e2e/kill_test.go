package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

// steps waits until the services of a run report some steps.
func (s *scene) steps(n int64) *api.Status {
	s.t.Helper()
	var st *api.Status
	eventually(s.t, fmt.Sprintf("%d steps are reported", n), func() (err error) {
		if st, err = s.status(); err != nil {
			return err
		}
		var steps int64
		for _, node := range st.Nodes {
			steps += node.StepsExchanged
		}
		if steps < n {
			return fmt.Errorf("only %d", steps)
		}
		return nil
	})
	return st
}

// status returns the status of the services.
func (s *scene) status() (*api.Status, error) {
	services := s.services()
	return dashboard.Fetch(s.t.Context(), new(http.Client), services.Web, services.Secret)
}

func TestKilledServicesAndAnalyzersGiveSameResult(t *testing.T) {
	t.Parallel()
	f := func(name string, find func(testing.TB) recording, speed string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := find(t)
			s := newScene(t)
			args := []string{"--ranks", strconv.Itoa(len(r.traces)), "--save-model", s.path("model")}
			ads, last := s.allButLast(r) // before the services, and before there are traces
			replay := s.replay(r, speed)
			serve := s.serve(args...)
			s.steps(6)
			serve.kill()
			serve = s.serve(args...)
			s.steps(12)
			ads[0].kill()
			ads[0] = s.ad("n0", s.live(r.traces[0]))
			s.steps(18)
			ads[1].kill()
			serve.kill()
			ads[1] = s.ad("n1", s.live(r.traces[1]))
			serve = s.serve(args...)
			replay.succeed()
			succeed(append(ads, last(), serve)...)
			agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
		})
	}
	f("three ranks", threeRanks, "0.6")
	f("four ranks of BP5", func(t testing.TB) recording { return large(t, "heat2d-BP5") }, "4")
}

func TestServiceKilledDuringReviewGivesSameResult(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	args := []string{"--ranks", "3", "--save-model", s.path("model")}
	succeed(s.replay(r, "max"))
	serve := s.serve(args...)
	s.services()
	ads := s.ads(r)
	ads[2].succeed()     // all have ended reading then
	if serve.tryKill() { // a fast machine may have ended the run
		serve = s.serve(args...)
	}
	succeed(append(ads, serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestAnalyzerKilledBeforeReviewGivesSameResult(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	succeed(s.replay(r, "max"))
	serve := s.serve("--ranks", "3", "--save-model", s.path("model"))
	first := s.ad("n0", s.live(r.traces[0]))
	first.awaitLog("all traces have ended")
	s.steps(15)
	first.kill()
	ads := s.ads(r)
	succeed(append(ads, serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestAnalyzerRestartedAfterTheRunEnds(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	s := newScene(t)
	succeed(s.replay(r, "max"))
	serve := s.serve("--ranks", "2")
	s.services()
	succeed(append(s.ads(r), serve)...)
	before := storedRecords(t, s.run)
	again := s.ads(r)
	stranger := s.ad("n2", r.traces[0]) // which the run has not seen
	for _, ad := range again {
		ad.succeed()
		contains(t, ad.stderr.String(), "nothing is left to do")
	}
	if code := stranger.wait(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, stranger.stderr.String(), "has ended without", "chimbuko analyze")
	if after := storedRecords(t, s.run); !maps.Equal(before, after) {
		t.Errorf("there were %d records, and now are %d", len(before), len(after))
	}
}

func TestServicesKilledAfterTheRunCloseIt(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	succeed(s.replay(r, "max"))
	// waits for a receiver
	args := []string{"--ranks", "3", "--save-model", s.path("model"), "--stats-url", "http://" + closedAddress(t) + "/"}
	serve := s.serve(args...)
	s.services()
	succeed(s.ads(r)...)
	eventually(t, "the run has ended", func() error {
		if text := s.read("run/run.json"); !strings.Contains(text, `"state": "finished"`) {
			return errors.New("not yet")
		}
		return nil
	})
	serve.kill()
	again := s.serve(args...)
	again.succeed()
	contains(t, again.stdout.String(), "assemble(int)")
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
	_, stderr, code := run(t, "serve", "--out", s.run)
	if code != 1 {
		t.Errorf("services of a run that was closed: exit code %d", code)
	}
	contains(t, stderr, "already has a run")
}

func TestKilledShardsAreRestarted(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3", "--shards", "3", "--save-model", s.path("model"))
	s.services()
	ads, last := s.allButLast(r)
	replay := s.replay(r, "1")
	s.steps(6)
	killShard(t, serve, 2)
	serve.awaitLog("restarting a shard of the parameter server")
	replay.succeed()
	succeed(append(ads, last(), serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
	if left := children(t, serve); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestKilledShardedServicesGiveSameResult(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	args := []string{"--ranks", "3", "--shards", "3", "--save-model", s.path("model")}
	serve := s.serve(args...)
	s.services()
	ads, last := s.allButLast(r)
	replay := s.replay(r, "1")
	s.steps(6)
	serve.kill()
	again := s.serve(args...)
	replay.succeed()
	succeed(append(ads, last(), again)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
	eventually(t, "the shards of the killed process end", func() error {
		if left := children(t, serve); len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
}

// killShard kills a process that serve started.
func killShard(t testing.TB, serve *process, shard int) {
	t.Helper()
	eventually(t, "the shard is there", func() error {
		for pid, command := range children(t, serve) {
			if slices.Contains(strings.Split(command, "\x00"), "--shard") && strings.Contains(command, fmt.Sprintf("--shard\x00%d\x00", shard)) {
				return syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return errors.New("not found")
	})
}

// children are the processes of the group of a process but for itself, with their
// command lines.
func children(t testing.TB, p *process) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[int]string)
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest) // state, parent, group
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(fields) < 3 || fields[0] == "Z" || fields[2] != strconv.Itoa(p.cmd.Process.Pid) || pid == p.cmd.Process.Pid {
			continue
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err == nil {
			found[pid] = string(command)
		}
	}
	return found
}

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// slow has a process stand still for most of the time, as one does whose disk is slow,
// until the returned function is called. That needs no rights and no devices, and slows
// all that the process does with its disk.
func slow(p *process) (healed func()) {
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			s := syscall.SIGSTOP
			if i%8 == 7 {
				s = syscall.SIGCONT
			}
			select {
			case <-end:
				_ = p.cmd.Process.Signal(syscall.SIGCONT)
				return
			case <-tick.C:
				_ = p.cmd.Process.Signal(s) // it may have ended
			}
		}
	})
	return sync.OnceFunc(func() { close(end); done.Wait() })
}

// noted is a count of the tally in run.json or in the summary of an analyzer.
func noted(t testing.TB, text, name string) (count int64) {
	t.Helper()
	var all struct {
		Notes []struct {
			Name     string `json:"name"`
			Severity string `json:"severity"`
			Count    int64  `json:"count"`
			Sentence string `json:"sentence"`
		} `json:"notes"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v in %s", err, tail(text))
	}
	for _, n := range all.Notes {
		if n.Name == name {
			count += n.Count
		}
	}
	return count
}

// heard returns a count of the tallies that analyzers send during the run.
func (s *scene) heard(name string) (count int64) {
	st, err := s.status()
	if err != nil {
		return 0
	}
	for _, n := range st.Nodes {
		for _, c := range n.Tallies {
			if c.Name == name {
				count += c.Count
			}
		}
	}
	return count
}

func TestFullStreamAndOutboxAreReportedAndNothingIsMissing(t *testing.T) {
	t.Parallel()
	const window = "60" // records are large, so that there is soon no room
	r := eightRanks(t)
	s := newScene(t)
	s.serve("--roles", "nats,params,web", "--ranks", "8", "--save-model", s.path("model"), "--stream-size", "1")
	store := s.serve("--roles", "store", "--stream-size", "1")
	store.awaitLog("analyzers join with")
	seen := watch(t, s.services())
	store.signal(syscall.SIGSTOP)
	ad := s.ad("n0", s.path("live"), "--traces", "8", "--window", window, "--outbox", "1", "--json")
	succeed(s.replay(r, "max"))
	ad.awaitLog("all traces have ended") // it did not wait for the store
	for _, name := range []string{"record-deferred", "stream-full"} {
		eventually(t, "analyzers report "+name, func() error {
			if s.heard(name) == 0 {
				return fmt.Errorf("status: %s", must(t, "status", s.run))
			}
			return nil
		})
	}
	contains(t, must(t, "status", s.run), "did not fit into the outbox", "because the stream was full")
	store.signal(syscall.SIGCONT)
	succeed(ad, store)
	run, err := os.ReadFile(filepath.Join(s.run, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"the analyzer": ad.stdout.String(), "run.json": string(run)} {
		if noted(t, text, "record-deferred") == 0 || noted(t, text, "stream-full") == 0 {
			t.Errorf("%s does not report that the stream was full: %s", name, tail(text))
		}
	}
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r, "--window", window))
	complete(t, s, seen, true)
}

func TestSlowDiskIsReportedAndNothingIsMissing(t *testing.T) {
	t.Parallel()
	r := eightRanks(t)
	s := newScene(t)
	params := s.serve("--roles", "nats,params,web", "--ranks", "8", "--save-model", s.path("model"))
	store := s.serve("--roles", "store")
	store.awaitLog("analyzers join with")
	seen := watch(t, s.services())
	healed := slow(store)
	defer healed()
	ad := s.ad("n0", s.path("live"), "--traces", "8", "--json")
	replay := s.replay(r, "2")
	eventually(t, "records wait for the store", func() error {
		st, err := s.status()
		if err == nil && (st.Store == nil || st.Store.PendingMessages == 0) {
			err = fmt.Errorf("the store is %+v", st.Store)
		}
		return err
	})
	replay.succeed()
	ad.succeed()
	healed()
	succeed(store, params)
	if text := must(t, "top", s.run); !strings.Contains(text, "assemble(int)") {
		t.Error(text)
	}
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
	complete(t, s, seen, true)
}

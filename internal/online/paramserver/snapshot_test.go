package paramserver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// busyState returns a state with everything that a snapshot can hold.
func busyState(tb testing.TB) *State {
	tb.Helper()
	s := newState(tb, Config{})
	ids := numbersOf(s, "solve", "send")
	mustRegister(tb, s, "a", 3, 0, 1)
	var anomalies summary.Metrics
	anomalies.Count.Add(1)
	anomalies.Add(0, 0, 0, 2, 4)
	exchangeOne(tb, s, &protocol.ExchangeRequest{
		Sender: sender("a", 3), Number: 1, Steps: append(steps(0, 0, 4), &protocol.Steps{Rank: 1, To: 1, Ended: true, Host: "h"}),
		Status: &protocol.Status{State: protocol.Status_STATE_READING, Steps: 5},
		Delta: encoded(summary.Delta{
			Models:    append(modelsOf(ids[0], 4, 5), modelsOf(ids[1], 1000)...),
			Functions: []summary.FunctionStats{{ID: int(ids[0]), Exclusive: *sumsOf(4, 5), PerStep: *sumsOf(0)}},
			Ranks:     []summary.RankDelta{{RankKey: trace.RankKey{Rank: 1}, Anomalies: *sumsOf(1)}},
			Counters:  []summary.Counter{{FuncKey: trace.FuncKey{Name: "bytes"}, Values: *sumsOf(77)}},
			Steps: []summary.StepReport{{
				RankKey: trace.RankKey{Rank: 1}, First: 1, Last: 9, Scores: anomalies.Score,
				Functions: []summary.FunctionStats{{ID: int(ids[1]), Anomalies: anomalies}},
			}},
			Paths: pathsOf(callpath.MaxDepth, callpath.Entry{Parent: -1, Func: ids[0]},
				callpath.Entry{Func: ids[1], Sums: callpath.Sums{Calls: 3, Exclusive: 9}}),
		}),
	})
	outcome(tb, s, "a", 3, 0)
	return s
}

// pathsOf are call paths of program 0.
func pathsOf(depth int, list ...callpath.Entry) []summary.PathDelta {
	return []summary.PathDelta{{Depth: depth, List: list}}
}

// successor is a state that begins with the snapshot of another.
func successor(s *State, snapshot []byte) (*State, error) {
	next, err := NewState(s.cfg, s.epoch+1)
	if err == nil {
		err = next.load(snapshot)
	}
	return next, err
}

func TestSnapshotHoldsEverything(t *testing.T) {
	s := busyState(t)
	path := filepath.Join(t.TempDir(), "state")
	if !s.Changed() {
		t.Error("nothing is to be stored")
	}
	if _, err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	if s.Changed() || s.nodes["a"].durable != 1 {
		t.Errorf("after a snapshot: changed %v, exchange %d is durable", s.Changed(), s.nodes["a"].durable)
	}
	next, err := NewState(s.cfg, 2)
	if err == nil {
		err = next.Restore(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if contentOf(t, next) != contentOf(t, s) || next.Changed() {
		t.Error("what was restored is not what was stored")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside the snapshot there is more: %v %v", entries, err)
	}
	if err := s.Restore(filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Errorf("a run without snapshot: %v", err)
	}
}

func TestFailedSnapshotIsNotDurable(t *testing.T) {
	s := busyState(t)
	if _, err := s.Save(filepath.Join(t.TempDir(), "missing", "state")); err == nil || !s.Changed() || s.nodes["a"].durable != 0 {
		t.Errorf("error %v, changed %v, durable %d", err, s.Changed(), s.nodes["a"].durable)
	}
	w := newWorld(t, Config{})
	key := trace.RankKey{Program: 0, Rank: 0}
	a := newAnalyzer(t, w, "a", 1, oneTrace(key, 3))
	a.readOne(key)
	a.mustTalk()
	full := errors.New("no space left")
	store := w.shards[0].server.save
	w.shards[0].server.save = func() (int, error) { return 0, full }
	a.readAll()
	wantError(t, a.talk(), full.Error())
	if a.client.Progress().Ended {
		t.Error("the analyzer takes as durable what could not be stored")
	}
	w.shards[0].server.save = store
	settle(w, a)
	a.wantModels(newOracle(a.traces, func(trace.FuncKey) int { return 0 }).models)
}

func TestDamagedSnapshotIsRefused(t *testing.T) {
	s := busyState(t)
	var good []byte
	if _, err := s.saveWith(func(b []byte) error { good = b; return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := []byte(strings.Clone(string(good)))
		bad[i] ^= 0x40
		if _, err := successor(s, bad); err == nil {
			t.Fatalf("byte %d of %d is damaged without an error", i, len(good))
		}
		if _, err := successor(s, good[:i]); err == nil {
			t.Fatalf("the snapshot was cut off after %d of %d bytes without an error", i, len(good))
		}
	}
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, good[:50], 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Restore(path), path, "damaged", "remove the run directory to start over")
}

func TestSnapshotOfAnotherRunIsRefused(t *testing.T) {
	f := func(why string, change func(*protocol.Snapshot)) {
		t.Helper()
		s := busyState(t)
		m := proto.CloneOf(s.snapshot().message)
		change(m)
		next, err := NewState(s.cfg, 2)
		if err == nil {
			err = next.restore(m)
		}
		wantError(t, err, why)
	}
	f(`run "other", want "run"`, func(m *protocol.Snapshot) { m.Run = "other" })
	f("it has format 99, this program reads format "+strconv.Itoa(protocol.Version)+" (install a newer chimbuko)", func(m *protocol.Snapshot) { m.Version = 99 })
	f("models are frozen: true, want false", func(m *protocol.Snapshot) { m.Frozen = true })
	f("phase 9", func(m *protocol.Snapshot) { m.Phase = 9 })
	f("no function has the id 5", func(m *protocol.Snapshot) { m.Models[0].Id = 5 })
	f("model of function 0 is malformed", func(m *protocol.Snapshot) { m.Models[0].Model = nil })
	f("malformed statistics", func(m *protocol.Snapshot) { m.Live = nil })
	f("written by a newer chimbuko: it has format 2, this program reads format 1 (install a newer chimbuko)", func(m *protocol.Snapshot) {
		m.Load = slices.Concat([]byte("chimbuko load 2\n"), m.GetLoad()[len("chimbuko load 2\n"):])
	})
	f(`want "chimbuko load "`, func(m *protocol.Snapshot) { m.Load = workload.New().AppendBinary(nil) })
	f(`want "chimbuko load "`, func(m *protocol.Snapshot) { m.Load = nil })
	f("no function has the id 7", func(m *protocol.Snapshot) {
		l := summary.NewLive()
		l.AddFunction(&summary.FunctionStats{ID: 7, FuncKey: trace.FuncKey{Name: "solve"}, PerStep: *sumsOf(0)})
		m.Live = l.AppendBinary(nil)
	})
}

func TestConcurrentSavesShareSnapshot(t *testing.T) {
	s := busyState(t)
	server := newServer(s, ServerConfig{})
	saves := 0
	server.save = func() (int, error) {
		saves++
		return s.saveWith(func([]byte) error { return nil })
	}
	want := s.Changes()
	for range 5 {
		if err := server.saveUpTo(want); err != nil {
			t.Fatal(err)
		}
	}
	if saves != 1 {
		t.Errorf("%d snapshots were made, want 1", saves)
	}
	mustRegister(t, s, "b", 1, 9)
	if err := server.saveUpTo(want); err != nil || saves != 1 {
		t.Errorf("%d snapshots for changes that are stored, %v", saves, err)
	}
	if err := server.Save(); err != nil || saves != 2 {
		t.Errorf("%d snapshots, want 2, %v", saves, err)
	}
}

// Changed reports whether something is not in the last snapshot.
func (s *State) Changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes != s.saved
}

func TestExpensiveSnapshotsAreRare(t *testing.T) {
	server := newServer(busyState(t), ServerConfig{Snapshot: 5 * time.Second})
	for _, f := range []struct {
		took float64
		want time.Duration
	}{{0, 5 * time.Second}, {0.1, 5 * time.Second}, {0.75, 15 * time.Second}, {100, snapshotLimit}} {
		server.snap.Duration = f.took
		if got := server.snapshotPeriod(); got != f.want {
			t.Errorf("after a snapshot that took %v s the next comes %v later, want %v", f.took, got, f.want)
		}
	}
}

package node

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

func TestTracesByEngineAndName(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a-0.bp", "a-1.bp.sst", "a-2.bp.sst", "a-3.bp.tmp", "notes"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := func(pattern, engine, want string, more bool) {
		t.Helper()
		paths, gotMore, err := Traces(filepath.Join(dir, pattern), engine)
		for i := range paths {
			paths[i] = filepath.Base(paths[i])
		}
		slices.Sort(paths)
		if got := strings.Join(slices.Compact(paths), " "); err != nil || got != want || gotMore != more {
			t.Errorf("%s with the engine %s: got %q, more %v, error %v; want %q, more %v", pattern, engine, got, gotMore, err, want, more)
		}
	}
	f(".", EngineAuto, "a-0.bp a-1.bp.sst a-2.bp.sst", true)
	f(".", EngineBP, "a-0.bp", true)
	f(".", EngineSST, "a-1.bp.sst a-2.bp.sst", true)
	f("a-*", EngineAuto, "a-0.bp a-1.bp.sst a-2.bp.sst", true)
	f("a-*.bp", EngineAuto, "a-0.bp", true)
	f("a-*.bp", EngineSST, "a-1.bp.sst a-2.bp.sst", true)
	f("a-*.bp.sst", EngineAuto, "a-1.bp.sst a-2.bp.sst", true)
	f("a-*.bp.sst", EngineSST, "a-1.bp.sst a-2.bp.sst", true)
	f("b.log", EngineAuto, "b.log", false)
	f("b.bp", EngineAuto, "b.bp", false)
	f("b.bp", EngineSST, "b.bp.sst", false)
	f("b.bp.sst", EngineAuto, "b.bp.sst", false)
	f("b.bp.sst", EngineSST, "b.bp.sst", false)
}

// TestStreamRemainsAfterItsContactFileIsRemoved: programs remove theirs when they
// close their streams.
func TestStreamRemainsAfterItsContactFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	contact := filepath.Join(dir, "a-0.bp.sst")
	if err := os.WriteFile(contact, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inputs := func(paths []string) (inputs []analyzer.Input, err error) {
		for _, p := range paths {
			inputs = append(inputs, analyzer.Input{Path: p})
		}
		return inputs, nil
	}
	cfg := &Config{Traces: 1, Rank: -1, OverrideRank: -1, Engine: EngineAuto, Patterns: []string{dir}, Inputs: inputs}
	s := &streams{cfg: cfg}
	finder := &traceFinder{cfg: cfg, now: time.Now, onFound: func(*[]string) {}, open: s.opener}
	for range 2 {
		inputs, complete, err := finder.find()
		if err != nil || !complete || len(inputs) != 1 || inputs[0].Path != contact || inputs[0].Open == nil {
			t.Fatalf("got %+v, complete %v, error %v", inputs, complete, err)
		}
		_ = os.Remove(contact) // the second time it is gone
	}
}

func TestWaitingForTracesIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	cfg := &Config{
		Dir: t.TempDir(), Rank: -1, OverrideRank: -1, Engine: EngineAuto, Patterns: []string{t.TempDir() + "/none-*.bp"},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	finder := &traceFinder{cfg: cfg, now: time.Now, onFound: func(*[]string) {}, open: (&streams{cfg: cfg}).opener}
	for range 3 {
		if _, complete, err := finder.find(); err != nil || complete {
			t.Fatalf("complete %v, error %v", complete, err)
		}
	}
	if text := log.String(); strings.Count(text, "waiting for traces") != 1 || !strings.Contains(text, "none-*.bp") {
		t.Errorf("got %q", text)
	}
}

// TestProgramsByNames: programs that start together are numbered by name, those that start
// later get the next number, and an analyzer that is restarted has the same numbers.
func TestProgramsByNames(t *testing.T) {
	run, dir := t.TempDir(), t.TempDir()
	if err := runfiles.WriteServices(run, &runfiles.Services{Run: "r", Bus: "nats://localhost:1"}); err != nil {
		t.Fatal(err)
	}
	write := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cfg := &Config{
		Dir: run, Rank: -1, OverrideRank: -1, Engine: EngineAuto, Patterns: []string{dir}, Linger: time.Hour, Log: slog.New(slog.DiscardHandler),
	}
	newFinder := func() *traceFinder {
		return &traceFinder{cfg: cfg, now: time.Now, onFound: func(*[]string) {}, open: (&streams{cfg: cfg}).opener}
	}
	want := func(f *traceFinder, want string) {
		t.Helper()
		inputs, _, err := f.find()
		var got []string
		for i := range inputs {
			got = append(got, fmt.Sprintf("%d:%s", inputs[i].Program, filepath.Base(inputs[i].Path)))
		}
		if list := strings.Join(got, " "); err != nil || list != want {
			t.Errorf("got %s, error %v; want %s", list, err, want)
		}
	}
	f := newFinder()
	want(f, "")
	write("tau-b-0.bp")
	want(f, "") // others may follow
	write("tau-c-0.bp.sst")
	want(f, "")
	want(f, "0:tau-b-0.bp 1:tau-c-0.bp.sst")
	write("tau-b-1.bp", "tau-a-0.bp")
	want(f, "0:tau-b-0.bp 0:tau-b-1.bp 1:tau-c-0.bp.sst")
	const all = "2:tau-a-0.bp 0:tau-b-0.bp 0:tau-b-1.bp 1:tau-c-0.bp.sst"
	want(f, all)
	want(newFinder(), all)
	other := newFinder()
	other.cfg = &Config{
		Dir: run, Rank: -1, OverrideRank: -1, Engine: EngineAuto, Patterns: []string{filepath.Join(dir, "tau-c-0.bp.sst")}, Log: cfg.Log,
	}
	want(other, "1:tau-c-0.bp.sst") // known from the first analyzer
	if err := runfiles.WritePrograms(run, map[string]trace.Program{"tau-c": 0}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.find(); err == nil || !strings.Contains(err.Error(), "--program") {
		t.Errorf("different numbers: got %v", err)
	}

	cfg.Dir, cfg.Traces = t.TempDir(), 4 // in another run all are known from the start
	want(newFinder(), "0:tau-a-0.bp 1:tau-b-0.bp 1:tau-b-1.bp 2:tau-c-0.bp.sst")
	cfg.Inputs = func(paths []string) (inputs []analyzer.Input, err error) {
		for _, p := range paths {
			inputs = append(inputs, analyzer.Input{Path: p, Program: 7})
		}
		return inputs, nil
	}
	want(newFinder(), "7:tau-a-0.bp 7:tau-b-0.bp 7:tau-b-1.bp 7:tau-c-0.bp.sst")
}

package service

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
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
	cfg := &AnalyzerConfig{Traces: 1, Rank: -1, OverrideRank: -1, Engine: EngineAuto, Patterns: []string{dir}, Inputs: inputs}
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

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheEngineAndTheNamesSayWhichTracesAreRead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a-0.bp", "a-1.bp.sst", "a-2.bp.sst", "a-3.bp.tmp", "notes"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := func(pattern, engine, want string, more bool) {
		t.Helper()
		paths, gotMore, err := tracesOf(filepath.Join(dir, pattern), engine)
		for i := range paths {
			paths[i] = filepath.Base(paths[i])
		}
		slices.Sort(paths)
		if got := strings.Join(slices.Compact(paths), " "); err != nil || got != want || gotMore != more {
			t.Errorf("%s with the engine %s: got %q, more %v, error %v; want %q, more %v", pattern, engine, got, gotMore, err, want, more)
		}
	}
	f(".", engineAuto, "a-0.bp a-1.bp.sst a-2.bp.sst", true)
	f(".", engineBP, "a-0.bp", true)
	f(".", engineSST, "a-1.bp.sst a-2.bp.sst", true)
	f("a-*", engineAuto, "a-0.bp a-1.bp.sst a-2.bp.sst", true)
	f("a-*.bp", engineAuto, "a-0.bp", true)
	f("a-*.bp", engineSST, "a-1.bp.sst a-2.bp.sst", true)
	f("a-*.bp.sst", engineAuto, "a-1.bp.sst a-2.bp.sst", true)
	f("a-*.bp.sst", engineSST, "a-1.bp.sst a-2.bp.sst", true)
	f("b.bp", engineAuto, "b.bp", false)
	f("b.bp", engineSST, "b.bp.sst", false)
	f("b.bp.sst", engineAuto, "b.bp.sst", false)
	f("b.bp.sst", engineSST, "b.bp.sst", false)
}

// TestAStreamStaysATraceWhenItsContactFileGoes: programs remove theirs when they
// close their streams.
func TestAStreamStaysATraceWhenItsContactFileGoes(t *testing.T) {
	dir := t.TempDir()
	contact := filepath.Join(dir, "a-0.bp.sst")
	if err := os.WriteFile(contact, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := &adFlags{traces: 1, rank: -1, override: -1}
	flags.engine = engineAuto
	s := &streams{flags: &flags.streamFlags}
	finder := &traceFinder{flags: flags, patterns: []string{dir}, now: time.Now, told: func(*[]string) {}, open: s.opener}
	for range 2 {
		inputs, complete, err := finder.find()
		if err != nil || !complete || len(inputs) != 1 || inputs[0].Path != contact || inputs[0].Open == nil {
			t.Fatalf("got %+v, complete %v, error %v", inputs, complete, err)
		}
		_ = os.Remove(contact) // the second time it is gone
	}
}

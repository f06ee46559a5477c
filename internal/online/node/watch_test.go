package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
)

func TestWatchDirNoticesReplacedDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) { watchReplaced(t, dir) })
}

func watchReplaced(t *testing.T, dir string) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- WatchDir(t.Context(), dir) }()
	select {
	case err := <-ended:
		t.Fatalf("a directory that does not exist yet: %v", err)
	case <-time.After(WatchEvery / 2):
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("a new directory: %v", err)
	case <-time.After(3 * WatchEvery):
	}
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrRemoved) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := WatchDir(ctx, dir); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func TestAnalyzerReportsTracesThatDoNotGrow(t *testing.T) {
	var log bytes.Buffer
	r := &node{cfg: &Config{Dir: "run", Log: slog.New(slog.NewTextHandler(&log, nil))}}
	begin := time.Now()
	f := func(steps int, after time.Duration, want int) {
		t.Helper()
		rep := new(analyzer.Report)
		rep.Totals.Steps = steps
		r.noteStall(rep, begin.Add(after))
		if n := strings.Count(log.String(), "no trace has a new step"); n != want {
			t.Errorf("%d steps after %v: %d reports, want %d", steps, after, n, want)
		}
	}
	f(0, 10*stallTime, 0) // no trace yet
	f(1, 11*stallTime, 0)
	f(1, 12*stallTime-1, 0)
	f(1, 12*stallTime, 1)
	f(1, 20*stallTime, 1)
	f(2, 21*stallTime, 1)
	f(2, 22*stallTime, 2)
	r.reviewing.Store(true)
	f(3, 23*stallTime, 2)
	f(3, 30*stallTime, 2)
}

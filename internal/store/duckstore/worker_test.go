package duckstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// limited returns the rows of a statement with a memory limit.
func limited(ctx context.Context, s *Store, memory int64, sql string, args ...any) ([][]any, error) {
	rows, err := s.Query(provdb.WithLimits(ctx, provdb.Limits{Memory: memory}), sql, args...)
	if err != nil {
		return nil, err
	}
	return rows.Collect()
}

func TestLimitedQuerySeesCommittedData(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	path := filepath.Join(t.TempDir(), FileName)
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} { // in the log only
		if _, err := s.CreateRun(t.Context(), provdb.Run{Name: name, State: provdb.Running, Started: time.Now()}); err != nil {
			t.Fatal(err)
		}
		rows, err := limited(t.Context(), s, 0, "SELECT name, $1 + 1 FROM runs ORDER BY run DESC", 41)
		if err != nil || len(rows) == 0 || rows[0][0] != name || rows[0][1] != int64(42) {
			t.Fatalf("a live store: got %v, %v, want %s", rows, err, name)
		}
	}
	_, err = limited(t.Context(), s, 0, "SELECT nonsense")
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
	if _, err := limited(t.Context(), s, 0, "DELETE FROM runs"); !errors.Is(err, provdb.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), path, Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	if rows, err := limited(t.Context(), s, 0, "SELECT count(*) FROM runs"); err != nil || rows[0][0] != int64(2) {
		t.Errorf("a stored run: got %v, %v", rows, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := limited(t.Context(), s, 0, "SELECT 1"); !errors.Is(err, provdb.ErrClosed) {
		t.Errorf("a closed store: got %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestQueriesAboveTheirMemoryLimitFail(t *testing.T) {
	tracetest.SkipShort(t, "runs queries for seconds")
	s := openTemp(t)
	for name, sql := range map[string]string{
		"aggregate that DuckDB accounts for": "SELECT max(len(l)) FROM (SELECT list(range) l FROM range(4000000000))",
		"text that it does not account for":  "SELECT len(repeat('x', 4000000000))",
		"many values":                        "SELECT count(DISTINCT (a.range, b.range)) FROM range(100000) a, range(100000) b",
		"large row":                          "SELECT repeat('x', 100000000)",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := limited(ctx, s, 300e6, sql)
			if !errors.Is(err, provdb.ErrLimit) {
				t.Fatalf("got %v, want ErrLimit", err)
			}
			if name != "large row" && (!strings.Contains(err.Error(), "300.0 MB") || !strings.Contains(err.Error(), "--sql-memory")) {
				t.Errorf("the error %q does not say what to do", err)
			}
		})
	}
	if rows, err := limited(t.Context(), s, 0, "SELECT 1"); err != nil || len(rows) != 1 {
		t.Errorf("the next query: got %v, %v", rows, err)
	}
}

func TestLimitedQueriesEndInTime(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	s := openTemp(t)
	for _, sql := range []string{ // DuckDB does not interrupt the first
		"SELECT sum(levenshtein(repeat('x', 20000 + range::INT), repeat('y', 20000))) FROM range(2000)",
		"SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE hash(a.range, b.range) = 0",
	} {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := limited(ctx, s, 1e9, sql)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want context.DeadlineExceeded", sql, err)
		}
		if took := time.Since(begin); took > time.Minute { // the first would take more than ten
			t.Errorf("%s: took %v", sql, took)
		}
	}
}

const endless = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE hash(a.range, b.range) = 0"

// pause waits between looks at a condition.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	if err := wait.Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func TestOtherQueriesRunBesideLimitedOnes(t *testing.T) {
	tracetest.SkipShort(t, "runs queries for seconds")
	s := openTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	for range cap(s.slots) {
		go func() {
			_, err := limited(ctx, s, 0, endless)
			ended <- err
		}()
	}
	for len(s.slots) < cap(s.slots) {
		pause(t, time.Millisecond)
	}
	if _, err := limited(t.Context(), s, 0, "SELECT 1"); !errors.Is(err, provdb.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	if _, err := s.CreateRun(t.Context(), provdb.Run{Name: "new", State: provdb.Running, Started: time.Now()}); err != nil {
		t.Error(err)
	}
	if rows, err := s.Query(t.Context(), "SELECT name FROM runs"); err != nil {
		t.Error(err)
	} else if got, err := rows.Collect(); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	cancel()
	for range cap(s.slots) {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	}
	if _, err := limited(t.Context(), s, 0, "SELECT 1"); err != nil {
		t.Errorf("after their end: %v", err)
	}
}

func TestCloseEndsLimitedQueries(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	for i := range 10 { // also those that are starting
		s := openTemp(t)
		ended := make(chan error, 1)
		go func() {
			_, err := limited(t.Context(), s, 0, endless)
			ended <- err
		}()
		for len(s.slots) == 0 {
			pause(t, time.Millisecond)
		}
		pause(t, time.Duration(i)*20*time.Millisecond)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, provdb.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
}

func TestCrashEndsOneQueryOnly(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	s := openTemp(t)
	for what, crash := range map[string]func(w *worker) error{
		"the process crashes":   func(w *worker) error { return w.cmd.Process.Signal(syscall.SIGSEGV) },
		"its parent disappears": func(w *worker) error { return w.in.Close() },
	} {
		ended := make(chan error, 1)
		go func() {
			_, err := limited(t.Context(), s, 0, endless)
			ended <- err
		}()
		for crashed := false; !crashed; pause(t, 10*time.Millisecond) {
			s.mu.Lock() // while a process starts, its query has this lock
			s.queriesMu.Lock()
			for q := range s.queries {
				w := q.(*worker)
				crashed = w.cmd != nil && crash(w) == nil
			}
			s.queriesMu.Unlock()
			s.mu.Unlock()
		}
		err := <-ended
		if err == nil || !strings.Contains(err.Error(), "made the SQL engine fail") || errors.Is(err, provdb.ErrLimit) {
			t.Errorf("%s: got %v", what, err)
		}
		if _, err := limited(t.Context(), s, 0, "SELECT 1"); err != nil {
			t.Errorf("%s: the next query: %v", what, err)
		}
	}
}

func TestAbandonedLimitedQueryEnds(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	s := openTemp(t)
	rows, err := s.Query(provdb.WithLimits(t.Context(), provdb.Limits{}), "SELECT range FROM range(1000000)")
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for row, err := range rows.All {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, slices.Clone(row)...); len(got) == 3 {
			break
		}
	}
	if !slices.Equal(got, []any{int64(0), int64(1), int64(2)}) || len(s.slots) != 0 {
		t.Errorf("got %v, %d running", got, len(s.slots))
	}
}

// openTemp returns a new store.
func openTemp(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), FileName), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // some tests close it
	return s
}

package remotestore

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// patience bounds how long a test waits for an event, also on a busy machine.
const patience = 2 * time.Minute

// readerFunc is a provdb.Reader.
type readerFunc func(ctx context.Context, sql string, args []any) (*provdb.Rows, error)

func (f readerFunc) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	return f(ctx, sql, args)
}

// echo answers each query with one row, its arguments.
func echo(_ context.Context, _ string, args []any) (*provdb.Rows, error) {
	columns := make([]provdb.Column, len(args))
	return rowsOf(columns, func(yield func([]any, error) bool) { yield(args, nil) }), nil
}

// hangingQuery answers when its context ends.
func hangingQuery(ctx context.Context, _ string, _ []any) (*provdb.Rows, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// counting answers with the numbers from 0 to n-1, and closes ended at the end.
func counting(n int64, ended chan<- struct{}) readerFunc {
	return func(ctx context.Context, _ string, _ []any) (*provdb.Rows, error) {
		return rowsOf([]provdb.Column{{Name: "i", Type: provdb.Int}}, func(yield func([]any, error) bool) {
			defer close(ended)
			for i := range n {
				if ctx.Err() != nil {
					yield(nil, ctx.Err())
					return
				}
				if !yield([]any{i}, nil) {
					return
				}
			}
		}), nil
	}
}

func rowsOf(columns []provdb.Column, all iter.Seq2[[]any, error]) *provdb.Rows {
	return &provdb.Rows{Columns: columns, All: all, Close: func() error { return nil }}
}

// start serves r until the test ends, which must leave no goroutine behind.
func start(t *testing.T, r provdb.Reader, l limits) (*Server, string) {
	t.Helper()
	tracetest.SkipShort(t, "starts a server")
	noLeaks(t)
	announce := filepath.Join(t.TempDir(), "owner.json")
	s, err := serve(context.WithoutCancel(t.Context()), r, announce, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close the server:", err)
		}
	})
	return s, announce
}

// open is start with a client.
func open(t *testing.T, r provdb.Reader, l limits) (*Server, *Client) {
	t.Helper()
	s, announce := start(t, r, l)
	c, err := Open(t.Context(), announce)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error("close the client:", err)
		}
	})
	return s, c
}

// noLeaks fails a test that leaves goroutines behind.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; <-tick.C {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

// wait receives from c, or fails the test.
func wait[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("timed out waiting until " + what)
	}
	return v
}

// editAnnouncement rewrites an announcement.
func editAnnouncement(t *testing.T, path string, change func(a *announcement)) {
	t.Helper()
	a, err := readAnnouncement(path)
	if err != nil {
		t.Fatal(err)
	}
	change(&a)
	if err := a.write(path); err != nil {
		t.Fatal(err)
	}
}

// startImpostor writes an announcement and passes each connection to f.
func startImpostor(t *testing.T, f func(net.Conn)) (announce string) {
	t.Helper()
	tracetest.SkipShort(t, "starts a server")
	noLeaks(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f(conn)
			_ = conn.Close()
		}
	}()
	a, err := newAnnouncement(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	announce = filepath.Join(t.TempDir(), "owner.json")
	if err := a.write(announce); err != nil {
		t.Fatal(err)
	}
	return announce
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "owner.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func query(t *testing.T, r provdb.Reader, args ...any) ([][]any, error) {
	t.Helper()
	rows, err := r.Query(t.Context(), "SELECT", args...)
	if err != nil {
		return nil, err
	}
	return rows.Collect()
}

// same reports whether two values have one type and equal bits.
func same(a, b any) bool {
	if x, ok := a.(float64); ok {
		y, ok := b.(float64)
		return ok && (math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y))
	}
	return reflect.DeepEqual(a, b)
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not contain %q", err, p)
		}
	}
}

// manyValues returns values of all types that answers have, with edge cases.
func manyValues() []any {
	far := time.Date(20000, 1, 2, 3, 4, 5, 6, time.UTC)
	return []any{
		nil, true, false,
		int64(0), int64(-1), int64(1<<53 + 1), int64(math.MaxInt64), int64(math.MinInt64),
		0.0, math.Copysign(0, -1), 1.0, 0.1, -1e100, math.Pi, math.MaxFloat64, math.SmallestNonzeroFloat64,
		math.NaN(), math.Inf(1), math.Inf(-1), float64(1 << 60),
		"", "text", "line\nbreak\r\x00\x7f", `"quoted" \ <b>&amp;`, "\u2028 ü 日本 \U0001f600 \ufffd", "not \xff\xc0 text",
		json.Number("18446744073709551616"), json.Number("-170141183460469231731687303715884105728"),
		json.RawMessage(`{ "a": 1.0,` + "\n\t" + `"b": 9007199254740993, "a": "\u003c" }`), json.RawMessage("null"), json.RawMessage("\"\xff\""),
		time.Time{},
		time.Unix(0, 0).UTC(), time.Unix(-1, 999999999).UTC(), far, far.AddDate(-40000, 0, 0),
	}
}

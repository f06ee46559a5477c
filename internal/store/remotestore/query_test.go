package remotestore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/wire"
)

func TestValuesSurviveRoundTrip(t *testing.T) {
	_, c := open(t, readerFunc(echo), defaultLimits)
	want := manyValues()
	got, err := query(t, c, want...)
	if err != nil || len(got) != 1 || len(got[0]) != len(want) {
		t.Fatalf("got %v, %v", got, err)
	}
	for i := range want {
		if !same(got[0][i], want[i]) {
			t.Errorf("%T %#v became %T %#v", want[i], want[i], got[0][i], got[0][i])
		}
	}
}

func TestArgumentsAreConverted(t *testing.T) {
	_, c := open(t, readerFunc(echo), defaultLimits)
	f := func(arg, want any) {
		t.Helper()
		got, err := query(t, c, arg)
		if err != nil || !same(got[0][0], want) {
			t.Errorf("%T %v: got %#v, %v, want %#v", arg, arg, got, err, want)
		}
	}
	f(provdb.RunID(7), int64(7))
	f(7, int64(7))
	f(uint8(7), int64(7))
	f(float32(0.5), 0.5)
	f(provdb.Running, "running")
	f((*int)(nil), nil)
	f(time.Date(2024, 5, 6, 7, 8, 9, 10, time.FixedZone("", 3600)), time.Date(2024, 5, 6, 6, 8, 9, 10, time.UTC))

	_, err := query(t, c, 1, []string{"a"})
	wantText(t, err, "argument 2", "[]string")
}

func TestQueriesAndColumnsArriveUnchanged(t *testing.T) {
	columns := []provdb.Column{{Name: "a \"b\" <ü>", Type: provdb.Int}, {Name: "", Type: provdb.JSON}}
	received := make(chan string, 1)
	_, c := open(t, readerFunc(func(_ context.Context, sql string, _ []any) (*provdb.Rows, error) {
		received <- sql
		return rowsOf(columns, func(func([]any, error) bool) {}), nil
	}), defaultLimits)
	for _, sql := range []string{"", "SELECT '<ü>\n\t\u2028'"} {
		rows, err := c.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := <-received; got != sql {
			t.Errorf("%q arrived as %q", sql, got)
		}
		if !slices.Equal(rows.Columns, columns) {
			t.Errorf("got the columns %v, want %v", rows.Columns, columns)
		}
		if all, err := rows.Collect(); len(all) != 0 || err != nil {
			t.Errorf("got %v, %v", all, err)
		}
	}
	_, err := c.Query(t.Context(), "SELECT '\xff'")
	wantText(t, err, "UTF-8")
	_, err = c.Query(t.Context(), strings.Repeat("x", maxRequest))
	wantText(t, err, "the query has", "limit 1048576")
}

func TestStoreErrorsKeepTextAndKind(t *testing.T) {
	var fail atomic.Pointer[error]
	_, c := open(t, readerFunc(func(_ context.Context, _ string, args []any) (*provdb.Rows, error) {
		if args[0] == "at once" {
			return nil, *fail.Load()
		}
		return rowsOf(make([]provdb.Column, 1), func(yield func([]any, error) bool) {
			if yield([]any{"first"}, nil) {
				yield(nil, *fail.Load())
			}
		}), nil
	}), defaultLimits)
	sentinels := []error{
		provdb.ErrRunExists, provdb.ErrNotFound, provdb.ErrForeign, fileformat.ErrNewer, provdb.ErrInUse,
		provdb.ErrReadOnly, provdb.ErrClosed, errors.New("another"),
	}
	for i, s := range sentinels {
		err := fmt.Errorf("file.duckdb: query: %w; do \"this\"", s)
		fail.Store(&err)
		for _, when := range []string{"at once", "later"} {
			_, got := query(t, c, when)
			if got == nil || got.Error() != err.Error() {
				t.Errorf("%s: got %v, want %v", when, got, err)
			}
			for j, other := range sentinels {
				if is := errors.Is(got, other); is != (i == j && i < 7) {
					t.Errorf("%s: %v is %q: %t", when, got, other, is)
				}
			}
		}
	}
}

func TestUnsupportedValueIsAnError(t *testing.T) {
	_, c := open(t, readerFunc(func(context.Context, string, []any) (*provdb.Rows, error) {
		return rowsOf(make([]provdb.Column, 2), func(yield func([]any, error) bool) { yield([]any{nil, []byte("x")}, nil) }), nil
	}), defaultLimits)
	_, err := query(t, c)
	wantText(t, err, "column 2", "[]uint8")
}

// TestBreakCancelsQueryAtOwner requests far more rows than buffers hold.
func TestBreakCancelsQueryAtOwner(t *testing.T) {
	for _, how := range []string{"break", "close", "cancel", "close client"} {
		t.Run(how, func(t *testing.T) {
			ended := make(chan struct{})
			_, c := open(t, counting(1<<40, ended), defaultLimits)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rows, err := c.Query(ctx, "SELECT")
			if err != nil {
				t.Fatal(err)
			}
			next := int64(0)
			for row, err := range rows.All {
				if next < 10 {
					if err != nil || row[0] != next {
						t.Fatalf("row %d is %v, %v", next, row, err)
					}
					next++
					continue
				}
				if how == "break" {
					break
				}
				if err == nil {
					end := map[string]func() error{"close": rows.Close, "cancel": func() error { cancel(); return nil }, "close client": c.Close}
					if err := end[how](); err != nil {
						t.Fatal(err)
					}
					continue
				}
				want := map[string]error{"close": errRead, "cancel": context.Canceled, "close client": provdb.ErrClosed}[how]
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			wait(t, ended, "the owner's query ends")
			if err := errors.Join(rows.Close(), rows.Close()); err != nil {
				t.Error(err)
			}
			for row, err := range rows.All {
				if err == nil {
					t.Errorf("read again: %v", row)
				}
			}
		})
	}
}

func TestCancelEndsUnansweredQuery(t *testing.T) {
	begun, ended := make(chan struct{}, 2), make(chan error, 2) // the second query may reach the owner late
	l := defaultLimits
	l.queries = 1
	_, c := open(t, readerFunc(func(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
		begun <- struct{}{}
		rows, err := hangingQuery(ctx, sql, args)
		ended <- err
		return rows, err
	}), l)
	why := errors.New("no longer of interest")
	answered := make(chan error)
	begin := func() context.CancelCauseFunc {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			_, err := c.Query(ctx, "SELECT")
			answered <- err
		}()
		return cancel
	}
	first := begin()
	wait(t, begun, "the first query runs")
	second := begin() // waits for the first
	second(why)
	if err := wait(t, answered, "the second query ends"); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("while waiting: got %v, want context.Canceled and the cause", err)
	}
	first(nil)
	if err := wait(t, answered, "the first query ends"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := wait(t, ended, "the owner's query ends"); !errors.Is(err, context.Canceled) {
		t.Errorf("at the owner: got %v", err)
	}
}

func TestConcurrentQueriesAreLimited(t *testing.T) {
	const all, most = 12, 3
	var running, peak atomic.Int32
	full, open3 := make(chan struct{}), make(chan struct{})
	l := defaultLimits
	l.queries = most
	_, c := open(t, readerFunc(func(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
		}
		if n == most {
			select {
			case full <- struct{}{}:
			case <-open3:
			}
		}
		<-open3
		return echo(ctx, sql, args)
	}), l)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			got, err := query(t, c, i)
			if err != nil || got[0][0] != int64(i) {
				t.Errorf("query %d: got %v, %v", i, got, err)
			}
		})
	}
	wait(t, full, "enough queries run")
	close(open3)
	wg.Wait()
	if peak.Load() != most {
		t.Errorf("%d queries ran at once, want %d", peak.Load(), most)
	}
}

func TestManyConcurrentClients(t *testing.T) {
	_, c := open(t, readerFunc(func(_ context.Context, _ string, args []any) (*provdb.Rows, error) {
		return rowsOf(make([]provdb.Column, 1), func(yield func([]any, error) bool) {
			for range 1000 {
				if !yield(args, nil) {
					return
				}
			}
		}), nil
	}), defaultLimits)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			got, err := query(t, c, i)
			if err != nil || len(got) != 1000 {
				t.Errorf("query %d: got %d rows, %v", i, len(got), err)
			}
			for _, row := range got {
				if row[0] != int64(i) {
					t.Fatalf("query %d got %v", i, row)
				}
			}
		})
	}
	wg.Wait()
}

// TestTruncatedAnswerIsAnError cuts an answer after each of its bytes.
func TestTruncatedAnswerIsAnError(t *testing.T) {
	want := [][]any{{int64(1), "one"}, {int64(2), "two"}}
	s, announce := start(t, readerFunc(func(context.Context, string, []any) (*provdb.Rows, error) {
		return rowsOf(make([]provdb.Column, 2), func(yield func([]any, error) bool) {
			_ = yield(want[0], nil) && yield(want[1], nil)
		}), nil
	}), defaultLimits)
	answer := rawAnswer(t, s, announce)

	var cut atomic.Int64
	cut.Store(int64(len(answer)))
	fake := startImpostor(t, func(conn net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(conn, answer[:cut.Load()])
	})
	owner, err := readAnnouncement(fake)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{announce: fake, owner: owner, ctx: t.Context()} // Open would reject the answer to its ping
	c.http.Transport = &http.Transport{DisableKeepAlives: true}
	for n := range len(answer) + 1 {
		cut.Store(int64(n))
		got, err := query(t, c)
		switch {
		case n == len(answer) && (err != nil || fmt.Sprint(got) != fmt.Sprint(want)):
			t.Errorf("the whole answer: got %v, %v", got, err)
		case err == nil && fmt.Sprint(got) != fmt.Sprint(want):
			t.Errorf("after %q: got %v", answer[:n], got)
		case errors.Is(err, ErrGone):
			t.Errorf("after %q: %v, but the owner is there", answer[:n], err)
		}
	}
}

// rawAnswer returns the bytes that a server sends for a query.
func rawAnswer(t *testing.T, s *Server, announce string) string {
	t.Helper()
	a, err := readAnnouncement(announce)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", a.Address)
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(wire.Request{}); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", s.own.Token,
		body.Len(), &body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err = errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestPanickingOwnerIsAnError(t *testing.T) {
	_, c := open(t, readerFunc(func(context.Context, string, []any) (*provdb.Rows, error) {
		return rowsOf(make([]provdb.Column, 1), func(yield func([]any, error) bool) {
			_ = yield([]any{nil}, nil)
			panic(http.ErrAbortHandler) // which net/http does not log
		}), nil
	}), defaultLimits)
	got, err := query(t, c)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, %v, want io.ErrUnexpectedEOF", got, err)
	}
}

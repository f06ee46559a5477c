package remotestore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/wire"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestAnnouncementIsPrivate(t *testing.T) {
	s, announce := start(t, readerFunc(echo), defaultLimits)
	info, err := os.Stat(announce)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(announce)
	if err != nil {
		t.Fatal(err)
	}
	var a map[string]any
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if a["protocol"] != float64(Protocol) || a["pid"] != float64(os.Getpid()) || a["host"] != host ||
		len(a["token"].(string)) != len(rand.Text()) ||
		!strings.HasPrefix(a["address"].(string), "127.0.0.1:") {
		t.Errorf("got %s", text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(announce))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	_, other := start(t, readerFunc(echo), defaultLimits)
	if b, err := readAnnouncement(other); err != nil || b.Token == a["token"] {
		t.Errorf("two owners have the token %v (%v)", b.Token, err)
	}
}

func TestCloseKeepsAnnouncementOfLaterOwner(t *testing.T) {
	first, announce := start(t, readerFunc(hangingQuery), defaultLimits)
	c, err := Open(t.Context(), announce)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Serve(t.Context(), readerFunc(echo), announce)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := query(t, c); !errors.Is(err, ErrGone) {
		t.Errorf("the first owner: got %v, want ErrGone", err)
	}
	d, err := Open(t.Context(), announce)
	if err != nil {
		t.Fatal("the second owner:", err)
	}
	if got, err := query(t, d, "x"); err != nil || got[0][0] != "x" {
		t.Errorf("got %v, %v", got, err)
	}
	if err := errors.Join(second.Close(), second.Close(), c.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	if _, err := query(t, d); !errors.Is(err, provdb.ErrClosed) {
		t.Errorf("a closed client: got %v", err)
	}
}

func TestOpenExplainsFailures(t *testing.T) {
	f := func(path string, sentinel error, words ...string) {
		t.Helper()
		c, err := Open(t.Context(), path)
		if err == nil {
			_ = c.Close()
		}
		if sentinel != nil && !errors.Is(err, sentinel) {
			t.Errorf("got %v, want %v", err, sentinel)
		}
		wantText(t, err, append(words, filepath.Base(path))...)
	}
	announced := func(change func(a *announcement)) string {
		_, path := start(t, readerFunc(echo), defaultLimits)
		editAnnouncement(t, path, change)
		t.Cleanup(func() { _ = os.Remove(path) })
		return path
	}
	dead := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}

	f(filepath.Join(t.TempDir(), "none.json"), provdb.ErrNotFound)
	f(writeFile(t, ""), nil, "invalid announcement")
	f(writeFile(t, "{}"), nil, "invalid announcement")
	f(writeFile(t, strings.Repeat("[", 1<<20)), nil, "invalid announcement")
	f(writeFile(t, `{"protocol":2,"address":"127.0.0.1:9","host":"x","pid":1}`), nil, "invalid announcement", "missing")
	f(writeFile(t, `{"protocol":2,"address":"192.0.2.1:9","token":"x","host":"x","pid":1}`), nil, "invalid announcement", "192.0.2.1")
	f(writeFile(t, `{"protocol":3}`), fileformat.ErrNewer, "format 3")
	f(writeFile(t, `{"protocol":1}`), ErrGone, "protocol 1")
	f(announced(func(a *announcement) { a.Host = "elsewhere" }), provdb.ErrInUse, "on host elsewhere", "query there")
	f(announced(func(a *announcement) { a.Token = "wrong" }), os.ErrPermission, "rejects the token", "remove this file")
	f(announced(func(a *announcement) { a.Token, a.PID = "of another", dead.Process.Pid }), ErrGone)
	f(announced(func(a *announcement) { a.Address = unused(t) }), ErrGone)
}

// unused returns an address without a listener.
func unused(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func TestOpenRejectsOtherPrograms(t *testing.T) {
	f := func(says string, words ...string) {
		t.Helper()
		announce := startImpostor(t, func(conn net.Conn) {
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
			}
			_, _ = io.WriteString(conn, says)
		})
		_, err := Open(t.Context(), announce)
		wantText(t, err, words...)
		if errors.Is(err, ErrGone) {
			t.Errorf("%q: got %v, but the process exists", says, err)
		}
	}
	f("", "EOF")
	f("220 mail.example.org\r\n", "malformed HTTP")
	f("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<html>hello", "200 OK", "hello")
	f("HTTP/1.0 307 Moved\r\nLocation: http://127.0.0.1:1/query\r\n\r\n", "307")
	f("HTTP/1.0 200 OK\r\nContent-Type: application/x-gob\r\n\r\n{\"end\":true}\n", "incomplete answer")
}

func TestServerRejectsInvalidRequests(t *testing.T) {
	s, announce := start(t, readerFunc(echo), defaultLimits)
	a, err := readAnnouncement(announce)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	f := func(method, path, token, body string, want int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.Address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return
		}
		text, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != want {
			t.Errorf("%s %s with %q: got %s %q (%v), want %d", method, path, token, resp.Status, text, err, want)
		}
	}
	right := "Bearer " + s.own.Token
	body := func(q wire.Request) string {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(q); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	f("POST", "/query", right, body(wire.Request{Args: []any{int64(1)}}), http.StatusOK)
	f("POST", "/query", right, body(wire.Request{Ping: true}), http.StatusOK)
	f("POST", "/query", "", `{}`, http.StatusUnauthorized)
	f("POST", "/query", "Bearer ", `{}`, http.StatusUnauthorized)
	f("POST", "/query", right+"0", `{}`, http.StatusUnauthorized)
	f("POST", "/query", s.own.Token, `{}`, http.StatusUnauthorized)
	f("GET", "/", "", "", http.StatusUnauthorized)
	f("GET", "/query", right, "", http.StatusMethodNotAllowed)
	f("PUT", "/query", right, `{}`, http.StatusMethodNotAllowed)
	f("POST", "/", right, `{}`, http.StatusNotFound)
	f("POST", "/query/", right, `{}`, http.StatusNotFound)
	f("POST", "/query", right, "", http.StatusBadRequest)
	f("POST", "/query", right, `{"sql":1}`, http.StatusBadRequest)
	f("POST", "/query", right, body(wire.Request{Args: []any{[]byte("x")}}), http.StatusBadRequest)
	f("POST", "/query", right, body(wire.Request{SQL: strings.Repeat("x", maxRequest)}), http.StatusRequestEntityTooLarge)
}

func TestQueryMayOutliveReceiveTimeout(t *testing.T) {
	l := defaultLimits
	l.receive = time.Second // a busy machine needs some time to receive it
	_, c := open(t, readerFunc(func(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(l.receive + l.receive/2):
			return echo(ctx, sql, args)
		}
	}), l)
	if got, err := query(t, c, "x"); err != nil || got[0][0] != "x" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestServerDropsStalledClient(t *testing.T) {
	ended, row := make(chan struct{}), []any{strings.Repeat("x", 100<<10)}
	l := defaultLimits
	l.stall = time.Second // a busy machine needs some time to send the first rows
	_, c := open(t, readerFunc(func(context.Context, string, []any) (*provdb.Rows, error) {
		return rowsOf(make([]provdb.Column, 1), func(yield func([]any, error) bool) {
			defer close(ended)
			for yield(row, nil) {
			}
		}), nil
	}), l)
	rows, err := c.Query(t.Context(), "SELECT")
	if err != nil {
		t.Fatal(err)
	}
	wait(t, ended, "the owner gives up")
	if _, err := rows.Collect(); err == nil {
		t.Error("the answer was cut without an error")
	}
}

func TestCloseWaitsForAnswers(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	l := defaultLimits
	l.grace = patience
	s, c := open(t, readerFunc(func(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
		close(begun)
		<-proceed
		return echo(ctx, sql, args)
	}), l)
	answered, closed := make(chan error), make(chan error)
	go func() {
		_, err := query(t, c)
		answered <- err
	}()
	wait(t, begun, "the query runs")
	go func() { closed <- s.Close() }()
	wait(t, s.closing, "the server closes")
	close(proceed)
	if err := errors.Join(wait(t, answered, "the query ends"), wait(t, closed, "the server is closed")); err != nil {
		t.Error(err)
	}
}

func TestCloseCancelsQueries(t *testing.T) {
	l := defaultLimits
	l.queries, l.grace = 1, time.Millisecond
	begun := make(chan struct{}, 2)
	s, c := open(t, readerFunc(func(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
		begun <- struct{}{}
		return hangingQuery(ctx, sql, args)
	}), l)
	answered := make(chan error)
	for range 2 { // the other waits for the one
		go func() {
			_, err := query(t, c)
			answered <- err
		}()
	}
	wait(t, begun, "a query runs")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		// The one that waits may not have been accepted yet.
		if err := wait(t, answered, "queries end"); !errors.Is(err, provdb.ErrClosed) && !errors.Is(err, ErrGone) {
			t.Errorf("got %v, want provdb.ErrClosed or ErrGone", err)
		}
	}
	if _, err := query(t, c); !errors.Is(err, ErrGone) {
		t.Errorf("afterwards: got %v, want ErrGone", err)
	}
}

func TestCloseDoesNotWaitForIdleClients(t *testing.T) {
	l := defaultLimits
	l.grace = time.Millisecond
	ended := make(chan struct{})
	s, c := open(t, counting(1<<40, ended), l)
	rows, err := c.Query(t.Context(), "SELECT") // unread
	if err != nil {
		t.Fatal(err)
	}
	idle, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.own.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wait(t, ended, "the owner's query ends")
	if err := errors.Join(rows.Close(), idle.Close()); err != nil {
		t.Error(err)
	}
}

func TestCloseReportsHangingStore(t *testing.T) {
	tracetest.SkipShort(t, "starts a server")
	l := defaultLimits
	l.grace, l.abort = time.Millisecond, time.Millisecond
	begun, proceed := make(chan struct{}), make(chan struct{})
	noLeaks(t)
	s, err := serve(t.Context(), readerFunc(func(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
		close(begun)
		<-proceed
		return echo(ctx, sql, args)
	}), filepath.Join(t.TempDir(), "owner.json"), l)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), s.announce)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error)
	go func() {
		_, err := query(t, c)
		answered <- err
	}()
	wait(t, begun, "the query runs")
	wantText(t, s.Close(), "1 queries of other processes do not end")
	if err := wait(t, answered, "the client gets the error"); err == nil {
		t.Error("the query succeeded")
	}
	close(proceed)
}

func TestHangingQueriesAreCountedAfterDeadline(t *testing.T) {
	for range 20 { // select chooses among what is ready at random
		s := &Server{slots: make(chan struct{}, 8)}
		s.slots <- struct{}{}
		wantText(t, s.blockQueries(t.Context(), -1), "1 queries of other processes do not end")
	}
}

func TestQueriesEndWithServerContext(t *testing.T) {
	tracetest.SkipShort(t, "starts a server")
	noLeaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{}, 2)
	s, err := Serve(ctx, readerFunc(func(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
		begun <- struct{}{}
		return hangingQuery(ctx, sql, args)
	}), filepath.Join(t.TempDir(), "owner.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), s.announce)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error)
	go func() {
		_, err := query(t, c)
		answered <- err
	}()
	wait(t, begun, "the query runs")
	cancel()
	if err := wait(t, answered, "the query ends"); !errors.Is(err, provdb.ErrClosed) {
		t.Errorf("got %v, want provdb.ErrClosed", err)
	}
	if _, err := query(t, c); !errors.Is(err, provdb.ErrClosed) {
		t.Errorf("afterwards: got %v, want provdb.ErrClosed", err)
	}
	if err := errors.Join(c.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if _, err := Serve(t.Context(), readerFunc(echo), filepath.Join(t.TempDir(), "no", "such", "directory")); err == nil {
		t.Error("an announcement was written to nowhere")
	}
}

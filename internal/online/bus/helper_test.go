package bus

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// patience bounds how long a test waits for an event, also on a busy machine.
const patience = 2 * time.Minute

// startServer runs a server until the test ends.
func startServer(tb testing.TB, opt ServerOptions) *Server {
	tb.Helper()
	tracetest.SkipShort(tb, "starts a server")
	if opt.Dir == "" {
		opt.Dir = tb.TempDir()
	}
	s, err := StartServer(tb.Context(), opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error("close the server:", err)
		}
	})
	return s
}

// connect returns a client, connected or not.
func connect(tb testing.TB, opt Options) *Conn {
	tb.Helper()
	opt.Name = tb.Name()
	c, err := Connect(opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// join connects to a running server.
func join(tb testing.TB, s *Server) *Conn {
	tb.Helper()
	c := connect(tb, Options{URL: s.URL()})
	wantConnected(tb, c)
	return c
}

func wantConnected(tb testing.TB, c *Conn) {
	tb.Helper()
	if err := c.Wait(soon(tb)); err != nil {
		tb.Fatal("not connected:", err)
	}
}

// soon returns a context that ends after patience.
func soon(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// eventually waits until f returns true.
func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !f(); <-tick.C {
		if time.Now().After(end) {
			tb.Fatal("timed out waiting until " + what)
		}
	}
}

// noLeaks fails a test that leaves goroutines behind. Call it first.
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

// bytesOf returns random bytes that depend on the seed only.
func bytesOf(seed uint64, size int) []byte {
	var key [32]byte
	key[0] = byte(seed)
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(b) // never fails
	return b
}

// largeText returns compressible data.
func largeText(size int) []byte { return bytes.Repeat([]byte("text "), size/5+1)[:size] }

// openStream opens the stream S of the subjects s.>.
func openStream(tb testing.TB, c *Conn, opt StreamOptions) *Stream {
	tb.Helper()
	opt.Name, opt.Subjects = "S", []string{"s.>"}
	s, err := c.Stream(soon(tb), opt)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func consume(tb testing.TB, s *Stream) *Consumer {
	tb.Helper()
	c, err := s.Consumer(soon(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func publish(tb testing.TB, s *Stream, id string, data []byte) {
	tb.Helper()
	if err := s.Publish(soon(tb), "s.x", id, data); err != nil {
		tb.Fatal(err)
	}
}

// publishSome publishes small messages with the ids 0, 1, 2, ….
func publishSome(tb testing.TB, s *Stream, n int) {
	tb.Helper()
	for i := range n {
		publish(tb, s, fmt.Sprint(i), fmt.Append(nil, "data ", i))
	}
}

// fetch waits for a number of messages.
func fetch(tb testing.TB, c *Consumer, n int) []Message {
	tb.Helper()
	got, err := c.Fetch(tb.Context(), n, patience)
	if err != nil || len(got) != n {
		tb.Fatalf("got %d messages and %v, want %d", len(got), err, n)
	}
	return got
}

// wantNothing fails if a message arrives within 50 ms.
func wantNothing(tb testing.TB, c *Consumer) {
	tb.Helper()
	if got, err := c.Fetch(tb.Context(), 1, 50*time.Millisecond); err != nil || len(got) > 0 {
		tb.Fatalf("got %s and %v, want nothing", ids(got), err)
	}
}

func ack(tb testing.TB, c *Consumer, m Message) {
	tb.Helper()
	if err := c.Ack(soon(tb), m); err != nil {
		tb.Fatal(err)
	}
}

// ids returns the ids of messages, separated by spaces.
func ids(all []Message) string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.ID
	}
	return strings.Join(names, " ")
}

func wantIDs(tb testing.TB, got []Message, want string) {
	tb.Helper()
	if ids(got) != want {
		tb.Errorf("got the messages %q, want %q", ids(got), want)
	}
}

// wantPending waits until a stream holds some messages: the server stores those that nobody acknowledges a little later.
func wantPending(tb testing.TB, s *Stream, want uint64) {
	tb.Helper()
	ctx := soon(tb)
	for {
		n, _, err := s.Pending(ctx)
		if err == nil && n == want {
			return
		}
		if wait.Sleep(ctx, 10*time.Millisecond) != nil {
			tb.Errorf("the stream holds %d messages, error %v; want %d", n, err, want)
			return
		}
	}
}

func wantText(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("no error, want %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			tb.Errorf("error %q does not contain %q", err, p)
		}
	}
}

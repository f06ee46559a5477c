package bus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// startServer runs a server until the test ends.
func startServer(tb testing.TB, opt ServerOptions) *Server {
	tb.Helper()
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

// connect returns a client, which may not be connected.
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

// join is connect to a server that is there.
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

// soon is a context that ends when a test has waited long enough.
func soon(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// eventually waits until what is so.
func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !f(); <-tick.C {
		if time.Now().After(end) {
			tb.Fatal("waited in vain until " + what)
		}
	}
}

// noLeaks fails a test after which more goroutines run than before. It is called
// before anything is started.
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

// bytesOf are always the same for a seed.
func bytesOf(seed uint64, size int) []byte {
	var key [32]byte
	key[0] = byte(seed)
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(b) // never fails
	return b
}

// openStream makes the stream S of the subjects s.>.
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
	c, err := s.Consumer(soon(tb), "reader")
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

// publishSome publishes small messages with the ids from 0 on.
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

// wantNothing fails when a message comes soon.
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

// ids are those of messages, with spaces between.
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

func wantPending(tb testing.TB, s *Stream, want uint64) {
	tb.Helper()
	if n, _, err := s.Pending(soon(tb)); err != nil || n != want {
		tb.Errorf("the stream holds %d messages and says %v, want %d", n, err, want)
	}
}

func wantText(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("no error, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			tb.Errorf("got the error %q, want %q in it", err, p)
		}
	}
}

package bus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// vanish closes a connection as if its process had died.
func vanish(c *Conn) { c.nc.Close() }

func TestTakeoverDeliversUnacknowledged(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	publishSome(t, s, 6)
	dead := join(t, srv)
	first := consume(t, openStream(t, dead, StreamOptions{}))
	got := fetch(t, first, 5)
	wantIDs(t, got, "0 1 2 3 4")
	ack(t, first, got[1])
	vanish(dead)
	wantIDs(t, fetch(t, consume(t, s), 4), "2 3 4 5")
}

func TestAckCoversEarlierMessages(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{})
	publishSome(t, s, 5)
	c := consume(t, s)
	got := fetch(t, c, 4)
	wantPending(t, s, 5)
	ack(t, c, got[2])
	wantPending(t, s, 2)
	ack(t, c, got[0]) // again
	wantPending(t, s, 2)
	c.Close()
	c.Close()
	if _, err := c.Fetch(t.Context(), 1, time.Second); !errors.Is(err, ErrClosed) {
		t.Errorf("fetch after Close: %v, want ErrClosed", err)
	}
	wantIDs(t, fetch(t, consume(t, s), 2), "3 4")
}

func TestReplacedConsumerGetsErrTaken(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	publishSome(t, s, 2)
	first := consume(t, openStream(t, join(t, srv), StreamOptions{}))
	got := fetch(t, first, 2)
	second := consume(t, s)
	if _, err := first.Fetch(soon(t), 1, patience); !errors.Is(err, ErrTaken) {
		t.Errorf("fetched: %v, want ErrTaken", err)
	}
	if err := first.Ack(soon(t), got[1]); !errors.Is(err, ErrTaken) {
		t.Errorf("acknowledged: %v, want ErrTaken", err)
	}
	wantIDs(t, fetch(t, second, 2), "0 1")
}

const serverDir = "BUS_TEST_SERVER_DIR"

// TestServerProcess is the server of serverProcess.
func TestServerProcess(t *testing.T) {
	dir := os.Getenv(serverDir)
	if dir == "" {
		t.Skip("is not a test by itself")
	}
	fmt.Println("URL", startServer(t, ServerOptions{Dir: dir}).URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

// serverProcess runs a server in its own process until the test ends, and returns its URL. Races in the code of
// the server do not count there.
func serverProcess(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestServerProcess$")
	cmd.Env = append(os.Environ(), serverDir+"="+t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = in.Close() // it ends
		for lines.Scan() {
		}
		_ = cmd.Wait() // it fails after a race
	})
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "URL "); ok {
			return url
		}
	}
	t.Fatal("the server has not started")
	return ""
}

func TestConcurrentTakeoversLeaveOneOwner(t *testing.T) {
	t.Parallel()
	tracetest.SkipShort(t, "starts a server")
	conn := connect(t, Options{URL: serverProcess(t)})
	wantConnected(t, conn)
	s := openStream(t, conn, StreamOptions{})
	const n = 5
	type attempt struct {
		c   *Consumer
		err error
	}
	made := make(chan attempt, n)
	for range n {
		go func() {
			c, err := s.Consumer(soon(t))
			made <- attempt{c, err}
		}()
	}
	var all []*Consumer
	for range n {
		switch a := <-made; {
		case a.err == nil:
			all = append(all, a.c)
			t.Cleanup(a.c.Close)
		case !errors.Is(a.err, ErrTaken):
			t.Error(a.err)
		}
	}
	publishSome(t, s, 1)
	owners := 0
	for _, c := range all {
		if got, err := c.Fetch(soon(t), 1, patience); len(got) == 1 {
			owners++
		} else if !errors.Is(err, ErrTaken) {
			t.Errorf("got no message and error %v, want ErrTaken", err)
		}
	}
	if owners != 1 {
		t.Errorf("%d of %d consumers got the message", owners, len(all))
	}
}

func TestConsumerSkipsForgedServerReports(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	c := consume(t, s)
	for i, status := range []string{"503", "409", "408", "100"} {
		forged := &nats.Msg{Subject: "s.x", Header: nats.Header{"Status": {status}, "Description": {"Consumer Deleted"}}}
		if _, err := s.conn.js.PublishMsg(soon(t), forged); err != nil {
			t.Fatal(err)
		}
		publish(t, s, fmt.Sprint(i), nil)
	}
	got := fetchAll(t, c, 4)
	wantIDs(t, got, "0 1 2 3")
	ack(t, c, got[3])
	wantPending(t, s, 0)
}

func TestFetchBoundsDecompressedBytes(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{})
	large := make([]byte, batchBytes)
	for _, id := range []string{"a", "b", "c"} {
		publish(t, s, id, large)
	}
	c := consume(t, s)
	for _, id := range []string{"a", "b", "c"} {
		got, err := c.Fetch(t.Context(), 3, patience)
		if err != nil || ids(got) != id || len(got[0].Data) != len(large) {
			t.Fatalf("got messages %q and error %v, want %s", ids(got), err, id)
		}
		ack(t, c, got[0])
	}
	if c.made != 1 {
		t.Errorf("made %d consumers at the server, want 1", c.made)
	}
	wantPending(t, s, 0)
}

func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{})
	c := consume(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Fetch(ctx, 1, patience); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	publishSome(t, s, 1)
	wantIDs(t, fetch(t, c, 1), "0")
}

func TestAckSucceedsAfterStreamIsDeleted(t *testing.T) {
	t.Parallel()
	c := join(t, startServer(t, ServerOptions{}))
	s := openStream(t, c, StreamOptions{})
	reader := consume(t, s)
	publishSome(t, s, 3)
	got := fetch(t, reader, 3)
	if err := c.DeleteStream(soon(t), "S"); err != nil {
		t.Fatal(err)
	}
	ack(t, reader, got[2])
}

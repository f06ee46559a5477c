package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// The test program is its own child: with Flag its first argument selects what it does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[len(os.Args)-1] == "--"+Flag {
		os.Exit(runChild(os.Args[1]))
	}
	os.Exit(m.Run())
}

func runChild(what string) int {
	ctx, lines := OnLeash(context.Background(), os.Stdin)
	fmt.Println("here")
	switch what {
	case "fail":
		return 3
	case "listen":
		for line := range lines {
			fmt.Println("heard", line)
		}
	}
	<-ctx.Done()
	fmt.Println("released:", errors.Is(context.Cause(ctx), ErrReleased))
	return 0
}

// awaitLog waits until a log holds a text.
func awaitLog(t *testing.T, path, text string) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), text) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s holds %q, want %q", path, b, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func testGroup(t *testing.T) *group {
	t.Helper()
	g, err := newGroup(t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.stop)
	return g
}

func startChild(t *testing.T, g *group, what string) *child {
	t.Helper()
	tracetest.SkipShort(t, "starts processes")
	c, err := g.start(t.Context(), what, "the child", what)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChildIgnoresSignalsAndEndsOnRelease(t *testing.T) {
	g := testGroup(t)
	c := startChild(t, g, "wait")
	awaitLog(t, c.log, "here")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(c.pid(), s); err != nil {
			t.Fatal(err)
		}
	}
	if !g.has(c.pid()) || g.has(os.Getpid()) {
		t.Error("has reports wrong processes")
	}
	c.release()
	<-c.ended
	awaitLog(t, c.log, "released: true")
	if c.err != nil {
		t.Error(c.err)
	}
}

func TestChildReceivesLines(t *testing.T) {
	c := startChild(t, testGroup(t), "listen")
	if err := c.send("something\nin one line"); err != nil {
		t.Fatal(err)
	}
	awaitLog(t, c.log, "heard something in one line\n")
}

func TestFailureDescribesTheEnd(t *testing.T) {
	g := testGroup(t)
	c := startChild(t, g, "fail")
	<-c.ended
	if got := c.failure(); !strings.HasPrefix(got, "the child (chimbuko fail, process ") || !strings.HasSuffix(got, "ended: exit status 3") {
		t.Errorf("got %q", got)
	}
	killed := startChild(t, g, "wait")
	awaitLog(t, killed.log, "here")
	if err := syscall.Kill(killed.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-killed.ended
	if got := killed.failure(); !strings.HasSuffix(got, "ended: killed (signal: killed)") {
		t.Errorf("got %q", got)
	}
}

func TestChildEndsWithItsParent(t *testing.T) {
	tracetest.SkipShort(t, "starts a process")
	out, in := io.Pipe()
	c := exec.Command(os.Args[0], "wait", "--"+Flag)
	leash, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = in
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	_ = leash.Close() // as the end of a process does
	if lines.Scan(); lines.Text() != "released: true" {
		t.Errorf("got %q", lines.Text())
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

func TestStartFailsWhenTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := testGroup(t).start(ctx, "x", "x", "wait"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

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
)

// The test program is its own child: with the flag of the leash it does what its first
// argument says.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[len(os.Args)-1] == "--"+Flag {
		os.Exit(child(os.Args[1]))
	}
	os.Exit(m.Run())
}

func child(what string) int {
	ctx, leash := Held(context.Background(), os.Stdin)
	fmt.Println("here")
	switch what {
	case "fail":
		return 3
	case "listen":
		for line := range leash.Lines() {
			fmt.Println("heard", line)
		}
	}
	<-ctx.Done()
	fmt.Println("let go:", errors.Is(context.Cause(ctx), ErrLetGo))
	return 0
}

// says waits until a log holds a text.
func says(t *testing.T, path, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), text) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s does not say %q but %q", path, text, b)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func group(t *testing.T, failed func(*Failure)) *Group {
	t.Helper()
	g, err := New(t.TempDir(), os.Environ(), failed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	return g
}

func start(t *testing.T, g *Group, what string) *Child {
	t.Helper()
	c, err := g.Start(t.Context(), what, "a child that will "+what, what)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAChildHeedsNoSignalsAndEndsWhenItIsLetGo(t *testing.T) {
	g := group(t, func(f *Failure) { t.Error(f) })
	c := start(t, g, "wait")
	says(t, c.Log, "here")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(c.PID(), s); err != nil {
			t.Fatal(err)
		}
	}
	if !g.Has(c.PID()) || g.Has(os.Getpid()) {
		t.Error("the group does not know its own")
	}
	c.LetGo()
	<-c.Ended()
	says(t, c.Log, "let go: true")
	if c.Err() != nil {
		t.Error(c.Err())
	}
}

func TestAChildHearsWhatItIsTold(t *testing.T) {
	g := group(t, nil)
	c := start(t, g, "listen")
	if err := c.Tell("something\nin one line"); err != nil {
		t.Fatal(err)
	}
	says(t, c.Log, "heard something in one line\n")
}

func TestAChildThatFailsIsToldBeforeItsEnd(t *testing.T) {
	failures := make(chan string, 2)
	g := group(t, func(f *Failure) { failures <- f.Error() })
	c := start(t, g, "fail")
	<-c.Ended()
	if got := <-failures; !strings.HasPrefix(got, "a child that will fail (chimbuko fail, process ") || !strings.HasSuffix(got, "ended: exit status 3") {
		t.Errorf("it is told as %q", got)
	}
	killed := start(t, g, "wait")
	says(t, killed.Log, "here")
	if err := syscall.Kill(killed.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-killed.Ended()
	if got := <-failures; !strings.HasSuffix(got, "ended: killed (signal: killed)") {
		t.Errorf("it is told as %q", got)
	}
}

func TestChildrenEndWithWhoHoldsThemHoweverThatEnds(t *testing.T) {
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
	if lines.Scan(); lines.Text() != "let go: true" {
		t.Errorf("it said %q", lines.Text())
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

func TestNothingIsStartedAnyMoreWhenAllIsToEnd(t *testing.T) {
	g := group(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := g.Start(ctx, "x", "x", "wait"); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}

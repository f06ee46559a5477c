package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// program is the path of chimbuko, built for these tests.
var program string

// The programs that these tests start do the work, without the race detector.
func TestMain(m *testing.M) { os.Exit(tracetest.MainWithoutRace(system{m})) }

// system runs the tests of this package.
type system struct{ m *testing.M }

func (s system) Run() int {
	if *isStarter {
		return runStarter(flag.Arg(0), flag.Args()[1:]...)
	}
	if *held > 0 {
		return runHeld(*held, flag.Arg(0), flag.Arg(1))
	}
	if *fabricPeer != "" {
		if err := runPeer(*fabricPeer); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if testing.Short() {
		fmt.Println("-short: end-to-end tests need subprocesses")
		return 0
	}
	dir, err := os.MkdirTemp("", "chimbuko-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	// A test in the background of a script ignores these signals, and so would the programs that it starts.
	for _, ignored := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(ignored) {
			signal.Notify(make(chan os.Signal, 1), ignored)
		}
	}
	program = filepath.Join(dir, "chimbuko")
	build := exec.Command("go", "build", tracetest.LinkFlags(), "-o", program, "github.com/chimbuko/chimbuko/cmd/chimbuko")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	if err := flag.Set("test.parallel", "4"); err != nil { // the default of the flag: tests mostly wait
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return pgtest.Main(s.m)
}

// patience is how long anything may take that a test waits for, and lifetime how
// long any process may live.
const (
	patience = 90 * time.Second
	lifetime = 240 * time.Second
)

// process is a chimbuko that was started. Its output can be read while it runs.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	stdout output
	stderr output
	ended  chan struct{}
}

// start starts chimbuko, which ends with the test at the latest.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	return startAs(t, args[0], nil, append([]string{program}, args...))
}

// startWith starts chimbuko with something on its standard input.
func startWith(t testing.TB, input io.Reader, args ...string) *process {
	t.Helper()
	return startAs(t, args[0], input, append([]string{program}, args...))
}

// startAs starts a command as start does, under a name.
func startAs(t testing.TB, name string, input io.Reader, command []string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), lifetime)
	p := &process{t: t, name: name, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout.create(t), p.stderr.create(t)
	p.cmd.Stdin = input
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that processes which it starts end with it
	p.cmd.Cancel = p.end
	if err := p.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // tests look at the state
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		_ = p.end() // processes that it started and left
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(p.cmd.Args[1:], " "), tail(p.stderr.String()))
		}
	})
	return p
}

// end kills the process and all that it started.
func (p *process) end() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// kill ends the process alone, as kill -9 does. It fails the test if the process
// ended by itself before.
func (p *process) kill() {
	p.t.Helper()
	if !p.tryKill() {
		p.t.Fatalf("%s ended before it was killed: exit code %d\n%s", p.name, p.wait(), tail(p.stderr.String()))
	}
}

// tryKill ends the process as kill does and reports whether that ended it, or false
// if it ended by itself before.
func (p *process) tryKill() bool {
	p.t.Helper()
	p.trySignal(syscall.SIGKILL)
	return p.wait() == -1
}

// signal sends a signal to the process, which must be running.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if !p.trySignal(s) {
		p.t.Fatalf("%s: %v: it ended before", p.name, s)
	}
}

// trySignal sends a signal to the process and reports whether it was there to receive
// it. Unlike syscall.Kill, Process.Signal never reaches another process that was given
// the number of one that has ended.
func (p *process) trySignal(s syscall.Signal) bool {
	p.t.Helper()
	err := p.cmd.Process.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%s: %v: %v", p.name, s, err)
	}
	return err == nil
}

// wait waits for the end of the process and returns its exit code, -1 if it was
// killed.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s did not end within %v", p.name, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// succeed waits for the end of the process, which must be a good one.
func (p *process) succeed() {
	p.t.Helper()
	if code := p.wait(); code != 0 {
		p.t.Fatalf("%s: exit code %d\n%s", strings.Join(p.cmd.Args[1:], " "), code, tail(p.stderr.String()))
	}
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// awaitLog waits until the process has written a text to its standard error.
func (p *process) awaitLog(text string) {
	p.t.Helper()
	eventually(p.t, p.name+" logs "+text, func() error {
		if strings.Contains(p.stderr.String(), text) {
			return nil
		}
		if !p.running() && !strings.Contains(p.stderr.String(), text) {
			p.t.Fatalf("%s ended without logging %q:\n%s", p.name, text, tail(p.stderr.String()))
		}
		return errors.New("not yet")
	})
}

// run runs chimbuko to its end and returns its output and exit code.
func run(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := start(t, args...)
	code = p.wait()
	return p.stdout.String(), p.stderr.String(), code
}

// must runs chimbuko, which must succeed, and returns its output.
func must(t testing.TB, args ...string) string {
	t.Helper()
	p := start(t, args...)
	p.succeed()
	return p.stdout.String()
}

// eventually waits until f returns nil.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-again.C:
		}
	}
}

// output is the output of a process so far. It is a file, so that processes which
// it started can write even when it has ended.
type output struct{ path string }

func (o *output) create(t testing.TB) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	o.path = f.Name()
	return f
}

func (o *output) String() string {
	b, err := os.ReadFile(o.path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// tail is the end of a text.
func tail(text string) string {
	const most = 4000
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}

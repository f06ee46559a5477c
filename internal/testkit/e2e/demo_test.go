package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// demoScenario is a small program of two hosts in which a function hangs now and
// then, for so long that it cannot be missed.
const demoScenario = `
name = "small"
text = "a small program for tests"
steps = 30
iterations = 20

[[program]]
name = "small"
ranks = 4
hosts = ["left", "right"]
body = ["work"]

[program.functions]
work = { time = { normal = [300, 20] }, calls = ["20 compute", "MPI_Allreduce()"] }
compute = { time = { lognormal = [400, 0.05] } }
"MPI_Allreduce()" = { kind = "collective", time = { normal = [30, 3] } }

[[trouble]]
name = "hanging"
kind = "burst"
ranks = [3]
functions = ["compute"]
from = 1.5
count = 5
value = { uniform = [50_000, 90_000] }
`

// never is a trouble that begins when the program has long ended.
const never = `
[[trouble]]
name = "never"
kind = "burst"
ranks = [0]
functions = ["compute"]
from = 3000
count = 5
value = { fixed = 50_000 }
`

// demonstration is a demo with its own directory for temporary files, which identifies
// its processes.
type demonstration struct {
	*process
	temporary string
}

// demonstrate starts a demo of a scenario.
func demonstrate(t testing.TB, scenario string, args ...string) *demonstration {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "scenario.toml")
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &demonstration{temporary: filepath.Join(dir, "temporary")}
	if err := os.Mkdir(d.temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"demo", "--scenario", file}, args...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), lifetime)
	p := &process{t: t, name: "demo", ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, program, args...)
	p.cmd.Env = append(os.Environ(), "TMPDIR="+d.temporary)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout.create(t), p.stderr.create(t)
	if err := p.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	d.process = p
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // tests look at the state
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		for pid := range d.alive(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the test has failed already
		}
		if t.Failed() {
			t.Logf("%s\n%s%s", strings.Join(args, " "), tail(p.stdout.String()), tail(p.stderr.String()))
		}
	})
	return d
}

// alive are the processes of a demo but for itself, with their command lines. They
// have its directory for temporary files, or one within, in their environment.
func (d *demonstration) alive(t testing.TB) map[int]string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[int]string)
	for _, dir := range all {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		pid, _ := strconv.Atoi(filepath.Base(dir)) // it is a number
		if err != nil || !bytes.Contains(environ, []byte("TMPDIR="+d.temporary)) || pid == d.cmd.Process.Pid {
			continue // it has ended, is someone else's or not ours
		}
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err == nil {
			found[pid] = strings.ReplaceAll(string(command), "\x00", " ")
		}
	}
	return found
}

// nothingIsLeft fails if the demo, which has ended, left processes or files.
func (d *demonstration) nothingIsLeft() {
	d.t.Helper()
	if left := d.alive(d.t); len(left) > 0 {
		d.t.Errorf("processes are left: %v", left)
	}
	err := filepath.WalkDir(d.temporary, func(path string, _ fs.DirEntry, err error) error {
		if path != d.temporary {
			d.t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		d.t.Error(err)
	}
}

// endsInterrupted waits for the end of a demo that got a signal, and fails if it left anything.
func (d *demonstration) endsInterrupted() {
	d.t.Helper()
	code := d.wait()
	if early := code == -1 && d.stdout.String() == ""; code != 1 && !early { // before it handles signals
		d.t.Errorf("exit code %d", code)
	}
	if code == 1 {
		contains(d.t, d.stderr.String(), "demo interrupted; nothing is left behind")
	}
	d.nothingIsLeft()
}

// shows waits until the demo has written something that matches.
func (d *demonstration) shows(pattern string) {
	d.t.Helper()
	wanted := regexp.MustCompile(pattern)
	eventually(d.t, "the demo shows "+pattern, func() error {
		text := d.stdout.String()
		if wanted.MatchString(text) {
			return nil
		}
		if !d.running() && !wanted.MatchString(d.stdout.String()) {
			d.t.Fatalf("the demo ended and did not show %s", pattern)
		}
		return errors.New("not yet")
	})
}

// appears waits until there is a file in the directory of the demo.
func (d *demonstration) appears(path string) {
	d.t.Helper()
	eventually(d.t, path+" appears", func() error {
		found, err := filepath.Glob(filepath.Join(d.temporary, "chimbuko-demo-*", path))
		if err == nil && len(found) == 0 {
			err = errors.New("not yet")
		}
		return err
	})
}

func TestDemoFindsPlantedTrouble(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, demoScenario, "--duration", "8s")
	d.succeed()
	d.nothingIsLeft()
	text := d.stdout.String()
	contains(t, text, "Simulating 4 ranks on 2 hosts for 8s: a small program for tests", "Planted troubles", "the program has ended",
		"Found 1 of 1 planted troubles.", "--keep")
	contains(t, d.stderr.String(), "prints the address of its page")
	for _, pattern := range []string{
		`(?m)^ +\+\d+\.\d s  burst  right: 3  hanging$`,
		`(?m)^ +\+\d+\.\d s  found: hanging \([\d.]+ ms lost in compute, rank 3 on right\)$`,
		`(?m)^hanging +burst +right: 3 +5/5 +\d+/\d+ +\d+\.\d+ s$`,
	} {
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("no match for %s", pattern)
		}
	}
	if strings.ContainsRune(text, '\x1b') || visitPattern.MatchString(text+d.stderr.String()) {
		t.Error("a file gets an escape sequence or the token of the page")
	}
}

func TestDemoRunsBuiltInScenario(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := run(t, "demo", "--duration", "6s", "--ranks", "8")
	contains(t, stdout, "planted troubles.")
	if missed := strings.Contains(stderr, "troubles not found: "); missed != (code == 1) || code > 1 {
		t.Errorf("exit code %d after\n%s%s", code, stdout, stderr)
	}
}

func TestDemoFailsIfTroubleIsNotFound(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, demoScenario+never, "--duration", "6s")
	if code := d.wait(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, d.stdout.String(), "Found 1 of 2 planted troubles.")
	contains(t, d.stderr.String(), "troubles not found: never")
	d.nothingIsLeft()
}

func TestInterruptedDemoLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	f := func(when, duration string, signal syscall.Signal, wait func(d *demonstration)) {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			d := demonstrate(t, demoScenario, "--duration", duration)
			wait(d)
			d.signal(signal)
			d.endsInterrupted()
		})
	}
	const long = "10m" // it does not end before the signal
	f("at once", long, syscall.SIGINT, func(*demonstration) {})
	f("when its directory exists", long, syscall.SIGINT, func(d *demonstration) { d.appears("") })
	f("when the services start", long, syscall.SIGTERM, func(d *demonstration) { d.appears("run/logs/serve.log") })
	f("when the program starts", long, syscall.SIGINT, func(d *demonstration) { d.appears("run/tau-traces/truth.jsonl") })
	f("in the middle", long, syscall.SIGINT, func(d *demonstration) {
		d.shows(`(?m)^ +\+\d+\.\d s  [\d,]+ steps, [\d,]+ events, [\d,]+ calls, [\d,]+ anomalies$`)
	})
	f("when the terminal is closed", long, syscall.SIGHUP, func(d *demonstration) { d.appears("run/tau-traces/right/*.bp") })
}

// The demo waits for its analyzers until they continue, so that it does not end before the signal.
func TestDemoInterruptedAfterProgramLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, demoScenario, "--duration", "6s")
	d.shows("Planted troubles")
	var analyzers []int
	for pid, command := range d.alive(t) {
		if strings.Contains(command, " ad ") {
			analyzers = append(analyzers, pid)
			_ = syscall.Kill(pid, syscall.SIGSTOP) // checked below
		}
	}
	if len(analyzers) != 2 {
		t.Fatalf("want two analyzers, got the processes %v", analyzers)
	}
	d.shows("the program has ended")
	d.signal(syscall.SIGINT)
	for _, pid := range analyzers {
		_ = syscall.Kill(pid, syscall.SIGCONT) // the demo may have ended it
	}
	d.endsInterrupted()
}

func TestDemoInterruptedRepeatedlyLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, demoScenario, "--duration", "6s")
	d.shows("Planted troubles")
	d.signal(syscall.SIGINT)
	for range 2 {
		d.trySignal(syscall.SIGINT) // the one before may have ended it
	}
	d.wait()
	d.nothingIsLeft()
}

func TestProcessesEndWhenDemoIsKilled(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, demoScenario, "--duration", "60s")
	d.shows("Planted troubles")
	if all := d.alive(t); len(all) != 3 {
		t.Errorf("want services and two analyzers, got %v", slices.Collect(maps.Values(all)))
	}
	d.kill()
	eventually(t, "all of them end", func() error {
		if left := d.alive(t); len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
}

func TestDemoWithClosedOutputLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "demo", "--duration", "60s")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if err := stdout.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestKeptDemoCanBeQueriedAndReplaced(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "kept *[1]") // as a name, not a pattern
	first := demonstrate(t, demoScenario, "--duration", "5s", "--out", out)
	first.shows("Planted troubles")
	first.signal(syscall.SIGSTOP) // so that it does not end before the second
	_, stderr, code := run(t, "demo", "--out", out)
	first.signal(syscall.SIGCONT)
	if code != 1 {
		t.Errorf("a second demo in the same directory: exit code %d", code)
	}
	contains(t, stderr, "a demo is running there", "--out")
	first.succeed()
	first.nothingIsLeft()
	contains(t, must(t, "findings", filepath.Join(out, "run")), "compute")
	contains(t, must(t, "eval", filepath.Join(out, "run"), filepath.Join(out, "run", "tau-traces")), "hanging")
	for _, name := range []string{"serve", "ad-left", "ad-right"} {
		if _, err := os.Stat(filepath.Join(out, "run", "logs", name+".log")); err != nil {
			t.Error(err)
		}
	}

	second := demonstrate(t, demoScenario, "--duration", "5s", "--out", out)
	second.shows("Planted troubles")
	second.signal(syscall.SIGINT)
	second.wait()
	contains(t, second.stderr.String(), "its unfinished run is in "+filepath.Join(out, "run"))
	second.nothingIsLeft()
}

func TestDemoRejectsOtherDirectories(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	precious := filepath.Join(out, "run")
	if err := os.WriteFile(precious, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := run(t, "demo", "--out", out)
	contains(t, stderr, "not that of a demo (choose another with --out")
	if text, err := os.ReadFile(precious); code != 1 || err != nil || string(text) != "data" {
		t.Errorf("exit code %d, %q: %v", code, text, err)
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 1 {
		t.Errorf("%v: %v", entries, err)
	}
}

func TestDemoRejectsBadFlags(t *testing.T) {
	t.Parallel()
	f := func(want string, args ...string) {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, stderr, code := run(t, append([]string{"demo"}, args...)...)
			if code == 0 {
				t.Error("it succeeded")
			}
			contains(t, stderr, want)
		})
	}
	f("too short", "--duration", "1s")
	f("negative", "--ranks", "-1")
	f("host:port", "--http", "here")
	f("unknown scenario \"nothing\"", "--scenario", "nothing")
	f("no such file", "--scenario", "./nothing.toml")
	f("unexpected argument \"a\"", "a")
}

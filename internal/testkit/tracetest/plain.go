package tracetest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// plainEnv marks the processes that WithoutRace starts, and everywhereEnv keeps the race detector in all tests.
const (
	plainEnv      = "TEST_WITHOUT_RACE" // no setting of chimbuko
	everywhereEnv = "RACE_EVERYWHERE"
)

// RaceStays reports whether all work of tests is done in this process: it lacks the race detector, or
// RACE_EVERYWHERE=1 enables it in all tests. Otherwise tests may prepare data with programs without the detector.
func RaceStays() bool {
	return !Race || testing.Short() || os.Getenv(plainEnv) != "" || os.Getenv(everywhereEnv) != ""
}

// WithoutRace reports false if this program lacks the race detector. Otherwise it runs the test
// that calls it in a process without the detector, gives the test its result, and reports true:
//
//	if tracetest.WithoutRace(t) {
//		return
//	}
//
// It is for tests of results on much data, which take ten times as long with the detector. Other
// tests of the package must run the same goroutines on less data. With RACE_EVERYWHERE=1, as make
// stress and make nightly set it, these tests have the detector, too.
func WithoutRace(t *testing.T) bool {
	t.Helper()
	if RaceStays() {
		return false
	}
	bin, err := buildPlain()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, plainArgs(t)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = startDir, append(os.Environ(), plainEnv+"=1"), 10*time.Second
	out, err := cmd.CombinedOutput()
	switch text := strings.TrimSpace(string(out)); {
	case err != nil:
		t.Fatalf("without the race detector: %v\n%s", err, text)
	case strings.Contains(text, "--- SKIP: "+t.Name()+" "):
		t.Skip(text)
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Fatalf("without the race detector, the test did not run:\n%s", text)
	default:
		t.Log(text)
	}
	return true
}

// MainWithoutRace runs the tests of a package like [testing.M.Run], but in a process without the race
// detector. It is for TestMain of packages without goroutines of their own, or whose tests compare results
// of code that other packages test for races, or of other programs:
//
//	func TestMain(m *testing.M) { os.Exit(tracetest.MainWithoutRace(m)) }
func MainWithoutRace(m interface{ Run() int }) int {
	flag.Parse()
	if RaceStays() {
		return m.Run()
	}
	bin, err := buildPlain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(bin, os.Args[1:]...)
	cmd.Env = append(os.Environ(), plainEnv+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "without the race detector:", err)
		return 1
	}
	return 0
}

// startDir is the directory of the package under test.
var startDir, errStartDir = os.Getwd()

// buildPlain builds the package's tests without the race detector, beside this program, where
// go test removes them.
var buildPlain = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err := errors.Join(err, errStartDir); err != nil {
		return "", err
	}
	bin := self + ".plain"
	build := exec.Command("go", "test", "-c", "-race=false", LinkFlags(), "-o", bin, ".")
	build.Dir = startDir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c: %w: %s", err, out)
	}
	return bin, nil
})

// LinkFlags returns the flag of go build that links programs for tests fast, as LINK in the Makefile.
func LinkFlags() string {
	for _, linker := range []string{"mold", "lld", "gold"} {
		if _, err := exec.LookPath("ld." + linker); err == nil {
			return "-ldflags=-s -w -extldflags=-fuse-ld=" + linker
		}
	}
	return "-ldflags=-s -w"
}

// plainArgs selects the test, with the package's own flags and the time that is left.
func plainArgs(t *testing.T) []string {
	t.Helper()
	var pattern []string
	for name := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(name)+"$")
	}
	args := []string{"-test.v", "-test.count=1", "-test.run=" + strings.Join(pattern, "/")}
	if end, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(end).String())
	}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

package e2e

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var isStarter = flag.Bool("starter", false, "run the arguments as a program, and write its most memory in kB to file 3")

// runStarter runs a program for runMeasured, and returns its exit code.
func runStarter(name string, args ...string) int {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	fmt.Fprint(os.NewFile(3, "memory"), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	return cmd.ProcessState.ExitCode()
}

// runMeasured runs chimbuko and returns its most memory in kB. Linux counts at least the most memory of the process that starts
// another, so this needs a small one between chimbuko and the tests.
func runMeasured(stdout, stderr io.Writer, args ...string) (memory int64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer reader.Close() //nolint:errcheck // only read from
	cmd := exec.Command(self, append([]string{"-starter", "--", program}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = stdout, stderr, []*os.File{writer}
	err = cmd.Run()
	if err := writer.Close(); err != nil {
		return 0, err
	}
	if _, scanErr := fmt.Fscan(reader, &memory); scanErr != nil {
		return 0, fmt.Errorf("memory of chimbuko: %w (%w)", scanErr, err)
	}
	return memory, err
}

// runDamaged runs chimbuko on damaged input. It fails for another exit code than 0 and 1, an unclear error, a
// panic, and too much memory.
func runDamaged(args ...string) (stdout string, code int, err error) {
	var out, log strings.Builder
	memory, err := runMeasured(&out, &log, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = exit.ExitCode(), nil
	}
	switch text := log.String(); {
	case err != nil:
	case code != 0 && code != 1:
		err = fmt.Errorf("exit code %d: %s", code, tail(text))
	case strings.Contains(text, "panic:") || strings.Contains(text, "goroutine 1"):
		err = fmt.Errorf("panic: %s", tail(text))
	case code == 1 && strings.TrimSpace(text+out.String()) == "":
		err = errors.New("exit code 1 without a reason")
	case memory<<10 > damage.MaxMemory:
		err = fmt.Errorf("%d kB of memory", memory)
	}
	return out.String(), code, err
}

func TestMemoryOfTestsDoesNotCount(t *testing.T) {
	t.Parallel()
	large := make([]byte, damage.MaxMemory)
	for i := 0; i < len(large); i += os.Getpagesize() {
		large[i] = 1
	}
	memory, err := runMeasured(io.Discard, io.Discard, "version")
	runtime.KeepAlive(large)
	if err != nil || memory<<10 > damage.MaxMemory || memory == 0 {
		t.Errorf("%d kB of memory, %v", memory, err)
	}
}

// TestDamagedDatabases queries mutations of a run directory. DuckDB is a native library, so each is read in a
// process.
func TestDamagedDatabases(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	must(t, append([]string{"analyze", "--out", dir}, tracetest.Recorded(t, "ring-BP5")...)...)
	files, err := damage.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	damage.Run(t, damage.Format{Files: files, Sample: 6, Process: true, Read: func(bad damage.Files) error {
		if err := bad.Write(dir); err != nil {
			return err
		}
		_, _, err := runDamaged("query", dir, "SELECT (SELECT count(*) FROM anomalies), (SELECT count(*) FROM metadata)")
		return err
	}})
}

// TestDamagedTracesInAnalyze analyzes mutations of traces. With exit code 0, no event is lost.
func TestDamagedTracesInAnalyze(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ring-BP4", "ring-BP5"} {
		dir := t.TempDir()
		trace, out := filepath.Join(dir, "trace.bp"), filepath.Join(dir, "run")
		files, err := damage.ReadDir(tracetest.Recorded(t, name)[0])
		if err != nil {
			t.Fatal(err)
		}
		read := func(bad damage.Files) (events int64, code int, err error) {
			if err := bad.Write(trace); err != nil {
				return 0, 0, err
			}
			stdout, code, err := runDamaged("analyze", trace, "--out", out, "--force", "--json")
			var info struct {
				Totals struct {
					Events int64 `json:"events"`
				} `json:"totals"`
			}
			if err == nil && code == 0 {
				err = json.Unmarshal([]byte(stdout), &info)
			}
			return info.Totals.Events, code, err
		}
		present, code, err := read(files)
		if err != nil || code != 0 || present == 0 {
			t.Fatalf("the undamaged trace: %d events, exit code %d, %v", present, code, err)
		}
		t.Run(name, func(t *testing.T) {
			damage.Run(t, damage.Format{Files: files, Sample: 6, Process: true, Read: func(bad damage.Files) error {
				events, code, err := read(bad)
				if err == nil && code == 0 && events < present {
					err = fmt.Errorf("%d of %d events with exit code 0", events, present)
				}
				return err
			}})
		})
	}
}

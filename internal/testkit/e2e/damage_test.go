package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// runDamaged runs chimbuko on damaged input. It fails for another exit code than 0 and 1, an unclear error, a
// panic, and too much memory.
func runDamaged(args ...string) (stdout string, code int, err error) {
	cmd := exec.Command(program, args...)
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
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
	case peakOf(cmd.ProcessState)<<10 > damage.MaxMemory:
		err = fmt.Errorf("%d kB of memory", peakOf(cmd.ProcessState))
	}
	return out.String(), code, err
}

// peakOf returns the most memory of an ended process in kB, or 0 if that is not known: Linux states at least the most memory of the
// process that started it, which is this one.
func peakOf(p *os.ProcessState) int64 {
	var own syscall.Rusage
	peak := p.SysUsage().(*syscall.Rusage).Maxrss
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil || peak <= own.Maxrss {
		return 0
	}
	return peak
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
	damage.Run(t, damage.Format{Files: files, Sample: 6, Read: func(bad damage.Files) error {
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
			damage.Run(t, damage.Format{Files: files, Sample: 6, Read: func(bad damage.Files) error {
				events, code, err := read(bad)
				if err == nil && code == 0 && events < present {
					err = fmt.Errorf("%d of %d events with exit code 0", events, present)
				}
				return err
			}})
		})
	}
}

package bp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// patience is how long a test waits for another program on a busy machine.
const patience = 5 * time.Minute

// TestFollowDatasetFromBeforeCreation follows running programs. At intervals it also
// reads the existing steps without waiting.
func TestFollowDatasetFromBeforeCreation(t *testing.T) {
	f := func(scenario, engine string) {
		t.Run(scenario+"/"+engine, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			dataset := filepath.Join(t.TempDir(), "growing.bp")
			r := openFollowed(t, dataset, 0)
			w := startWriter(t, scenario, engine, dataset)

			var delivered []time.Time
			type snapshot struct {
				after int
				lines []string
			}
			var snapshots []snapshot
			got, err := readLines(ctx, t, r, func(step int) {
				delivered = append(delivered, time.Now())
				// BP3 rewrites its file with each step: it is empty at times.
				if step%8 == 5 && engine != "BP3" {
					snapshots = append(snapshots, snapshot{step, readNow(t, dataset)})
				}
			})
			if !errors.Is(err, io.EOF) || r.Active() {
				t.Errorf("following ended with %v, active %v; want io.EOF, not active", err, r.Active())
			}
			if _, err := r.Next(ctx); !errors.Is(err, io.EOF) {
				t.Errorf("the next call returned %v, want io.EOF again", err)
			}
			if err := w.wait(); err != nil {
				t.Fatalf("write.py: %v", err)
			}
			want := asStored(scenario, engine, w.readTruth(t))
			compareLines(t, got, linesOfTruth(want))
			for _, l := range snapshots {
				steps := countSteps(l.lines)
				if steps <= l.after || steps > len(want) {
					t.Errorf("without waiting, %d of %d steps were read after step %d", steps, len(want), l.after)
					continue
				}
				compareLines(t, l.lines, linesOfTruth(want[:steps]))
			}
			w.logDelays(t, delivered)
		})
	}
	f("grow", "BP4")
	f("grow", "BP5")
	f("grow", "BP3")
	f("async", "BP5")
	f("flush", "BP4")
	f("flush", "BP5")
}

// TestKilledWriterLeavesAllSteps follows a program until it is killed.
func TestKilledWriterLeavesAllSteps(t *testing.T) {
	f := func(engine string) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dataset := filepath.Join(t.TempDir(), "killed.bp")
			r := openFollowed(t, dataset, 300*time.Millisecond)
			w := startWriter(t, "killed", engine, dataset)
			got := w.followUntilIdle(t, r)
			want := asStored("killed", engine, w.readTruth(t))
			compareLines(t, got, linesOfTruth(want))
			if len(want) != 40 || !r.Active() {
				t.Errorf("after %d steps the dataset is active %v; want 40, still active", len(want), r.Active())
			}
			if _, err := r.Next(t.Context()); !errors.Is(err, bp.ErrIdle) {
				t.Errorf("the next call returned %v, want ErrIdle again", err)
			}
			expectTruth(t, dataset, engine, want, true)
		})
	}
	f("BP4")
	f("BP5")
}

// TestSecondRunAtSamePathIsDetected kills a program and starts another that writes to
// the same path. After that has written as much as the first, its index is the same
// except for the seconds in BP4. So the second run is slow here, as real runs are.
func TestSecondRunAtSamePathIsDetected(t *testing.T) {
	f := func(engine string) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			dataset := filepath.Join(t.TempDir(), "used again.bp")
			r := openFollowed(t, dataset, 100*time.Millisecond)
			startWriter(t, "killed", engine, dataset, "PAUSE_MS=0").followUntilIdle(t, r)

			second := startWriter(t, "grow", engine, dataset, "PAUSE_MS=100")
			err := bp.ErrIdle
			for errors.Is(err, bp.ErrIdle) {
				_, err = r.Next(ctx)
			}
			if !errors.Is(err, bp.ErrRecreated) {
				t.Errorf("the reader of the first run got %v, want ErrRecreated", err)
			}
			if _, err := r.Next(ctx); !errors.Is(err, bp.ErrRecreated) {
				t.Errorf("the next call returned %v, want ErrRecreated again", err)
			}

			reopened := openFollowed(t, dataset, 0)
			s, err := reopened.Next(ctx)
			if err != nil {
				t.Fatalf("opened again: %v", err)
			}
			got := linesOf(t, s, engine)
			<-second.begun // else the truth may lack the step
			if err := second.kill(); err == nil {
				t.Error("the second run had ended before it was killed: it proves nothing")
			}
			compareLines(t, got, linesOfTruth(asStored("grow", engine, second.readTruth(t))[:1]))
		})
	}
	f("BP4")
	f("BP5")
}

// openFollowed opens a dataset that need not exist yet.
func openFollowed(t *testing.T, dataset string, idle time.Duration) *bp.Reader {
	t.Helper()
	opt := bp.Default()
	opt.Follow, opt.Poll, opt.Idle, opt.Arrival = true, 5*time.Millisecond, idle, patience
	opt.Sleep = func(ctx context.Context, d time.Duration) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r, err := bp.Open(dataset, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// readNow reads the existing steps without waiting.
func readNow(t *testing.T, dataset string) []string {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Errorf("without waiting: %v", err)
		return nil
	}
	defer r.Close()
	lines, err := readLines(t.Context(), t, r, nil)
	if !errors.Is(err, io.EOF) {
		t.Errorf("without waiting, reading ended with %v, want io.EOF", err)
	}
	return lines
}

func countSteps(lines []string) (n int) {
	for slices.Contains(lines, stepLine(n)) {
		n++
	}
	return n
}

// writer is a running write.py.
type writer struct {
	cmd       *exec.Cmd
	truth     string
	announced []time.Time // when it reported that a step was finished
	err       error
	begun     chan struct{} // closed after the first step
	done      chan struct{} // closed at its end; the fields above are valid then
}

// startWriter starts write.py and kills it at the end of the test.
func startWriter(t *testing.T, scenario, engine, dataset string, env ...string) *writer {
	t.Helper()
	truth := filepath.Join(t.TempDir(), "truth.jsonl")
	w := &writer{
		cmd: tracetest.ADIOS2(t, scenario, engine, dataset, truth), truth: truth,
		begun: make(chan struct{}), done: make(chan struct{}),
	}
	w.cmd.Env = append(os.Environ(), env...)
	w.cmd.Stderr = os.Stderr
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.done)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			w.announced = append(w.announced, time.Now())
			if len(w.announced) == 1 {
				close(w.begun)
			}
		}
		w.err = w.cmd.Wait()
	}()
	t.Cleanup(func() { _ = w.kill() })
	return w
}

// wait returns the error with which the program ended.
func (w *writer) wait() error {
	<-w.done
	return w.err
}

func (w *writer) kill() error {
	_ = w.cmd.Process.Kill() // an error means that it has ended already
	return w.wait()
}

func (w *writer) readTruth(t *testing.T) []truthStep {
	t.Helper()
	steps, _ := readTruth(t, w.truth)
	return steps
}

// followUntilIdle reads until the reader is idle after the program was killed.
func (w *writer) followUntilIdle(t *testing.T, r *bp.Reader) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		ended := false
		select {
		case <-w.done:
			ended = true
		default:
		}
		more, err := readLines(ctx, t, r, nil)
		lines = append(lines, more...)
		if !errors.Is(err, bp.ErrIdle) {
			t.Fatalf("following ended with %v, want ErrIdle", err)
		}
		if ended {
			return lines
		}
	}
}

// logDelays logs the delays between the end of EndStep and the delivery of steps.
func (w *writer) logDelays(t *testing.T, delivered []time.Time) {
	t.Helper()
	var delays []time.Duration
	for i := range min(len(delivered), len(w.announced)) {
		delays = append(delays, delivered[i].Sub(w.announced[i]).Round(10*time.Microsecond))
	}
	if len(delays) > 0 {
		slices.Sort(delays)
		t.Logf("%d steps, delivered after their EndStep by %v (least), %v (median), %v (most)",
			len(delays), delays[0], delays[len(delays)/2], delays[len(delays)-1])
	}
}

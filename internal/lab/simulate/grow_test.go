package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// sleep waits as the command line does.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// ended is a step of a rank.
type ended struct {
	dataset string
	step    int
	at      trace.Ticks
}

// byEnd returns all steps in the order of their ends.
func byEnd(all []*traced) (list []ended) {
	for i := range all[0].steps {
		for _, r := range all {
			list = append(list, ended{filepath.Base(datasetOf("", r)), i, r.ends[i]})
		}
	}
	slices.SortStableFunc(list, func(a, b ended) int { return int(a.at - b.at) })
	return list
}

// stepsIn counts the steps that can be read of each dataset now.
func stepsIn(t *testing.T, dir string) map[string]int {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.bp"))
	if err != nil {
		t.Fatal(err)
	}
	steps := make(map[string]int)
	for _, path := range paths {
		index, err := os.Stat(filepath.Join(path, "md.idx"))
		if err != nil {
			t.Fatal(err)
		}
		steps[filepath.Base(path)] = max(0, int(index.Size())/64-1)
	}
	return steps
}

func TestStepsAppearWhenTheyEnd(t *testing.T) {
	f := func(name string, speed float64) {
		t.Run(fmt.Sprintf("%s at %v times", name, speed), func(t *testing.T) {
			s := builtin(t, name, 6, 4)
			all := record(t, s)
			want := byEnd(all)
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				run := simulate.New(s)
				began := time.Now()
				before := make(map[string]int)
				n := 0
				to := simulate.Target{Dir: dir, Speed: speed, Now: time.Now, Sleep: sleep, OnStep: func(w simulate.Stats) {
					now := stepsIn(t, dir)
					step := want[n]
					due := time.Duration(float64(step.at-start(s)) * 1000 / speed)
					if got := time.Since(began); got < due || got > due+time.Microsecond {
						t.Errorf("step %d of %s appears after %v, want %v", step.step, step.dataset, got, due)
					}
					if w.Steps != n+1 || now[step.dataset] != step.step+1 || now[step.dataset] != before[step.dataset]+1 {
						t.Errorf("number %d is not step %d of %s: there are %v", n, step.step, step.dataset, now)
					}
					before = now
					n++
				}}
				done, err := run.Write(t.Context(), to)
				if err != nil || n != len(want) || done.MaxDelay != 0 {
					t.Errorf("%d steps of %d, %+v, %v", n, len(want), done, err)
				}
			})
			if _, calls := readTruth(t, dir); !reflect.DeepEqual(byRank(calls), truthOf(all)) {
				t.Error("the truth differs from that of a simulation that does not wait")
			}
			for _, r := range all {
				if steps, _, active := readBack(t, datasetOf(dir, r), r.program); len(steps) != s.Steps || active {
					t.Errorf("rank %d has %d steps, and is marked as being written: %v", r.rank, len(steps), active)
				}
			}
		})
	}
	f("slow-rank", 1)
	f("workflow", 10)
	f("gpu-clock-drop", 0.5)
}

func TestSlowDiskDelaysStepsAndIsReported(t *testing.T) {
	s := builtin(t, "slow-rank", 4, 3)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		to := simulate.Target{Dir: dir, Speed: 1, Now: time.Now, Sleep: sleep}
		to.OnStep = func(w simulate.Stats) {
			if w.Steps == 5 {
				<-time.After(time.Minute)
			}
		}
		done, err := simulate.New(s).Write(t.Context(), to)
		if err != nil || done.MaxDelay < 59*time.Second || done.MaxDelay > time.Minute {
			t.Errorf("late by %v, want about a minute; %v", done.MaxDelay, err)
		}
	})
}

// TestInterruptedSimulationLooksLikeKilledProgram ends the context
// between two steps, and while the next is waited for.
func TestInterruptedSimulationLooksLikeKilledProgram(t *testing.T) {
	t.Run("between steps", func(t *testing.T) { interrupt(t, 23, 0) })
	t.Run("while waiting", func(t *testing.T) { interrupt(t, 25, 10*time.Millisecond) })
}

// interrupt ends a simulation of five ranks when it has written so many steps,
// and some time has passed.
func interrupt(t *testing.T, stopAt int, after time.Duration) {
	s := builtin(t, "slow-rank", 5, 10)
	all := record(t, s)
	dir := t.TempDir()
	var done simulate.Stats
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		to := simulate.Target{Dir: dir, Speed: 1, Now: time.Now, Sleep: sleep}
		to.OnStep = func(w simulate.Stats) {
			// The truth about the written steps must exist already.
			if _, calls := readTruth(t, dir); int64(len(calls)) != w.Planted+w.Minor+w.Victims {
				t.Errorf("after %d steps the truth has %d calls of %+v", w.Steps, len(calls), w)
			}
			switch {
			case w.Steps != stopAt:
			case after == 0:
				cancel()
			default:
				time.AfterFunc(after, cancel)
			}
		}
		var err error
		if done, err = simulate.New(s).Write(ctx, to); !errors.Is(err, context.Canceled) {
			t.Errorf("an interrupted simulation returns %v", err)
		}
	})
	if done.Steps != stopAt {
		t.Fatalf("%d steps are written, want %d", done.Steps, stopAt)
	}
	want := make(map[string]int)
	for _, step := range byEnd(all)[:stopAt] {
		want[step.dataset]++
	}
	if got := stepsIn(t, dir); !maps.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	var calls []truth.Call
	for _, r := range all {
		n := want[filepath.Base(datasetOf("", r))]
		steps, _, active := readBack(t, datasetOf(dir, r), r.program)
		if !active || len(steps) != n {
			t.Errorf("rank %d: %d steps can be read, want %d; marked as being written: %v", r.rank, len(steps), n, active)
		}
		for i := range steps {
			if !sameStep(&steps[i], &r.steps[i]) {
				t.Errorf("rank %d step %d: %s", r.rank, i, difference(&steps[i], &r.steps[i]))
			}
		}
		for _, c := range r.truth {
			var rank, step, row int
			if _, err := fmt.Sscanf(c.Event, "%d:%d:%d", &rank, &step, &row); err != nil {
				t.Fatal(err)
			}
			if step < n {
				calls = append(calls, c)
			}
		}
	}
	if _, got := readTruth(t, dir); !reflect.DeepEqual(byRank(got), calls) || len(calls) == 0 {
		t.Errorf("the truth has %d calls, want %d", len(got), len(calls))
	}
}

// TestGrowingSimulationCanBeFollowed has a reader wait for each step.
func TestGrowingSimulationCanBeFollowed(t *testing.T) {
	s := builtin(t, "threads", 4, 4)
	all := record(t, s)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		go func() {
			to := simulate.Target{Dir: dir, Speed: 1, Now: time.Now, Sleep: sleep}
			_, err := simulate.New(s).Write(t.Context(), to)
			failed <- err
		}()
		opt := bp.Default()
		opt.Follow, opt.Sleep = true, sleep
		r, err := bp.Open(datasetOf(dir, all[2]), opt)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		began := time.Now()
		for i := range s.Steps {
			step, err := r.Next(t.Context())
			if err != nil || step.Index != i {
				t.Fatalf("step %d: %v", i, err)
			}
			due := time.Duration(all[2].ends[i]-start(s)) * time.Microsecond
			if got := time.Since(began); got < due || got > due+10*time.Second {
				t.Errorf("step %d is seen after %v, it ends after %v", i, got, due)
			}
		}
		if err := <-failed; err != nil {
			t.Error(err)
		}
	})
}

func TestUnwritableSimulationReportsPath(t *testing.T) {
	s := builtin(t, "slow-rank", 4, 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := simulate.New(s).Write(t.Context(), simulate.Target{Dir: filepath.Join(file, "below")}); err == nil ||
		!strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, simulate.TruthFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := simulate.New(s).Write(t.Context(), simulate.Target{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), simulate.TruthFile) {
		t.Errorf("where the truth cannot be: %v", err)
	}
}

func TestStretchReachesDuration(t *testing.T) {
	for _, name := range []string{"slow-rank", "workflow", "gpu-clock-drop"} {
		s := builtin(t, name, 8, 1<<30)
		from, steps := s.Troubles[0].FromSeconds, s.Steps
		if err := simulate.Stretch(s, 3*time.Second); err != nil {
			t.Fatal(err)
		}
		last := trace.Ticks(0)
		for _, r := range record(t, s) {
			last = max(last, r.ends[len(r.ends)-1])
		}
		// The program that is to last 3 s also sets up and finishes.
		if took := float64(last-start(s)) / 1e6; took < 2.8 || took > 4 {
			t.Errorf("%s takes %v s, want 3", name, took)
		}
		if got, want := s.Troubles[0].FromSeconds, from*float64(s.Steps)/float64(steps); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: the trouble begins at %v s, want %v", name, got, want)
		}
	}
	for _, d := range []time.Duration{0, -time.Second, time.Microsecond, 1 << 62} {
		s := builtin(t, "slow-rank", 8, 50)
		before := *s
		if err := simulate.Stretch(s, d); err == nil || s.Steps != before.Steps {
			t.Errorf("it lasts %v, in %d steps", d, s.Steps)
		}
	}
	s := parse(t, `
name = "still"
steps = 3
[[program]]
name = "still"
ranks = 1
body = ["f"]
[program.functions]
f = {}
`)
	if err := simulate.Stretch(s, time.Second); err == nil || !strings.Contains(err.Error(), "takes no time") {
		t.Errorf("a program that takes no time: %v", err)
	}
}

package replay_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/replay"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestStepsAppearWhenTheyWereRecorded compares the times at which steps are
// written with those of their last events.
func TestStepsAppearWhenTheyWereRecorded(t *testing.T) {
	f := func(run string, speed float64) {
		s := newStage(t)
		s.cfg.Speed = speed
		from := tracetest.Recorded(t, run)
		var got, want []time.Duration
		s.cfg.OnStep = func() { got = append(got, s.now.Sub(opening)) }
		var all []*taken
		for _, d := range from {
			all = append(all, take(t, d))
		}
		begin := first(all...)
		for _, g := range all {
			for _, end := range g.ends {
				want = append(want, time.Duration(float64(end-begin)*1000/speed))
			}
		}
		slices.Sort(want)
		result, _ := s.run(from)
		if !slices.Equal(got, want) {
			t.Errorf("%s at speed %v: steps appeared after %v, want %v", run, speed, got, want)
		}
		if last := want[len(want)-1]; result.Time != last {
			t.Errorf("%s at speed %v: took %v, want %v", run, speed, result.Time, last)
		}
	}
	f("ring-BP4", 1)
	f("ring-BP5", 10)
	f("ring-onefile-BP5", 0.5)
	f("burst", 1)
}

func TestSpeedZeroDoesNotWait(t *testing.T) {
	s := newStage(t)
	s.cfg.Speed = 0
	s.cfg.Sleep = func(context.Context, time.Duration) error { return errors.New("slept") }
	if result, _ := s.run(tracetest.Recorded(t, "ring-BP5")); result.Time != 0 || result.Steps != 4 {
		t.Errorf("took %v for %d steps, want nothing for 4", result.Time, result.Steps)
	}
}

// TestDamagedTimeDoesNotStopReplay gives one event a time far away.
func TestDamagedTimeDoesNotStopReplay(t *testing.T) {
	for _, time := range []uint64{1, 1 << 62, 1 << 63} {
		rows := [][6]uint64{{0, 0, 0, 0, 1, 5e15}, {0, 0, 0, 1, 1, 5e15 + 1e6}, {0, 0, 0, 0, 1, time}, {0, 0, 0, 1, 1, 5e15 + 2e6}}
		dataset := tracetest.WriteBP4(t, t.TempDir(), []tracetest.Step{
			{Tables: tracetest.Tables{Funcs: rows}, Attrs: tracetest.EventTypes}, {Tables: tracetest.Tables{Funcs: rows[:1]}},
		})
		s := newStage(t)
		if result, _ := s.run([]string{dataset}); result.Time.Seconds() != 2 {
			t.Errorf("with an event at %d the replay took %v, want 2s", time, result.Time)
		}
	}
}

func TestLateReplayReportsDelay(t *testing.T) {
	s := newStage(t)
	s.cfg.Sleep = func(_ context.Context, d time.Duration) error {
		s.now = s.now.Add(d + time.Minute)
		return nil
	}
	if result, _ := s.run(tracetest.Recorded(t, "ring-BP5")); result.MaxDelay < 50*time.Second {
		t.Errorf("late by %v, want nearly a minute", result.MaxDelay)
	}
}

func TestReadableStepsOfDamagedDatasetAreReplayed(t *testing.T) {
	for _, run := range []string{"ring-BP4", "ring-BP5"} {
		for _, rewrite := range []bool{false, true} {
			whole := tracetest.Recorded(t, run)
			damaged := tracetest.Copy(t, whole[0])
			if err := os.Truncate(filepath.Join(damaged, "data.0"), 11500); err != nil {
				t.Fatal(err)
			}
			want := readable(t, damaged)
			s := newStage(t)
			s.cfg.ShiftTime = rewrite
			_, err := s.plan([]string{damaged, whole[1]}).Run(t.Context())
			if _, ok := errors.AsType[*bp.CorruptError](err); !ok || !strings.Contains(err.Error(), damaged) {
				t.Errorf("%s: got %v, want a CorruptError that names the dataset", run, err)
			}
			f := newFollower(t, filepath.Join(s.dir, filepath.Base(damaged)))
			f.look()
			if len(f.steps) != want || want == 0 && !f.r.Active() || !errors.Is(f.err, errNothingNew) {
				t.Errorf("%s: %d steps of the damaged dataset were written, want %d and still being written", run, len(f.steps), want)
			}
			f = newFollower(t, filepath.Join(s.dir, filepath.Base(whole[1])))
			f.look()
			if len(f.steps) != readable(t, whole[1]) || f.r.Active() {
				t.Errorf("%s: the other dataset has %d steps, active %v", run, len(f.steps), f.r.Active())
			}
		}
	}
}

// readable is the number of steps that can be read.
func readable(t *testing.T, dataset string) (n int) {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		if _, err := r.Next(t.Context()); err != nil {
			return n
		}
		n++
	}
}

func TestOverwritingNeedsForce(t *testing.T) {
	from := tracetest.Recorded(t, "ring-BP4")
	s := newStage(t)
	s.run(from)
	if _, err := replay.Plan(t.Context(), s.sets(from), s.cfg); !errors.Is(err, replay.ErrExists) {
		t.Errorf("a second replay: got %v, want ErrExists", err)
	}
	keep := filepath.Join(s.dir, filepath.Base(from[0]), "notes.txt")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.cfg.Force = true
	bp5 := tracetest.Recorded(t, "ring-BP5")
	s.run(bp5)
	if _, err := os.Stat(keep); err != nil {
		t.Errorf("a file that is not of the dataset is gone: %v", err)
	}
	if err := os.Remove(keep); err != nil {
		t.Fatal(err)
	}
	s.run(from)
	for _, f := range from {
		sameFiles(t, filepath.Join(s.dir, filepath.Base(f)), f)
	}
	f := func(what string, sets []replay.Dataset, want string) {
		if _, err := replay.Plan(t.Context(), sets, s.cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", what, err, want)
		}
	}
	here := filepath.Join(s.dir, filepath.Base(from[0]))
	f("onto itself", []replay.Dataset{{From: here, To: here}}, "over itself")
	f("two into one", []replay.Dataset{{From: from[0], To: here}, {From: from[1], To: here}}, "two datasets")
	f("onto a file", []replay.Dataset{{From: from[0], To: filepath.Join(here, "md.0")}}, "exists")
	f("nothing", []replay.Dataset{{From: filepath.Join(s.dir, "none.bp"), To: filepath.Join(s.dir, "new.bp")}}, "no dataset yet")
}

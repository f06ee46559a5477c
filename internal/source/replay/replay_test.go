package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/replay"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var allRuns = []string{
	"burst", "gpu-BP5", "ring-BP4", "ring-BP5", "ring-default", "ring-monitoring-BP4", "ring-onefile-BP4", "ring-onefile-BP5",
}

// stage is where a test replays: a clock that only Sleep moves.
type stage struct {
	t   testing.TB
	cfg replay.Config
	now time.Time
	dir string
}

// opening is when replays of tests begin.
var opening = time.Date(2031, 5, 6, 7, 8, 9, 123456000, time.UTC)

func newStage(t testing.TB) *stage {
	s := &stage{t: t, cfg: replay.Default(), now: opening, dir: t.TempDir()}
	s.cfg.Now = func() time.Time { return s.now }
	s.cfg.Sleep = func(ctx context.Context, d time.Duration) error {
		s.now = s.now.Add(d)
		return ctx.Err()
	}
	return s
}

// sets are the datasets, to be written into the stage's directory.
func (s *stage) sets(from []string) (sets []replay.Dataset) {
	for _, f := range from {
		sets = append(sets, replay.Dataset{From: f, To: filepath.Join(s.dir, filepath.Base(f))})
	}
	return sets
}

func (s *stage) plan(from []string) *replay.Replay {
	s.t.Helper()
	p, err := replay.Plan(s.t.Context(), s.sets(from), s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// run replays and returns the written paths.
func (s *stage) run(from []string) (result replay.Result, written []string) {
	s.t.Helper()
	result, err := s.plan(from).Run(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	written, err = filepath.Glob(filepath.Join(s.dir, "*.bp"))
	if err != nil {
		s.t.Fatal(err)
	}
	return result, written
}

// sameFiles compares all files of two datasets byte by byte.
func sameFiles(t testing.TB, got, want string) {
	t.Helper()
	files := func(dir string) map[string][]byte {
		all := make(map[string][]byte)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			all[d.Name()], err = os.ReadFile(path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	a, b := files(got), files(want)
	if len(a) != len(b) {
		t.Errorf("%s has %d files, want %d", got, len(a), len(b))
	}
	for name := range b {
		if !bytes.Equal(a[name], b[name]) {
			t.Errorf("%s of the copy has %d bytes and differs from the recording, which has %d", name, len(a[name]), len(b[name]))
		}
	}
}

func TestFinishedReplayEqualsRecording(t *testing.T) {
	for _, run := range allRuns {
		t.Run(run, func(t *testing.T) {
			s := newStage(t)
			from := tracetest.Recorded(t, run)
			p := s.plan(from)
			result, err := p.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range from {
				sameFiles(t, filepath.Join(s.dir, filepath.Base(f)), f)
			}
			if result.Datasets != len(from) || result.Steps != p.Steps() || result.Steps == 0 || result.MaxDelay != 0 {
				t.Errorf("the replay of %d datasets with %d steps returns %+v", len(from), p.Steps(), result)
			}
		})
	}
}

// TestUnfinishedDatasetsAreCopied copies what killed programs leave.
func TestUnfinishedDatasetsAreCopied(t *testing.T) {
	f := func(name, run string, change func(dir string) error) {
		t.Run(name+"/"+run, func(t *testing.T) {
			dataset := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
			if err := change(dataset); err != nil {
				t.Fatal(err)
			}
			s := newStage(t)
			_, written := s.run([]string{dataset})
			sameFiles(t, written[0], dataset)
		})
	}
	for run, flag := range map[string]int64{"ring-BP4": 38, "ring-BP5": 39} {
		f("killed in a record", run, func(dir string) error {
			idx := filepath.Join(dir, "md.idx")
			info, err := os.Stat(idx)
			return errors.Join(err, patch(idx, flag, 1), os.Truncate(idx, info.Size()-7))
		})
		f("killed before the first step", run, func(dir string) error {
			return errors.Join(os.Truncate(filepath.Join(dir, "md.idx"), 0), os.Truncate(filepath.Join(dir, "md.0"), 0),
				os.Truncate(filepath.Join(dir, "data.0"), 0))
		})
		f("ended before the first step", run, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "md.idx"), make([]byte, flag+1), 0o600)
		})
		f("with a profile", run, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "profiling.json"), []byte("[{}]"), 0o600)
		})
	}
	f("without groups in the data", "ring-BP4", func(dir string) error { return patch(filepath.Join(dir, "data.0"), 64, 'x') })
}

func patch(path string, at int64, b ...byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, at)
	return errors.Join(err, f.Close())
}

func TestInterruptedReplayLooksLikeKilledProgram(t *testing.T) {
	for _, run := range []string{"burst", "ring-onefile-BP4"} {
		for _, rewrite := range []bool{false, true} {
			s := newStage(t)
			s.cfg.ShiftTime = rewrite
			ctx, cancel := context.WithCancel(t.Context())
			steps := 0
			s.cfg.OnStep = func() {
				if steps++; steps == 2 {
					cancel()
				}
			}
			from := tracetest.Recorded(t, run)
			p, err := replay.Plan(ctx, s.sets(from), s.cfg)
			if err != nil {
				t.Fatal(err)
			}
			result, err := p.Run(ctx)
			if !errors.Is(err, context.Canceled) || result.Steps != 2 {
				t.Errorf("%s: got %d steps and %v, want 2 and that the context was canceled", run, result.Steps, err)
			}
			f := newFollower(t, filepath.Join(s.dir, filepath.Base(from[0])))
			f.look()
			if len(f.steps) != 2 || !f.r.Active() || !errors.Is(f.err, errNothingNew) {
				t.Errorf("%s: read %d steps to %v, active %v; want 2 steps and more to come", run, len(f.steps), f.err, f.r.Active())
			}
		}
	}
}

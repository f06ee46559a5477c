package replay_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestReplayCanBeFollowedAfterEveryWrite has a follower look after each write:
// it gets every step as soon as its record is written, equal to the recorded
// one, and the end.
func TestReplayCanBeFollowedAfterEveryWrite(t *testing.T) {
	for _, run := range allRuns {
		t.Run(run, func(t *testing.T) { followReplay(t, run, false) })
		t.Run(run+"/rewrite", func(t *testing.T) { followReplay(t, run, true) })
	}
}

func followReplay(t *testing.T, run string, rewrite bool) {
	s := newStage(t)
	s.cfg.ShiftTime = rewrite
	from := tracetest.Recorded(t, run)
	var all []*follower
	for _, set := range s.sets(from) {
		all = append(all, newFollower(t, set.To))
	}
	writes, steps := 0, 0
	s.cfg.OnWrite = func() {
		writes++
		for _, f := range all {
			f.look()
			// A reader that does not wait must not miss anything.
			if n, err := readAll(t, f.r.Path()); !errors.Is(err, io.EOF) && !errors.Is(err, bp.ErrNotReady) || n != len(f.steps) {
				t.Errorf("after write %d: %d steps to %v without waiting, %d when followed", writes, n, err, len(f.steps))
			}
		}
	}
	s.cfg.OnStep = func() {
		steps++
		seen := 0
		for _, f := range all {
			seen += len(f.steps)
		}
		if seen != steps {
			t.Errorf("%d steps are written but %d were seen", steps, seen)
		}
	}
	s.run(from)
	for i, f := range all {
		want := newFollower(t, from[i])
		want.look()
		same := slices.Equal(f.steps, want.steps) || rewrite && len(f.steps) == len(want.steps)
		if !same || !errors.Is(f.err, io.EOF) || len(f.steps) == 0 {
			t.Errorf("followed %d steps to %v, want %d as recorded to io.EOF", len(f.steps), f.err, len(want.steps))
		}
	}
	if writes < 3*steps {
		t.Errorf("%d writes for %d steps; data, metadata and index are one each", writes, steps)
	}
}

// follower reads a dataset as far as it is written.
type follower struct {
	t     testing.TB
	r     *bp.Reader
	steps []string
	err   error
}

var errNothingNew = errors.New("nothing new")

func newFollower(t testing.TB, dataset string) *follower {
	t.Helper()
	opt := bp.Default()
	opt.Follow = true
	opt.Sleep = func(context.Context, time.Duration) error { return errNothingNew }
	r, err := bp.Open(dataset, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &follower{t: t, r: r}
}

func (f *follower) look() {
	for {
		s, err := f.r.Next(f.t.Context())
		if f.err = err; err != nil {
			return
		}
		f.steps = append(f.steps, digest(f.t, s))
	}
}

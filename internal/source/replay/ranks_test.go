package replay_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/replay"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestAddedRanksAreCopies compares every event and all metadata
// of each copy with those of the recorded rank.
func TestAddedRanksAreCopies(t *testing.T) {
	f := func(run string, from []string, ranks int) {
		t.Run(run, func(t *testing.T) {
			s := newStage(t)
			s.cfg.Ranks = ranks
			result, written := s.run(from)
			if len(written) != ranks || result.Datasets != ranks {
				t.Fatalf("%d datasets were written and %d counted, want %d", len(written), result.Datasets, ranks)
			}
			for r, d := range from {
				want := take(t, d)
				for rank := r; rank < ranks; rank += len(from) {
					name := strings.TrimSuffix(filepath.Base(d), fmt.Sprintf("-%d.bp", r)) + fmt.Sprintf("-%d.bp", rank)
					compareCopy(t, take(t, filepath.Join(s.dir, name)), want, trace.Rank(rank-r), rank/len(from), ranks)
				}
			}
		})
	}
	f("ring-BP4", tracetest.Recorded(t, "ring-BP4"), 8)
	f("ring-BP5", tracetest.Recorded(t, "ring-BP5"), 5)
	f("ring-monitoring-BP4", tracetest.Recorded(t, "ring-monitoring-BP4"), 2)
	f("gpu-BP5", tracetest.Recorded(t, "gpu-BP5"), 3)
}

func TestEightRanksOfFour(t *testing.T) {
	s := newStage(t)
	s.cfg.Ranks = 8
	from := tracetest.Large(t, "heat2d-BP5")
	s.run(from)
	for r, d := range from {
		want := take(t, d)
		compareCopy(t, take(t, filepath.Join(s.dir, fmt.Sprintf("tau-metrics-heat2d-%d.bp", r))), want, 0, 0, 8)
		compareCopy(t, take(t, filepath.Join(s.dir, fmt.Sprintf("tau-metrics-heat2d-%d.bp", r+4))), want, 4, 1, 8)
	}
}

// compareCopy compares a copy whose ranks are higher by shift.
func compareCopy(t *testing.T, got, want *taken, shift trace.Rank, number, world int) {
	t.Helper()
	if len(got.events) != len(want.events) || len(got.events) == 0 {
		t.Fatalf("%d events, want %d", len(got.events), len(want.events))
	}
	for i, w := range want.events {
		w.rank += shift
		if w.Kind == trace.Send || w.Kind == trace.Recv {
			w.ID += uint32(shift)
		}
		if got.events[i] != w {
			t.Fatalf("event %d: got %+v, want %+v", i, got.events[i], w)
		}
	}
	if len(got.meta) != len(want.meta) || len(got.names) != len(want.names) {
		t.Errorf("%d metadata and %d names, want %d and %d", len(got.meta), len(got.names), len(want.meta), len(want.names))
	}
	for key, value := range want.meta {
		rank, rest, _ := strings.Cut(key, ":")
		r, err := strconv.Atoi(rank)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(rest, ":")
		if number > 0 && (name == "Hostname" || name == "Node Name" || name == "MPI Processor Name") {
			value += fmt.Sprintf("-copy%d", number)
		}
		key = fmt.Sprintf("%d:%s", r+int(shift), rest)
		if got.meta[key] != value {
			t.Errorf("metadata %s is %q, want %q", key, got.meta[key], value)
		}
	}
	for _, n := range got.world {
		if n != uint64(world) {
			t.Errorf("a step has %d ranks, want %d", n, world)
		}
	}
}

func TestShiftedTimesStartWithReplay(t *testing.T) {
	for _, run := range []string{"ring-BP4", "ring-BP5", "ring-onefile-BP4", "ring-onefile-BP5"} {
		for _, ranks := range []int{0, 4} {
			if ranks > 0 && strings.Contains(run, "onefile") {
				continue
			}
			s := newStage(t)
			s.cfg.ShiftTime, s.cfg.Speed, s.cfg.Ranks = true, 100, ranks
			from := tracetest.Recorded(t, run)
			s.run(from)
			var want []*taken
			for _, d := range from {
				want = append(want, take(t, d))
			}
			offset := trace.Ticks(opening.UnixMicro()) - first(want...)
			for i, d := range from {
				got := take(t, filepath.Join(s.dir, filepath.Base(d)))
				compareShifted(t, got, want[i], offset)
			}
		}
	}
}

func compareShifted(t *testing.T, got, want *taken, offset trace.Ticks) {
	t.Helper()
	if len(got.events) != len(want.events) || len(got.events) == 0 {
		t.Fatalf("%d events, want %d", len(got.events), len(want.events))
	}
	for i, w := range want.events {
		w.Time += offset
		if got.events[i] != w {
			t.Fatalf("event %d: got %+v, want %+v", i, got.events[i], w)
		}
	}
	for key, value := range want.meta {
		if strings.HasSuffix(key, ":Starting Timestamp") {
			before, _ := strconv.ParseInt(value, 10, 64)
			after, _ := strconv.ParseInt(got.meta[key], 10, 64)
			if after-before != int64(offset) {
				t.Errorf("%s moved by %d, want %d", key, after-before, offset)
			}
		}
		if strings.HasSuffix(key, " Time") {
			before, err1 := time.Parse(time.RFC3339, value)
			after, err2 := time.Parse(time.RFC3339, got.meta[key])
			if d := after.Sub(before) - time.Duration(offset)*time.Microsecond; err1 != nil || err2 != nil || d.Abs() > time.Second ||
				value[19:] != got.meta[key][19:] {
				t.Errorf("%s went from %q to %q", key, value, got.meta[key])
			}
		}
	}
}

func TestAddingRanksNeedsAllRanksOfOneProgram(t *testing.T) {
	ring := tracetest.Recorded(t, "ring-BP4")
	f := func(ranks int, from []string, want string) {
		t.Helper()
		s := newStage(t)
		s.cfg.Ranks = ranks
		sets := s.sets(from)
		for i := range sets {
			sets[i].To += strconv.Itoa(i)
		}
		if _, err := replay.Plan(t.Context(), sets, s.cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d ranks of %d datasets: got %v, want an error with %q", ranks, len(from), err, want)
		}
	}
	f(1, ring, "fewer than the 2 recorded")
	f(8, ring[1:], "rank 0 is missing")
	f(8, []string{ring[0], ring[1], tracetest.Recorded(t, "burst")[0]}, "both contain rank 0")
	f(8, tracetest.Recorded(t, "ring-onefile-BP4"), "the events of 2 ranks")
	f(8, []string{ring[0], filepath.Join(t.TempDir(), "none.bp")}, "no dataset yet")
	f(-1, ring, "out of range")
}

// TestBP3MustBeRewritten replays BP3, whose files are empty while a
// program runs.
func TestBP3MustBeRewritten(t *testing.T) {
	dataset, _ := tracetest.WriteADIOS2(t, "tau", "BP3")
	s := newStage(t)
	if _, err := replay.Plan(t.Context(), s.sets([]string{dataset}), s.cfg); err == nil || !strings.Contains(err.Error(), "BP3") {
		t.Errorf("got %v, want an error that speaks of BP3", err)
	}
	s.cfg.ShiftTime = true
	_, written := s.run([]string{dataset})
	r, err := bp.Open(written[0], bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	steps := 0
	for ; err == nil; steps++ {
		_, err = r.Next(t.Context())
	}
	if !errors.Is(err, io.EOF) || steps-1 != readable(t, dataset) || r.Engine() != "BP4" {
		t.Errorf("read %d steps of %s to %v, want %d of BP4", steps-1, r.Engine(), err, readable(t, dataset))
	}
}

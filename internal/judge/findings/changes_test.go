package findings_test

import (
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// concludeChanges returns the findings of changes, each as severity and summary, without others.
func (s *scene) concludeChanges(all *provenance.Peers, changes ...summary.Change) (list []string) {
	for _, x := range findings.Conclude(&s.Run, blame.Find(&s.Run), changes, s.profile(), all).Findings {
		if x.Kind == provenance.LastingChange {
			list = append(list, string(x.Severity)+" "+x.Summary)
		}
	}
	return list
}

func expectChanges(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestTemporaryChanges(t *testing.T) {
	change := func(name string, from, to, before, after, lost float64) summary.Change {
		return summary.Change{
			Function: name, Kind: "temporary", Since: trace.Ticks(from * second), Until: trace.Ticks(to * second), Before: before, After: after,
			Calls: 1000, Lost: lost,
		}
	}
	s := newScene(4, "long 200000 28000000", "short 100000 8000000", "tiny 400000 4000000", "MPI_Wait() 1000 4000")
	long := change("long", 3, 5, 140, 280, 2_000_000)
	const alone = "alarm long took 280 us instead of 140 us from 3.00 s to 5.00 s"
	expectChanges(t, "alone", s.concludeChanges(nil, long), alone)
	expectChanges(t, "of two functions at once", s.concludeChanges(nil, long, change("short", 3.2, 5.1, 80, 240, 900_000)),
		alone+", and 1 other function took 3.0 times as long")
	expectChanges(t, "of three functions at once",
		s.concludeChanges(nil, change("short", 3.2, 5.1, 80, 240, 900_000), change("tiny", 2.9, 5, 10, 12, 9_000), long),
		alone+", and 2 other functions took 1.2 to 3.0 times as long")
	expectChanges(t, "of two functions at different times", s.concludeChanges(nil, long, change("short", 4.9, 7, 80, 240, 900_000)),
		alone, "alarm short took 240 us instead of 80 us from 4.90 s to 7.00 s")
	expectChanges(t, "of a wait", s.concludeChanges(nil, change("MPI_Wait()", 3, 5, 140, 280, 2_000_000)),
		"info MPI_Wait took 280 us instead of 140 us from 3.00 s to 5.00 s")

	x := findings.Conclude(&s.Run, nil, []summary.Change{long}, s.profile(), nil).Findings[0]
	if x.To == nil || *x.To < 4.99 || *x.To > 5 || x.From < 2.99 || x.From > 3 || x.LostOwn != 2_000_000 || x.Form != provenance.Temporary {
		t.Errorf("got %+v", x)
	}

	expectChanges(t, "of a slow rank", s.concludeChanges(&provenance.Peers{Slow: []provenance.SlowPeer{slowHost()}}, long))

	for i := range 20 {
		s.slow("long", i%4, 3_100_000+trace.Ticks(i)*90_000, 51_000)
	}
	expectChanges(t, "of anomalies", s.concludeChanges(nil, long))
}

// Delays that are visible in short calls hit long calls as well, so that more than half of these take longer.
func TestInterferenceExplainsTemporaryChanges(t *testing.T) {
	for every, want := range map[int]int{20: 0, 200: 1} { // milliseconds between visible delays
		s := newScene(4, "solve 2000 8000000", "short 100000 8000000", "tiny 400000 8000000", "other 400000 8000000")
		work := &provenance.WorkTimes{Width: second, Of: make(map[callpath.Context][]trace.Ticks)}
		for _, p := range s.paths {
			k := callpath.Context{FuncKey: trace.FuncKey{Name: p.Func}, Path: callpath.Hash(0).Then(p.Func).Path()}
			work.Of[k] = slices.Repeat([]trace.Ticks{p.Exclusive / 10}, 10)
		}
		for i := range 4000 / every {
			s.slow([]string{"short", "tiny", "other"}[i%3], i%4, trace.Ticks(2*second+i*every*1000), 3000+trace.Ticks(i%1000))
		}
		got := s.concludeChanges(&provenance.Peers{Work: work}, summary.Change{
			Function: "solve", Kind: "temporary", Since: 2 * second, Until: 6 * second, Before: 4000, After: 5000, Calls: 800, Lost: 200_000,
		})
		if len(got) != want {
			t.Errorf("a delay every %d ms: got %q", every, got)
		}
	}
}

func TestChangesByWorkAreNotes(t *testing.T) {
	change := func(name, kind string, from float64, calls uint64, madeBefore, madeAfter float64) summary.Change {
		return summary.Change{
			Function: name, Kind: kind, Since: trace.Ticks(from * second), Before: 100, After: 900, Calls: calls, Lost: 1_000_000,
			MadeBefore: madeBefore, MadeAfter: madeAfter,
		}
	}
	s := newScene(4, "exchange 10000 2000000", "stencil 100000 2000000")
	expectChanges(t, "other work", s.concludeChanges(nil, change("exchange", "drift", 4, 6000, 15, 31)),
		"info exchange takes 900 us instead of 100 us since 4.00 s (drift), because it makes 31.0 calls instead of 15.0")
	expectChanges(t, "about the same work", s.concludeChanges(nil, change("exchange", "drift", 4, 6000, 15, 29)),
		"alarm exchange takes 900 us instead of 100 us since 4.00 s (drift)")
	expectChanges(t, "a function without calls at the same time",
		s.concludeChanges(nil, change("exchange", "shift", 4, 6000, 15, 31), change("stencil", "shift", 4.5, 60000, 0, 0)),
		"info stencil takes 900 us instead of 100 us since 4.50 s (shift), when exchange began to make more calls",
		"info exchange takes 900 us instead of 100 us since 4.00 s (shift), because it makes 31.0 calls instead of 15.0")
	expectChanges(t, "a function without calls later",
		s.concludeChanges(nil, change("exchange", "shift", 4, 6000, 15, 31), change("stencil", "shift", 6, 40000, 0, 0)),
		"alarm stencil takes 900 us instead of 100 us since 6.00 s (shift)",
		"info exchange takes 900 us instead of 100 us since 4.00 s (shift), because it makes 31.0 calls instead of 15.0")
	expectChanges(t, "after a short start", s.concludeChanges(nil, change("stencil", "shift", 1, 90000, 0, 0)),
		"info stencil takes 900 us instead of 100 us since 1.00 s (shift), after a start with 10.0 % of its calls")
	expectChanges(t, "after a longer start", s.concludeChanges(nil, change("stencil", "shift", 1.5, 85000, 0, 0)),
		"alarm stencil takes 900 us instead of 100 us since 1.50 s (shift)")
}

package analyzer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// rareCalls is a program that calls work 200 times, which takes 4 ms, and which calls other in the calls with the given
// numbers, for a time in microseconds.
func rareCalls(micros uint64, in ...int) *program {
	p := newProgram()
	p.enter(1)
	for i := range 200 {
		p.enter(2)
		p.now += 4000 + uint64(i%7)
		if slices.Contains(in, i) {
			p.call(3, micros)
		}
		p.exit(2)
	}
	p.exit(1)
	return p
}

func TestRareCallsAreJudgedByTheirCaller(t *testing.T) {
	datasets := rareCalls(20_000, 50, 51, 130).write(t)
	for _, change := range []func(*analyzer.Config){
		nil,
		func(c *analyzer.Config) { c.Passes = 2 },
		func(c *analyzer.Config) { c.RankScope = true },
	} {
		flags := analyze(t, datasets, change).flags(t, "other")
		if len(flags) != 3 {
			t.Fatalf("%d anomalies, want 3", len(flags))
		}
		for i := range flags {
			r := &flags[i]
			if r.LostTime != 20_000 || r.Kind != provenance.RarelyCalled || r.Status != provenance.Promoted || r.OutlierScore < 6 ||
				!strings.HasPrefix(r.Why, "took 20.0 ms, and is rarely called: the rank had 200 calls of work; ") {
				t.Errorf("got %d us lost, kind %s, %s, score %v, %q", r.LostTime, r.Kind, r.Status, r.OutlierScore, r.Why)
			}
			if n := callsOf(t, r); n != 200 {
				t.Errorf("judged by %d calls, want those of work", n)
			}
		}
	}
	flags := analyze(t, datasets, func(c *analyzer.Config) { c.Outlier.Algorithm = outlier.HBOS }).flags(t, "other")
	if len(flags) > 0 {
		t.Errorf("hbos flags %d rare calls, which the original does not judge", len(flags))
	}
}

func TestUsualRareCallsAreNotFlagged(t *testing.T) {
	f := func(what string, p *program) {
		t.Helper()
		if flags := analyze(t, p.write(t), nil).flags(t, "other"); len(flags) > 0 {
			t.Errorf("%s: %d anomalies, such as %s", what, len(flags), flags[0].Why)
		}
	}
	f("set-up", rareCalls(20_000, 0, 1, 7))
	f("set-up that is repeated", rareCalls(20_000, 0, 100))
	f("set-up in a later call", rareCalls(20_000, 7, 100))
	f("short for its caller", rareCalls(400, 50, 51, 130))
	often := make([]int, 26)
	for i := range often {
		often[i] = 20 + 7*i
	}
	f("in more than an eighth of the calls", rareCalls(20_000, often...))

	p := newProgram()
	p.enter(1)
	for i := range 20 {
		p.call(2, 1000)
		if i == 15 {
			p.call(3, 20_000)
		}
	}
	p.exit(1)
	f("a caller with one call", p)
}

// TestRareCallsAreNotExcessWork has a function that makes four calls, and once 20 rare ones.
func TestRareCallsAreNotExcessWork(t *testing.T) {
	p := newProgram()
	p.steps[0].Attrs = append(p.steps[0].Attrs, [2]string{"timer 4", "rare"})
	p.enter(1)
	for i := range 200 {
		p.enter(2)
		p.now += 1000 + uint64(i%7)
		for range 4 {
			p.call(3, 500+uint64(i%5))
		}
		for range 20 {
			if i == 100 {
				p.call(4, 20_000)
			}
		}
		p.exit(2)
	}
	p.exit(1)
	a := analyze(t, p.write(t), nil)
	if all := a.records(t, "anomalies"); len(all) != 20 || len(a.flags(t, "rare")) != 20 {
		t.Errorf("got %d anomalies, %d of them rare calls, want 20", len(all), len(a.flags(t, "rare")))
	}
}

package analyzer_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// throttled is a program that calls work, which calls long once. In the first calls it makes so many calls of other that TAU no
// longer records them afterwards if they are short.
func throttled(first, later, calls int, micros uint64) *program {
	p := newProgram()
	p.steps[0].Attrs = append(p.steps[0].Attrs, [2]string{"timer 4", "long"})
	p.enter(1)
	for i := range first + later {
		p.enter(2)
		p.now += 4000 + uint64(i%7)
		p.call(4, 100)
		for range calls {
			if i < first {
				p.call(3, micros)
			} else {
				p.now += micros
			}
		}
		p.exit(2)
	}
	p.exit(1)
	return p
}

func TestUnrecordedCallsAreNotExcessWork(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	f := func(micros uint64, want int) {
		t.Helper()
		n := 0
		for _, r := range analyze(t, throttled(21, 1000, 5000, micros).write(t), nil).flags(t, "work") {
			if r.Kind == provenance.TooManyCalls {
				n++
			}
		}
		if n != want {
			t.Errorf("calls of %d us: %d calls of work did too much, want %d", micros, n, want)
		}
	}
	f(2, 0)
	f(12, 20) // TAU records them all; the first call is set-up
}

func TestChangeByCallsThatAreNoLongerRecorded(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	f := func(micros uint64, want string) {
		t.Helper()
		changes := analyze(t, throttled(101, 300, 1000, micros).write(t), nil).Changes
		if len(changes) != 1 || changes[0].Function != "work" || changes[0].Unrecorded != want {
			t.Errorf("calls of %d us: changes are %+v, want one by calls of %q", micros, changes, want)
		}
	}
	f(2, "other")
	f(12, "")
}

func TestChangeLongAfterCallsThatAreNoLongerRecorded(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	p := throttled(21, 300, 5000, 2)
	p.enter(1)
	for i := range 300 {
		p.enter(2)
		p.now += 30_000 + uint64(i%7)
		p.call(4, 100)
		p.exit(2)
	}
	p.exit(1)
	changes := analyze(t, p.write(t), nil).Changes
	if len(changes) != 1 || changes[0].Function != "work" || changes[0].Unrecorded != "" {
		t.Errorf("changes are %+v, want one of work by itself", changes)
	}
}

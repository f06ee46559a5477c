package analyzer_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// TestOutermostCallsOfRecursionAreNotExcessWork has a function that divides its work: 20 calls make 2,000 calls and 100 of
// the function itself, which make 6.
func TestOutermostCallsOfRecursionAreNotExcessWork(t *testing.T) {
	f := func(more, want int) {
		t.Helper()
		p := newProgram()
		work := func(micros uint64, calls int, inside func()) {
			p.enter(2)
			p.now += micros
			for range calls {
				p.call(3, 12)
			}
			inside()
			p.exit(2)
		}
		p.enter(1)
		for i := range 20 {
			work(1000+uint64(i%7), 2000, func() {
				for k := range 100 {
					calls := 6
					if i == 10 && k == 50 {
						calls += more
					}
					work(20+uint64(k%5), calls, func() {})
				}
			})
		}
		p.exit(1)
		n := 0
		for _, r := range analyze(t, p.write(t), nil).flags(t, "work") {
			if r.Kind == provenance.TooManyCalls {
				n++
			}
		}
		if n != want {
			t.Errorf("%d more calls in one: %d calls did too much, want %d", more, n, want)
		}
	}
	f(0, 0)
	f(200, 1)
}

package outlier_test

import (
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

func TestTroubleDoesNotRaiseItsOwnChance(t *testing.T) {
	m := new(outlier.Model)
	for i := range int64(1000) {
		v := 10_000 + i%100*20
		if i%20 == 7 {
			v += 10_000
		}
		m.Learn(v, i)
	}
	j := outlier.NewRules(outlier.Default()).NewJudge("f", m)
	f := func(v int64, least, most float64) {
		t.Helper()
		if got := j.Chance(v); got < least || got > most {
			t.Errorf("chance of %d us: got %g, want %g to %g", v, got, least, most)
		}
	}
	f(0, 1, 1)
	f(11_000, 0.4, 0.6)
	f(11_600, 0.15, 0.25)
	f(20_000, 0, 0.005) // a twentieth of the calls takes as long
	f(math.MaxInt64, 0, 1e-6)
}

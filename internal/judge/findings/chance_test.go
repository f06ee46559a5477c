package findings

import (
	"math"
	"testing"
)

func TestDrawTail(t *testing.T) {
	for _, test := range []struct {
		k, n, hits, all int
		want            float64
	}{
		{2, 2, 2, 4, 1.0 / 6},
		{1, 2, 2, 4, 1}, // the mean
		{3, 4, 5, 10, 55.0 / 210},
		{5, 5, 5, 10, 1.0 / 252},
		{4, 5, 5, 5, 1}, // all are hits
	} {
		if got := drawTail(test.k, test.n, test.hits, test.all); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("at least %d of %d draws from %d with %d hits: got %g, want %g", test.k, test.n, test.all, test.hits, got, test.want)
		}
	}
}

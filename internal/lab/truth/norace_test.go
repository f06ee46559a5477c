//go:build !race

package truth_test

import (
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// The race detector empties the pools of encoding/json.
func TestWriterCallAllocatesNothing(t *testing.T) {
	w := truth.NewWriter(&full{left: math.MaxInt})
	c := call("8:0:1", "a", truth.Cause, 5)
	if n := testing.AllocsPerRun(10_000, func() { w.Call(&c) }); n != 0 {
		t.Errorf("%v allocations for a call", n)
	}
}

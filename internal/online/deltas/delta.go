package deltas

import (
	"sync"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// Delta is what ranks learned about a function since the last merge, with its anomalies in this step. The zero value is empty.
type Delta struct {
	summary.FunctionStats
	Model outlier.Model
	Short outlier.ShortTimes // times of calls that made no calls; not yet in the model and the stats
	used  bool               // it is in Learner.touched
}

// AddShort adds the short times to the model and the stats.
func (d *Delta) AddShort() {
	sums := d.Short.MoveTo(&d.Model)
	d.Exclusive.Merge(&sums)
	d.Inclusive.Merge(&sums)
}

// Merge adds what o has besides short times.
func (d *Delta) Merge(o *Delta) {
	d.FunctionStats.Merge(&o.FunctionStats)
	d.Model.Merge(&o.Model)
}

// Reset empties the delta and keeps its memory. It must have no short times.
func (d *Delta) Reset() {
	d.Model.Reset()
	d.FunctionStats = summary.FunctionStats{}
}

// pool recycles deltas between ranks: functions may be on many thousands of ranks, but few of them learn at the same time.
var pool = sync.Pool{New: func() any { return new(Delta) }}

// New returns an empty delta.
func New() *Delta { return pool.Get().(*Delta) }

// Release empties the delta and lets New reuse its memory.
func (d *Delta) Release() {
	d.Reset()
	pool.Put(d)
}

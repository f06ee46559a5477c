package analyzer

import (
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// localFunc is a function with a call path in a rank. The one with all paths stands also for
// calls whose path is not judged on its own, because it is folded or the detector judges
// by function.
type localFunc struct {
	number          int32 // in rank.all
	id              trace.FuncID
	whole           *localFunc    // the function with all paths; may be itself
	node            callpath.Node // of its path; Root if it has all or was folded
	path            callpath.Hash // with its work; 0 if a name is unknown
	work            callpath.WorkClass
	next            *localFunc // with the same path and other work
	models          *group     // only of whole; nil while the name is unknown
	model           *scoped    // nil while the name is unknown
	wait            provenance.Wait
	hasWait         bool               // wait is valid
	settled         uint64             // threads below 64 on which setUp excludes no more calls
	first           stats.ThreadCounts // calls
	late            uint64             // bits of lanes on which its calls began after the set-up of their caller
	calls           uint64
	rareCalls       uint64         // calls that mayBeRare of which it is the caller
	last            trace.Ticks    // entry of the call that ended last
	most            uint32         // calls that a call made since the last setLimit
	touched         bool           // its delta is not merged
	merged          bool           // it is in rank.merged
	pending         *delta         // use delta(); nil after forget
	missingTypicals []trace.Thread // for which a typical execution is wanted
	typical         int32          // index in rank.ended of the most typical call so far; -1 if none
	oddness         float64        // of that call
	rejected        uint64         // times below 64 that are not less odd
}

// delta is what a rank learned about a function since the last merge, and its
// anomalies in this step.
type delta struct {
	summary.FunctionStats
	model outlier.Model
	short outlier.ShortTimes // of calls that made no calls; not yet in the model and the stats
	work  callpath.Sums      // of a thread in the current window of time
}

// addShort adds the short times to the rest.
func (d *delta) addShort() {
	sums := d.short.MoveTo(&d.model)
	d.Exclusive.Merge(&sums)
	d.Inclusive.Merge(&sums)
}

func (d *delta) merge(o *delta) {
	d.Merge(&o.FunctionStats)
	d.model.Merge(&o.model)
}

// deltas recycles deltas between ranks: there may be functions on many thousands of
// ranks, but few of them learn at the same time.
var deltas = sync.Pool{New: func() any { return new(delta) }}

func (f *localFunc) delta() *delta {
	if f.pending == nil {
		f.pending = deltas.Get().(*delta)
	}
	return f.pending
}

// judge returns the judge of the calls of a function with a path. It is nil if the
// function is ignored or its name is unknown.
func (f *localFunc) judge() *outlier.Judge {
	if f.model == nil {
		return nil
	}
	return f.model.by.judge
}

// peers returns the function, with the same path or with all, whose calls are compared
// with each other.
func (f *localFunc) peers() *localFunc {
	if f.model == nil || f.model.by == f.whole.model {
		return f.whole
	}
	return f
}

package analyzer

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// localFunc is a function with a call path in a rank. The localFunc with all paths also stands for calls whose path is not judged
// separately, because it is folded or because the detector judges by function.
type localFunc struct {
	number          int32 // in rank.all
	id              trace.FuncID
	allPaths        *localFunc    // the function with all paths; may be itself
	node            callpath.Node // node of its path; Root if it has all paths or was folded
	path            callpath.Hash // path and work; 0 if a name is unknown
	work            callpath.WorkClass
	next            *localFunc // same path with other work
	models          *group     // only set in allPaths; nil while the name is unknown
	model           *scoped    // nil while the name is unknown
	wait            provenance.Wait
	hasWait         bool               // wait is valid
	settled         uint64             // bits of threads below 64 on which setUp excludes no more calls
	first           stats.ThreadCounts // numbers of calls
	late            uint64             // bits of lanes on which its calls began after the set-up of their caller
	calls           uint64
	window          callpath.Sums  // of calls of a thread in the current window of time
	rareCalls       uint64         // number of calls for which mayBeRare is true and of which it is the caller
	last            trace.Ticks    // entry of the call that ended last
	most            uint32         // greatest number of calls that a call made since the last setLimit
	touched         bool           // its delta is not merged
	merged          bool           // it is in rank.merged
	pending         *deltas.Delta  // use delta(); nil after forget
	shared          bool           // pending belongs to a learner
	common          *scoped        // the model whose delta in a learner it may share; nil if it needs its own
	reported        int            // number of the step of the rank with the last report on allPaths
	missingTypicals []trace.Thread // threads that need a typical execution
	typical         int32          // index in Thread.Done of the most typical call so far; -1 if there is none
	typicalOf       int32          // number of its function
	oddness         float64        // oddness of that call
	rejected        uint64         // bits of times below 64 that are not less odd
}

// release drops the delta, so that other ranks can use its memory.
func (f *localFunc) release() {
	f.pending.Release()
	f.pending = nil
}

func (f *localFunc) delta() *deltas.Delta {
	if f.pending == nil {
		f.pending = deltas.New()
	}
	return f.pending
}

// judge returns the judge of the calls of a function with a path. It is nil if the function is ignored or its name is unknown.
func (f *localFunc) judge() *outlier.Judge {
	if f.model == nil {
		return nil
	}
	return f.model.by.judge
}

// peers returns the function, with the same path or with all paths, whose calls are compared with each other.
func (f *localFunc) peers() *localFunc {
	if f.model == nil || f.model.by == f.allPaths.model {
		return f.allPaths
	}
	return f
}

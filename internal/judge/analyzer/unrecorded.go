package analyzer

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// findUnrecorded finds the paths that seem to make fewer calls from some time on because TAU no longer records some of them:
// those that continue for at least as long without these calls as with them.
func (r *rank) findUnrecorded() {
	calls := make(map[*localFunc]uint64)
	for _, f := range r.all {
		calls[f.allPaths] += f.calls
	}
	r.unrecorded = make(map[callpath.Node]trace.Ticks)
	for _, f := range r.all {
		if f.node == callpath.Root || f.allPaths.models == nil || !f.allPaths.models.function.Throttled(calls[f.allPaths]) {
			continue
		}
		caller, _ := r.builder.Paths().Last(f.node)
		for c := r.nodes[caller]; c != nil; c = c.next {
			if c.last-f.last >= f.last-r.firstEvent {
				r.unrecorded[caller] = max(r.unrecorded[caller], f.last)
			}
		}
	}
}

// capturedWork returns the calls that a call made without rare ones. It returns none if any number is usual, or if such calls
// are no longer recorded later.
func (r *rank) capturedWork(f *localFunc, c *provenance.Capture) outlier.Work {
	if f.model != nil && f.model.anyWork || c.Call().Entry <= r.unrecorded[f.node] && f.node != callpath.Root {
		return outlier.Work{}
	}
	return r.withoutRare(c.Work(), keyOf(c))
}

package rundir

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// ComparePeers compares the ranks of a run that ended with this outcome. It returns nil if their load
// is unknown.
func ComparePeers(o *summary.Outcome) *provenance.Peers {
	if o.Load == nil || o.Load.Empty() {
		return nil
	}
	names := make(map[uint32]string, len(o.Functions))
	for _, f := range o.Functions {
		names[uint32(f.ID)] = f.Name
	}
	return peers.Compare(o.Load, func(_ trace.Program, function uint32) string { return names[function] })
}

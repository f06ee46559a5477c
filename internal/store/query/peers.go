package query

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Peers returns the comparison of the ranks of the run with their peers. It returns nil if there is
// none, in the first seconds of a run.
func (a *Queries) Peers(ctx context.Context) (*provenance.Peers, error) {
	p, err := a.PeersWithoutWindows(ctx)
	if err != nil || p == nil {
		return nil, err
	}
	p.Activity, err = a.Activity(ctx)
	return p, errors.Join(err, a.readLoadWindows(ctx, p.Loads))
}

// PeersWithoutWindows is like Peers, but leaves out the windows of loads, which are most of it.
func (a *Queries) PeersWithoutWindows(ctx context.Context) (*provenance.Peers, error) {
	p := provenance.Peers{Unit: a.Unit}
	var errs [3]error
	p.Loads, errs[0] = executions.ReadAll[provenance.RankLoad](ctx, a, text("rank_loads"))
	p.Efficiency, errs[1] = executions.ReadAll[provenance.Efficiency](ctx, a, text("efficiency"))
	p.Slow, errs[2] = executions.ReadAll[provenance.SlowPeer](ctx, a, text("slow_peers"))
	if err := errors.Join(errs[:]...); err != nil || len(p.Loads)+len(p.Efficiency)+len(p.Slow) == 0 {
		return nil, err
	}
	return &p, nil
}

// readLoadWindows sets the windows of loads, which have the order of the statement.
func (a *Queries) readLoadWindows(ctx context.Context, loads []provenance.RankLoad) error {
	type row struct {
		PID    trace.Program `sql:"pid"`
		RID    trace.Rank    `sql:"rid"`
		TID    int64         `sql:"tid"`
		Device bool          `sql:"device"`
		provenance.LoadWindow
	}
	i := 0
	return executions.ReadEach(ctx, a, text("load_windows"), func(r *row) {
		of := provenance.RankLoad{PID: r.PID, RID: r.RID, TID: r.TID, Device: r.Device}
		for i < len(loads) && compareLoads(&loads[i], &of) < 0 {
			i++
		}
		if i < len(loads) && compareLoads(&loads[i], &of) == 0 { // or it is of a comparison that was stored since
			loads[i].Windows = append(loads[i].Windows, r.LoadWindow)
		}
	})
}

// compareLoads compares the places of loads.
func compareLoads(a, b *provenance.RankLoad) int {
	rank := func(l *provenance.RankLoad) trace.RankKey { return trace.RankKey{Program: l.PID, Rank: l.RID} }
	order := cmp.Or(rank(a).Compare(rank(b)), cmp.Compare(a.TID, b.TID))
	switch {
	case order != 0 || a.Device == b.Device:
		return order
	case b.Device:
		return -1
	}
	return 1
}

// Activity returns the activities of the ranks over time, as encoded by activity.Sketch. It returns nil if there are none,
// in the first seconds of a run.
func (a *Queries) Activity(ctx context.Context) ([]byte, error) {
	packed, err := executions.ReadValue[string](ctx, a, text("activity"))
	if err != nil || packed == "" {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(packed)
}

// SlowPeers returns the stored peers that are slow, the costliest first.
func (a *Queries) SlowPeers(ctx context.Context) ([]provenance.SlowPeer, error) {
	return executions.ReadAll[provenance.SlowPeer](ctx, a, text("slow_peers"))
}

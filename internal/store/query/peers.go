package query

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Peers returns the comparison of the ranks of the run with their peers, or nil in the first
// seconds of a run.
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

// Activity returns the activities of the ranks over time, as encoded by activity.Sketch. It returns nil in the first
// seconds of a run.
func (a *Queries) Activity(ctx context.Context) ([]byte, error) {
	packed, err := executions.ReadValue[string](ctx, a, text("activity"))
	if err != nil || packed == "" {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(packed)
}

// LostTime returns the time that ranks lost to anomalies, or their threads. The thread of entire ranks is
// provenance.AllThreads.
func (a *Queries) LostTime(ctx context.Context, ofThreads bool, f func(of trace.RankKey, tid int64, lost trace.Ticks)) error {
	sql, err := a.rollupStatement(ctx, "lost_by_rank")
	if ofThreads {
		sql = text("lost_by_thread")
	}
	if err != nil {
		return err
	}
	type row struct {
		trace.RankKey `sql:"pid,rid"`
		TID           int64       `sql:"tid"`
		Lost          trace.Ticks `sql:"lost_us"`
	}
	return executions.ReadEach(ctx, a, sql, func(r *row) { f(r.RankKey, r.TID, r.Lost) })
}

// Efficiency returns the efficiency of the programs of the run: of the entire run, or by windows of
// time. It returns none if it is unknown.
func (a *Queries) Efficiency(ctx context.Context, entire bool) ([]provenance.Efficiency, error) {
	all, err := executions.ReadAll[provenance.Efficiency](ctx, a, text("efficiency"))
	return slices.DeleteFunc(all, func(e provenance.Efficiency) bool { return e.Entire != entire }), err
}

// HasBreakdown reports whether the run has times of GPUs and collective operations. Live runs have at most
// collective operations.
func (a *Queries) HasBreakdown(ctx context.Context) (gpus, collectives bool, err error) {
	type row struct {
		Times       int64 `sql:"gpu_times"`
		Collectives int64 `sql:"collectives"`
	}
	err = executions.ReadEach(ctx, a, text("breakdown_count"), func(r *row) { gpus, collectives = r.Times > 0, r.Collectives > 0 })
	return gpus, collectives, err
}

// GPUTimes returns how the GPUs of ranks, or of their training steps, spent their time: of one rank, or
// of all if it is nil. The run must have a breakdown.
func (a *Queries) GPUTimes(ctx context.Context, steps bool, of *trace.RankKey) ([]provenance.GPUTime, error) {
	program, rank := int32(-1), int32(0) // all
	if of != nil {
		program, rank = int32(of.Program), int32(of.Rank)
	}
	wanted := int32(0)
	if steps {
		wanted = 1
	}
	return executions.ReadAll[provenance.GPUTime](ctx, a, text("gpu_times"), wanted, program, rank)
}

// Collectives returns a breakdown without times. The run must have a breakdown.
func (a *Queries) Collectives(ctx context.Context) (*provenance.Breakdown, error) {
	b := provenance.Breakdown{Unit: a.Unit}
	var errs [2]error
	b.Collectives, errs[0] = executions.ReadAll[provenance.CollectiveStats](ctx, a, text("collectives"))
	b.Clocks, errs[1] = executions.ReadAll[provenance.RankClock](ctx, a, text("clocks"))
	return &b, errors.Join(errs[:]...)
}

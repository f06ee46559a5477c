package query

import (
	"context"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

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

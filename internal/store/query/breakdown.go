package query

import (
	"context"
	"errors"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// breakdownTables are the tables of the breakdown, which stores of earlier versions lack.
var breakdownTables = []string{"gpu_times", "collectives", "clocks"}

// Breakdown returns how the GPUs of the run spent their time. It returns nil if there is none: for runs
// without GPUs, live runs, and runs of an earlier version.
func (a *Queries) Breakdown(ctx context.Context) (*provenance.Breakdown, error) {
	if version, err := a.schemaVersion(ctx); err != nil || version < provdb.BreakdownSchema {
		return nil, err
	}
	b := provenance.Breakdown{Unit: a.Unit}
	var errs [3]error
	b.Times, errs[0] = executions.ReadAll[provenance.GPUTime](ctx, a, text("gpu_times"))
	b.Collectives, errs[1] = executions.ReadAll[provenance.CollectiveStats](ctx, a, text("collectives"))
	b.Clocks, errs[2] = executions.ReadAll[provenance.RankClock](ctx, a, text("clocks"))
	if err := errors.Join(errs[:]...); err != nil || b.Len() == 0 {
		return nil, err
	}
	return &b, nil
}

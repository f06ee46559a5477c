package query

import (
	"context"
	"errors"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// HasBreakdown reports whether it is known how the GPUs of the run spent their time, and whether the run has
// collective operations. Live runs have only these, if their traces have them.
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

package query

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Metadata describes a query for the metadata of ranks.
type Metadata struct {
	Name          string // pattern with * and ?; all if empty
	Program       *trace.Program
	Rank          *trace.Rank
	Limit, Offset int64
}

// Metadata returns the selected metadata, ordered by rank and step.
func (a *Queries) Metadata(ctx context.Context, q Metadata) (*provdb.Rows, error) {
	var name, rank any
	if q.Name != "" {
		name = executions.Like(q.Name)
	}
	if q.Rank != nil {
		rank = int32(*q.Rank)
	}
	return a.Query(ctx, text("metadata"), int32(a.Run.ID), executions.OptionalProgram(q.Program), rank, name, q.Limit, q.Offset)
}

package query

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// ExecutionsPDB describes a query for anomalies in the form of the original Chimbuko dashboard.
type ExecutionsPDB struct {
	Program         trace.Program
	Rank            *trace.Rank // all ranks if nil
	Steps           trace.Range // I/O steps
	FID             *int64      // function id of the schema; all functions if nil
	Severity, Score float64     // lower bounds
	Least           trace.Ticks // lower bound of the inclusive duration
	Descending      bool        // latest first
	Limit           int
}

// ExecutionsPDB yields the documents of anomalies that were not withdrawn, ordered by entry time,
// then at most one error.
func (a *Queries) ExecutionsPDB(ctx context.Context, q ExecutionsPDB) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var rank, fid any
		if q.Rank != nil {
			rank = int32(*q.Rank)
		}
		if q.FID != nil {
			fid = *q.FID
		}
		order := ""
		if q.Descending {
			order = "DESC"
		}
		rows, err := a.Query(ctx, strings.ReplaceAll(text("executions_pdb"), "/*order*/", order), int32(a.Run.ID), int32(q.Program), rank,
			q.Steps.First, q.Steps.Last, fid, q.Severity, q.Score, int64(q.Least), int64(q.Limit))
		if err != nil {
			yield(nil, err)
			return
		}
		yieldDocuments(rows, yield)
	}
}

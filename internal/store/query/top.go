package query

import (
	"context"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Top describes a query for the largest losses to anomalies that were not withdrawn.
type Top struct {
	By      string // function, rank, host, path or kind
	Order   string // lost, anomalies, severity or score
	Program *trace.Program
	Limit   int
	Waits   bool // include waits for other ranks, which are not slow themselves; kinds always do
}

// topBy maps By to statements, topOrder maps Order to columns.
var (
	topBy    = map[string]string{"function": "top_function", "rank": "top_rank", "host": "top_host", "path": "top_path", "kind": "top_kind"}
	topOrder = map[string]string{"lost": "lost_us", "anomalies": "anomalies", "severity": "severity", "score": "score"}
)

// Top returns the largest losses first.
func (a *Queries) Top(ctx context.Context, q Top) (*provdb.Rows, error) {
	file, err := executions.Choose("by", q.By, topBy)
	if err != nil {
		return nil, err
	}
	order, err := executions.Choose("order", q.Order, topOrder)
	if err != nil {
		return nil, err
	}
	sql, err := a.rollupStatement(ctx, file)
	if err != nil {
		return nil, err
	}
	sql = strings.ReplaceAll(sql, "/*order*/", order)
	return a.InMicros(a.Query(ctx, a.InSeconds(sql), int32(a.Run.ID), int64(a.Begin), executions.OptionalProgram(q.Program), int64(q.Limit),
		q.Waits || q.By == "kind"))
}

// Counters returns the statistics of the counters whose names match a pattern. An empty pattern
// matches all.
func (a *Queries) Counters(ctx context.Context, pattern string, p *trace.Program, limit int) (*provdb.Rows, error) {
	var name any
	if pattern != "" {
		name = executions.Like(pattern)
	}
	return a.Query(ctx, text("counters"), int32(a.Run.ID), executions.OptionalProgram(p), name, int64(limit))
}

package executions

import (
	"context"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// stored answers queries from the executions in a store.
type stored struct{ *Reader }

func (a stored) tables() *Tables { return nil }

func (a stored) count(ctx context.Context) (int64, error) {
	return ReadValue[int64](ctx, a, `SELECT count(*) AS "value" FROM executions WHERE run = $1`)
}

func (a stored) list(ctx context.Context, where Condition, by Order, limit int) ([]Execution, error) {
	sql := strings.NewReplacer("/*where*/", where.sql, "/*order*/", by.sql()).Replace(text("executions"))
	sql, args := bind([]any{int32(a.Run.ID), int64(limit)}, sql, where.values...)
	return ReadAll[Execution](ctx, a, sql, args[1:]...)
}

func (a stored) sum(ctx context.Context, where Condition, by Grouping) ([]Sums, error) {
	var columns []string
	for _, column := range []string{"pid", "rid", "tid", "fn", "func", "path", "hostname", "io_step", "is_gpu_event"} {
		if !slices.Contains(strings.Split(by.sql(), ", "), column) {
			column = "NULL AS " + column
			if strings.HasSuffix(column, "gpu_event") {
				column = "bool_or(is_gpu_event) AS is_gpu_event"
			}
		}
		columns = append(columns, column)
	}
	sql := strings.NewReplacer("/*columns*/", strings.Join(columns, ", "), "/*where*/", where.sql, "/*by*/", by.sql()).Replace(text("sums"))
	sql, args := bind([]any{int32(a.Run.ID)}, sql, where.values...)
	return ReadAll[Sums](ctx, a, sql, args[1:]...)
}

func (a stored) page(ctx context.Context, where Condition, by Order, offset, limit int, _ *Reader) (*provdb.Rows, error) {
	// The outer query has the columns of two tables.
	order := by.sql()
	sql := strings.NewReplacer("/*where*/", where.sql, "/*order*/", order, "/*outer*/", "e."+strings.ReplaceAll(order, ", ", ", e.")).
		Replace(a.InSeconds(text("anomalies")))
	sql, args := bind([]any{int32(a.Run.ID), int64(a.Begin), int64(limit), int64(offset)}, sql, where.values...)
	return a.Query(ctx, sql, args...)
}

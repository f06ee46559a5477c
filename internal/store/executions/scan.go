package executions

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// ReadEach calls f with each row of the answer to a statement whose first parameter is the run.
func ReadEach[T any](ctx context.Context, q Querier, sql string, f func(row *T), args ...any) error {
	rows, err := q.Query(ctx, sql, append([]any{q.id()}, args...)...)
	if err != nil {
		return err
	}
	return provdb.Scan(rows, f)
}

// ReadAll returns the rows of the answer to a statement whose first parameter is the run.
func ReadAll[T any](ctx context.Context, q Querier, sql string, args ...any) (all []T, err error) {
	err = ReadEach(ctx, q, sql, func(row *T) { all = append(all, *row) }, args...)
	return all, err
}

// ReadValue returns the column value of the only row of the answer to a statement whose first parameter is the run. It
// returns the zero value if there is no row.
func ReadValue[T any](ctx context.Context, q Querier, sql string, args ...any) (v T, err error) {
	type row struct {
		Value T `sql:"value"`
	}
	err = ReadEach(ctx, q, sql, func(r *row) { v = r.Value }, args...)
	return v, err
}

// ReadFirst returns the first row of the answer to a statement whose first parameter is the run, or nil if there are no rows.
func ReadFirst[T any](ctx context.Context, q Querier, sql string, args ...any) (*T, error) {
	all, err := ReadAll[T](ctx, q, sql, args...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

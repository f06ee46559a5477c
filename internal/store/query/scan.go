package query

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// readEach calls f with each row of the answer to a statement whose first parameter is the run.
func readEach[T any](ctx context.Context, a *Asker, sql string, f func(row *T), args ...any) error {
	rows, err := a.Query(ctx, sql, append([]any{int32(a.Run.ID)}, args...)...)
	if err != nil {
		return err
	}
	return provdb.Scan(rows, f)
}

// readAll returns the rows of the answer to a statement whose first parameter is the run.
func readAll[T any](ctx context.Context, a *Asker, sql string, args ...any) (all []T, err error) {
	err = readEach(ctx, a, sql, func(row *T) { all = append(all, *row) }, args...)
	return all, err
}

// readFirst returns the first row of the answer to a statement whose first parameter is the run; nil
// if there is none.
func readFirst[T any](ctx context.Context, a *Asker, sql string, args ...any) (*T, error) {
	all, err := readAll[T](ctx, a, sql, args...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

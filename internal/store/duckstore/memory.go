package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Memory is a database in memory that answers queries as a Store does. It is closed when
// nothing refers to it anymore, or by Close. Queries may run at the same time; Exec and Add
// must not.
type Memory struct{ s *Store }

// NewMemory returns an empty database.
func NewMemory(ctx context.Context) (*Memory, error) {
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return nil, fmt.Errorf("duckdb: %w", err)
	}
	s := &Store{path: "memory", db: sql.OpenDB(connector)}
	s.db.SetMaxIdleConns(-1)
	s.conn, err = s.db.Conn(ctx)
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "ATTACH ':memory:' AS prov; USE prov; SET temp_directory = ''; SET enable_external_access = false; "+
			"SET lock_configuration = true")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("duckdb: %w", err), s.release())
	}
	m := &Memory{s}
	runtime.AddCleanup(m, func(s *Store) { _ = s.Close() }, s)
	return m, nil
}

// NewCache is NewMemory.
func NewCache(ctx context.Context) (provdb.Cache, error) { return NewMemory(ctx) }

// Query answers one statement that only reads.
func (m *Memory) Query(ctx context.Context, query string, args ...any) (*provdb.Rows, error) {
	rows, err := m.s.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	all := rows.All
	rows.All = func(yield func([]any, error) bool) {
		all(yield)
		runtime.KeepAlive(m)
	}
	return rows, nil
}

// Exec runs statements that may write.
func (m *Memory) Exec(ctx context.Context, statements string) error {
	_, err := m.s.conn.ExecContext(ctx, statements)
	return err
}

// Add appends an answer of any store to a table whose columns are those of the answer, in
// their order.
func (m *Memory) Add(ctx context.Context, table string, rows *provdb.Rows) error {
	err := m.s.conn.Raw(func(raw any) error {
		a, err := duckdb.NewAppender(raw.(driver.Conn), "prov", "main", table)
		if err != nil {
			return err
		}
		values := make([]driver.Value, len(rows.Columns))
		for row, err := range rows.All {
			for i, v := range row {
				values[i] = v
			}
			if err == nil {
				err = a.AppendRow(values...)
			}
			if err != nil {
				return errors.Join(err, a.Clear(), a.Close())
			}
		}
		return a.CloseWithCancel(ctx)
	})
	if err != nil {
		return fmt.Errorf("copy %s into memory: %w", table, errors.Join(err, rows.Close()))
	}
	return nil
}

// Close ends all queries and frees the memory.
func (m *Memory) Close() error { return m.s.Close() }

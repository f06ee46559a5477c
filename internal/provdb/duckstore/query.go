package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/provdb"
)

// Query answers one statement that only reads.
func (s *Store) Query(ctx context.Context, query string, args ...any) (*provdb.Rows, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, s.explain("ask", err)
	}
	rows, err := s.query(ctx, conn, query, args)
	if err != nil {
		return nil, errors.Join(s.explain("ask", err), conn.Close())
	}
	return rows, nil
}

func (s *Store) query(ctx context.Context, conn *sql.Conn, query string, args []any) (*provdb.Rows, error) {
	if err := onlyReads(ctx, conn, query); err != nil {
		return nil, err
	}
	rows, types, err := run(ctx, conn, query, args)
	if err != nil {
		return nil, err
	}
	if wrapped := asText(query, types); wrapped != query {
		if err := rows.Close(); err != nil {
			return nil, err
		}
		if rows, _, err = run(ctx, conn, wrapped, args); err != nil { //nolint:rowserrcheck // All checks
			return nil, err
		}
	}
	answer := &provdb.Rows{Close: func() error { return errors.Join(rows.Close(), ignoreDone(conn.Close())) }}
	values, targets := make([]any, len(types)), make([]any, len(types))
	for i, t := range types {
		answer.Columns = append(answer.Columns, provdb.Column{Name: t.Name(), Type: typeOf(t.DatabaseTypeName())})
		targets[i] = &values[i]
	}
	answer.All = func(yield func([]any, error) bool) {
		defer func() { _ = answer.Close() }() // rows.Err tells
		for rows.Next() {
			err := rows.Scan(targets...)
			for i := range values {
				values[i] = plain(values[i], answer.Columns[i].Type)
			}
			if err != nil {
				yield(nil, s.explain("ask", err))
				return
			}
			if !yield(values, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, s.explain("ask", err))
		}
	}
	return answer, nil
}

func run(ctx context.Context, conn *sql.Conn, query string, args []any) (*sql.Rows, []*sql.ColumnType, error) {
	rows, err := conn.QueryContext(ctx, query, args...) //nolint:rowserrcheck // the caller reads them
	if err != nil {
		return nil, nil, err
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, nil, errors.Join(err, rows.Close())
	}
	return rows, types, nil
}

// asText wraps a query so that its columns of JSON arrive as text, for the driver
// decodes them and loses large numbers.
func asText(query string, types []*sql.ColumnType) string {
	var names, columns []string
	found := false
	for i, t := range types {
		name := fmt.Sprintf("c%d", i)
		names = append(names, name)
		if typeOf(t.DatabaseTypeName()) == provdb.JSON {
			found = true
			name = "to_json(" + name + ")::VARCHAR"
		}
		columns = append(columns, name)
	}
	if !found {
		return query
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM (" + strings.TrimRight(query, "; \t\r\n") + "\n) AS answer(" + strings.Join(names, ", ") + ")"
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// onlyReads refuses all statements but questions.
func onlyReads(ctx context.Context, conn *sql.Conn, query string) error {
	return conn.Raw(func(raw any) error {
		st, err := raw.(driver.ConnPrepareContext).PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		stmt := st.(*duckdb.Stmt)
		kind, err := stmt.StatementType()
		if err = errors.Join(err, stmt.Close()); err != nil {
			return err
		}
		if kind != duckdb.STATEMENT_TYPE_SELECT && kind != duckdb.STATEMENT_TYPE_EXPLAIN {
			return fmt.Errorf("%w: write one statement that begins with SELECT, WITH, FROM or EXPLAIN", provdb.ErrReadOnly)
		}
		return nil
	})
}

// typeOf is the type of a column in the contract's terms.
func typeOf(name string) provdb.Type {
	switch name {
	case "BOOLEAN":
		return provdb.Bool
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT":
		return provdb.Int
	case "FLOAT", "DOUBLE":
		return provdb.Float
	case "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "DATE":
		return provdb.Time
	case "JSON":
		return provdb.JSON
	}
	switch {
	case strings.HasPrefix(name, "DECIMAL"):
		return provdb.Float
	case strings.HasSuffix(name, "]"), strings.HasPrefix(name, "STRUCT"), strings.HasPrefix(name, "MAP"), strings.HasPrefix(name, "UNION"):
		return provdb.JSON
	}
	return provdb.Text
}

// plain is a value in the contract's terms.
func plain(v any, t provdb.Type) any {
	switch v := v.(type) {
	case nil, bool, float64:
		return v
	case string:
		if t == provdb.JSON {
			return json.RawMessage(v)
		}
		return v
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case int64:
		return v
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case uint64:
		if v > math.MaxInt64 {
			return json.Number(fmt.Sprint(v))
		}
		return int64(v)
	case *big.Int:
		if !v.IsInt64() {
			return json.Number(v.String())
		}
		return v.Int64()
	case float32:
		return float64(v)
	case duckdb.Decimal:
		return v.Float64()
	case time.Time:
		return v.UTC()
	}
	return fmt.Sprint(v)
}

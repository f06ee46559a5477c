package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// columnTypes are the DuckDB types of the types of the contract. Integers may exceed a
// BIGINT.
var columnTypes = map[provdb.Type]string{
	provdb.Bool: "BOOLEAN", provdb.Int: "HUGEINT", provdb.Float: "DOUBLE", provdb.Text: "VARCHAR", provdb.JSON: "VARCHAR",
	provdb.Time: "TIMESTAMP",
}

// WriteParquet writes rows of any store to a Parquet file, which it replaces. Integers have
// 64 bits, unsigned if a value requires it; JSON is text.
func WriteParquet(ctx context.Context, path string, rows *provdb.Rows) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	dir, err := os.MkdirTemp("", "chimbuko-parquet-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	connector, err := duckdb.NewConnector(dir+"/rows.duckdb", nil) // a file: the rows may exceed memory
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := fill(ctx, conn, rows); err != nil {
		return err
	}
	columns, err := narrow(ctx, conn, rows.Columns)
	if err != nil {
		return err
	}
	copyOut := fmt.Sprintf("COPY (SELECT %s FROM answer ORDER BY rowid) TO %s (FORMAT parquet, COMPRESSION zstd)", columns,
		quote(path))
	if _, err := conn.ExecContext(ctx, copyOut); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// fill stores the rows in the table answer with columns c0, c1 ….
func fill(ctx context.Context, conn *sql.Conn, rows *provdb.Rows) error {
	var columns []string
	for i, c := range rows.Columns {
		columns = append(columns, fmt.Sprintf("c%d %s", i, columnTypes[c.Type]))
	}
	if _, err := conn.ExecContext(ctx, "CREATE TABLE answer ("+strings.Join(columns, ", ")+")"); err != nil {
		return err
	}
	return appendTo(ctx, conn, "", "answer", func(add adder) error {
		values := make([]driver.Value, len(rows.Columns))
		for row, err := range rows.All {
			if err != nil {
				return err
			}
			for i, v := range row {
				values[i] = parquetValue(v)
			}
			if err := add(values...); err != nil {
				return err
			}
		}
		return nil
	})
}

func parquetValue(v any) driver.Value {
	switch v := v.(type) {
	case int64:
		return big.NewInt(v)
	case json.Number:
		n, _ := new(big.Int).SetString(string(v), 10) // nil if not an integer
		return n
	case json.RawMessage:
		return string(v)
	}
	return v
}

// narrow returns the select list of answer with the names of columns, and integers as
// narrow as their values permit.
func narrow(ctx context.Context, conn *sql.Conn, columns []provdb.Column) (string, error) {
	var all []string
	for i, c := range columns {
		value := fmt.Sprintf("c%d", i)
		if c.Type == provdb.Int {
			var signed, unsigned bool
			fits := fmt.Sprintf("SELECT coalesce(bool_and(TRY_CAST(c%[1]d AS BIGINT) IS NOT NULL), true), coalesce(bool_and(TRY_CAST(c%[1]d AS "+
				"UBIGINT) IS NOT NULL), true) FROM answer WHERE c%[1]d IS NOT NULL", i)
			if err := conn.QueryRowContext(ctx, fits).Scan(&signed, &unsigned); err != nil {
				return "", err
			}
			switch {
			case signed:
				value += "::BIGINT"
			case unsigned:
				value += "::UBIGINT"
			default:
				value += "::DOUBLE"
			}
		}
		all = append(all, value+` AS "`+strings.ReplaceAll(c.Name, `"`, `""`)+`"`)
	}
	return strings.Join(all, ", "), nil
}

package duckstore

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// columnsOf returns the columns of rows and DuckDB's names of their types.
func columnsOf(rows *sql.Rows) (columns []provdb.Column, names []string, err error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, nil, err
	}
	columns = make([]provdb.Column, len(types))
	for i, t := range types {
		columns[i] = provdb.Column{Name: t.Name(), Type: typeOf(t.DatabaseTypeName())}
		names = append(names, t.DatabaseTypeName())
	}
	return columns, names, nil
}

// typeOf returns the contract's type of a DuckDB type.
func typeOf(name string) provdb.Type {
	switch name {
	case "BOOLEAN":
		return provdb.Bool
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM":
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

// asText returns an expression for a column that the driver can read. name is the DuckDB
// type of the column.
func asText(column, name string, t provdb.Type) string {
	switch {
	case t == provdb.JSON && name != "JSON":
		return "to_json(" + column + ")::VARCHAR"
	case t == provdb.JSON, t == provdb.Text && name != "VARCHAR":
		return column + "::VARCHAR"
	}
	return column
}

// plain returns a value in its Go type of the contract.
func plain(v any, t provdb.Type) any {
	switch v := v.(type) {
	case nil, bool, float64:
		return v
	case string:
		if t == provdb.JSON {
			return json.RawMessage(v)
		}
		return v
	case int64:
		return v
	case int32:
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
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return r.Int()
	case r.CanUint():
		return int64(r.Uint())
	}
	return fmt.Sprint(v)
}

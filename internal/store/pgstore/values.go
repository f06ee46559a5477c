package pgstore

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// typeOf returns the contract's type of a column that is not a list; "" for numbers of which
// only the values show whether they are integers.
func typeOf(f pgconn.FieldDescription) provdb.Type {
	switch f.DataTypeOID {
	case pgtype.BoolOID:
		return provdb.Bool
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		return provdb.Int
	case pgtype.Float4OID, pgtype.Float8OID:
		return provdb.Float
	case pgtype.JSONOID, pgtype.JSONBOID:
		return provdb.JSON
	case pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID:
		return provdb.Time
	case pgtype.NumericOID:
		const header = 4
		switch {
		case f.TypeModifier < header:
			return ""
		case (f.TypeModifier-header)&0x7ff == 0: // digits after the point
			return provdb.Int
		}
		return provdb.Float
	}
	return provdb.Text
}

// mostAhead limits the rows that are read ahead to determine the types of columns.
const mostAhead = 100

// settle waits for the first row, so that Query returns the error of a failing query, and
// determines whether numerics are integers: sums are, means are not.
func (a *answer) settle() error {
	undecided := 0
	for i := range a.columns {
		if a.columns[i].Type == "" {
			undecided++
		}
	}
	for len(a.ahead) == 0 || undecided > 0 && len(a.ahead) < mostAhead {
		if !a.result.NextRow() {
			if _, err := a.result.Close(); err != nil {
				return err
			}
			break
		}
		row := a.result.Values()
		values := make([][]byte, len(row))
		for i, text := range row {
			if text == nil {
				continue
			}
			values[i] = append([]byte{}, text...)
			if a.columns[i].Type == "" {
				a.columns[i].Type = provdb.Float
				if isInteger(text) {
					a.columns[i].Type = provdb.Int
				}
				undecided--
			}
		}
		a.ahead = append(a.ahead, values)
	}
	for i := range a.columns {
		if a.columns[i].Type == "" { // all null
			a.columns[i].Type = provdb.Int
		}
		if a.decode[i] == nil {
			a.decode[i] = decoder(pgtype.NumericOID, a.columns[i].Type)
		}
	}
	return nil
}

func isInteger(text []byte) bool {
	for i, c := range text {
		if !isDigit(c) && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

// decoder returns the function that decodes the text of a value; nil if the type of the
// column is not known yet.
func decoder(oid uint32, t provdb.Type) func(text []byte) (any, error) {
	switch t {
	case provdb.Bool:
		return func(text []byte) (any, error) { return string(text) == "t", nil }
	case provdb.Int:
		return decodeInt
	case provdb.Float:
		return func(text []byte) (any, error) { return strconv.ParseFloat(string(text), 64) }
	case provdb.JSON:
		return func(text []byte) (any, error) { return json.RawMessage(append([]byte{}, text...)), nil }
	case provdb.Text:
		return func(text []byte) (any, error) { return string(text), nil }
	case provdb.Time:
		layout := "2006-01-02 15:04:05.999999999"
		switch oid {
		case pgtype.DateOID:
			layout = "2006-01-02"
		case pgtype.TimestamptzOID:
			layout += "Z07"
		}
		return func(text []byte) (any, error) { return decodeTime(layout, string(text)), nil }
	}
	return nil
}

// decodeInt decodes an integer, or a float64 if a numeric is not an integer.
func decodeInt(text []byte) (any, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err == nil:
		return n, nil
	case isInteger(text):
		return json.Number(text), nil
	}
	return strconv.ParseFloat(string(text), 64)
}

// decodeTime decodes a time; nil for infinity and years before 1.
func decodeTime(layout, text string) any {
	t, err := time.Parse(layout, text)
	if err != nil {
		return nil
	}
	return t.UTC()
}

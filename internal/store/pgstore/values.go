package pgstore

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// typeOf is the type of a column in the contract's terms, for types that are no
// lists; "" for numbers of which only the values tell whether they are whole.
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

// mostAhead is how many rows are read ahead to find out what a column holds.
const mostAhead = 100

// settle waits for the first row, so that a question that fails does so at once,
// and finds out whether numbers of any size are whole: sums are, means are not.
func (a *answer) settle() error {
	open := 0
	for i := range a.columns {
		if a.columns[i].Type == "" {
			open++
		}
	}
	for len(a.ahead) == 0 || open > 0 && len(a.ahead) < mostAhead {
		if !a.result.NextRow() {
			if _, err := a.result.Close(); err != nil {
				return err
			}
			break
		}
		row := a.result.Values()
		kept := make([][]byte, len(row))
		for i, text := range row {
			if text == nil {
				continue
			}
			kept[i] = append([]byte{}, text...)
			if a.columns[i].Type == "" {
				a.columns[i].Type = provdb.Float
				if isWhole(text) {
					a.columns[i].Type = provdb.Int
				}
				open--
			}
		}
		a.ahead = append(a.ahead, kept)
	}
	for i := range a.columns {
		if a.columns[i].Type == "" { // nothing but null
			a.columns[i].Type = provdb.Int
		}
		if a.decode[i] == nil {
			a.decode[i] = decoder(pgtype.NumericOID, a.columns[i].Type)
		}
	}
	return nil
}

func isWhole(text []byte) bool {
	for i, c := range text {
		if !isDigit(c) && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

// decoder returns how a value of a type is read from its text; nil where the type
// of the column is not known yet.
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

// decodeInt reads a whole number. A sum that is none after all is a float64.
func decodeInt(text []byte) (any, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err == nil:
		return n, nil
	case isWhole(text):
		return json.Number(text), nil
	}
	return strconv.ParseFloat(string(text), 64)
}

// decodeTime reads a time. What time.Parse does not know, as infinity and years
// before 1, is null.
func decodeTime(layout, text string) any {
	t, err := time.Parse(layout, text)
	if err != nil {
		return nil
	}
	return t.UTC()
}

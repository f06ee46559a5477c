package insight

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// maxAnswer bounds the bytes of an uncompressed answer.
const maxAnswer = 32 << 20

var errTooLarge = Problemf(api.TooLarge, "request fewer rows with limit", "the answer has more than %d bytes", maxAnswer)

// objects encodes rows as JSON objects with keys in the order of columns, like --format json.
func objects(rows *provdb.Rows, err error) (list []json.RawMessage, _ error) {
	if err != nil {
		return nil, err
	}
	list, size := []json.RawMessage{}, 0 // never null
	for row, err := range rows.All {
		if err != nil {
			return nil, err
		}
		o, err := object(rows.Columns, row)
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		if size += len(o); size > maxAnswer {
			return nil, errors.Join(errTooLarge, rows.Close())
		}
		list = append(list, o)
	}
	return list, nil
}

// object encodes a row.
func object(columns []provdb.Column, row []any) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, v := range row {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := api.Marshal(columns[i].Name)
		if err != nil {
			return nil, err
		}
		value, err := marshalValue(v)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", columns[i].Name, err)
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshalValue encodes a value. Numbers that are not finite become null.
func marshalValue(v any) ([]byte, error) {
	if x, ok := v.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
		return []byte("null"), nil
	}
	return api.Marshal(v)
}

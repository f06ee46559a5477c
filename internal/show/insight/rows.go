package insight

import (
	"encoding/json"
	"errors"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// maxAnswer bounds the bytes of an uncompressed answer.
const maxAnswer = 32 << 20

var errTooLarge = api.Problemf(api.TooLarge, "request fewer rows with limit", "the answer has more than %d bytes", maxAnswer)

// objects encodes rows as JSON objects with keys in the order of columns, like --format json.
func objects(rows *provdb.Rows, err error) ([]json.RawMessage, error) {
	return encodeRows(rows, err, func(_ []any, object json.RawMessage) json.RawMessage { return object })
}

// encodeRows calls item with each row and its JSON object, and returns the results.
func encodeRows[T any](rows *provdb.Rows, err error, item func(row []any, object json.RawMessage) T) ([]T, error) {
	if err != nil {
		return nil, err
	}
	list, size := []T{}, 0 // never null
	for row, err := range rows.All {
		if err != nil {
			return nil, err
		}
		o, err := provdb.MarshalRow(rows.Columns, row)
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		if size += len(o); size > maxAnswer {
			return nil, errors.Join(errTooLarge, rows.Close())
		}
		list = append(list, item(row, o))
	}
	return list, nil
}

package insight

import (
	"encoding/json"
	"errors"

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
		o, err := provdb.MarshalRow(rows.Columns, row)
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

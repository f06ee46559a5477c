package provdb

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// MarshalRow returns a row as a JSON object with its keys in the order of the columns.
func MarshalRow(columns []Column, row []any) (json.RawMessage, error) {
	b := []byte{'{'}
	for i, v := range row {
		if i > 0 {
			b = append(b, ',')
		}
		key, err := api.Marshal(columns[i].Name)
		if err != nil {
			return nil, err
		}
		value, err := MarshalValue(v)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", columns[i].Name, err)
		}
		b = append(append(append(b, key...), ':'), value...)
	}
	return append(b, '}'), nil
}

// MarshalValue returns a value of a row as JSON. Numbers that JSON cannot express are null.
func MarshalValue(v any) (json.RawMessage, error) {
	switch x := v.(type) {
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return json.RawMessage("null"), nil
		}
	case time.Time:
		return api.Marshal(PlainText(x)) // also years that time.Time does not marshal
	}
	return api.Marshal(v)
}

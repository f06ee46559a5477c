package provdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
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
	case json.RawMessage:
		if !json.Valid(x) {
			return repairJSON(x)
		}
	}
	return api.Marshal(v)
}

// notFinite are the numbers outside of JSON that DuckDB writes into documents.
var notFinite = [][]byte{[]byte("NaN"), []byte("-NaN"), []byte("Infinity"), []byte("-Infinity")}

// repairJSON returns a document with null instead of numbers that JSON cannot express. If that is not JSON either, the
// document becomes a string.
func repairJSON(doc []byte) (json.RawMessage, error) {
	var b []byte
	for i := 0; i < len(doc); {
		n := 1
		if doc[i] == '"' {
			n = lengthOfString(doc[i:])
		} else if at := slices.IndexFunc(notFinite, func(x []byte) bool { return bytes.HasPrefix(doc[i:], x) }); at >= 0 {
			b = append(b, "null"...)
			i += len(notFinite[at])
			continue
		}
		b = append(b, doc[i:i+n]...)
		i += n
	}
	if !json.Valid(b) {
		return api.Marshal(string(doc))
	}
	return api.Marshal(json.RawMessage(b))
}

// lengthOfString returns the length of the JSON string at the beginning of a document, with its quotes.
func lengthOfString(doc []byte) int {
	for i := 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

package remotestore

import (
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// toWire is a value of the contract as encoding/json writes it.
func toWire(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return map[string]any{"float": strconv.FormatFloat(v, 'g', -1, 64)}, nil
		}
		return json.Number(strconv.FormatFloat(v, 'e', -1, 64)), nil
	case string:
		if !utf8.ValidString(v) {
			return map[string]any{"text64": []byte(v)}, nil
		}
		return v, nil
	case json.Number:
		return map[string]any{"number": string(v)}, nil
	case json.RawMessage:
		if !utf8.Valid(v) {
			return map[string]any{"json64": []byte(v)}, nil
		}
		return map[string]any{"json": string(v)}, nil
	case time.Time:
		return map[string]any{"time": [2]int64{v.Unix(), int64(v.Nanosecond())}}, nil
	}
	return nil, fmt.Errorf("a value of type %T cannot be sent", v)
}

// argToWire is toWire for what a caller binds, which need not be of the
// contract's types: as in package database/sql, a number or text of any name does.
func argToWire(v any) (any, error) {
	w, err := toWire(v)
	if err == nil {
		return w, nil
	}
	plain, convErr := driver.DefaultParameterConverter.ConvertValue(v)
	if convErr != nil {
		return nil, err
	}
	return toWire(plain)
}

// fromWire is the value that toWire was given, from what encoding/json reads with
// numbers left as text.
func fromWire(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return strconv.ParseFloat(string(v), 64)
		}
		return strconv.ParseInt(string(v), 10, 64)
	case map[string]any:
		if len(v) == 1 {
			for kind, inner := range v {
				return unbox(kind, inner)
			}
		}
	}
	return nil, fmt.Errorf("no value is written as a %T", v)
}

func unbox(kind string, v any) (any, error) {
	if kind == "time" {
		return timeFromWire(v)
	}
	text, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("%q holds a %T, not a text", kind, v)
	}
	switch kind {
	case "float":
		f, err := strconv.ParseFloat(text, 64)
		if err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			err = errors.New("a float as text is finite")
		}
		return f, err
	case "number":
		return json.Number(text), nil
	case "json":
		return json.RawMessage(text), nil
	case "text64":
		b, err := base64.StdEncoding.DecodeString(text)
		return string(b), err
	case "json64":
		b, err := base64.StdEncoding.DecodeString(text)
		return json.RawMessage(b), err
	}
	return nil, fmt.Errorf("no value is of the kind %q", kind)
}

func timeFromWire(v any) (any, error) {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return nil, errors.New("a time is not a pair")
	}
	var parts [2]int64
	for i, p := range pair {
		n, ok := p.(json.Number)
		if !ok {
			return nil, errors.New("a time is not a pair of numbers")
		}
		var err error
		if parts[i], err = strconv.ParseInt(string(n), 10, 64); err != nil {
			return nil, err
		}
	}
	if ns := parts[1]; ns < 0 || ns >= int64(time.Second) {
		return nil, fmt.Errorf("a time has %d nanoseconds", ns)
	}
	return time.Unix(parts[0], parts[1]).UTC(), nil
}

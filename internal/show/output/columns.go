package output

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// columns parses the description of a table: names, each with the type after a colon.
// Columns without a type are text.
func columns(description string) []provdb.Column {
	var all []provdb.Column
	for field := range strings.FieldsSeq(description) {
		name, kind, ok := strings.Cut(field, ":")
		if !ok {
			kind = string(provdb.Text)
		}
		all = append(all, provdb.Column{Name: name, Type: provdb.Type(kind)})
	}
	return all
}

// rowsOf returns a row of values for each item of a list. Values may be of any basic type
// or a pointer to one; nil is NULL.
func rowsOf[T any](columns []provdb.Column, list []T, values func(x *T) []any) *provdb.Rows {
	columns = withFractions(columns, list, values)
	return &provdb.Rows{
		Columns: columns,
		All: func(yield func([]any, error) bool) {
			for i := range list {
				row := values(&list[i])
				for k, v := range row {
					row[k] = basic(reflect.ValueOf(v))
					if f, ok := row[k].(float64); ok && columns[k].Type == provdb.Int {
						row[k] = int64(f)
					}
				}
				if !yield(row, nil) {
					return
				}
			}
		},
		Close: func() error { return nil },
	}
}

// withFractions returns the columns. Columns of times become fractions if any of their values is
// one.
func withFractions[T any](columns []provdb.Column, list []T, values func(x *T) []any) []provdb.Column {
	isTime := func(c provdb.Column) bool { return c.Type == provdb.Int && strings.HasSuffix(c.Name, "_us") }
	if !slices.ContainsFunc(columns, isTime) {
		return columns
	}
	columns = slices.Clone(columns)
	for i := range list {
		for k, v := range values(&list[i]) {
			if f, ok := basic(reflect.ValueOf(v)).(float64); ok && isTime(columns[k]) && f != math.Trunc(f) {
				columns[k].Type = provdb.Float
			}
		}
	}
	return columns
}

// basic converts a value to the type that provdb.Rows have for it.
func basic(v reflect.Value) any {
	switch {
	case !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case v.Kind() == reflect.Pointer:
		return basic(v.Elem())
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	case v.CanFloat():
		return v.Float()
	case v.Kind() == reflect.String:
		return v.String()
	}
	return v.Interface()
}

// firstOf returns the first n items for which keep returns true.
func firstOf[T any](list []T, n int, keep func(x *T) bool) (matches []T) {
	for i := range list {
		if len(matches) < n && keep(&list[i]) {
			matches = append(matches, list[i])
		}
	}
	return matches
}

// sparkline draws counts as bars.
func sparkline(counts []int64) string {
	most := slices.Max(append(counts, 0))
	if most <= 0 {
		return "-"
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, n := range counts {
		at := 0
		if n > 0 {
			at = 1 + int(n*int64(len(levels)-2)/most)
		}
		b.WriteRune(levels[at])
	}
	return b.String()
}

package provdb

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// plans caches the fields of row types: reflect.Type to []scanField.
var plans sync.Map

// scanField is a field of a row type and the column it is read from.
type scanField struct {
	column string
	index  []int
}

// planOf returns the fields of a struct type with their columns, those of embedded structs
// included. A tag sql:"column" names the column of a field, and sql:"a,b" those of the fields of
// a struct. In a struct without such tags, columns have the names of the fields in JSON.
func planOf(t reflect.Type) []scanField {
	if plan, ok := plans.Load(t); ok {
		return plan.([]scanField)
	}
	tag := "json"
	for f := range t.Fields() {
		if _, ok := f.Tag.Lookup("sql"); ok {
			tag = "sql"
		}
	}
	var plan []scanField
	for f := range t.Fields() {
		columns := strings.Split(f.Tag.Get(tag), ",")
		switch {
		case f.Anonymous && columns[0] == "":
			for _, inner := range planOf(f.Type) {
				plan = append(plan, scanField{inner.column, append(slices.Clone(f.Index), inner.index...)})
			}
		case tag == "sql" && len(columns) > 1:
			for i, column := range columns {
				plan = append(plan, scanField{column, append(slices.Clone(f.Index), i)})
			}
		case columns[0] != "" && columns[0] != "-":
			plan = append(plan, scanField{columns[0], f.Index})
		}
	}
	plans.Store(t, plan)
	return plan
}

// Scan calls f with each row as a T, a struct whose fields have tags sql:"column", or else json
// tags. NULL is the zero value, or nil for pointers; a slice is read from JSON. The row is valid
// until f returns. Columns without a field are skipped; a field without a column is an error.
func Scan[T any](rows *Rows, f func(row *T)) error {
	row := new(T)
	v := reflect.ValueOf(row).Elem()
	at := make(map[string]int, len(rows.Columns))
	for i, c := range rows.Columns {
		at[c.Name] = i
	}
	plan := planOf(v.Type())
	columns, fields := make([]int, len(plan)), make([]reflect.Value, len(plan))
	for i, p := range plan {
		column, ok := at[p.column]
		if !ok {
			_ = rows.Close() // nothing was read
			return fmt.Errorf("scan %T: the answer has no column %q", *row, p.column)
		}
		columns[i], fields[i] = column, v.FieldByIndex(p.index)
	}
	for values, err := range rows.All {
		if err != nil {
			return err
		}
		for i, field := range fields {
			if !assign(field, values[columns[i]]) {
				_ = rows.Close() // the mismatch is reported instead
				return fmt.Errorf("scan %T: column %q has a %T, want %s", *row, plan[i].column, values[columns[i]], field.Type())
			}
		}
		f(row)
	}
	return nil
}

// assign sets a field to a value of a row and reports whether their types match.
func assign(field reflect.Value, value any) bool {
	if value == nil {
		field.SetZero()
		return true
	}
	switch kind := field.Kind(); v := value.(type) {
	case int64:
		switch {
		case field.CanInt():
			field.SetInt(v)
			return true
		case field.CanUint():
			field.SetUint(uint64(v))
			return true
		case kind == reflect.Float64:
			field.SetFloat(float64(v))
			return true
		}
	case float64:
		if kind == reflect.Float64 {
			field.SetFloat(v)
			return true
		}
	case string:
		switch {
		case kind == reflect.String:
			field.SetString(v)
			return true
		case field.Type() == rawType:
			field.SetBytes([]byte(v))
			return true
		case kind == reflect.Slice:
			field.SetZero() // the row before keeps its own
			return json.Unmarshal([]byte(v), field.Addr().Interface()) == nil
		}
	case bool:
		if kind == reflect.Bool {
			field.SetBool(v)
			return true
		}
	case json.RawMessage:
		if field.Type() == rawType {
			field.SetBytes(v)
			return true
		}
	case time.Time:
		if field.Type() == timeType {
			field.Set(reflect.ValueOf(v))
			return true
		}
	}
	switch field.Kind() {
	case reflect.Interface:
		field.Set(reflect.ValueOf(value))
		return true
	case reflect.Pointer:
		target := reflect.New(field.Type().Elem())
		field.Set(target)
		return assign(target.Elem(), value)
	}
	return false
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	timeType = reflect.TypeFor[time.Time]()
)

package packettest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Structure returns the fields of all objects of a JSON text with their types, by the path
// to the object; […] is an element of a list. It fails t if elements of a list differ.
func Structure(t testing.TB, b []byte) map[string]string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.1000s", err, b)
	}
	all := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			var fields []string
			for _, k := range slices.Sorted(maps.Keys(v)) {
				fields = append(fields, k+" "+kindOf(v[k]))
				walk(strings.TrimPrefix(path+"."+k, "."), v[k])
			}
			line := strings.Join(fields, ", ")
			if before, ok := all[path]; ok && before != line {
				t.Errorf("elements of %q differ: %s and %s", path, before, line)
			}
			all[path] = line
		case []any:
			for _, e := range v {
				walk(path+"[…]", e)
			}
		}
	}
	walk("", v)
	return all
}

func kindOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case string:
		return "text"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "float"
		}
		return "integer"
	}
	return fmt.Sprintf("%T", v)
}

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// references are packets whose structure is that of the documentation, and that of
// the original's. Their own tests are in the package summary.
var references = map[string]string{"1": "packet-v1.json", "2": "sample-packet-v2.json"}

// sameStructure fails unless all packets have the keys and types of the reference,
// and none of its parts is missing in all of them.
func sameStructure(t testing.TB, schema string, packets [][]byte) {
	t.Helper()
	text, err := os.ReadFile(tracetest.Root("internal", "show", "legacy", "testdata", references[schema]))
	if err != nil {
		t.Fatal(err)
	}
	want := structure(t, text)
	seen := map[string]bool{}
	for n, p := range packets {
		for path, fields := range structure(t, p) {
			if path == "" { // parts without news are left out
				for field := range strings.SplitSeq(fields, ", ") {
					if !slices.Contains(strings.Split(want[path], ", "), field) {
						t.Errorf("packet %d has %s", n, field)
					}
				}
			} else if fields != want[path] {
				t.Errorf("packet %d: %q:\n got %s\nwant %s", n, path, fields, want[path])
			}
			seen[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if !seen[path] {
			t.Errorf("no packet has %q", path)
		}
	}
}

// structure returns the fields of all objects of a JSON text with their types, by
// the path to the object; […] is an element of a list. If elements differ, that is
// among the fields.
func structure(t testing.TB, text []byte) map[string]string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var packet any
	if err := d.Decode(&packet); err != nil {
		t.Fatalf("%v in %s", err, tail(string(text)))
	}
	all := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			var fields []string
			for _, k := range slices.Sorted(maps.Keys(v)) {
				fields = append(fields, k+" "+typeOf(v[k]))
				walk(strings.TrimPrefix(path+"."+k, "."), v[k])
			}
			line := strings.Join(fields, ", ")
			if before, ok := all[path]; ok && before != line {
				line = before + " and also " + line
			}
			all[path] = line
		case []any:
			for _, e := range v {
				walk(path+"[…]", e)
			}
		}
	}
	walk("", packet)
	return all
}

func typeOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "float"
		}
		return "integer"
	}
	return fmt.Sprintf("%T", v)
}

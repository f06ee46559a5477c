package legacy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const runStats = "accumulate float, count float, kurtosis float, maximum float, mean float, minimum float, skewness float, stddev float"

// schema1 are the fields of the documented packet, by the path to their object.
// […] is an element of a list.
var schema1 = map[string]string{
	"":                               "anomaly_stats object, counter_stats list",
	"counter_stats[…]":               "app integer, counter text, stats object",
	"counter_stats[…].stats":         runStats,
	"anomaly_stats":                  "created_at integer, anomaly list, anomaly_metrics list, func list",
	"anomaly_stats.anomaly[…]":       "data list, key text, stats object",
	"anomaly_stats.anomaly[…].stats": runStats,
	"anomaly_stats.anomaly[…].data[…]": "app integer, max_timestamp integer, min_timestamp integer, n_anomalies integer, rank integer, " +
		"stat_id text, step integer, outlier_scores object",
	"anomaly_stats.anomaly[…].data[…].outlier_scores": runStats,
	"anomaly_stats.anomaly_metrics[…]": "app integer, rank integer, fid integer, fname text, _id integer, new_data " +
		"object, all_data object",
	"anomaly_stats.anomaly_metrics[…].new_data":          metricsFields,
	"anomaly_stats.anomaly_metrics[…].new_data.severity": runStats,
	"anomaly_stats.anomaly_metrics[…].new_data.score":    runStats,
	"anomaly_stats.anomaly_metrics[…].new_data.count":    runStats,
	"anomaly_stats.anomaly_metrics[…].all_data":          metricsFields,
	"anomaly_stats.anomaly_metrics[…].all_data.severity": runStats,
	"anomaly_stats.anomaly_metrics[…].all_data.score":    runStats,
	"anomaly_stats.anomaly_metrics[…].all_data.count":    runStats,
	"anomaly_stats.func[…]": "app integer, fid integer, name text, exclusive object, inclusive object, " +
		"stats object",
	"anomaly_stats.func[…].exclusive": runStats,
	"anomaly_stats.func[…].inclusive": runStats,
	"anomaly_stats.func[…].stats":     runStats,
}

const metricsFields = "first_io_step integer, last_io_step integer, max_timestamp integer, min_timestamp integer, severity object, " +
	"score object, count object"

func TestSchema1HasDocumentedFields(t *testing.T) {
	b, _ := encode(smallRun(), 1, 1)
	got := fieldsOf(t, b)
	for _, path := range slices.Sorted(maps.Keys(schema1)) {
		fields := strings.Split(schema1[path], ", ")
		slices.Sort(fields)
		if want := strings.Join(fields, ", "); got[path] != want {
			t.Errorf("%q:\n got %s\nwant %s", path, got[path], want)
		}
		delete(got, path)
	}
	for path, fields := range got {
		t.Errorf("%q is not documented; it has %s", path, fields)
	}
}

func TestSchema2HasFieldsOfOriginal(t *testing.T) {
	sample, err := os.ReadFile("testdata/sample-packet-v2.json")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := encode(smallRun(), 2, 1)
	got, want := fieldsOf(t, b), fieldsOf(t, sample)
	for path, fields := range want {
		if got[path] != fields {
			t.Errorf("%q:\n got %s\nwant %s", path, got[path], fields)
		}
		delete(got, path)
	}
	for path, fields := range got {
		t.Errorf("%q is not in the original; it has %s", path, fields)
	}
}

// fieldsOf returns the fields of all objects of a JSON text and their types, by
// the path to the object. The elements of a list must be alike.
func fieldsOf(t *testing.T, b []byte) map[string]string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, b)
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

package legacy_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
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
	b, _ := encode(packettest.SmallRun(), 1, 1)
	got := packettest.Structure(t, b)
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
	b, _ := encode(packettest.SmallRun(), 2, 1)
	got, want := packettest.Structure(t, b), packettest.Structure(t, sample)
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

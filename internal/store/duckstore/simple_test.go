package duckstore

import "testing"

func TestConvertedColumnsOfJSONAreSimple(t *testing.T) {
	for query, want := range map[string]bool{
		"SELECT doc::VARCHAR AS doc FROM anomalies_json WHERE run = $1":               true,
		"SELECT finding, ranks::VARCHAR AS ranks, hosts::VARCHAR AS\n hosts FROM f":   true,
		`SELECT info::VARCHAR AS "value" FROM runs`:                                   true,
		"SELECT doc FROM anomalies_json":                                              false,
		"SELECT ranks::VARCHAR AS ranks, hosts FROM findings":                         false,
		"SELECT doc ->> 'descr' FROM metadata_json":                                   false,
		"SELECT * FROM findings":                                                      false,
		"SELECT doc FROM (SELECT doc::VARCHAR AS doc FROM anomalies_json) AS answers": false,
	} {
		if got := isSimple(query); got != want {
			t.Errorf("%s: got %t", query, got)
		}
	}
}

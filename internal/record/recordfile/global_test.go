package recordfile_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
)

// runStats are statistics in the form of the original.
const runStats = `{"accumulate": 0.0, "count": 4.0, "kurtosis": -1.5, "maximum": 8.0, "mean": 2.5, "minimum": 1.0, "skewness": 0.5, "stddev": 2.0}`

// noStats are statistics of no value in the form of the original.
const noStats = `{"accumulate": 0.0, "count": 0.0, "kurtosis": 0.0, "maximum": 2.2250738585072014e-308, "mean": 0.0,
	"minimum": 1.7976931348623157e+308, "skewness": 0.0, "stddev": 0.0}`

var summary = stats.Summary{Accumulate: 10, Count: 4, Kurtosis: -1.5, Maximum: 8, Mean: 2.5, Minimum: 1, Skewness: 0.5, Stddev: 2}

func TestGlobalReadsCollectionsOfOriginal(t *testing.T) {
	dir := t.TempDir()
	metrics := func(count, rest string) string {
		return `{"anomaly_count": ` + count + `, "score": ` + count + `, "severity": ` + count + rest + `}`
	}
	store(t, `[{"__id": 0, "app": 0, "fid": 3, "fname": "f\"\u0000", "anomaly_metrics": `+
		metrics(runStats, `, "first_io_step": 2, "last_io_step": 9, "min_timestamp": 100, "max_timestamp": 900`)+`,
		"runtime_profile": {"exclusive_runtime": `+runStats+`, "inclusive_runtime": `+runStats+`}},
		{"app": 1, "fid": 4, "fname": "g", "anomaly_metrics": null, "runtime_profile": {"exclusive_runtime": `+noStats+`}},
		{"app": 1, "fid": 5, "fname": "h", "anomaly_metrics": `+
		metrics(noStats, `, "first_io_step": 2147483647, "last_io_step": -2147483648, "min_timestamp": 18446744073709551615, "max_timestamp": 0`)+`}]`,
		dir, "global_func_stats.json")
	store(t, `[{"app": 2, "counter": "bytes", "stats": `+runStats+`}]`, dir, "global_counter_stats.json")
	store(t, `[{"fid": 3, "pid": 2, "func_name": "f", "model": {"histogram": {"Bin Counts": [1]}}, "extra": 1}]`, dir, "ad_model.json")
	var notes recordfile.Notes
	got, err := recordfile.Global(t.Context(), dir, &notes)
	want := &provenance.Collections{
		FuncStats: []provenance.FuncStats{
			{
				FID: 3, Name: `f"\x00`, RuntimeProfile: provenance.RuntimeProfile{Exclusive: summary, Inclusive: summary},
				AnomalyMetrics: &provenance.AnomalyMetrics{
					Count: summary, FirstStep: 2, LastStep: 9, First: 100, Last: 900, Score: summary, Severity: summary,
				},
			},
			{App: 1, FID: 4, Name: "g"},
			{App: 1, FID: 5, Name: "h"},
		},
		CounterStats: []provenance.CounterStats{{App: 2, Name: "bytes", Stats: summary}},
		ADModels:     []provenance.ADModel{{FID: 3, Name: "f", Model: []byte(`{"histogram":{"Bin Counts":[1]}}`), PID: 2}},
		PathStats:    []provenance.PathStats{},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	wantNotes := map[string]int64{
		"functions with metrics of no anomaly; read without metrics": 1,
		"unknown times (2^64-1); read as -1":                         1,
		`unknown fields "ad_model.extra"; not read`:                  1,
	}
	if n := maps.Collect(notes.All()); !maps.Equal(n, wantNotes) {
		t.Errorf("got notes %v\nwant %v", n, wantNotes)
	}
}

func TestPeersRoundTrip(t *testing.T) {
	ratio, from, to, twin := 1.5, 9.25, 12.5, trace.Rank(0)
	windows := []provenance.LoadWindow{{From: 8, To: 9, Useful: 7, Wait: 1}, {From: 9, To: 10, Useful: 8, Ratio: &ratio}}
	want := &provenance.Peers{
		Loads: []provenance.RankLoad{
			{RID: 1, TID: provenance.AllThreads, Host: "a", Role: 1, Elapsed: 9, Useful: 5, Wait: 4, Sync: 3},
			{
				PID: 2, RID: 3, TID: 1, Device: true, Host: "b", Role: 2, Peers: 7, Ratio: &ratio, Pattern: provenance.Phase, From: &from, To: &to,
				Saved: 5, Share: 0.5, Windows: windows,
			},
		},
		Efficiency: []provenance.Efficiency{
			{Entire: true, To: 12, Ranks: 4, Parallel: 0.5, LoadBalance: 0.625, Communication: 0.75, Slowest: 3, DeviceParallel: &ratio},
		},
		Slow: []provenance.SlowPeer{{
			PID: 2, Pattern: provenance.Since, Host: "b", Ranks: []trace.Rank{3, 4}, Hosts: []string{"b"}, TID: provenance.AllThreads, Role: 1,
			Peers: 7, Weak: true, Ratio: 1.5, From: 9.25, LostOwn: 1, LostCaused: 2, Saved: 3, Share: 0.5, Confidence: 0.75, Windows: windows,
			Functions: []provenance.SlowFunction{{Func: "f", Calls: 2, Mean: 1.5, Peers: 1, Beyond: 1}}, Twin: &twin,
			Counters:  []provenance.SlowCounter{{Counter: "c", Rate: true, Value: 2, Peers: 1, Past: new(0.5), Spreads: 7}},
			SyncShare: 0.1, PeerSync: 0.2,
		}},
	}
	dir := t.TempDir()
	if err := recordfile.NewWriter(dir).WriteGlobal(&provenance.Collections{Peers: want}); err != nil {
		t.Fatal(err)
	}
	var notes recordfile.Notes
	got, err := recordfile.Global(t.Context(), dir, &notes)
	if n := maps.Collect(notes.All()); err != nil || len(n) > 0 || !reflect.DeepEqual(got.Peers, want) {
		t.Errorf("%v, notes %v\n got %+v\nwant %+v", err, n, got.Peers, want)
	}
	store(t, `[{"pid": 0, "rid": 1, "tid": -1, "elapsed_us": 3, "useful_us": 1, "wait_us": 2}, {"pid": 0}]`, dir, "global", "rank_loads.json")
	if got, err := recordfile.Global(t.Context(), dir, nil); err == nil || len(got.Peers.Loads) != 1 || len(got.Peers.Slow) != 1 {
		t.Errorf("damaged: got %+v, %v", got.Peers, err)
	}
}

func TestMissingCollectionsAreEmpty(t *testing.T) {
	got, err := recordfile.Global(t.Context(), t.TempDir(), nil)
	if err != nil || got.FuncStats == nil || got.CounterStats == nil || got.ADModels == nil || got.PathStats == nil ||
		len(got.FuncStats)+len(got.CounterStats)+len(got.ADModels)+len(got.PathStats) > 0 || got.Peers != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := recordfile.Global(t.Context(), filepath.Join(t.TempDir(), "x"), nil); !os.IsNotExist(err) {
		t.Errorf("missing directory: %v", err)
	}
}

func TestAllDamagedCollectionsAreReported(t *testing.T) {
	dir := t.TempDir()
	store(t, `[{"fid": 1, "fname": "f"}, {"fid": 2}]`, dir, "global", "func_stats.json")
	store(t, `[{"counter": "c", "stats": {"mean": 1}}]`, dir, "global", "counter_stats.json")
	store(t, `[{"fid": 1, "func_name": "f", "model": {}}`, dir, "global", "ad_model.json")
	path := `{"calls": 1, "exclusive_us": 2, "fid": 3, "func": "f", "pid": 0, `
	store(t, `[`+path+`"node": 1, "parent": 0}, `+path+`"node": 2, "parent": 2}]`, dir, "global", "path_stats.json")
	got, err := recordfile.Global(t.Context(), dir, nil)
	if err == nil || len(got.FuncStats) != 1 || len(got.CounterStats) != 0 || len(got.ADModels) != 1 || len(got.PathStats) != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, want := range []string{
		"func_stats.json: record 1, byte 27: without fname",
		"counter_stats.json: record 0, byte 27: stats: without count",
		"ad_model.json: byte 42: the file ends within",
		"path_stats.json: record 1, byte 91: it does not follow the 1 before it",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

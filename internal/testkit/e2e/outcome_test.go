package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// outcome is the result of a run.
type outcome struct {
	anomalies map[string]string // confirmed and promoted, by program and event
	statuses  map[string]int    // of all records of anomalies
	global    map[string]string // documents over all ranks, without numbers of functions, by collection and names
	model     []byte            // the file of --save-model
	findings  string            // all of them
	paths     string            // all calls by call path
	loads     string            // of all ranks, threads and GPUs, and their ratios to peers
}

// outcomeOf reads the result of a stored run.
func outcomeOf(t testing.TB, model, where string, args ...string) *outcome {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "json")
	must(t, append([]string{"export", where, dir, "--to", "json"}, args...)...)
	o := &outcome{anomalies: map[string]string{}, statuses: map[string]int{}, global: map[string]string{}}
	o.findings = must(t, append([]string{"findings", where, "--all", "--limit", "1000000", "--format", "json"}, args...)...)
	// One statement reads all tables, because each starts two processes.
	sql := asLines("path", "path_stats", "pid", "call_path", "calls", "exclusive_us") + " UNION ALL " +
		asLines("load", "rank_loads", "pid", "rid", "tid", "device", "host", `"role"`, "peers", "elapsed_us", "useful_us", "wait_us",
			"sync_us", "saved_us", "(ratio * 1000000)::BIGINT") + " UNION ALL " + asLines("load", "activity", "packed")
	lines := strings.SplitAfter(must(t, append([]string{"query", where, sql, "--format", "csv"}, args...)...), "\n")
	slices.Sort(lines) // stores sort texts differently
	for _, line := range lines {
		if strings.HasPrefix(line, "path,") {
			o.paths += line
		} else {
			o.loads += line
		}
	}
	for _, a := range documents(t, filepath.Join(dir, "anomalies.json")) {
		status := fmt.Sprint(a["status"])
		o.statuses[status]++
		if status == "confirmed" || status == "promoted" {
			// The end of the sentence depends on whether it was flagged at the time.
			why := fmt.Sprint(a["why"])
			why = why[:max(0, strings.LastIndex(why, ";"))]
			o.anomalies[fmt.Sprint(a["pid"], " ", a["event_id"])] = fmt.Sprint(a["func"], " ", a["entry"], " ", a["exit"], " ", a["outlier_score"],
				" ", a["kind"], " ", why)
		}
	}
	for _, collection := range []string{"func_stats", "counter_stats", "ad_model"} {
		for _, d := range documents(t, filepath.Join(dir, collection+".json")) {
			delete(d, "fid")
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			o.global[fmt.Sprint(collection, d["app"], d["pid"], d["fname"], d["func_name"], d["counter"])] = string(text)
		}
	}
	if model == "" {
		return o
	}
	var err error
	if o.model, err = os.ReadFile(model); err != nil {
		t.Fatal(err)
	}
	return o
}

// asLines returns a statement that selects columns of a table as one text, after another text.
func asLines(name, table string, columns ...string) string {
	var texts []string
	for _, column := range columns {
		texts = append(texts, "coalesce(("+column+")::VARCHAR, 'NULL')")
	}
	return fmt.Sprintf("SELECT '%s' AS name, %s AS line FROM %s", name, strings.Join(texts, " || ',' || "), table)
}

// documents reads a file with an array of documents.
func documents(t testing.TB, path string) (all []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return all
}

var offline = struct {
	sync.Mutex
	outcomes map[string]*outcome
}{outcomes: map[string]*outcome{}}

// offlineOf returns the outcome of analyze for a recording.
func offlineOf(t testing.TB, r recording, args ...string) *outcome {
	t.Helper()
	offline.Lock()
	defer offline.Unlock()
	name := fmt.Sprint(r.dir(), args)
	if o := offline.outcomes[name]; o != nil {
		return o
	}
	dir := t.TempDir()
	model, out := filepath.Join(dir, "model"), filepath.Join(dir, "offline")
	must(t, slices.Concat([]string{"analyze", "--passes", "1", "--out", out, "--save-model", model}, args, r.traces)...)
	o := outcomeOf(t, model, out)
	offline.outcomes[name] = o
	return o
}

// agree fails unless a run found the same as another.
func agree(t testing.TB, got, want *outcome) {
	t.Helper()
	different, shown := 0, 0
	for _, id := range slices.Sorted(maps.Keys(merged(got.anomalies, want.anomalies))) {
		if got.anomalies[id] != want.anomalies[id] {
			different++
			if different <= 3 {
				t.Logf("anomaly %s: got %q, want %q", id, got.anomalies[id], want.anomalies[id])
			}
		}
	}
	if different > 0 {
		t.Errorf("%d of %d anomalies differ", different, len(want.anomalies))
	}
	if got.findings != want.findings {
		t.Errorf("findings: got %s, want %s", got.findings, want.findings)
	}
	if got.paths != want.paths || strings.Count(got.paths, "\n") < 5 {
		t.Errorf("call paths: got %s, want %s", got.paths, want.paths)
	}
	if got.loads != want.loads || strings.Count(got.loads, "\n") < 2 {
		t.Errorf("loads of ranks: got %s, want %s", got.loads, want.loads)
	}
	if n := got.statuses["provisional"]; n > 0 {
		t.Errorf("%d anomalies are provisional after the end", n)
	}
	for _, name := range slices.Sorted(maps.Keys(merged(got.global, want.global))) {
		if got.global[name] != want.global[name] && shown < 3 {
			shown++
			t.Errorf("%s:\n got %s\nwant %s", name, got.global[name], want.global[name])
		}
	}
	if !bytes.Equal(got.model, want.model) {
		t.Errorf("the files of the models differ: %d and %d bytes", len(got.model), len(want.model))
	}
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

package cli_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// exportedTables are the files of an export.
var exportedTables = []string{
	"anomalies", "normalexecs", "metadata", "func_stats", "counter_stats", "ad_model", "call_paths", "path_stats",
	"frames", "window_calls", "messages", "counter_events", "node_states", "findings", "links",
	"rank_loads", "load_windows", "efficiency", "slow_peers", "gpu_times", "collectives", "clocks", "activity",
}

// mayBeEmpty are the tables without rows if no rank is slow, or without GPUs.
var mayBeEmpty = []string{"rank_loads", "load_windows", "efficiency", "slow_peers", "gpu_times", "collectives", "clocks", "activity"}

// countsOf are how many rows of a run each of them has.
func countsOf(t *testing.T, dir string) map[string]int {
	t.Helper()
	var parts []string
	for _, table := range exportedTables {
		parts = append(parts, fmt.Sprintf("SELECT '%s' AS name, count(*) AS n FROM %[1]s", table))
	}
	counts := make(map[string]int)
	for _, row := range queryJSON(t, "query", dir, strings.Join(parts, " UNION ALL ")) {
		counts[row["name"].(string)] = int(row["n"].(float64))
	}
	return counts
}

func TestExportWritesAllTables(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "ring", ringRun)
	want := countsOf(t, dir)
	f := func(form string, count func(paths []string) map[string]int) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "tables")
		text := must(t, "export", dir, out, "--to", form)
		var paths []string
		for _, table := range exportedTables {
			paths = append(paths, filepath.Join(out, table+"."+form))
			if line := fmt.Sprintf("%s.%s: %d rows\n", table, form, want[table]); want[table] == 0 && !slices.Contains(mayBeEmpty, table) || !strings.Contains(text, line) {
				t.Errorf("no line %q in\n%s", line, text)
			}
		}
		same(t, form, count(paths), want)
		if files, _ := os.ReadDir(out); len(files) != len(exportedTables) {
			t.Errorf("%d files, want %d", len(files), len(exportedTables))
		}
	}
	f("csv", func(paths []string) map[string]int {
		counts := make(map[string]int)
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
			if err != nil || lines[0][0] != "run" {
				t.Errorf("%s: %v", path, err)
			}
			counts[strings.TrimSuffix(filepath.Base(path), ".csv")] = len(lines) - 1
		}
		return counts
	})
	tracetest.Python(t, "pyarrow")
	f("parquet", func(paths []string) (counts map[string]int) {
		counts = make(map[string]int)
		for i, rows := range readParquet(t, paths...) {
			counts[strings.TrimSuffix(filepath.Base(paths[i]), ".parquet")] = len(rows)
		}
		return counts
	})
}

func TestInvalidExportsAreExplained(t *testing.T) {
	dir := analyzed(t, "ring", ringRun)
	fails(t, 2, []string{"export", dir, t.TempDir(), "--to", "perfetto"}, "need --event")
	fails(t, 2, []string{"export", dir, t.TempDir(), "--to", "hdf5"}, `cannot export a run to "hdf5"`)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, 1, []string{"export", dir, file, "--to", "csv"}, file)
}

func TestExportedDocumentsEqualFiles(t *testing.T) {
	dir := analyzed(t, "ring", ringRun)
	out := t.TempDir()
	must(t, "export", dir, out, "--to", "json")
	// sorted makes lists of documents comparable.
	sorted := func(docs []json.RawMessage) (texts []string) {
		for _, d := range docs {
			text, err := json.Marshal(asJSON(t, d))
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
		slices.Sort(texts)
		return texts
	}
	for _, collection := range exportedTables[:6] {
		var got, want []json.RawMessage
		readJSON(t, filepath.Join(out, collection+".json"), &got)
		paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*."+collection+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if paths == nil {
			paths = []string{filepath.Join(dir, "global", collection+".json")}
		}
		for _, path := range paths {
			var some []json.RawMessage
			readJSON(t, path, &some)
			want = append(want, some...)
		}
		if len(want) == 0 {
			t.Errorf("no %s", collection)
		}
		same(t, collection, sorted(got), sorted(want))
	}
}

func TestExportWritesEventAsTrace(t *testing.T) {
	dir := analyzed(t, "ring", ringRun)
	path := filepath.Join(t.TempDir(), "anomaly.trace")
	if text := must(t, "export", dir, path, "--event", "0:0:32", "--to", "perfetto"); !strings.Contains(text, path+": event 0:0:32") {
		t.Errorf("got %q", text)
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 100 || b[0] != 0x0a || !bytes.Contains(b, []byte("MPI_Waitall()")) { // field 1, a packet
		t.Errorf("%d bytes of %s do not begin as packets: %v", len(b), path, err)
	}
	must(t, "export", dir, path, "--event", "0:0:32", "--to", "chrome")
	var trace struct {
		Events []struct{ Ph, Name string } `json:"traceEvents"`
	}
	readJSON(t, path, &trace)
	if len(trace.Events) < 10 {
		t.Errorf("%d events", len(trace.Events))
	}
	fails(t, 1, []string{"export", dir, path, "--event", "7:7:7", "--to", "chrome"}, "not found")
	fails(t, 2, []string{"export", dir, path, "--event", "0:0:32"}, `cannot export an event to "parquet"`)
}

// queryCommands are commands that read a run, with their arguments after the run.
var queryCommands = [][]string{
	{"top"},
	{"top", "--by", "rank", "--order", "severity"},
	{"top", "--by", "host", "--order", "anomalies"},
	{"top", "--by", "path", "--order", "score", "--limit", "100"},
	{"anomalies", "--withdrawn", "--order", "time", "--limit", "100000"},
	{"anomalies", "--normal", "--limit", "100000"},
	{"anomalies", "--func", "MPI_*", "--since", "0.4", "--order", "lost"},
	{"event", "0:0:32", "--program", "1"},
	{"func", "MPI_Waitall()"},
	{"counters"},
}

// sameAnswers compares the answers of two stores to all queries.
func sameAnswers(t *testing.T, a, b string) {
	t.Helper()
	for _, q := range tracetest.Sample(queryCommands, 3) {
		var answers [2]any
		for i, dir := range []string{a, b} {
			args := append([]string{q[0], dir}, append(slices.Clone(q[1:]), "--format", "json")...)
			if err := json.Unmarshal([]byte(must(t, args...)), &answers[i]); err != nil {
				t.Fatal(err)
			}
		}
		same(t, fmt.Sprintf("%q", q), answers[1], answers[0])
	}
}

func TestImportedRunGivesSameAnswers(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	original := analyzed(t, "workflow", workflowRun)
	dir := filepath.Join(t.TempDir(), "imported")
	text := must(t, "import", original, "--out", dir)
	want := countsOf(t, original)
	counted := fmt.Sprintf("%d anomalies, %d typical executions", want["anomalies"], want["normalexecs"])
	if !strings.Contains(text, counted) || !strings.Contains(text, "The run is in "+dir) {
		t.Errorf("import printed\n%swant %q", text, counted)
	}
	sameAnswers(t, original, dir)
	if lines := queryCSV(t, "diff", original, dir); len(lines) != 1 {
		t.Errorf("they differ: %q", lines)
	}
	same(t, "rows", countsOf(t, dir), want)
	fails(t, 1, []string{"import", original, "--out", dir}, "--force")
	ring := analyzed(t, "ring", ringRun)
	must(t, "import", ring, "--out", dir, "--force")
	same(t, "rows of another", countsOf(t, dir), countsOf(t, ring))
	fails(t, 1, []string{"import", filepath.Join(dir, "nothing"), "--out", dir + "2"}, "no such file")
	fails(t, 1, []string{"import", t.TempDir(), "--out", dir + "3"}, "no files named")
}

func TestDamagedRecordsAreImportedInPart(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	original := analyzed(t, "ring", ringRun)
	records := filepath.Join(t.TempDir(), "records")
	if err := os.CopyFS(records, os.DirFS(filepath.Join(original, "records"))); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(records, "0", "1", "0.anomalies.json")
	text, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "imported")
	fails(t, 1, []string{"import", records, "--out", dir}, broken)
	if got, all := countsOf(t, dir)["anomalies"], countsOf(t, original)["anomalies"]; got == 0 || got >= all {
		t.Errorf("%d of %d anomalies were imported", got, all)
	}
}

func TestRecordsFlagChoosesForms(t *testing.T) {
	f := func(records string, database, files bool) {
		t.Helper()
		dir, r := analyze(t, "--records", records, "testdata/traces/ring-BP4")
		if r.code != 0 {
			t.Fatal(r.stderr)
		}
		for name, want := range map[string]bool{
			"provenance.duckdb": database, "records": files, "global": files, "run.json": true,
			"owner.json": false, "spool": false,
		} {
			if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
				t.Errorf("--records %s: %s is there: %t", records, name, err == nil)
			}
		}
	}
	f("db", true, false)
	f("json", false, true)
	f("both", true, true)
	out := filepath.Join(t.TempDir(), "run")
	fails(t, 2, []string{"analyze", "--out", out, "--records", "xml", "testdata/traces/ring-BP4"},
		`unknown --records "xml" (want db, json or both)`)
	fails(t, 2, []string{"analyze", "--out", out, "--store", "mysql://x", "testdata/traces/ring-BP4"}, "postgres://")
	fails(t, 2, []string{"analyze", "--out", out, "--records", "json", "--store", "postgres://x", "testdata/traces/ring-BP4"}, "--store",
		"--records")
	if _, err := os.Stat(out); err == nil {
		t.Error("a directory was made for a run that makes no sense")
	}
}

func TestPlacesWithoutDatabaseAreExplained(t *testing.T) {
	commands := [][]string{
		{"top", "RUN"},
		{"anomalies", "RUN"},
		{"event", "RUN", "0:0:0"},
		{"func", "RUN", "f"},
		{"counters", "RUN"},
		{"runs", "RUN"},
		{"query", "RUN", "SELECT 1"},
		{"export", "RUN", t.TempDir()},
		{"diff", "RUN", "RUN"},
	}
	f := func(where string, want ...string) {
		t.Helper()
		for _, command := range tracetest.Sample(commands, 4) {
			args := slices.Clone(command)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "RUN", where)
			}
			fails(t, 1, args, append(want, "chimbuko: ")...)
		}
	}
	ring := analyzed(t, "ring", ringRun)
	files, r := analyze(t, "--records", "json", "testdata/traces/ring-BP4")
	if r.code != 0 {
		t.Fatal(r.stderr)
	}
	f(files, "has JSON records but no database", "chimbuko import "+files)
	f(t.TempDir(), "is not a run directory", "has no provenance.duckdb")
	f(filepath.Join(files, "nothing"), "no such file", "want a run directory")
	f(filepath.Join(files, "run.json"), "not a provenance database of chimbuko")
	const damaged, foreign = "the file is damaged", "not a provenance database of chimbuko"
	for _, d := range []struct {
		name, want string
		damage     func(b []byte) []byte
	}{
		{"short", damaged, func(b []byte) []byte { return b[:len(b)/2] }},
		{"zeros", damaged, func(b []byte) []byte { return append(b[:1<<13:1<<13], make([]byte, len(b)-1<<13)...) }},
		{"empty", foreign, func([]byte) []byte { return nil }},
		{"garbage", foreign, func(b []byte) []byte { return bytes.Repeat([]byte("chimbuko"), len(b)/8) }},
	} {
		path := filepath.Join(t.TempDir(), d.name+" run", duckstore.FileName)
		b, err := os.ReadFile(filepath.Join(ring, duckstore.FileName))
		if err == nil {
			err = os.Mkdir(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, d.damage(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		f(filepath.Dir(path), path, d.want)
	}
	fails(t, 1, []string{"top", ring, "--run", "monday"}, `run "monday": not found; the store holds ring`)
	fails(t, 1, []string{"query", filepath.Join(ring, duckstore.FileName), "SELECT 1", "--run", "monday"},
		`run "monday": not found; the store holds ring`)
	if rows := queryJSON(t, "runs", ring); len(rows) != 1 || rows[0]["name"] != "ring" || rows[0]["state"] != "finished" ||
		rows[0]["anomalies"] != 39.0 {
		t.Errorf("the runs are %v", rows)
	}
}

func TestEvalGivesSameResultForStoreAndFiles(t *testing.T) {
	dir := analyzed(t, "gpu", gpuRun)
	truth := "testdata/traces/gpu-BP5/truth.txt"
	want := must(t, "eval", "--json", dir, truth)
	if !strings.Contains(want, `"planted": 6`) || !strings.Contains(want, `"found": 6`) {
		t.Errorf("of the store: %s", want)
	}
	files := filepath.Join(t.TempDir(), "files")
	if err := os.CopyFS(files, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(files, duckstore.FileName)); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{files, filepath.Join(dir, duckstore.FileName)} {
		if got := must(t, "eval", "--json", run, truth); got != want {
			t.Errorf("%s:\n got %s\nwant %s", run, got, want)
		}
	}
}

func TestOpenRunAnswersQueries(t *testing.T) {
	tracetest.SkipShort(t, "starts a server")
	original := analyzed(t, "workflow", workflowRun)
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(original)); err != nil {
		t.Fatal(err)
	}
	store, err := duckstore.Open(t.Context(), filepath.Join(dir, duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fails(t, 1, []string{"top", dir}, "in use", "no process answers queries")
	server, err := remotestore.Serve(t.Context(), store, rundir.Owner(dir))
	if err != nil {
		t.Fatal(err)
	}
	a, err := query.New(t.Context(), store, "")
	if err != nil {
		t.Fatal(err)
	}
	a.Run.State = provdb.Running // so that no sums are ready
	if err := store.UpdateRun(t.Context(), a.Run); err != nil {
		t.Fatal(err)
	}
	fails(t, 1, []string{"analyze", gpuRun[0], "--out", dir, "--force"}, "has a run in progress", "--out")
	sameAnswers(t, original, dir)
	same(t, "the file itself", queryJSON(t, "top", filepath.Join(dir, duckstore.FileName)), queryJSON(t, "top", original))
	if lines := queryCSV(t, "diff", dir, original); len(lines) != 1 {
		t.Errorf("they differ: %q", lines)
	}
	fails(t, 1, []string{"query", dir, "DELETE FROM runs"}, "only read-only queries are allowed")
	fails(t, 1, []string{"query", dir, "SELECT nothing FROM runs"}, `"nothing" not found`)
	endless := "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c WHERE a.range + b.range + c.range = 7"
	fails(t, 1, []string{"query", dir, endless, "--timeout", "50ms"}, "no answer within 50ms")
	fails(t, 1, []string{"event", dir, "7:7:7"}, "not found")
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	same(t, "afterwards", queryJSON(t, "top", dir), queryJSON(t, "top", original))
}

func TestFailedStartLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	fails(t, 1, []string{"analyze", gpuRun[0], "--out", dir, "--store", "postgres://nobody@127.0.0.1:1/none"}, "127.0.0.1:1")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", dir, err)
	}
}

package cli_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// sharedDir holds the runs that many tests query; each is analyzed once.
var sharedDir string

func TestMain(m *testing.M) {
	var err error
	if sharedDir, err = os.MkdirTemp("", "chimbuko-cli-*"); err != nil {
		panic(err)
	}
	code := pgtest.Main(m)
	_ = os.RemoveAll(sharedDir) // of tests
	os.Exit(code)
}

// Settings of the tested runs, all also with records as files, which
// the answers are compared with.
var (
	gpuRun  = []string{"testdata/traces/gpu-BP5", "--algorithm", "hbos", "--skip-first=false"}
	ringRun = []string{
		"testdata/traces/ring-monitoring-BP4", "--algorithm", "sstd", "--sigma", "2", "--min-samples", "3",
		"--skip-first=false",
	}
	workflowRun = []string{
		"testdata/traces/gpu-BP5", "testdata/traces/ring-monitoring-BP4", "TWO_HOSTS",
		"--program", "0=*gpu*", "--program", "1=*ring*", "--program", "2=*hosts*",
		"--algorithm", "sstd", "--sigma", "4", "--min-samples", "3", "--skip-first=false",
	}
)

// analyzed returns the directory of a run with these settings. Tests must not change
// it.
func analyzed(t *testing.T, name string, settings []string) string {
	t.Helper()
	dir := filepath.Join(sharedDir, name)
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
		return dir
	}
	args := []string{"analyze", "--out", dir, "--records", "both", "--workers", "1"}
	for _, s := range settings {
		if s == "TWO_HOSTS" {
			s = twoHosts(t)
		}
		args = append(args, s)
	}
	prepare(t, args...)
	return dir
}

// twoHosts writes the traces of three ranks on two hosts: ranks 0 and 1 are on
// node1, rank 2 on node2. Each call of g is made by one of f; one in twenty takes
// longer, the more so the higher the rank.
func twoHosts(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hosts")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for rank := range uint64(3) {
		steps := make([]tracetest.Step, 2)
		steps[0].Attrs = append(slices.Clone(tracetest.EventTypes), [2]string{"timer 1", "f"}, [2]string{"timer 2", "g"},
			[2]string{fmt.Sprintf("MetaData:%d:0:Hostname", rank), []string{"node1", "node1", "node2"}[rank]})
		now := uint64(1_794_706_448_000_000)
		for i := range steps {
			for call := range uint64(100) {
				long := uint64(10)
				if call%20 == 7 {
					long += 100 * (rank + 1)
				}
				row := func(kind, function uint64) [6]uint64 { return [6]uint64{0, rank, 0, kind, function, now} }
				steps[i].Funcs = append(steps[i].Funcs, row(0, 1))
				now += 3
				steps[i].Funcs = append(steps[i].Funcs, row(0, 2))
				now += long
				steps[i].Funcs = append(steps[i].Funcs, row(1, 2), row(1, 1))
				now += 50
			}
		}
		from := tracetest.WriteBP4(t, t.TempDir(), steps)
		if err := os.Rename(from, filepath.Join(dir, fmt.Sprintf("tau-metrics-hosts-%d.bp", rank))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// kept is an execution as the record files have it, without any code of ours.
type kept struct {
	ID        string `json:"event_id"`
	PID       int64
	RID       int64
	TID       int64
	FID       int64
	Func      string
	Hostname  string
	Entry     int64
	Exit      int64
	Exclusive int64   `json:"runtime_exclusive"`
	Inclusive int64   `json:"runtime_total"`
	Lost      int64   `json:"lost_time"`
	Severity  float64 `json:"outlier_severity"`
	Score     float64 `json:"outlier_score"`
	Status    string
	Kind      string
	Why       string
	IOStep    int64                   `json:"io_step"`
	GPU       bool                    `json:"is_gpu_event"`
	Stack     []struct{ Func string } `json:"call_stack"`

	Normal   bool            `json:"-"`
	Document json.RawMessage `json:"-"`
}

func (k *kept) UnmarshalJSON(text []byte) error {
	type plain kept
	k.Document = slices.Clone(text)
	return json.Unmarshal(text, (*plain)(k))
}

// path is the call path, from the outermost function to the execution itself.
func (k *kept) path() string {
	var names []string
	for _, frame := range slices.Backward(k.Stack) {
		names = append(names, frame.Func)
	}
	return strings.Join(names, " > ")
}

// counts reports whether the anomaly was not withdrawn.
func (k *kept) counts() bool { return !k.Normal && k.Status != "withdrawn" }

// place is where in its trace the execution was entered.
func (k *kept) place() (step, row int) {
	parts := strings.Split(k.ID, ":")
	step, _ = strconv.Atoi(parts[1])
	row, _ = strconv.Atoi(parts[2])
	return step, row
}

// records are those that were read already.
var records = map[string][]kept{}

// recordsOf returns all records of a run from its files.
func recordsOf(t *testing.T, dir string) (all []kept) {
	t.Helper()
	if all, ok := records[dir]; ok {
		return slices.Clone(all)
	}
	for _, collection := range []string{"anomalies", "normalexecs"} {
		paths, err := filepath.Glob(filepath.Join(dir, "records", "*", "*", "*."+collection+".json"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files of %s in %s: %v", collection, dir, err)
		}
		for _, path := range paths {
			var some []kept
			readJSON(t, path, &some)
			for i := range some {
				some[i].Normal = collection == "normalexecs"
			}
			all = append(all, some...)
		}
	}
	records[dir] = slices.Clone(all)
	return all
}

// counting are the anomalies among them that were not withdrawn.
func counting(all []kept) (some []kept) {
	for _, k := range all {
		if k.counts() {
			some = append(some, k)
		}
	}
	return some
}

// beginOf is the time when the run began.
func beginOf(t *testing.T, dir string) int64 {
	t.Helper()
	var info struct {
		Totals struct {
			Begin int64 `json:"begin_us"`
		}
	}
	readJSON(t, filepath.Join(dir, "run.json"), &info)
	if info.Totals.Begin == 0 {
		t.Fatal("run.json has no start time")
	}
	return info.Totals.Begin
}

// object is a row of an answer, or another object of JSON.
type object = map[string]any

// must runs a command that has to succeed without a word on standard error.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := run(t, args...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("%q: exit code %d, %s", args, r.code, r.stderr)
	}
	return r.stdout
}

// prepare makes data for a test as must does, but without the race detector, which would make
// that take ten times as long; other tests run the same commands with it.
func prepare(t *testing.T, args ...string) {
	t.Helper()
	if tracetest.RaceStays() {
		must(t, args...)
	} else {
		peak(t, args...)
	}
}

// queryJSON runs a command with --format json.
func queryJSON(t *testing.T, args ...string) (rows []object) {
	t.Helper()
	text := must(t, append(args, "--format", "json")...)
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%q: %v in %s", args, err, text)
	}
	return rows
}

// queryCSV runs a command with --format csv and returns its lines, starting with the
// names of the columns.
func queryCSV(t *testing.T, args ...string) [][]string {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(must(t, append(args, "--format", "csv")...))).ReadAll()
	if err != nil || len(lines) == 0 {
		t.Fatalf("%q: %d lines, %v", args, len(lines), err)
	}
	return lines
}

// same compares an answer with the expected one, both as JSON.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, w := asJSON(t, got), asJSON(t, want)
	if reflect.DeepEqual(g, w) {
		return
	}
	listG, okG := g.([]any)
	listW, okW := w.([]any)
	if okG && okW {
		for i := range min(len(listG), len(listW)) {
			if !reflect.DeepEqual(listG[i], listW[i]) {
				t.Errorf("%s: %d and %d rows, of which row %d is the first that differs:\n got %v\nwant %v", what, len(listG), len(listW), i,
					listG[i], listW[i])
				return
			}
		}
		t.Errorf("%s: %d rows, want %d", what, len(listG), len(listW))
		return
	}
	t.Errorf("%s:\n got %v\nwant %v", what, g, w)
}

// asJSON is a value after a way through JSON.
func asJSON(t *testing.T, v any) (plain any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// column takes one column of rows.
func column(rows []object, name string) (values []any) {
	for _, r := range rows {
		values = append(values, r[name])
	}
	return values
}

// fails runs a command that must fail with this code, with all of want in its error.
func fails(t *testing.T, code int, args []string, want ...string) {
	t.Helper()
	r := run(t, args...)
	if r.code != code {
		t.Errorf("%q: exit code %d, want %d: %s%s", args, r.code, code, r.stdout, r.stderr)
	}
	for _, w := range want {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("%q: no %q in %q", args, w, r.stderr)
		}
	}
}

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// analyze runs the command and returns the run directory.
func analyze(t *testing.T, args ...string) (string, result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	return dir, run(t, append([]string{"analyze", "--out", dir}, args...)...)
}

func TestAnalyzePrintsSummaryAndWritesRun(t *testing.T) {
	dir, r := analyze(t, "--records", "both", "testdata/traces/gpu-BP5")
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit code %d, %q", r.code, r.stderr)
	}
	for _, want := range []string{"70,859 events, 32,975 calls", "anomalies stored", "stencil_kernel(", "assemble(int)", "The run is in " +
		dir} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the summary has no %q:\n%s", want, r.stdout)
		}
	}
	var info struct {
		State    string
		Settings map[string]string
		Totals   struct{ Events, Calls, Anomalies, Functions int64 }
		Top      []struct {
			Function string
			LostUS   int64 `json:"lost_us"`
		} `json:"top_functions"`
		Notes []struct{ Name string }
	}
	readJSON(t, filepath.Join(dir, "run.json"), &info)
	if info.State != "finished" || info.Totals.Calls != 32975 || info.Settings["algorithm"] != "tail" || len(info.Top) == 0 ||
		info.Top[0].LostUS == 0 {
		t.Errorf("run.json is %+v", info)
	}
	var funcs []struct {
		FID     int
		Name    string          `json:"fname"`
		Metrics json.RawMessage `json:"anomaly_metrics"`
		Profile struct {
			Exclusive struct{ Count float64 } `json:"exclusive_runtime"`
		} `json:"runtime_profile"`
	}
	readJSON(t, filepath.Join(dir, "global", "func_stats.json"), &funcs)
	var counters, models []map[string]any
	readJSON(t, filepath.Join(dir, "global", "counter_stats.json"), &counters)
	readJSON(t, filepath.Join(dir, "global", "ad_model.json"), &models)
	if int64(len(funcs)) != info.Totals.Functions || len(models) != len(funcs) || len(counters) != 35 {
		t.Errorf("%d functions, %d models, %d counters", len(funcs), len(models), len(counters))
	}
	calls := 0.0
	for i, f := range funcs {
		calls += f.Profile.Exclusive.Count
		if f.FID != i {
			t.Errorf("function %d has the number %d", i, f.FID)
		}
	}
	if calls != 32975 {
		t.Errorf("profiles hold %v calls, want 32975", calls)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "spool")); len(left) > 0 {
		t.Error("the spool was not removed")
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestAnalyzeAndEvalAgreeOnPlantedTrouble(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	check := func(dir, traces, truth string, args []string, atLeast, others int) {
		t.Helper()
		e := run(t, "eval", "--json", dir, truth)
		var got struct{ Planted, Found, Other int }
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
			t.Fatalf("%v: %s", err, e.stderr)
		}
		t.Logf("%s %q: %d of %d, %d others", filepath.Base(truth), args, got.Found, got.Planted, got.Other)
		if got.Found < atLeast || got.Other > others {
			t.Errorf("%s %q: found %d of %d with %d others, want at least %d and at most %d", traces, args, got.Found, got.Planted, got.Other,
				atLeast, others)
		}
	}
	const gpu = "testdata/traces/gpu-BP5"
	dir, r := analyze(t, gpu)
	if r.code != 0 {
		t.Fatalf("exit code %d, %s", r.code, r.stderr)
	}
	check(dir, gpu, gpu+"/truth.txt", nil, 6, 600)
	large := func(t *testing.T, traces, truth string, args []string, atLeast, others int) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "run")
		prepare(t, slices.Concat([]string{"analyze", "--out", dir}, args, []string{traces})...)
		check(dir, traces, truth, args, atLeast, others)
	}
	// What the original finds with each detector is in the archive of
	// expected results: at least that, with fewer others.
	for _, trace := range []struct {
		name              string
		hbos, sstd, copod [2]int
	}{
		{"heat2d-BP5", [2]int{97, 1481}, [2]int{67, 307}, [2]int{41, 328}},
		{"heat2d-BP4", [2]int{97, 1271}, [2]int{69, 361}, [2]int{41, 222}},
	} {
		t.Run(trace.name, func(t *testing.T) {
			tracetest.SkipShort(t, "analyzes large recordings")
			dir := filepath.Dir(tracetest.Large(t, trace.name)[0])
			large(t, dir, dir, nil, trace.hbos[0], trace.hbos[1])
			large(t, dir, dir, []string{"--algorithm", "sstd"}, trace.sstd[0], trace.sstd[1])
			large(t, dir, dir, []string{"--algorithm", "copod"}, trace.copod[0], trace.copod[1])
		})
	}
	t.Run("gpu-late-BP4", func(t *testing.T) {
		tracetest.SkipShort(t, "analyzes a large recording")
		dir := filepath.Dir(tracetest.Large(t, "gpu-late-BP4")[0])
		large(t, dir, filepath.Join(dir, "truth.txt"), nil, 6, 600)
	})
}

func TestIncludeSelfDisablesReviewByDefault(t *testing.T) {
	f := func(reviewed bool, args ...string) {
		t.Helper()
		_, r := analyze(t, append(args, "--json", "--records", "json", "testdata/traces/gpu-BP5")...)
		var sum struct {
			Review struct{ Withdrawn int }
		}
		if err := json.Unmarshal([]byte(r.stdout), &sum); err != nil {
			t.Fatal(err)
		}
		if got := sum.Review.Withdrawn > 0; got != reviewed {
			t.Errorf("%q: %d anomalies are withdrawn", args, sum.Review.Withdrawn)
		}
	}
	f(true)
	f(false, "--include-self")
	f(true, "--include-self", "--review")
	f(false, "--review=false")
}

func TestAnalyzeOverwritesOnlyWithForce(t *testing.T) {
	dir, r := analyze(t, "testdata/traces/ring-BP4")
	if r.code != 0 {
		t.Fatal(r.stderr)
	}
	if r := run(t, "analyze", "--out", dir, "testdata/traces/ring-BP4"); r.code != 1 || !strings.Contains(r.stderr, "--force") {
		t.Errorf("exit code %d, %q", r.code, r.stderr)
	}
	if r := run(t, "analyze", "--out", dir, "--force", "testdata/traces/ring-BP4"); r.code != 0 {
		t.Errorf("with --force: exit code %d, %q", r.code, r.stderr)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "analyze", "--out", other, "--force", "testdata/traces/ring-BP4"); r.code != 1 ||
		!strings.Contains(r.stderr, "has no run") {
		t.Errorf("a directory with other things: exit code %d, %q", r.code, r.stderr)
	}
}

func TestAnalyzeReportsAllWrongSettings(t *testing.T) {
	_, r := analyze(t, "--algorithm", "magic", "--window", "-3", "--scope", "world", "--statistic", "mean", "--passes", "4",
		"--function-threshold", "x", "testdata/traces/ring-BP4")
	for _, want := range []string{"magic", "window -3", `scope "world"`, `statistic "mean"`, "passes 4", `threshold "x"`} {
		if r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("exit code %d, %q does not name %s", r.code, r.stderr, want)
		}
	}
}

func TestPatternsAssignProgramsOfWorkflow(t *testing.T) {
	dir, r := analyze(t, "--records", "json", "--program", "0=*ring-BP4*", "--program", "1=*ring-BP5*", "testdata/traces/ring-BP4",
		"testdata/traces/ring-BP5")
	if r.code != 0 {
		t.Fatal(r.stderr)
	}
	for _, want := range []string{"records/0/0", "records/0/1", "records/1/0", "records/1/1"} {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Error(err)
		}
	}
	if _, r := analyze(t, "--program", "3=nothing*", "testdata/traces/ring-BP4"); r.code != 2 || !strings.Contains(r.stderr, "matches no trace") {
		t.Errorf("a pattern that matches nothing: exit code %d, %q", r.code, r.stderr)
	}
}

func TestModelIsSavedLoadedAndFrozen(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model")
	if _, r := analyze(t, "--save-model", model, "--passes", "2", "testdata/traces/gpu-BP5"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	_, r := analyze(t, "--load-model", model, "--freeze-model", "--json", "testdata/traces/gpu-BP5")
	var sum struct {
		Review struct{ Anomalies, Promoted, Withdrawn int }
	}
	if err := json.Unmarshal([]byte(r.stdout), &sum); err != nil || sum.Review.Anomalies == 0 ||
		sum.Review.Promoted+sum.Review.Withdrawn != 0 {
		t.Errorf("with a frozen model nothing changes in the review, but it is %+v (%v)", sum.Review, err)
	}
	if err := os.WriteFile(model, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, r := analyze(t, "--load-model", model, "testdata/traces/gpu-BP5"); r.code != 2 ||
		!strings.Contains(r.stderr, "not a model file of chimbuko") {
		t.Errorf("a broken model: exit code %d, %q", r.code, r.stderr)
	}
}

// Data that is missing or damaged makes a run incomplete and its analysis fail, however little can be read.
func TestDamagedTraceFailsAnalysis(t *testing.T) {
	f := func(file, want string, damage func(b []byte) []byte) {
		t.Helper()
		trace := tracetest.Copy(t, tracetest.Recorded(t, "ring-BP4")[0])
		path := filepath.Join(trace, file)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damage(good), 0o600); err != nil {
			t.Fatal(err)
		}
		dir, r := analyze(t, trace)
		if r.code != 1 || !strings.Contains(r.stdout, "incomplete: ") || !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("%s: exit code %d, want 1 and %q:\n%s%s", file, r.code, want, r.stdout, r.stderr)
		}
		var info provdb.Info
		if b, err := os.ReadFile(filepath.Join(dir, "run.json")); err != nil || json.Unmarshal(b, &info) != nil || len(info.Incomplete) == 0 {
			t.Errorf("%s: the run is not incomplete: %v\n%s", file, err, b)
		}
	}
	f("md.idx", "1 traces that were not closed", func(b []byte) []byte { return b[:40] })
	f("md.idx", "1 traces that were not closed", func([]byte) []byte { return nil })
	f("md.idx", "bytes of metadata that the index does not mention", func(b []byte) []byte { return b[:len(b)-64] })
	f("md.idx", "1 traces that were not closed", func(b []byte) []byte { // the writer was killed
		b[38] = 1
		return b
	})
	f("data.0", "data loss: ", func(b []byte) []byte { return slices.Concat(b[:len(b)/3], make([]byte, 33), b[len(b)/3:]) })
}

func TestConfigPrintsSettingsOfAnalyze(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(file, []byte("algorithm = \"sstd\"\nsigma = 8.5\nignore = [\"MPI_*\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, "config", "--config", file, "--window", "7")
	for _, want := range []string{`algorithm = "sstd"`, "sigma = 8.5", "window = 7", `ignore = ["MPI_*"]`, "flag --window"} {
		if r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("exit code %d: no %q in\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
}

// peak runs a command line and returns the most memory that it had, on two processors: more
// need more memory.
func peak(t *testing.T, args ...string) (most int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), peakProgram(t), args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, os.Stderr, tracetest.Root()
	if err := startOnTwoProcessors(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(out.String(), &most); err != nil {
		t.Fatal(err)
	}
	return most
}

// peakProgram returns the program that measures its own memory. It is built without the race
// detector, so it is also the one for large data.
func peakProgram(t *testing.T) string {
	t.Helper()
	tracetest.SkipShort(t, "builds and starts a program")
	bin, err := buildPeak()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

var buildPeak = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(sharedDir, "peak")
	build := exec.Command("go", "build", tracetest.LinkFlags(), "-o", bin, "./internal/cli/testdata/peak")
	build.Dir = tracetest.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return bin, nil
})

func TestAnalyzeNeedsLittleMemory(t *testing.T) {
	for _, run := range []string{"heat2d-large-BP4", "heat2d-large-BP5"} {
		// DuckDB adds its code, in any case, and its buffers. The limits leave room for garbage
		// that a busy machine collects late: idle ones need at most 97 and 124 MB.
		for records, limit := range map[string]int64{"json": 160, "db": 190} {
			t.Run(run+" "+records, func(t *testing.T) {
				args := append([]string{"analyze", "--records", records, "--out", filepath.Join(t.TempDir(), "run")}, tracetest.Large(t, run)...)
				n := peak(t, args...) >> 20
				t.Logf("%d MB at most", n)
				if n > limit {
					t.Errorf("%d MB at most, want less than %d", n, limit)
				}
			})
		}
	}
}

// TestManyRanksNeedLittleMemoryEach has a thousand ranks with a hundred functions each,
// and flags so much that all of them keep something. An idle machine needs 230 MB; a busy one
// collects garbage late.
func TestManyRanksNeedLittleMemoryEach(t *testing.T) {
	traces := filepath.Join(t.TempDir(), "traces")
	peak(t, "simulate", "--scenario", "scale", "--ranks", "1000", "--steps", "3", "--out", traces)
	n := peak(t, "analyze", "--records", "json", "--algorithm", "sstd", "--sigma", "2.1", "--out",
		filepath.Join(t.TempDir(), "run"), traces) >> 20
	t.Logf("%d MB at most", n)
	if n > 400 {
		t.Errorf("%d MB at most, want less than 400", n)
	}
}

// TestManyRanksNeedFewOpenFiles limits the number of open files to a few.
func TestManyRanksNeedFewOpenFiles(t *testing.T) {
	bin := peakProgram(t)
	dir := t.TempDir()
	const ranks = 200
	for rank := range uint64(ranks) {
		steps := make([]tracetest.Step, 3)
		steps[0].Attrs = append(slices.Clone(tracetest.EventTypes), [2]string{"timer 1", "f"})
		for i := range steps {
			for call := range uint64(50) {
				start := 1000*uint64(i+1) + 10*call
				steps[i].Funcs = append(steps[i].Funcs, [6]uint64{0, rank, 0, 0, 1, start}, [6]uint64{0, rank, 0, 1, 1, start + 5})
			}
		}
		from := tracetest.WriteBP4(t, t.TempDir(), steps)
		if err := os.Rename(from, filepath.Join(dir, fmt.Sprintf("tau-metrics-f-%d.bp", rank))); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "run")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 64; exec "$@"`, "sh", bin, "analyze", "--out", out, dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var info struct{ Totals struct{ Calls, Ranks int64 } }
	readJSON(t, filepath.Join(out, "run.json"), &info)
	if info.Totals.Ranks != ranks || info.Totals.Calls != ranks*150 {
		t.Errorf("%d ranks, %d calls, want %d and %d", info.Totals.Ranks, info.Totals.Calls, ranks, ranks*150)
	}
}

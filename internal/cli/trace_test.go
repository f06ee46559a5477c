package cli_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestTraceInfo(t *testing.T) {
	for name, args := range map[string][]string{
		"info-ring.golden":         {"trace", "info", "testdata/traces/ring-BP4"},
		"info-ring-json.golden":    {"trace", "info", "--json", "testdata/traces/ring-BP4"},
		"info-onefile.golden":      {"trace", "info", "testdata/traces/ring-onefile-BP5"},
		"info-onefile-json.golden": {"trace", "info", "--json", "testdata/traces/ring-onefile-BP5/tau-metrics-ring.bp"},
		"info-gpu.golden":          {"trace", "info", "testdata/traces/gpu-*/*.bp"},
	} {
		r := run(t, args...)
		if r.code != 0 || r.stderr != "" {
			t.Errorf("%q: exit code %d, %q", args, r.code, r.stderr)
		}
		golden(t, name, r.stdout)
	}
}

// infoJSON is what programs rely on.
type infoJSON struct {
	Files []struct {
		Path   string
		Engine string
		Active bool
		Rank   *int
		Error  string
		infoCounts
	}
	Totals infoCounts
}

type infoCounts struct {
	Steps         int64
	FuncEvents    int64 `json:"func_events"`
	CommEvents    int64 `json:"comm_events"`
	CounterEvents int64 `json:"counter_events"`
	Threads       int64
	Functions     int64
	Counters      int64
	FirstUS       int64 `json:"first_us"`
	LastUS        int64 `json:"last_us"`
	Bytes         int64
}

func info(t *testing.T, paths ...string) (infoJSON, result) {
	t.Helper()
	r := run(t, append([]string{"trace", "info", "--json"}, paths...)...)
	var got infoJSON
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("%v in %q", err, r.stdout)
	}
	return got, r
}

func TestTotalsAreSumsOverFiles(t *testing.T) {
	got, _ := info(t, "testdata/traces")
	if len(got.Files) != 12 {
		t.Errorf("got %d files, want 12", len(got.Files))
	}
	sum := infoCounts{FirstUS: got.Files[0].FirstUS}
	for _, f := range got.Files {
		sum.Steps += f.Steps
		sum.FuncEvents += f.FuncEvents
		sum.CommEvents += f.CommEvents
		sum.CounterEvents += f.CounterEvents
		sum.Threads += f.Threads
		sum.Functions += f.Functions
		sum.Counters += f.Counters
		sum.Bytes += f.Bytes
		sum.FirstUS = min(sum.FirstUS, f.FirstUS)
		sum.LastUS = max(sum.LastUS, f.LastUS)
	}
	if sum != got.Totals || sum.FuncEvents != 6*184+2*186+2*380+254+65950 {
		t.Errorf("totals are %+v, the files add up to %+v", got.Totals, sum)
	}
}

func TestBrokenTraceGivesReadableStepsAndOneError(t *testing.T) {
	for _, name := range []string{"ring-BP4", "ring-BP5"} {
		broken := tracetest.Copy(t, tracetest.Recorded(t, name)[0])
		path := filepath.Join(broken, "md.0")
		size := fileSize(t, path)
		if err := os.Truncate(path, size-100); err != nil {
			t.Fatal(err)
		}
		got, r := info(t, broken, tracetest.Recorded(t, name)[1])
		if r.code != 1 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, path) ||
			!strings.Contains(r.stderr, "at byte "+strconv.FormatInt(size-100, 10)) || !strings.Contains(r.stderr, "step 1") {
			t.Errorf("%s: exit code %d and %q, want 1 and one error with file and byte", name, r.code, r.stderr)
		}
		if got.Files[0].Steps != 1 || got.Files[0].Error == "" || got.Files[1].Steps != 2 || got.Files[1].Error != "" {
			t.Errorf("%s: got %+v, want one step and an error, then two steps and none", name, got.Files)
		}
		if d := run(t, "trace", "dump", broken); d.code != 1 || !strings.Contains(d.stdout, "taupreload_main") ||
			!strings.Contains(d.stderr, path) {
			t.Errorf("%s: dump ended with %d and %q after %d bytes", name, d.code, d.stderr, len(d.stdout))
		}
	}
}

func TestTraceDumpPrintsEventsInThreeFormats(t *testing.T) {
	const trace = "testdata/traces/ring-monitoring-BP4/tau-metrics-ring-0.bp"
	for _, format := range []string{"text", "jsonl", "csv"} {
		r := run(t, "trace", "dump", "--format", format, trace)
		if r.code != 0 || r.stderr != "" {
			t.Errorf("%s: exit code %d, %q", format, r.code, r.stderr)
		}
		golden(t, "dump-"+format+".golden", r.stdout)
	}
}

func TestTraceDumpHasEveryEventOnce(t *testing.T) {
	r := run(t, "trace", "dump", "--format", "csv", "testdata/traces/gpu-BP5")
	rows, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, row := range rows[1:] {
		kind := map[string]string{"enter": "f", "exit": "f", "send": "m", "recv": "m", "counter": "c"}[row[4]]
		seen[kind+" "+row[0]+" "+row[5]] = true
	}
	if want := 65950 + 4909; len(rows)-1 != want || len(seen) != want {
		t.Errorf("got %d rows with %d names, want %d", len(rows)-1, len(seen), want)
	}
}

func TestTraceDumpFilters(t *testing.T) {
	count := func(args ...string) int {
		t.Helper()
		r := run(t, append([]string{"trace", "dump", "--format", "jsonl"}, args...)...)
		if r.code != 0 {
			t.Errorf("%q: exit code %d, %q", args, r.code, r.stderr)
		}
		return strings.Count(r.stdout, "\n")
	}
	f := func(want int, args ...string) {
		t.Helper()
		if got := count(args...); got != want {
			t.Errorf("%q: got %d events, want %d", args, got, want)
		}
	}
	const ring, gpu = "testdata/traces/ring-BP5/tau-metrics-ring-1.bp", "testdata/traces/gpu-BP5"
	f(224, ring)
	f(40, "--kind", "message", ring)
	f(184, "--kind", "function", ring)
	f(184, "--kind", "enter,exit", ring)
	f(7, "--limit", "7", ring)
	f(0, "--rank", "0", ring)
	f(224, "--rank", "1", ring)
	f(224, "--step", "0-1", ring)
	if a, b := count("--step", "0", ring), count("--step", "1", ring); a+b != 224 || a == 0 || b == 0 {
		t.Errorf("step 0 has %d events and step 1 has %d, want 224 in all", a, b)
	}
	f(2*(600+300+300), "--thread", "6", "--function", "*_kernel(*", "--function", "Memory copy Host to Device", "--step", "0-99", gpu)
	f(600, "--function", "run_step(int) [{gpuapp.cu} {80,0}]", gpu)
	f(600, "--function", "run_step(int) [{gpuapp.cu} {8?,*}]", gpu)
	f(0, "--function", "run_step", gpu)
	f(4909, "--kind", "counter", gpu)
}

func TestTraceMetadataPrintsAllAttributes(t *testing.T) {
	const trace = "testdata/traces/ring-BP5/tau-metrics-ring-0.bp"
	r := run(t, "trace", "metadata", trace)
	golden(t, "metadata.golden", r.stdout)
	j := run(t, "trace", "metadata", "--json", trace)
	var files []struct {
		Metadata []struct {
			Rank, Thread int
			Key, Value   string
		}
		Attributes []struct {
			Name   string
			Values []string
		}
	}
	if err := json.Unmarshal([]byte(j.stdout), &files); err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 || len(files[0].Metadata)+len(files[0].Attributes) != 99 || r.code+j.code != 0 {
		t.Errorf("got %d files, exit codes %d and %d, want one with 99 attributes", len(files), r.code, j.code)
	}
}

func TestTraceDumpFollowsGrowingTrace(t *testing.T) {
	for _, name := range []string{"ring-BP4", "ring-BP5"} {
		t.Run(name, func(t *testing.T) {
			recorded := tracetest.Recorded(t, name)[0]
			growing := tracetest.Copy(t, recorded)
			idx, err := os.ReadFile(filepath.Join(recorded, "md.idx"))
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(filepath.Join(growing, "md.idx"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close() //nolint:errcheck // the reader checks the content
			flag := map[string]int{"ring-BP4": 38, "ring-BP5": 39}[name]
			last := map[string]int{"ring-BP4": 64, "ring-BP5": 41}[name] // bytes of the last record
			write := func(n int, active byte) {
				idx[flag] = active
				if _, err := file.WriteAt(idx[:n], 0); err != nil {
					t.Error(err)
				}
			}
			if err := file.Truncate(int64(len(idx) - last)); err != nil {
				t.Fatal(err)
			}
			write(len(idx)-last, 1)
			out, stdout := io.Pipe()
			done := make(chan int)
			go func() {
				code := cli.Run(t.Context(), &cli.Env{Stdout: stdout, Stderr: io.Discard},
					[]string{"trace", "dump", "--follow", "--poll", "1ms", "--format", "jsonl", growing})
				_ = stdout.Close() // never fails
				done <- code
			}()
			lines := bufio.NewScanner(out)
			n := 0
			for ; lines.Scan(); n++ {
				if n == 0 {
					write(len(idx), 1) // the next step comes once the first is read
				}
				if strings.Contains(lines.Text(), `"step":1`) {
					write(len(idx), 0)
				}
			}
			if code := <-done; code != 0 || n != 224 {
				t.Errorf("got %d events and exit code %d, want 224 and 0", n, code)
			}
		})
	}
}

func TestFollowingKilledWriterEndsAtIdleLimit(t *testing.T) {
	killed := tracetest.Copy(t, tracetest.Recorded(t, "ring-BP4")[0])
	f, err := os.OpenFile(filepath.Join(killed, "md.idx"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{1}, 38)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	r := run(t, "trace", "dump", "--follow", "--poll", "1ms", "--idle", "5ms", killed)
	if r.code != 0 || strings.Count(r.stdout, "\n") != 224 || !strings.Contains(r.stderr, "idle limit") {
		t.Errorf("exit code %d, %d events, %q", r.code, strings.Count(r.stdout, "\n"), r.stderr)
	}
	if got, _ := info(t, killed); !got.Files[0].Active || got.Files[0].Steps != 2 {
		t.Errorf("info returns %+v, want active with 2 steps", got.Files[0])
	}
}

// TestMemoryIsBoundedByStepSize runs the real program on the largest
// recordings and looks at the most memory it had.
func TestMemoryIsBoundedByStepSize(t *testing.T) {
	const largestStep = 75_500 * 48 // rows of heat2d-large-BP4 in a step, at most
	idle := peak(t, "--version")    // most of it is the database engine, which is linked in
	for _, run := range []string{"heat2d-large-BP4", "heat2d-large-BP5"} {
		n := peak(t, append([]string{"trace", "info"}, tracetest.Large(t, run)...)...)
		t.Logf("%s: %d MB at most", run, n>>20)
		if n > idle+32<<20+largestStep { // garbage that is collected late included; 22 MB are usual
			t.Errorf("%s: %d MB at most, want less than 32 MB above the largest step and the %d MB of the program itself", run, n>>20, idle>>20)
		}
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}

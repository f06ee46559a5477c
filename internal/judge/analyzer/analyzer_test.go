package analyzer_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// analyzed is a result and the directory of its run.
type analyzed struct {
	*analyzer.Result
	dir string
}

// analyze analyzes datasets with the default settings as modified by change.
func analyze(t *testing.T, datasets []string, change func(*analyzer.Config)) analyzed {
	t.Helper()
	cfg := analyzer.Default()
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run")
	dir := recordfile.NewWriter(path)
	cfg.SpoolDir = t.TempDir()
	var inputs []analyzer.Input
	for _, d := range datasets {
		inputs = append(inputs, analyzer.Input{Path: d})
	}
	res, err := analyzer.New(cfg, dir, nil).Run(t.Context(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	global, err := res.Collections()
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteGlobal(global); err != nil {
		t.Fatal(err)
	}
	return analyzed{res, path}
}

// learned returns the model of function i.
func (a analyzed) learned(i int) *outlier.Model { return a.Models.Functions()[i].Learned() }

// records returns all records of a collection.
func (a analyzed) records(t *testing.T, collection string) (all []provenance.Record) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(a.dir, "records", "*", "*", "*."+collection+".json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var part []provenance.Record
		if err := json.Unmarshal(b, &part); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		all = append(all, part...)
	}
	return all
}

// ids returns the ids of the anomalies that were not withdrawn.
func (a analyzed) ids(t *testing.T) map[string]bool {
	t.Helper()
	ids := make(map[string]bool)
	for _, r := range a.records(t, "anomalies") {
		if r.Status != provenance.Withdrawn {
			ids[r.EventID] = true
		}
	}
	return ids
}

// hashes returns the hash of each file of a run.
func (a analyzed) hashes(t *testing.T) map[string]string {
	t.Helper()
	sums := make(map[string]string)
	err := fs.WalkDir(os.DirFS(a.dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(a.dir, path))
		sums[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func TestRecordsDoNotDependOnWorkersOrOrder(t *testing.T) {
	f := func(name string, datasets func(testing.TB, string) []string) {
		t.Run(name, func(t *testing.T) {
			if name == "heat2d-BP5" && tracetest.WithoutRace(t) {
				return
			}
			datasets := datasets(t, name)
			want := analyze(t, datasets, func(c *analyzer.Config) { c.Workers = 1 }).hashes(t)
			if len(want) < 5 {
				t.Fatalf("only %d files were written", len(want))
			}
			for _, workers := range []int{2, 7} {
				backwards := slices.Clone(datasets)
				slices.Reverse(backwards)
				got := analyze(t, backwards, func(c *analyzer.Config) { c.Workers = workers }).hashes(t)
				if !maps.Equal(got, want) {
					t.Errorf("%d workers, traces backwards: files differ", workers)
				}
			}
			if got := analyze(t, datasets, func(c *analyzer.Config) { c.KeepOpen = 0 }).hashes(t); !maps.Equal(got, want) {
				t.Error("files differ if memory is freed after each step")
			}
		})
	}
	f("ring-monitoring-BP4", tracetest.Recorded)
	f("gpu-BP5", tracetest.Recorded)
	f("ring-onefile-BP5", tracetest.Recorded)
	if !testing.Short() {
		f("heat2d-BP5", tracetest.Large)
	}
}

// TestSSTDFlagsSameCallsAsOriginal compares call by call: with the original's settings
// only call stacks and moments matter.
func TestSSTDFlagsSameCallsAsOriginal(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	for _, run := range []string{"heat2d-BP4", "heat2d-BP5"} {
		for _, sigma := range []float64{6, 12} {
			t.Run(fmt.Sprintf("%s/sigma %v", run, sigma), func(t *testing.T) {
				if testing.Short() && (run != "heat2d-BP4" || sigma != 12) {
					t.Skip("SKIP: one case suffices")
				}
				want := expectedIDs(t, fmt.Sprintf("%s-sstd%v.csv", run, sigma))
				got := analyze(t, tracetest.Large(t, run), func(c *analyzer.Config) {
					c.Outlier = outlier.Config{Algorithm: outlier.SSTD, Sigma: sigma, MinSamples: 2, IncludeSelf: true}
					c.RankScope, c.SkipFirst, c.Review = true, true, false
				}).ids(t)
				if !maps.Equal(got, want) {
					t.Errorf("got %d calls, want %d; they differ", len(got), len(want))
				}
			})
		}
	}
}

func expectedIDs(t *testing.T, name string) map[string]bool {
	t.Helper()
	f, err := os.Open(tracetest.Shared(t, "traces", "expected", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(rows[0], "event_id")
	ids := make(map[string]bool)
	for _, row := range rows[1:] {
		ids[row[at]] = true
	}
	return ids
}

func TestOnePassWithReviewEqualsTwoPasses(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	for _, algorithm := range []outlier.Algorithm{outlier.HBOS, outlier.SSTD, outlier.COPOD} {
		t.Run(string(algorithm), func(t *testing.T) {
			if testing.Short() {
				t.Skip("SKIP: TestReviewUsesConfiguredStatistic compares passes of a small trace")
			}
			datasets := tracetest.Large(t, "heat2d-BP5")
			find := func(passes int) map[string]bool {
				return analyze(t, datasets, func(c *analyzer.Config) { c.Outlier.Algorithm, c.Passes = algorithm, passes }).ids(t)
			}
			one, two := find(1), find(2)
			common := 0
			for id := range one {
				if two[id] {
					common++
				}
			}
			t.Logf("one pass %d, two passes %d, common %d", len(one), len(two), common)
			if all := len(one) + len(two) - common; float64(common) < 0.99*float64(all) || common == 0 {
				t.Errorf("%d of %d are found by both, want 99 %%", common, all)
			}
		})
	}
}

// TestAnomalousKernelsHaveLaunches covers kernels that are recorded at once, and kernels
// that arrive many steps after their launch.
func TestAnomalousKernelsHaveLaunches(t *testing.T) {
	f := func(run string, datasets func(testing.TB, string) []string) {
		t.Run(run, func(t *testing.T) {
			if run == "gpu-late-BP4" && tracetest.WithoutRace(t) {
				return
			}
			a := analyze(t, datasets(t, run), nil)
			kernels, late := 0, 0
			for _, r := range a.records(t, "anomalies") {
				if r.IsGPUEvent != (r.GPULocation != nil) {
					t.Errorf("%s: is_gpu_event is %v, gpu_location is %v", r.EventID, r.IsGPUEvent, r.GPULocation)
				}
				if !r.IsGPUEvent {
					continue
				}
				kernels++
				parent, ok := r.GPUParent.(provenance.GPUParent)
				if !ok {
					t.Errorf("%s %s: gpu_parent is %v", r.EventID, r.Func, r.GPUParent)
					continue
				}
				stack := parent.CallStack
				if name := stack[0].Func; !strings.HasPrefix(name, "cuda") || len(stack) < 3 {
					t.Errorf("%s %s: launched by %s, a stack of %d calls", r.EventID, r.Func, name, len(stack))
				}
				var step int
				if _, err := fmt.Sscanf(parent.EventID, "0:%d:", &step); err == nil && int(r.IOStep) >= step+10 {
					late++
				}
			}
			t.Logf("%d anomalous kernels, %d of them ten steps after their launch", kernels, late)
			if n := a.Tally.Count(tally.CorrelationUnmatched); n != 0 {
				t.Errorf("%d of 1801 correlation ids have no other half", n)
			}
			if kernels < 4 || run == "gpu-late-BP4" && late == 0 {
				t.Errorf("%d anomalous kernels, %d of them late", kernels, late)
			}
		})
	}
	f("gpu-BP5", tracetest.Recorded)
	f("gpu-late-BP4", tracetest.Large)
}

func TestNodeStateIsFromTimeOfAnomaly(t *testing.T) {
	a := analyze(t, tracetest.Recorded(t, "gpu-BP5"), nil)
	with := 0
	for _, r := range a.records(t, "anomalies") {
		if r.NodeState == nil {
			continue
		}
		with++
		if r.NodeState.Timestamp > r.Exit || len(r.NodeState.Data) == 0 {
			t.Errorf("%s ended at %d, but its node state is of %d", r.EventID, r.Exit, r.NodeState.Timestamp)
		}
		for _, d := range r.NodeState.Data {
			if strings.HasPrefix(d.Field, "monitoring: ") {
				t.Errorf("field %q has its prefix", d.Field)
			}
		}
		for _, c := range r.CounterEvents {
			if strings.HasPrefix(c.Name, "monitoring: ") {
				t.Errorf("%s: the state of the node is among its own counters", r.EventID)
			}
		}
	}
	if with == 0 {
		t.Error("no record has a node state")
	}
}

func TestProfileAndModelCountCallsOnce(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	for _, samples := range []int{1, 30, 1 << 30} {
		a := analyze(t, tracetest.Recorded(t, "gpu-BP5"), func(c *analyzer.Config) {
			c.Outlier.MinSamples, c.SkipFirst = samples, false
		})
		calls, learned := uint64(0), uint64(0)
		for i, f := range a.Functions {
			calls += f.Exclusive.Count()
			learned += a.learned(i).Count()
		}
		if int64(calls) != a.Totals.Calls || int64(learned) != a.Totals.Calls || a.Totals.Calls != 65950/2 {
			t.Errorf("at least %d samples: %d calls, %v in profiles, %d in models, want 32975", samples, a.Totals.Calls, calls, learned)
		}
		if samples == 1<<30 && (a.Review.Anomalies != 0 || a.Review.NotJudged != a.Totals.Calls) {
			t.Errorf("nothing can be judged, but %d anomalies and %d of %d not judged", a.Review.Anomalies, a.Review.NotJudged, a.Totals.Calls)
		}
	}
}

func TestIgnoredFunctionsAreOnlyProfiled(t *testing.T) {
	a := analyze(t, tracetest.Recorded(t, "gpu-BP5"), func(c *analyzer.Config) { c.Outlier.Ignore = []string{"cuda*", "table_lookup(*"} })
	for _, r := range a.records(t, "anomalies") {
		if strings.HasPrefix(r.Func, "cuda") || strings.HasPrefix(r.Func, "table_lookup") {
			t.Errorf("%s of %s is flagged", r.EventID, r.Func)
		}
	}
	for _, f := range a.Functions {
		if strings.HasPrefix(f.Name, "table_lookup") && f.Exclusive.Count() != 23936 {
			t.Errorf("profile of %s has %v calls, want 23936", f.Name, f.Exclusive.Count())
		}
	}
}

func TestFunctionThreshold(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	count := func(change func(*analyzer.Config)) (sleepers int) {
		for _, r := range analyze(t, tracetest.Recorded(t, "gpu-BP5"), func(c *analyzer.Config) {
			c.Outlier.Algorithm = outlier.SSTD
			change(c)
		}).records(t, "anomalies") {
			if strings.HasPrefix(r.Func, "assemble(") && r.Status != provenance.Withdrawn {
				sleepers++
			}
		}
		return sleepers
	}
	usual := count(func(*analyzer.Config) {})
	lax := count(func(c *analyzer.Config) {
		c.Outlier.Thresholds = []outlier.Override{{Pattern: "assemble(int) [*", Value: 1e6}}
	})
	if usual < 2 || lax != 0 {
		t.Errorf("assemble is flagged %d times, with a separate threshold %d times; want at least 2 and none", usual, lax)
	}
}

func TestReviewUsesConfiguredStatistic(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	a := analyze(t, tracetest.Recorded(t, "gpu-BP5"), func(c *analyzer.Config) { c.Inclusive = true })
	b := analyze(t, tracetest.Recorded(t, "gpu-BP5"), func(c *analyzer.Config) { c.Inclusive, c.Passes = true, 2 })
	if one, two := a.ids(t), b.ids(t); !maps.Equal(one, two) || len(one) == 0 {
		t.Errorf("one pass finds %d, two find %d by inclusive time", len(one), len(two))
	}
}

func TestOneTypicalExecutionPerFunctionAndStep(t *testing.T) {
	a := analyze(t, tracetest.Recorded(t, "gpu-BP5"), nil)
	seen := make(map[string]bool)
	typical := a.records(t, "normalexecs")
	for _, r := range typical {
		key := fmt.Sprintf("%s %d %d", r.Func, r.TID, r.IOStep)
		if seen[key] {
			t.Errorf("two typical executions of %s", key)
		}
		seen[key] = true
	}
	if len(typical) == 0 || int64(len(typical)) != a.Review.Typical {
		t.Errorf("%d typical executions, but the result has %d", len(typical), a.Review.Typical)
	}
}

func TestStepTimesAreMinimumAndMaximum(t *testing.T) {
	for _, r := range analyze(t, tracetest.Recorded(t, "gpu-BP5"), nil).records(t, "anomalies") {
		if r.IOStepStart > r.Exit || r.IOStepEnd < r.Exit || r.IOStepStart > r.IOStepEnd {
			t.Errorf("%s [%d, %d] was judged in a step [%d, %d]", r.EventID, r.Entry, r.Exit, r.IOStepStart, r.IOStepEnd)
		}
	}
}

func TestTwoTracesOfSameRankAreRefused(t *testing.T) {
	a := tracetest.Recorded(t, "ring-BP4")[0]
	b := tracetest.Recorded(t, "ring-BP5")[0]
	cfg := analyzer.Default()
	cfg.SpoolDir = t.TempDir()
	_, err := analyzer.New(cfg, discardSink{}, nil).Run(t.Context(), []analyzer.Input{{Path: a}, {Path: b}})
	if err == nil || !strings.Contains(err.Error(), "both contain rank 0 of program 0") {
		t.Errorf("got %v", err)
	}
	res, err := analyzer.New(cfg, discardSink{}, nil).Run(t.Context(), []analyzer.Input{{Path: a}, {Path: b, Program: 1}})
	if err != nil || res.Totals.Ranks != 2 {
		t.Errorf("as two programs: %v, %v", res, err)
	}
}

func TestReadablePartOfBrokenTraceIsAnalyzed(t *testing.T) {
	broken := tracetest.Copy(t, tracetest.Recorded(t, "gpu-BP5")[0])
	if err := os.Truncate(filepath.Join(broken, "data.0"), 2_000_000); err != nil {
		t.Fatal(err)
	}
	a := analyze(t, []string{broken}, nil)
	if len(a.Broken) != 1 || !strings.Contains(a.Broken[0].Error(), "data.0 at byte 2000000") || a.Totals.Steps != 8 {
		t.Errorf("got %d steps and %v", a.Totals.Steps, errors.Join(a.Broken...))
	}
	if a.Totals.Calls == 0 || len(a.records(t, "anomalies")) == 0 {
		t.Error("nothing was analyzed")
	}
}

func TestValidateNamesAllInvalidSettings(t *testing.T) {
	cfg := analyzer.Default()
	cfg.Window, cfg.Passes, cfg.Workers, cfg.Freeze = -1, 3, 0, true
	cfg.Outlier.Algorithm, cfg.Outlier.MinSamples = "magic", 0
	err := cfg.Validate()
	for _, want := range []string{"window -1", "passes 3", "workers 0", "freeze", `"magic"`, "0 samples"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// TestProcessDoesNotGrowWithRun measures the memory of a process without the race
// detector. Its steps are large, because a small process of 10 to 20 MB grows by more
// than a tenth while the garbage collector warms up.
func TestProcessDoesNotGrowWithRun(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: analyzes 2000 large steps")
	}
	trace := repeatSteps(t, tracetest.Large(t, "heat2d-large-BP4")[0], 2000)
	// The collector may add a few megabytes to one measurement; real growth is in all.
	var short, long int64
	for range 3 {
		cmd := exec.CommandContext(t.Context(), "go", "run", "./testdata/growth", t.TempDir(), trace)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(out), &short, &long); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		t.Logf("%.1f MB after 200 steps, %.1f MB after 2000", float64(short)/1e6, float64(long)/1e6)
		if long <= short+short/10 {
			return
		}
	}
	t.Errorf("%d bytes after 200 steps, %d after 2000, each time", short, long)
}

// TestMemoryDoesNotGrowWithRun measures the live heap after many steps.
func TestMemoryDoesNotGrowWithRun(t *testing.T) {
	tracetest.SkipShort(t, "analyzes large runs")
	if tracetest.WithoutRace(t) {
		return
	}
	f := func(name string, datasets func(testing.TB, string) []string) {
		t.Run(name, func(t *testing.T) {
			dataset := datasets(t, name)[0]
			held := make(map[int]uint64)
			cfg := analyzer.Default()
			cfg.SpoolDir = t.TempDir()
			measure := func(done analyzer.ProgressReport) {
				if done.Captures == 0 && (done.Steps == 200 || done.Steps == 2000) {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					held[done.Steps] = m.HeapAlloc
				}
			}
			if _, err := analyzer.New(cfg, discardSink{}, measure).Run(t.Context(),
				[]analyzer.Input{{Path: repeatSteps(t, dataset, 2000)}}); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d kB after 200 steps, %d kB after 2000", held[200]>>10, held[2000]>>10)
			if held[200] == 0 || held[2000] > held[200]+held[200]/10 {
				t.Errorf("%d bytes are held after 200 steps, %d after 2000", held[200], held[2000])
			}
		})
	}
	f("ring-BP4", tracetest.Recorded) // all calls end in it; open calls of other traces would accumulate
	if !testing.Short() {
		f("heat2d-BP4", tracetest.Large)
	}
}

// readMetadata returns all metadata records of a run, step by step.
func readMetadata(t *testing.T, a analyzed) (all []provenance.Metadata) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(a.dir, "records", "*", "*", "*.metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var part []provenance.Metadata
		if err := json.Unmarshal(b, &part); err != nil {
			t.Fatal(err)
		}
		all = append(all, part...)
	}
	return all
}

func TestProgressIsMonotonic(t *testing.T) {
	f := func(passes int, datasets ...string) {
		t.Helper()
		var inputs []analyzer.Input
		for i, d := range datasets {
			inputs = append(inputs, analyzer.Input{Path: d, Program: trace.Program(i)})
		}
		cfg := analyzer.Default()
		cfg.SpoolDir, cfg.Passes = t.TempDir(), passes
		cfg.Outlier.Algorithm, cfg.Outlier.Sigma = outlier.SSTD, 2
		var last analyzer.ProgressReport
		_, err := analyzer.New(cfg, discardSink{}, func(done analyzer.ProgressReport) {
			if done.Pass == last.Pass && done.ReadShare < last.ReadShare || done.ReadShare > 1 ||
				done.Reviewed < last.Reviewed || done.Reviewed > done.Captures {
				t.Errorf("%q: %+v comes after %+v", datasets, done, last)
			}
			if done.Pass > last.Pass && last.Pass > 0 && last.ReadShare != 1 || done.Captures > 0 && done.ReadShare != 1 {
				t.Errorf("%q: before %+v not all was read: %+v", datasets, done, last)
			}
			last = done
		}).Run(t.Context(), inputs)
		if err != nil {
			t.Fatal(err)
		}
		if last.Captures == 0 || last.Reviewed != last.Captures || last.Pass != passes {
			t.Errorf("%q: it ended with %+v", datasets, last)
		}
	}
	f(1, tracetest.Recorded(t, "gpu-BP5")[0])
	f(2, tracetest.Recorded(t, "ring-BP4")[0], tracetest.Recorded(t, "ring-BP5")[0])
}

// repeatSteps creates a BP4 dataset that repeats the steps of another: its metadata refer to the
// same data several times.
func repeatSteps(tb testing.TB, dataset string, steps int) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), filepath.Base(dataset))
	idx, err := os.ReadFile(filepath.Join(dataset, "md.idx"))
	if err != nil {
		tb.Fatal(err)
	}
	meta, err := os.ReadFile(filepath.Join(dataset, "md.0"))
	if err != nil {
		tb.Fatal(err)
	}
	const header, record = 64, 64
	records := idx[header:]
	out, all := idx[:header:header], meta[:header:header]
	for i := range steps {
		r := slices.Clone(records[i*record%len(records):][:record])
		begin, end := binary.LittleEndian.Uint64(r[16:]), binary.LittleEndian.Uint64(r[40:])
		for at := 16; at <= 40; at += 8 { // positions in md.0
			binary.LittleEndian.PutUint64(r[at:], binary.LittleEndian.Uint64(r[at:])-begin+uint64(len(all)))
		}
		out, all = append(out, r...), append(all, meta[begin:end]...)
	}
	err = errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "md.idx"), out, 0o600),
		os.WriteFile(filepath.Join(dir, "md.0"), all, 0o600), os.Symlink(filepath.Join(dataset, "data.0"), filepath.Join(dir, "data.0")))
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

package kineto_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/kineto"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// write writes a file.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string, opt profile.Options) *profile.File {
	t.Helper()
	return openAll(t, path, opt)[0]
}

func openAll(t testing.TB, path string, opt profile.Options) []*profile.File {
	t.Helper()
	files, err := kineto.Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Cleanup(f.Close)
	}
	return files
}

// dump returns all events of a file in a line each: step, rank, thread, time, kind and name.
// Times are relative to the first.
func dump(t testing.TB, f *profile.File, counts *tally.Tally) (lines []string, err error) {
	t.Helper()
	r, err := f.Steps(counts)
	if err != nil {
		t.Fatal(err)
	}
	first := trace.Ticks(math.MaxInt64)
	type line struct {
		step int
		b    trace.Batch
		e    trace.Event
	}
	var all []line
	for {
		s, err := r.Next(t.Context())
		if err != nil {
			for _, l := range all {
				name, _ := r.Names().Func(l.b.Rank, l.e.Func())
				if l.e.Kind == trace.Count {
					name, _ = r.Names().Counter(l.b.Rank, l.e.Counter())
					name += fmt.Sprintf(" = %d", l.e.Value)
				}
				lines = append(lines, fmt.Sprintf("%d %d.%d %d %v %s", l.step, l.b.Rank, l.b.Thread, l.e.Time-first, l.e.Kind, name))
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return lines, err
		}
		for _, b := range s.Batches {
			for _, e := range b.Events {
				first = min(first, e.Time)
				all = append(all, line{s.Index, b, e})
			}
		}
	}
}

func check(t *testing.T, name, text string, want ...string) {
	t.Helper()
	got, err := dump(t, open(t, write(t, name, text), profile.Options{}), new(tally.Tally))
	if err != nil {
		t.Error(err)
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("%s: got\n%s\nwant\n%s", name, a, b)
	}
}

func TestKernelsHaveShapesAndLaunches(t *testing.T) {
	check(
		t, "rank3.json", `{"distributedInfo": {"rank": 5, "world_size": 8}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
		{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10.250,"dur":1.5,"args":{"correlation":9,"grid":[4,1,1],"block":[128,1,1]}},
		{"ph":"X","cat":"user_annotation","name":"ProfilerStep#12","pid":40,"tid":40,"ts":0.001,"dur":30},
		{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":40,"tid":40,"ts":1,"dur":4,"args":{"Input Dims":[[2, 3], [3]]}},
		{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":40,"tid":40,"ts":2,"dur":2,"args":{"correlation":9}},
		{"ph":"X","cat":"cuda_runtime","name":"cudaEventQuery","pid":40,"tid":40,"ts":6,"dur":1,"args":{"correlation":10}},
		{"ph":"X","cat":"gpu_user_annotation","name":"a","pid":0,"tid":7,"ts":9,"dur":20},
		{"ph":"s","id":9,"pid":40,"tid":40,"ts":2,"cat":"ac2g","name":"ac2g"}]}`,
		"12 5.0 0 enter ProfilerStep", "12 5.0 999 enter aten::mm [[2,3],[3]]",
		"12 5.0 1999 enter cudaLaunchKernel", "12 5.0 1999 counter Correlation ID = 9", "12 5.0 3999 exit cudaLaunchKernel",
		"12 5.0 4999 exit aten::mm [[2,3],[3]]",
		"12 5.0 5999 enter cudaEventQuery", "12 5.0 6999 exit cudaEventQuery", "12 5.0 30000 exit ProfilerStep",
		"12 5.1 10249 enter gemm [grid 4×1×1, block 128×1×1]", "12 5.1 10249 counter Correlation ID = 9",
		"12 5.1 11749 exit gemm [grid 4×1×1, block 128×1×1]",
	)
}

func TestOrdinaryChromeTraces(t *testing.T) {
	check(
		t, "list.json", `[{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"DP rank 1, compute"}},
		{"ph":"E","pid":0,"tid":1,"ts":9},{"ph":"B","name":"f","pid":0,"tid":1,"ts":1},
		{"ph":"C","name":"memory","pid":0,"tid":1,"ts":3,"args":{"used":12}},
		{"ph":"b","cat":"io","id":"0x1","name":"read","pid":0,"tid":1,"ts":2},
		{"ph":"b","cat":"io","id":"0x2","name":"read","pid":0,"tid":1,"ts":3},
		{"ph":"e","cat":"io","id":"0x1","name":"read","pid":0,"tid":1,"ts":4},
		{"ph":"e","cat":"io","id":"0x2","name":"read","pid":0,"tid":1,"ts":5},
		{"ph":"X","name":"g","pid":1,"tid":1,"ts":1,"dur":2},{"ph":"i","name":"mark","pid":1,"tid":1,"ts":1}`,
		"0 0.0 0 enter f", "0 0.0 2000 counter memory = 12", "0 0.0 8000 exit f",
		"0 0.2 1000 enter read", "0 0.2 3000 exit read", "0 0.3 2000 enter read", "0 0.3 4000 exit read",
		"0 1.0 0 enter g", "0 1.0 2000 exit g",
	)
}

func TestStagesOfAPipelineHaveTheirOwnFunctions(t *testing.T) {
	check(
		t, "x.json", `[{"ph":"X","name":"forward","pid":0,"tid":3,"ts":1,"dur":2},{"ph":"X","name":"forward","pid":0,"tid":5,"ts":1,"dur":4},
		{"ph":"M","name":"thread_name","pid":0,"tid":3,"args":{"name":"PP rank 1, TP rank 0, compute"}},
		{"ph":"M","name":"thread_name","pid":0,"tid":5,"args":{"name":"PP rank 0, TP rank 0, compute"}}]`,
		"0 0.0 0 enter forward [PP rank 0]", "0 0.0 4000 exit forward [PP rank 0]",
		"0 1.0 0 enter forward [PP rank 1]", "0 1.0 2000 exit forward [PP rank 1]",
	)
}

func TestCallsThatOverlapAreShortened(t *testing.T) {
	check(
		t, "x.json", `[{"ph":"X","name":"outer","pid":0,"tid":0,"ts":0,"dur":10},{"ph":"X","name":"late","pid":0,"tid":0,"ts":1,"dur":9.001},
		{"ph":"X","name":"first","pid":0,"tid":0,"ts":20,"dur":1},{"ph":"X","name":"second","pid":0,"tid":0,"ts":20.9,"dur":5}]`,
		"0 0.0 0 enter outer", "0 0.0 1000 enter late", "0 0.0 10000 exit late", "0 0.0 10000 exit outer",
		"0 0.0 20000 enter first", "0 0.0 20900 exit first", "0 0.0 20900 enter second", "0 0.0 25900 exit second",
	)
}

func TestRanks(t *testing.T) {
	event := `{"ph":"X","cat":"cpu_op","name":"f","pid":9,"tid":9,"ts":1,"dur":1}`
	for _, c := range []struct {
		name, text string
		rank       trace.Rank
		known      bool
	}{
		{"rank7_trace.json", `{"traceEvents":[` + event + `]}`, 7, true},
		{"rank7_trace.json", `{"traceEvents":[` + event + `],"distributedInfo":{"rank":2,"ranks":"[0, 1]"}}`, 2, true},
		{"host_1.pt.trace.json", `{"traceEvents":[` + event + `]}`, 0, false},
	} {
		f := open(t, write(t, c.name, c.text), profile.Options{})
		if len(f.Ranks) != 1 || f.Ranks[0] != c.rank || f.RankKnown != c.known || f.Format != "Kineto" {
			t.Errorf("%s: got ranks %v, %v, want %d, %v", c.name, f.Ranks, f.RankKnown, c.rank, c.known)
		}
	}
}

func TestHostIsRecordedOrInTheNameOfTheFile(t *testing.T) {
	event := `{"ph":"X","cat":"cpu_op","name":"f","pid":4711,"tid":9,"ts":1,"dur":1}`
	for _, c := range []struct{ name, more, want string }{
		{"node_3.site.edu_4711.1700000000123456789.pt.trace.json", "", "node_3.site.edu"},
		{"node_3.site.edu_4711.1700000000123456789.pt.trace.json", `,"host_name":"gpu7"`, "gpu7"},
		{"training_12.1700000000123456789.pt.trace.json", "", ""}, // of no process
		{"rank0.json", `,"host_name":7`, ""},
	} {
		f := open(t, write(t, c.name, `{"baseTimeNanoseconds":0,"traceEvents":[`+event+`]`+c.more+`}`), profile.Options{})
		steps, err := f.Steps(new(tally.Tally))
		if err != nil {
			t.Fatal(err)
		}
		step, err := steps.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		host := ""
		for _, m := range step.Metadata {
			if m.Key == "Hostname" {
				host = m.Value
			}
		}
		if host != c.want {
			t.Errorf("%s%s: host is %q, want %q", c.name, c.more, host, c.want)
		}
	}
}

func TestDamagedFilesAreReadUpToTheDamage(t *testing.T) {
	text := `{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"f","pid":9,"tid":9,"ts":1,"dur":1},{"ph":"X","cat":"cpu_op","na`
	lines, err := dump(t, open(t, write(t, "rank0.json", text), profile.Options{}), new(tally.Tally))
	if len(lines) != 2 || err == nil || !strings.Contains(err.Error(), "rank0.json") || !strings.Contains(err.Error(), "byte") {
		t.Errorf("got %v and error %v", lines, err)
	}
}

// TestSortingOutsideOfMemory compares files whose events fit into memory with the same files
// read in small parts.
func TestSortingOutsideOfMemory(t *testing.T) {
	for _, name := range []string{"cpu", "nccl", "mi300", "straggler"} {
		path := tracetest.Root("internal", "source", "chrome", "testdata", name+".json.gz")
		want, err1 := dump(t, open(t, path, profile.Options{}), new(tally.Tally))
		got, err2 := dump(t, open(t, path, profile.Options{MaxEvents: 100, Temp: t.TempDir()}), new(tally.Tally))
		if err1 != nil || err2 != nil || len(want) == 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %d events in parts and %d at once differ: %v, %v", name, len(got), len(want), err1, err2)
		}
	}
}

// TestRecordedFilesLoseNothing compares the number and the total time of all calls with those
// in the JSON.
func TestRecordedFilesLoseNothing(t *testing.T) {
	for _, name := range []string{"cpu", "nccl", "mi300", "straggler"} {
		path := tracetest.Root("internal", "source", "chrome", "testdata", name+".json.gz")
		calls, time := countJSON(t, path)
		var counts tally.Tally
		f := open(t, path, profile.Options{})
		r, err := f.Steps(&counts)
		if err != nil {
			t.Fatal(err)
		}
		gotCalls, gotTime := 0, trace.Ticks(0)
		for {
			s, err := r.Next(t.Context())
			if err != nil {
				break
			}
			for _, b := range s.Batches {
				for _, e := range b.Events {
					switch e.Kind {
					case trace.Enter:
						gotCalls++
						gotTime -= e.Time
					case trace.Exit:
						gotTime += e.Time
					}
				}
			}
		}
		if overlaps := counts.Count(tally.CallsOverlap); gotCalls != calls || overlaps == 0 && gotTime != time ||
			math.Abs(float64(gotTime-time)) > 0.01*float64(time) {
			t.Errorf("%s: got %d calls in %d ns, want %d in %d (%d overlaps)", name, gotCalls, gotTime, calls, time, overlaps)
		}
	}
}

func countJSON(t *testing.T, path string) (calls int, total trace.Ticks) {
	t.Helper()
	text := unzip(t, path)
	type event struct {
		Phase    string      `json:"ph"`
		Category string      `json:"cat"`
		Duration json.Number `json:"dur"`
	}
	var file struct {
		Events []event `json:"traceEvents"`
	}
	if json.Unmarshal(text, &file) != nil {
		if err := json.Unmarshal(text, &file.Events); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range file.Events {
		if e.Phase != "X" || e.Category == "Trace" || e.Category == "gpu_user_annotation" {
			continue
		}
		calls++
		us, err := strconv.ParseFloat(e.Duration.String(), 64)
		if err != nil {
			t.Fatal(err)
		}
		total += trace.Ticks(math.Round(us * 1e3))
	}
	return calls, total
}

func FuzzSteps(f *testing.F) {
	f.Add(`[{"ph":"B","name":"f","pid":0,"tid":1,"ts":1},{"ph":"E","pid":0,"tid":1,"ts":9}]`, 3)
	f.Add(`{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1e3,"dur":5,"args":{"correlation":1}},`+
		`{"ph":"X","cat":"user_annotation","name":"ProfilerStep#0","pid":1,"tid":1,"ts":-5,"dur":9}]}`, 1)
	f.Add(`[{"ph":"b","id":1,"name":"r","ts":1},{"ph":"b","id":1,"name":"r","ts":1},{"ph":"e","id":1,"ts":0},{"ph":"C","name":"c","ts":1,"args":{"v":-3}}]`, 2)
	f.Add(`{"distributedInfo":{"rank":1},"traceEvents":[{"ph":"X","cat":"cpu_op","name":"f","pid":1,"tid":1,"ts":1,"dur":5},{"ph"`+
		`{"distributedInfo":{"rank":0},"traceEvents":[{"ph":"X","cat":"cpu_op","name":"f","pid":2,"tid":1,"ts":1,"dur":5}]}`+
		`{"ph":"X","cat":"cpu_op","name":"f","pid":1,"tid":1,"ts":9,"dur":5}]}`, 3)
	f.Fuzz(func(t *testing.T, text string, memory int) {
		if memory < 1 || memory > 100 {
			return
		}
		files, err := kineto.Open(write(t, "rank1.json", text), profile.Options{MaxEvents: memory, Temp: t.TempDir()})
		if err != nil {
			return
		}
		for _, f := range files {
			if _, _, err := checkSteps(t, f, new(tally.Tally)); err != nil {
				t.Error(err)
			}
			f.Close()
		}
	})
}

// checkSteps reads the steps of a file and returns the number of calls, and the error at the end. It returns a violation if times
// or steps decrease, or if calls are not nested.
func checkSteps(t *testing.T, file *profile.File, counts *tally.Tally) (calls int, end, violation error) {
	r, err := file.Steps(counts)
	if err != nil {
		t.Fatal(err)
	}
	type thread struct {
		rank trace.Rank
		id   trace.Thread
	}
	last, depth := make(map[thread]trace.Ticks), make(map[thread]int)
	for step := -1; ; {
		s, err := r.Next(t.Context())
		if err != nil {
			return calls, err, nil
		}
		if s.Index <= step {
			return calls, nil, fmt.Errorf("step %d after step %d", s.Index, step)
		}
		step = s.Index
		for _, b := range s.Batches {
			k := thread{b.Rank, b.Thread}
			for _, e := range b.Events {
				if e.Time < last[k] || e.Time <= 0 {
					return calls, nil, fmt.Errorf("time %d after %d on thread %v", e.Time, last[k], k)
				}
				last[k] = e.Time
				switch e.Kind {
				case trace.Enter:
					depth[k]++
					calls++
				case trace.Exit:
					depth[k]--
				}
				if depth[k] < 0 {
					return calls, nil, fmt.Errorf("more exits than entries on thread %v", k)
				}
			}
		}
	}
}

func TestStagesOfProcessGroupsHaveTheirOwnFunctions(t *testing.T) {
	for description, want := range map[string]string{
		"mesh_pp": "f [PP rank 1]", "PIPELINE_MODEL_PARALLEL_GROUP": "f [PP rank 1]", "default_pg": "f", "mesh_dp": "f", "dropped": "f",
	} {
		check(
			t, "x.json", `{"distributedInfo":{"rank":6,"world_size":8,"pg_config":[{"pg_name":"0","pg_desc":"default_pg","pg_size":8,
			"ranks":[0,1,2,3,4,5,6,7]},{"pg_name":"3","pg_desc":"`+description+`","pg_size":2,"ranks":"[2, 6]"}]},"traceEvents":[
			{"ph":"X","cat":"cpu_op","name":"f","pid":9,"tid":9,"ts":1,"dur":1}]}`,
			"0 6.0 0 enter "+want, "0 6.0 1000 exit "+want,
		)
	}
}

func TestFunctionsHaveKindsOfWork(t *testing.T) {
	f := open(t, write(t, "rank0.json", `[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":1},
		{"ph":"X","cat":"kernel","name":"ncclDevKernel_x","pid":0,"tid":7,"ts":3,"dur":1},
		{"ph":"X","cat":"gpu_memset","name":"Memset","pid":0,"tid":7,"ts":5,"dur":1},
		{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":1,"dur":9},
		{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":2,"dur":1}]`), profile.Options{})
	r, err := f.Steps(new(tally.Tally))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]trace.Work{
		"gemm": trace.Compute, "ncclDevKernel_x": trace.Communication, "Memset": trace.MemoryCopy, "ProfilerStep": trace.StepWork,
		"aten::mm": trace.HostWork,
	}
	for id, name := range r.Names().Funcs() {
		if got := r.Names().Work(id); got != want[name] {
			t.Errorf("%s has work %d, want %d", name, got, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no function for %v", want)
	}
}

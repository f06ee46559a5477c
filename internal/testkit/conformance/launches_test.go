package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// gpuFormat is a format of traces of GPUs.
type gpuFormat struct {
	format
	write func(t *testing.T, dir string, p *sqlitetest.Program)
}

func gpuFormats() []gpuFormat {
	database := func(write func(tb testing.TB, path string, generation int, programs ...*sqlitetest.Program), generation int,
	) func(*testing.T, string, *sqlitetest.Program) {
		return func(t *testing.T, dir string, p *sqlitetest.Program) {
			t.Helper()
			write(t, filepath.Join(dir, fmt.Sprintf("rank%d.db", p.Rank)), generation, p)
		}
	}
	domains := []tally.Kind{tally.EventsIgnored} // domains of NVTX
	return []gpuFormat{
		{format{name: "Nsight 2", hosts: true, notes: domains}, database(sqlitetest.Nsight, sqlitetest.Nsight2)},
		{format{name: "Nsight 3", hosts: true, notes: domains}, database(sqlitetest.Nsight, sqlitetest.Nsight3)},
		{format{name: "rocpd", hosts: true}, database(sqlitetest.Rocpd, sqlitetest.RocpdInline)},
		{format{name: "rocpd with tracks", hosts: true}, database(sqlitetest.Rocpd, sqlitetest.RocpdTracks)},
		{format{name: "Kineto"}, writeKineto},
	}
}

// TestLaunchesAgree compares the calls, kernels, copies and launches of a program with GPUs, their times by kind, and the
// kernel that takes long at times.
func TestLaunchesAgree(t *testing.T) {
	tracetest.SkipShort(t, "it analyzes many traces")
	var programs []*sqlitetest.Program
	for rank := range 4 {
		p := &sqlitetest.Program{Rank: rank, World: 4, Steps: 400, Hostname: "node0", Slow: make(map[int]bool)}
		for n := 37 + rank; n < p.Steps; n += 97 {
			p.Slow[n] = true
		}
		programs = append(programs, p)
	}
	var want *program
	var times []api.GPUTime
	var found []finding
	for _, f := range gpuFormats() {
		t.Run(f.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, p := range programs {
				f.write(t, dir, p)
			}
			got := read(t, dir, &f.format).asCUDA().sinceBoot()
			run := filepath.Join(t.TempDir(), "run")
			command(t, "analyze", dir, "--out", run)
			spent, same := gpuTimes(t, run), findingsOf(t, run)
			if want == nil { // the first one
				want, times, found = got, spent, same
				if n := launches(got); n != 4*400*3 {
					t.Errorf("%d launches, want %d", n, 4*400*3)
				}
				if len(found) == 0 || len(times) != 4 {
					t.Errorf("findings %+v, times %+v", found, times)
				}
				return
			}
			compare(t, &f.format, got, want)
			compareFindings(t, &f.format, same, found)
			if !reflect.DeepEqual(spent, times) {
				t.Errorf("times of GPUs are %+v, want %+v", spent, times)
			}
		})
	}
}

// launches returns how many activities have the number of a call that launched them.
func launches(p *program) (n int) {
	for _, rank := range p.ranks() {
		calls := make(map[uint64]int)
		for _, l := range p.sorted() {
			for i, e := range p.lanes[l] {
				if e.kind == trace.Count && l.rank == rank {
					if calls[e.bytes]++; calls[e.bytes] == 2 && p.lanes[l][i-1].kind == trace.Enter {
						n++
					}
				}
			}
		}
	}
	return n
}

// asCUDA returns the program with CUDA's names of calls of HIP.
func (p *program) asCUDA() *program {
	for _, events := range p.lanes {
		for i := range events {
			if rest, ok := strings.CutPrefix(events[i].name, "hip"); ok {
				events[i].name = "cuda" + rest
			}
		}
	}
	return p
}

// gpuTimes returns the times of GPUs of a run, without hosts and the start, which not all formats have.
func gpuTimes(t *testing.T, run string) []api.GPUTime {
	t.Helper()
	var times api.GPUTimes
	if err := json.Unmarshal([]byte(command(t, "breakdown", run, "--format", "json")), &times); err != nil {
		t.Fatal(err)
	}
	for i := range times.Rows {
		row := &times.Rows[i]
		row.Host, row.Start, row.From = "", 0, nil
	}
	return times.Rows
}

// writeKineto writes a program with GPUs as PyTorch's profiler does.
func writeKineto(t *testing.T, dir string, p *sqlitetest.Program) {
	t.Helper()
	var events []map[string]any
	open := make(map[int][]map[string]any) // by thread
	for _, line := range p.Dump("cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize", "Memcpy HtoD") {
		f := strings.SplitN(line, " ", 4) // thread, time, kind, name
		thread, err1 := strconv.Atoi(f[0])
		at, err2 := strconv.ParseInt(f[1], 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		stack := open[thread]
		switch f[2] {
		case "enter":
			e := kinetoEvent(p, thread, f[3])
			e["ts"] = at
			open[thread] = append(stack, e)
		case "counter":
			_, number, _ := strings.Cut(f[3], " = ")
			stack[len(stack)-1]["args"].(map[string]any)["correlation"] = json.Number(number)
		case "exit":
			e := stack[len(stack)-1]
			open[thread] = stack[:len(stack)-1]
			start := e["ts"].(int64)
			e["ts"] = json.Number(trace.Nanosecond.MicrosText(trace.Ticks(start)))
			e["dur"] = json.Number(trace.Nanosecond.MicrosText(trace.Ticks(at - start)))
			events = append(events, e)
		}
	}
	text, err := json.Marshal(map[string]any{
		"distributedInfo":     map[string]any{"backend": "nccl", "rank": p.Rank, "world_size": p.World},
		"baseTimeNanoseconds": sqlitetest.Base,
		"traceEvents":         events,
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d.json", p.Rank)), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// kinetoEvent returns a call of a thread, without times. Threads after the first are the streams 7 and 13 of the GPU.
func kinetoEvent(p *sqlitetest.Program, thread int, name string) map[string]any {
	args := make(map[string]any)
	e := map[string]any{"ph": "X", "pid": p.PID(), "tid": p.PID(), "name": name, "args": args}
	e["cat"] = "user_annotation"
	if strings.HasPrefix(name, "cuda") {
		e["cat"] = "cuda_runtime"
	}
	if thread == 0 {
		return e
	}
	stream := []int{0, 7, 13}[thread]
	e["pid"], e["tid"], args["device"], args["stream"] = 0, stream, 0, stream
	e["name"], _, _ = strings.Cut(name, " [")
	if strings.HasPrefix(name, "Memcpy") {
		e["cat"], args["bytes"] = "gpu_memcpy", 4096
		return e
	}
	e["cat"], args["grid"], args["block"] = "kernel", []int{8, 2, 1}, []int{128, 1, 1}
	return e
}

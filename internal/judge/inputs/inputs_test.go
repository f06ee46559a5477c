package inputs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/judge/inputs"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
)

// job writes the traces of ranks with collective operations.
type job struct {
	ranks    int
	steps    int
	ahead    []int64 // by which the clock of each rank is ahead, in nanoseconds
	numbered bool    // operations have Seq
	gloo     bool    // operations run on the host
}

// Times of a job in nanoseconds.
const (
	stepTime = 10_000_000
	duration = 80_000 // of an operation, from the last arrival
	late     = 30_000 // arrival of rank 1 after the others
)

func micros(ns int64) string { return trace.Nanosecond.MicrosText(trace.Ticks(ns)) }

func (j *job) write(t *testing.T) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for rank := range j.ranks {
		var b strings.Builder
		fmt.Fprintf(&b, `{"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d, "pg_config": [{"pg_name": "7", `+
			`"pg_desc": "default_pg", "pg_size": %[2]d, "ranks": "[0, 1]"}]}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [`, rank, j.ranks)
		for step := range j.steps {
			at := int64(step)*stepTime + j.ahead[rank]
			arrival := at + 1_000_000
			if rank == 1 {
				arrival += late
			}
			fmt.Fprintf(&b, `{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":%d,"tid":%[2]d,"ts":%s,"dur":9000},`,
				step+5, 100+rank, micros(at))
			for op := range int64(2) { // the second begins 1 ms later
				start, end := arrival+op*1_000_000, at+1_000_000+late+duration+op*1_000_000
				if j.gloo {
					fmt.Fprintf(&b, `{"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":%d,"tid":%d,"ts":%s,"dur":%s,`+
						`"args":{"Input Dims":[[%d, 2]],"Input type":["float"]}},`, 100+rank, 200+op, micros(start), micros(end-start), 500+op)
					continue
				}
				id := 10*step + int(op)
				fmt.Fprintf(&b, `{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":%d,"tid":%[1]d,"ts":%s,"dur":5,`+
					`"args":{"correlation":%d}},`, 100+rank, micros(at+100_000*(1+op)), id)
				fmt.Fprintf(&b, `{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":%d,"tid":9,"ts":%s,"dur":%s,"args":{"correlation":%d,`+
					`"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"dtype":"Float","Process Group Name":"7","Group size":%d`,
					rank, micros(start), micros(end-start), id, j.ranks)
				if j.numbered {
					fmt.Fprintf(&b, `,"Seq":%d`, 2*step+int(op)+1)
				}
				b.WriteString(`}},`)
			}
		}
		path := filepath.Join(dir, fmt.Sprintf("rank%d.json", rank))
		if err := os.WriteFile(path, []byte(strings.TrimSuffix(b.String(), ",")+"]}"), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func open(t *testing.T, paths []string) *inputs.Traces {
	t.Helper()
	traces, err := inputs.Open(t.Context(), paths, inputs.Config{RankPattern: profile.DefaultRankPattern.String(), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(traces.Close)
	return traces
}

func TestClocksAreAlignedByCollectives(t *testing.T) {
	for _, c := range []struct {
		name string
		job
		want []int64
	}{
		{"numbered", job{ranks: 3, steps: 20, ahead: []int64{0, 700_000, -4_000_000}, numbered: true}, []int64{0, 700_000, -4_000_000}},
		{"by step and position", job{ranks: 2, steps: 20, ahead: []int64{0, 700_000}}, []int64{0, 700_000}},
		{"gloo", job{ranks: 2, steps: 20, ahead: []int64{0, -300_000}, gloo: true}, []int64{0, -300_000}},
		{"less than an operation", job{ranks: 2, steps: 20, ahead: []int64{0, 40_000}, numbered: true}, []int64{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			traces := open(t, c.write(t))
			var logs []breakdown.RankLog
			for i, in := range traces.Inputs {
				if got := int64(in.Collectives.Corrected); got != c.want[i] {
					t.Errorf("clock of rank %d corrected by %d, want %d", i, got, c.want[i])
				}
				var counts tally.Tally
				steps, err := in.Steps(&counts)
				if err != nil {
					t.Fatal(err)
				}
				first := new(trace.Step)
				for len(first.Batches) == 0 { // before the first step of the profiler
					if first, err = steps.Next(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if got, want := int64(first.Batches[0].Events[0].Time), 1_700_000_000_000_000_000+c.ahead[i]-c.want[i]; got != want {
					t.Errorf("rank %d begins at %d, want %d", i, got, want)
				}
				if (counts.Count(tally.ClockCorrected) > 0) != (c.want[i] != 0) {
					t.Errorf("rank %d: clock-corrected is %d", i, counts.Count(tally.ClockCorrected))
				}
				logs = append(logs, in.Collectives)
			}
			cmp := breakdown.Compare(logs)
			if cmp.Unmatched+cmp.Alone+cmp.Omitted != 0 {
				t.Errorf("got %+v", cmp)
			}
			for i := range cmp.Clocks {
				if got := int64(cmp.Clocks[i].Offset); got != c.ahead[i] {
					t.Errorf("clock of rank %d is ahead by %d, want %d", i, got, c.ahead[i])
				}
			}
			count := int64(0)
			for _, o := range cmp.Operations {
				count += o.Count
				if o.Group != "7" || o.Size != c.ranks || o.Ranks != c.ranks || o.Bytes < 4000 || o.Latency.Max != duration ||
					o.Skew.Max != late || o.Last[0] != (breakdown.LastCount{Rank: 1, Count: o.Count}) {
					t.Errorf("got %+v", o)
				}
			}
			if count != int64(2*c.steps) {
				t.Errorf("%d operations, want %d", count, 2*c.steps)
			}
		})
	}
}

// TestHostsWithoutCommonClockBeginTogether reads ranks of two hosts that were started at different times.
func TestHostsWithoutCommonClockBeginTogether(t *testing.T) {
	dir := t.TempDir()
	shifts := []int64{9e15, 9e15 + 300, 4e15, 4e15 + 500} // of ranks 0 and 1 on one host, 2 and 3 on the other
	var paths []string
	for rank, shift := range shifts {
		path := filepath.Join(dir, fmt.Sprint(rank, ".db"))
		sqlitetest.Rocpd(t, path, sqlitetest.RocpdInline, &sqlitetest.Program{Rank: rank, World: 4, Steps: 2, Shift: shift})
		paths = append(paths, path)
	}
	for i, in := range open(t, paths).Inputs {
		var counts tally.Tally
		steps, err := in.Steps(&counts)
		if err != nil {
			t.Fatal(err)
		}
		step, err := steps.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := int64(step.Batches[0].Events[0].Time), int64(4e15)+1_000_000+shifts[i]%1000; got != want {
			t.Errorf("rank %d begins at %d, want %d", i, got, want)
		}
		if assumed := counts.Count(tally.ClockAssumed) > 0; assumed != (i < 2) {
			t.Errorf("rank %d: clock-assumed is %v", i, assumed)
		}
	}
}

func TestMistakesInTheChoiceOfTraces(t *testing.T) {
	paths := (&job{ranks: 2, steps: 1, ahead: []int64{0, 0}}).write(t)
	for want, cfg := range map[string]inputs.Config{
		"regular expression":   {RankPattern: "rank"},
		"matches no trace":     {RankPattern: "(1)", Programs: []string{"1=nothing"}},
		"form index=pattern":   {RankPattern: "(1)", Programs: []string{"x"}},
		"analyze them separat": {RankPattern: "(1)"},
	} {
		given := paths
		if strings.HasPrefix(want, "analyze") {
			given = append([]string{t.TempDir()}, paths...)
		}
		_, err := inputs.Open(t.Context(), given, cfg)
		if _, usage := err.(inputs.UsageError); !usage || !strings.Contains(err.Error(), want) { //nolint:errorlint // returned as it is
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

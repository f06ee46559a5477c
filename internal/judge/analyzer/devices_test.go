package analyzer_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// deviceSpans returns the spans of memory copies and of kernels on the GPUs of a recorded trace.
func deviceSpans(t *testing.T, dataset string) (copies, kernels [][2]trace.Ticks) {
	t.Helper()
	in, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var counts tally.Tally
	steps := tau.NewReader(in, tau.Config{}, &counts)
	entries := make(map[trace.Thread][]trace.Ticks)
	for {
		s, err := steps.Next(t.Context())
		if err == io.EOF { //nolint:errorlint // as the interface promises
			return copies, kernels
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range s.Batches {
			if _, ok := steps.Names.GPU(b.Rank, b.Thread); !ok {
				continue
			}
			for _, e := range b.Events {
				open := entries[b.Thread]
				switch e.Kind { //nolint:exhaustive // others do not matter
				case trace.Enter:
					entries[b.Thread] = append(open, e.Time)
				case trace.Exit:
					span := [2]trace.Ticks{open[len(open)-1], e.Time}
					entries[b.Thread] = open[:len(open)-1]
					name, _ := steps.Names.Func(b.Rank, e.Func())
					switch {
					case strings.HasPrefix(name, "Memory copy"):
						copies = append(copies, span)
					case !strings.HasPrefix(name, ".TAU application"):
						kernels = append(kernels, span)
					}
				}
			}
		}
	}
}

// covered returns the time that spans cover.
func covered(spans [][2]trace.Ticks) (sum trace.Ticks) {
	slices.SortFunc(spans, func(a, b [2]trace.Ticks) int { return cmp.Compare(a[0], b[0]) })
	end := trace.Ticks(0)
	for _, s := range spans {
		sum += max(s[1]-max(s[0], end), 0)
		end = max(end, s[1])
	}
	return sum
}

func TestBreakdownOfRecordedGPUs(t *testing.T) {
	datasets := tracetest.Recorded(t, "gpu-BP5")
	copies, kernels := deviceSpans(t, datasets[0])
	b := analyze(t, datasets, nil).Breakdown
	if b == nil || len(b.Ranks) != 1 {
		t.Fatalf("got %+v", b)
	}
	got := &b.Ranks[0]
	all := slices.Concat(copies, kernels)
	if got.Late != 0 || got.Activities != int64(len(all)) {
		t.Errorf("%d activities, %d late; want %d, 0", got.Activities, got.Late, len(all))
	}
	if busy := got.Total() - got.IdleTime(); busy != covered(all) {
		t.Errorf("busy for %d, want %d", busy, covered(all))
	}
	if c := got.Active(breakdown.Compute); c != covered(kernels) {
		t.Errorf("computes for %d, want %d", c, covered(kernels))
	}
	if m := got.Active(breakdown.Memory); m != covered(copies) {
		t.Errorf("copies for %d, want %d", m, covered(copies))
	}
	const sleeps = 2 * 30_000 // of the host, in the truth of the trace
	if got.Idle.HostWait < sleeps {
		t.Errorf("waits for the host for %d, less than %d", got.Idle.HostWait, sleeps)
	}
	if b := analyze(t, tracetest.Recorded(t, "ring-BP5"), nil).Breakdown; b != nil {
		t.Errorf("a run without GPUs has a breakdown: %+v", b)
	}
}

// The functions, counter and threads of a training job.
const (
	fnStep0 trace.FuncID = iota
	fnStep1
	fnLaunch
	fnKernel
	fnCollective
	fnAnnotation
	correlation trace.CounterID = 0
	mainThread  trace.Thread    = 0
	stream      trace.Thread    = 7
)

// training has two steps, each with a launch of two kernels, which run under an annotation.
type training struct {
	names trace.Names
	parts []*trace.Step
}

func (r *training) Next(context.Context) (*trace.Step, error) {
	if len(r.parts) == 0 {
		return nil, io.EOF
	}
	s := r.parts[0]
	r.parts = r.parts[1:]
	return s, nil
}

func (r *training) Names() *trace.Names { return &r.names }
func (r *training) Release()            {}

// newTraining returns the trace in one part for each step, or in a single part.
func newTraining(parts int) *training {
	funcs := []string{"ProfilerStep#41", "ProfilerStep#42", "cudaLaunchKernel", "gemm", "ncclDevKernel_AllReduce_Sum", "forward"}
	r := &training{names: trace.NewNames("python", funcs, []string{"Correlation ID"}, map[trace.Rank]map[trace.Thread]trace.GPU{
		0: {stream: {Device: "0", Stream: "7"}},
	})}
	row, id := uint32(0), uint64(0)
	for part := range 2 {
		if part < parts {
			r.parts = append(r.parts, &trace.Step{Index: part, Batches: []trace.Batch{{Thread: mainThread}, {Thread: stream}}})
		}
		s := r.parts[len(r.parts)-1]
		add := func(batch int, kind trace.Kind, at trace.Ticks, id uint32, value uint64) {
			row++
			b := &s.Batches[batch]
			b.Events = append(b.Events, trace.Event{Kind: kind, Time: 10_000*trace.Ticks(part+1) + at, ID: id, Value: value, Row: row})
		}
		call := func(batch int, fn trace.FuncID, from, to trace.Ticks, id uint64) {
			add(batch, trace.Enter, from, uint32(fn), 0)
			add(batch, trace.Count, from, uint32(correlation), id)
			add(batch, trace.Exit, to, uint32(fn), 0)
		}
		add(0, trace.Enter, 0, uint32(part), 0)
		call(0, fnLaunch, 100, 150, id)
		call(0, fnLaunch, 400, 450, id+1)
		add(0, trace.Exit, 9_900, uint32(part), 0)
		add(1, trace.Enter, 199, uint32(fnAnnotation), 0)
		call(1, fnKernel, 200, 300, id)
		call(1, fnCollective, 500, 800, id+1)
		add(1, trace.Exit, 800, uint32(fnAnnotation), 0)
		id += 2
	}
	return r
}

func TestBreakdownHasTrainingSteps(t *testing.T) {
	for parts := 1; parts <= 2; parts++ {
		t.Run(fmt.Sprintf("%d parts", parts), func(t *testing.T) {
			inputs := []analyzer.Input{{Path: "training", Steps: func(*tally.Tally) (trace.Steps, error) { return newTraining(parts), nil }}}
			for passes := 1; passes <= 2; passes++ {
				_, res := analyzeInputs(t, inputs, func(c *analyzer.Config) { c.Passes, c.Unit = passes, trace.Nanosecond })
				checkTraining(t, res.Breakdown)
			}
		})
	}
}

func checkTraining(t *testing.T, b *breakdown.Run) {
	t.Helper()
	if b == nil || len(b.Ranks) != 1 || len(b.Ranks[0].Steps) != 2 {
		t.Fatalf("got %+v", b)
	}
	got := &b.Ranks[0]
	if got.Total() != 10_600 || got.Active(breakdown.Compute) != 200 || got.ExposedCommunication() != 600 || got.Activities != 4 {
		t.Errorf("got %+v", got)
	}
	// Within a step the host launches the second kernel 100 after the first ended, and then there
	// is nothing until the next step launches its first.
	if want := (breakdown.Reasons{HostWait: 2*200 + 9400}); got.Idle != want {
		t.Errorf("idle for %+v, want %+v", got.Idle, want)
	}
	first, second := &got.Steps[0], &got.Steps[1]
	if first.Number != 41 || first.Start != 10_000 || first.Total() != 9_800 || first.IdleTime() != 200+9_200 {
		t.Errorf("first step %+v", first)
	}
	if second.Number != 42 || second.Start != 20_000 || second.Total() != 800 || second.Idle.HostWait != 400 {
		t.Errorf("second step %+v", second)
	}
}

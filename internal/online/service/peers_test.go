package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// countingStream counts bytes.
type countingStream int

func (s *countingStream) Publish(_ context.Context, _, _ string, data []byte) error {
	*s += countingStream(len(data))
	return nil
}

// BenchmarkStorePeers reports how much of a processor the comparison of 10 000 ranks with 200 functions in
// all windows takes while a run is in progress, with the garbage collection that it causes.
func BenchmarkStorePeers(b *testing.B) {
	load := largeLoad(10_000, 200)
	name := func(_ trace.Program, id uint32) string { return fmt.Sprint("function ", id) }
	for b.Loop() {
		runtime.GC()
		var stream countingStream
		before := cputime.OfProcess()
		sent, pause := sendPeers(b.Context(), &stream, "run", func() (*workload.Load, func(trace.Program, uint32) string) {
			return load.Clone(), name
		})
		runtime.GC()
		took := (cputime.OfProcess() - before).Seconds()
		if !sent {
			b.Fatal("nothing was sent")
		}
		b.ReportMetric(took, "processor-s")
		b.ReportMetric(pause.Seconds(), "pause-s")
		b.ReportMetric(float64(stream)/1e6, "MB")
		b.ReportMetric(100*took/(took+pause.Seconds()), "%-of-processor")
	}
}

// largeLoad returns the load of ranks with functions that take about a second in each of 16 windows.
func largeLoad(ranks trace.Rank, functions int) *workload.Load {
	rng := rand.New(rand.NewPCG(1, 1))
	l := workload.New()
	width := trace.Ticks(1) << 26
	cells := make([]workload.Cell, functions)
	for rank := range ranks {
		lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: rank}})
		lane.Host = fmt.Sprintf("node%03d", rank/64)
		for window := range trace.Ticks(16) {
			for i := range cells {
				work := l.Work(workload.Work{Function: uint32(i), Path: callpath.Hash(0).Then(fmt.Sprint(i))})
				cells[i] = workload.Cell{Work: work, Sums: callpath.Sums{Calls: 100, Exclusive: 100_000 + rng.Uint64N(10_000)}}
			}
			at := (1<<20 + window) * width
			l.Add(lane, at, at+width/2, cells)
			l.AddWait(lane, at+width/2, at+width-1, uint64(width/4), true)
		}
	}
	return l
}

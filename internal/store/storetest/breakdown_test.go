package storetest

import (
	"context"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// gpuBreakdown returns the breakdown of two ranks, one with steps.
func gpuBreakdown() *provenance.Breakdown {
	return &provenance.Breakdown{
		Times: []provenance.GPUTime{
			{
				PID: 0, RID: 1, Start: 5, Total: 1 << 60, Compute: 7, Communication: 6, Memory: 5, ExposedCommunication: 4, ExposedMemory: 3, Overlap: 2,
				Idle: 6, HostWait: 1, KernelWait: 2, OtherWait: 3, Streams: []provenance.StreamTime{
					{TID: 7, Activities: 9, Busy: 8, HostWait: 7, KernelWait: 6, OtherWait: 5, Overlap: 4}, {TID: math.MaxUint32},
				},
			},
			{PID: 0, RID: 1, Step: new(int64(0)), Start: 1, Streams: []provenance.StreamTime{}},
			{PID: 0, RID: 1, Step: new(int64(41)), Start: 1 << 60, Total: 1, Idle: 1, Streams: []provenance.StreamTime{}},
			{PID: math.MaxInt32, RID: -1, Streams: []provenance.StreamTime{}},
		},
		Collectives: []provenance.CollectiveStats{
			{
				PID: 0, Operation: "all\"reduce\"", Group: "0 'x'", Size: 64, Seen: 63, Bytes: 1 << 60, DType: "Float", Calls: 5, LatencySum: 1 << 60,
				LatencyMax: 3, Skews: 4, SkewSum: 9, SkewMax: 8, Last: []provenance.LastRank{{Rank: 3, Calls: 2}, {Rank: 0, Calls: 1}}, Bandwidth: 1.5e11,
			},
			{PID: 1, Operation: "barrier", Calls: 1, Last: []provenance.LastRank{}},
		},
		Clocks: []provenance.RankClock{{PID: 0, RID: 0}, {PID: 0, RID: 1, Offset: -1 << 60, Matched: 5}},
	}
}

// wantBreakdown compares the stored breakdown with b.
func (f *fixture) wantBreakdown(run string, b *provenance.Breakdown) {
	f.Helper()
	a, err := query.New(f.Context(), f.store, run)
	if err != nil {
		f.Fatal(err)
	}
	got, err := readBreakdown(f.Context(), a)
	if err != nil {
		f.Fatal(err)
	}
	if g, w := string(encode(f, got)), string(encode(f, b)); g != w {
		f.Errorf("got breakdown\n%s\nwant\n%s", g, w)
	}
}

// readBreakdown reads a breakdown, the times of one rank after the other; nil if there is none.
func readBreakdown(ctx context.Context, a *query.Queries) (*provenance.Breakdown, error) {
	gpus, collectives, err := a.HasBreakdown(ctx)
	if err != nil || !gpus && !collectives {
		return nil, err
	}
	b, err := a.Collectives(ctx)
	if err != nil {
		return nil, err
	}
	if collectives != (len(b.Collectives) > 0) {
		return nil, fmt.Errorf("%d collective operations, although HasBreakdown reports %t", len(b.Collectives), collectives)
	}
	ranks, err := a.GPUTimes(ctx, false, nil)
	if err != nil {
		return nil, err
	}
	steps := 0
	for i := range ranks {
		of, err := a.GPUTimes(ctx, true, &trace.RankKey{Program: ranks[i].PID, Rank: ranks[i].RID})
		if err != nil {
			return nil, err
		}
		b.Times = append(append(b.Times, ranks[i]), of...)
		steps += len(of)
	}
	all, err := a.GPUTimes(ctx, true, nil)
	if err == nil && len(all) != steps {
		err = fmt.Errorf("%d steps in all, %d of ranks", len(all), steps)
	}
	return b, err
}

var breakdownTests = []test{
	{"stores the breakdown", func(f *fixture) {
		f.wantBreakdown("run", nil)
		f.write(&provdb.Batch{Breakdown: gpuBreakdown()})
		f.wantBreakdown("run", gpuBreakdown())
		f.want([][]any{{int64(41), int64(1)}}, "SELECT step, idle_us FROM gpu_times WHERE run = $1 AND step > 0", int64(f.run))
		f.want([][]any{{int64(3), 1.5e11}}, "SELECT (last_ranks -> 0 ->> 'rank')::BIGINT AS last, bus_bandwidth FROM collectives WHERE collective = 1")
	}},
	{"stores collective operations without GPUs", func(f *fixture) {
		host := gpuBreakdown()
		host.Times = []provenance.GPUTime{}
		f.write(&provdb.Batch{Breakdown: host})
		host.Times = nil // none are read
		f.wantBreakdown("run", host)
	}},
	{"a breakdown replaces that of the run only, and other writes keep it", func(f *fixture) {
		other := f.createRun("other")
		f.writeTo(other, &provdb.Batch{Breakdown: gpuBreakdown()})
		f.write(&provdb.Batch{Breakdown: gpuBreakdown()})
		less := gpuBreakdown()
		less.Times, less.Collectives, less.Clocks = less.Times[:1], less.Collectives[1:], less.Clocks[1:]
		f.write(&provdb.Batch{Breakdown: less})
		f.write(&provdb.Batch{Anomalies: Records(2, 1), Peers: peers(), Breakdown: &provenance.Breakdown{}})
		f.update(provdb.Run{ID: f.run, State: provdb.Finished, Started: started})
		f.wantBreakdown("run", less)
		f.wantBreakdown("other", gpuBreakdown())
	}},
	{"unusual text of collectives is stored, invalid values are rejected", func(f *fixture) {
		unusual := gpuBreakdown()
		unusual.Collectives[0].Group = "a\x00b\xff"
		unusual.Clocks = append([]provenance.RankClock{{PID: 0, RID: 1, Offset: 7}}, unusual.Clocks...) // the last one counts
		f.write(&provdb.Batch{Breakdown: unusual})
		f.want([][]any{{provenance.Text("a\x00b\xff")}}, "SELECT process_group FROM collectives WHERE collective = 1")
		f.want([][]any{{int64(-1 << 60)}}, "SELECT offset_us FROM clocks WHERE rid = 1")
		if unusual.Collectives[0].Group != "a\x00b\xff" {
			f.Error("the batch was changed")
		}
		for _, bad := range []provenance.Breakdown{
			{Times: []provenance.GPUTime{{PID: math.MaxUint32}}},
			{Collectives: []provenance.CollectiveStats{{Bandwidth: math.Inf(1)}}},
			{Clocks: []provenance.RankClock{{PID: trace.Program(math.MaxUint32)}}},
		} {
			if err := f.store.Write(f.Context(), f.run, &provdb.Batch{Breakdown: &bad}); err == nil {
				f.Errorf("wrote %+v", bad)
			}
		}
	}},
}

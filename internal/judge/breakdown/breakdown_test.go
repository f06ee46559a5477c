package breakdown_test

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
)

func config() breakdown.Config {
	c := breakdown.Default(trace.Nanosecond)
	c.KernelDelay = 10
	return c
}

func TestKindOf(t *testing.T) {
	for name, want := range map[string]breakdown.Kind{
		"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)":         breakdown.Communication,
		"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)":      breakdown.Communication,
		"ncclSymkDevKernel_AllGather_LL":                               breakdown.Communication,
		"Memcpy DtoD (Device -> Device)":                               breakdown.Memory,
		"Memset (Device)":                                              breakdown.Memory,
		"void cudnn::bn_bw_1C11_kernel_new<float>(float)":              breakdown.Compute,
		"void nccl_like_name(int)":                                     breakdown.Compute,
		"void at::native::CatArrayBatchedCopy<Memcpy>(OpaqueType<4u>)": breakdown.Compute,
	} {
		if got := breakdown.KindOf(name); got != want {
			t.Errorf("%s has kind %d, want %d", name, got, want)
		}
	}
}

// run is the input of a Rank.
type run struct {
	activities []breakdown.Activity // in order of start
	steps      []trace.Ticks        // starts, in order
}

// randomRun returns activities of some streams, which overlap within and between streams.
func randomRun(rng *rand.Rand) (in run) {
	const end = 2000
	for range 1 + rng.IntN(200) {
		start := trace.Ticks(rng.IntN(end))
		a := breakdown.Activity{
			Start: start, End: start + trace.Ticks(rng.IntN(30)), Launch: breakdown.NoLaunch,
			Stream: trace.Thread(rng.IntN(3)), Kind: breakdown.Kind(rng.IntN(3)),
		}
		if rng.IntN(4) > 0 {
			a.Launch = start - trace.Ticks(rng.IntN(40))
		}
		in.activities = append(in.activities, a)
	}
	slices.SortFunc(in.activities, func(a, b breakdown.Activity) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.End, b.End),
			cmp.Compare(a.Launch, b.Launch), cmp.Compare(a.Kind, b.Kind))
	})
	for at := trace.Ticks(rng.IntN(300)); at < end; at += trace.Ticks(1 + rng.IntN(300)) {
		in.steps = append(in.steps, at)
	}
	return in
}

// add adds the run in batches of a length of time, the streams of a batch one after the other.
func (in run) add(r *breakdown.Rank, batch trace.Ticks) {
	activities, steps := in.activities, in.steps
	for until := batch; len(activities)+len(steps) > 0; until += batch {
		n, _ := slices.BinarySearchFunc(activities, until, func(a breakdown.Activity, t trace.Ticks) int { return cmp.Compare(a.Start, t) })
		for stream := range trace.Thread(3) {
			for _, a := range activities[:n] {
				if a.Stream == stream {
					r.Add(a)
				}
			}
		}
		activities = activities[n:]
		for ; len(steps) > 0 && steps[0] < until; steps = steps[1:] {
			r.BeginStep(int64(len(in.steps)-len(steps)), steps[0])
		}
		r.Settle(until)
	}
}

// byTick sums up a run tick by tick.
func (in run) byTick(delay trace.Ticks) (whole breakdown.Sums, steps []breakdown.Sums) {
	steps = make([]breakdown.Sums, len(in.steps))
	first, last := in.activities[0].Start, trace.Ticks(0)
	for _, a := range in.activities {
		last = max(last, a.End)
	}
	for at := first; at < last; at++ {
		var one breakdown.Sums
		active, idleFrom := breakdown.Set(0), first
		var next *breakdown.Activity
		for i := range in.activities {
			a := &in.activities[i]
			if a.Start <= at {
				idleFrom = max(idleFrom, a.End)
				if at < a.End {
					active |= breakdown.SetOf(a.Kind)
				}
			} else if next == nil {
				next = a
			}
		}
		one.BySet[active] = 1
		if active == 0 {
			switch {
			case next.Launch != breakdown.NoLaunch && next.Launch > idleFrom:
				one.Idle.HostWait = 1
			case next.Start-idleFrom < delay:
				one.Idle.KernelWait = 1
			default:
				one.Idle.Other = 1
			}
		}
		addSums(&whole, &one)
		for i := len(in.steps) - 1; i >= 0; i-- {
			if at >= in.steps[i] {
				addSums(&steps[i], &one)
				break
			}
		}
	}
	return whole, steps
}

// addSums adds the sums of another span.
func addSums(s, o *breakdown.Sums) {
	for i, t := range o.BySet {
		s.BySet[i] += t
	}
	s.Idle.HostWait += o.Idle.HostWait
	s.Idle.KernelWait += o.Idle.KernelWait
	s.Idle.Other += o.Idle.Other
}

func TestSumsEqualThoseOfEveryTickForAnyBatches(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		in := randomRun(rng)
		whole, steps := in.byTick(config().KernelDelay)
		var first *breakdown.Result
		for _, batch := range []trace.Ticks{3000, 500, 7, 1} {
			r := breakdown.NewRank(config())
			in.add(r, batch)
			got := r.Finish()
			if got.Sums != whole {
				t.Fatalf("seed %d, batches of %d:\n got %v\nwant %v", seed, batch, got.Sums, whole)
			}
			if len(got.Steps) != len(steps) || got.Late != 0 || got.Activities != int64(len(in.activities)) {
				t.Fatalf("seed %d, batches of %d: %d steps, %d late, %d activities", seed, batch, len(got.Steps), got.Late, got.Activities)
			}
			for i := range steps {
				if got.Steps[i].Sums != steps[i] || got.Steps[i].Number != int64(i) {
					t.Fatalf("seed %d, batches of %d, step %d:\n got %v\nwant %v", seed, batch, i, got.Steps[i], steps[i])
				}
			}
			checkShares(t, &got.Sums, got.Last-got.First)
			if first == nil {
				first = got
			} else if !reflect.DeepEqual(got, first) {
				t.Fatalf("seed %d: batches of %d change the result:\n got %+v\nwant %+v", seed, batch, got, first)
			}
		}
	}
}

func checkShares(t *testing.T, s *breakdown.Sums, length trace.Ticks) {
	t.Helper()
	if sum := s.Active(breakdown.Compute) + s.ExposedCommunication() + s.ExposedMemory() + s.IdleTime(); sum != length || s.Total() != length {
		t.Fatalf("shares add up to %d of %d", sum, length)
	}
	if sum := s.Idle.HostWait + s.Idle.KernelWait + s.Idle.Other; sum != s.IdleTime() {
		t.Fatalf("reasons add up to %d of %d", sum, s.IdleTime())
	}
	exposed := s.Active(breakdown.Communication) - s.Overlap()
	if exposed != s.ExposedCommunication() {
		t.Fatalf("exposed communication is %d, want %d", s.ExposedCommunication(), exposed)
	}
}

func TestStreamsDivideTheirOwnGaps(t *testing.T) {
	r := breakdown.NewRank(config())
	for _, a := range []breakdown.Activity{
		{Start: 0, End: 100, Launch: -5, Stream: 1},
		{Start: 105, End: 200, Launch: 50, Stream: 1},                   // 5 of kernel wait
		{Start: 250, End: 300, Launch: 210, Stream: 1},                  // 50 of host wait
		{Start: 350, End: 400, Launch: 220, Stream: 1},                  // 50 of other
		{Start: 395, End: 420, Launch: breakdown.NoLaunch, Stream: 1},   // overlaps by 5
		{Start: 0, End: 10, Launch: -3, Stream: 2},                      //
		{Start: 300, End: 350, Launch: breakdown.NoLaunch, Stream: 2},   // 290 of other
		{Start: 1000, End: 1000, Launch: breakdown.NoLaunch, Stream: 2}, // 650 of other; the device is idle for 580
	} {
		r.Add(a)
	}
	got := r.Finish()
	want := []breakdown.Reasons{{HostWait: 50, KernelWait: 5, Other: 50}, {Other: 290 + 650}}
	if len(got.Streams) != 2 || got.Streams[0].Idle != want[0] || got.Streams[1].Idle != want[1] {
		t.Errorf("got %+v, want reasons %+v", got.Streams, want)
	}
	if s := got.Streams[0]; s.Busy != 315 || s.Overlap != 5 || s.Activities != 5 {
		t.Errorf("stream 1 is busy for %d with %d of overlap and %d activities, want 315, 5 and 5", s.Busy, s.Overlap, s.Activities)
	}
	if want := (breakdown.Reasons{HostWait: 50, KernelWait: 5, Other: 580}); got.Idle != want {
		t.Errorf("the device is idle for %+v, want %+v", got.Idle, want)
	}
}

func TestLateActivitiesAreCutAndCounted(t *testing.T) {
	r := breakdown.NewRank(config())
	r.Add(breakdown.Activity{Start: 10, End: 20})
	r.Add(breakdown.Activity{Start: 100, End: 120})
	r.Settle(101)
	r.Add(breakdown.Activity{Start: 50, End: 110, Kind: breakdown.Communication})
	r.BeginStep(7, 60)
	got := r.Finish()
	if got.Late != 2 {
		t.Errorf("%d are late, want 2", got.Late)
	}
	if got.Active(breakdown.Communication) != 10 || got.Overlap() != 10 || got.IdleTime() != 80 {
		t.Errorf("got %+v", got.Sums)
	}
	checkShares(t, &got.Sums, 110)
	if len(got.Steps) != 1 || got.Steps[0].Total() != 20 {
		t.Errorf("got steps %+v", got.Steps)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	c := config()
	c.MaxPending, c.MaxSteps = 4, 3
	r, log := breakdown.NewRank(c), breakdown.NewLog(2)
	for i := range trace.Ticks(100) {
		r.Add(breakdown.Activity{Start: 10 * i, End: 10*i + 4, Launch: breakdown.NoLaunch})
		r.BeginStep(int64(i), 10*i)
		log.Add(breakdown.Collective{Operation: breakdown.Operation{Name: "allreduce"}, Start: 10 * i, End: 10*i + 4})
		r.Settle(0) // promises nothing
	}
	got := r.Finish()
	if len(got.Steps) != 3 || got.StepsOmitted != 97 || got.Total() != 994 || got.Active(breakdown.Compute) != 400 || got.Late != 0 {
		t.Errorf("got %d steps, %d omitted, %+v", len(got.Steps), got.StepsOmitted, got.Sums)
	}
	if cmp := breakdown.Compare([]breakdown.RankLog{{Rank: 0, Log: log}}); cmp.Omitted != 98 || cmp.Alone != 2 {
		t.Errorf("got %+v", cmp)
	}
}

func TestRankWithoutActivities(t *testing.T) {
	r := breakdown.NewRank(config())
	r.BeginStep(1, 5)
	r.Settle(100)
	if got := r.Finish(); got.Total() != 0 || got.Activities != 0 || len(got.Steps) != 1 {
		t.Errorf("got %+v", got)
	}
}

func BenchmarkRank(b *testing.B) {
	r := breakdown.NewRank(config())
	at := trace.Ticks(0)
	for b.Loop() {
		for i := range trace.Ticks(1000) {
			r.Add(breakdown.Activity{Start: at, End: at + 9, Launch: at - 100, Stream: trace.Thread(i % 2), Kind: breakdown.Kind(i % 3)})
			at += 5
		}
		r.Settle(at)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/activity")
}

func TestCountAddsOmissions(t *testing.T) {
	cfg := breakdown.Default(trace.Microsecond)
	cfg.MaxSteps = 1
	r := breakdown.NewRank(cfg)
	r.BeginStep(1, 0)
	r.BeginStep(2, 50)
	r.Add(breakdown.Activity{Start: 10, End: 20, Launch: breakdown.NoLaunch})
	r.Add(breakdown.Activity{Start: 60, End: 70, Launch: 5})
	r.Settle(100)
	r.Add(breakdown.Activity{Start: 30, End: 40, Launch: 5}) // late
	run := &breakdown.Run{
		Ranks:       []breakdown.RankResult{{Result: *r.Finish()}},
		Collectives: []breakdown.ProgramComparison{{Comparison: breakdown.Comparison{Alone: 3, Unmatched: 4, Omitted: 5}}},
	}
	var got tally.Tally
	run.Count(&got)
	(*breakdown.Run)(nil).Count(&got)
	for kind, want := range map[tally.Kind]int64{
		tally.LaunchUnknown: 1, tally.ActivityLate: 1, tally.StepsFolded: 1, tally.CollectiveAlone: 3, tally.CollectiveUnmatched: 4,
		tally.CollectiveOmitted: 5,
	} {
		if n := got.Count(kind); n != want {
			t.Errorf("%s is %d, want %d", kind.Name(), n, want)
		}
	}
}

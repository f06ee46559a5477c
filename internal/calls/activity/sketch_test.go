package activity_test

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// names are functions by number.
var names = []string{"main", "MPI_Recv()", "read", "cudaLaunchKernel", "relax(int)", "OpenMP_Sync_Region_Barrier", "ncclKernel_AllReduce", "kernel"}

func nameOf(id trace.FuncID) (string, bool) { return names[id], true }

type cellKey struct {
	trace.RankKey
	bin   int64
	class activity.Class
}

func content(s *activity.Sketch) map[cellKey]uint64 {
	all := make(map[cellKey]uint64)
	for _, key := range s.Ranks() {
		for _, c := range s.Cells(nil, key) {
			all[cellKey{key, c.Bin, c.Class}] = c.Ticks
		}
	}
	return all
}

// event is an enter, or an exit of the innermost call.
type event struct {
	thread int
	at     trace.Ticks
	enter  bool
	fn     trace.FuncID
}

// randomSteps returns the events of the threads of a rank, in steps. Thread 2 is a stream of a GPU.
func randomSteps(rng *rand.Rand) (steps [][]event) {
	at, depth := [3]trace.Ticks{}, [3]int{}
	for i := range at {
		at[i] = 1_700_000_000_000_000 + trace.Ticks(rng.Int64N(5000))
	}
	for range 20 {
		var step []event
		for thread := range at {
			for range rng.IntN(30) {
				at[thread] += trace.Ticks(rng.Int64N(1 << (2 + rng.IntN(18))))
				e := event{thread, at[thread], depth[thread] == 0 || rng.IntN(2) == 0, trace.FuncID(rng.IntN(len(names)))}
				if depth[thread]--; e.enter {
					depth[thread] += 2
				}
				step = append(step, e)
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// interval is time of a class.
type interval struct {
	from, to trace.Ticks
	class    activity.Class
}

// intervalsOf finds the class of each interval between two events of a thread from its entire stack.
func intervalsOf(steps [][]event) (all []interval) {
	for thread := range 3 {
		var stack []trace.FuncID
		var last trace.Ticks
		for _, e := range slices.Concat(steps...) {
			if e.thread != thread {
				continue
			}
			if n := len(stack); n > 0 {
				class := activity.Of(names[stack[n-1]])
				if thread == 2 && class != activity.MPI {
					class = activity.GPU
				}
				all = append(all, interval{last, e.at, class})
			}
			if last = e.at; e.enter {
				stack = append(stack, e.fn)
			} else {
				stack = stack[:len(stack)-1]
			}
		}
	}
	return all
}

// record passes events to a recorder as the builder of call stacks does.
func record(s *activity.Sketch, key trace.RankKey, steps [][]event, ended func()) {
	r := activity.NewRecorder(trace.Microsecond, nameOf)
	var meters [3]activity.Meter
	var stacks [3][]activity.Class
	for _, step := range steps {
		for thread := range meters {
			place := activity.Host
			if thread == 2 {
				place = activity.Device
			}
			first := trace.Ticks(-1)
			for _, e := range step {
				if e.thread != thread {
					continue
				}
				if first < 0 {
					first = e.at
				}
				class, stack := activity.None, &stacks[thread]
				if e.enter {
					class = r.Class(e.fn, place)
					*stack = append(*stack, class)
				} else if *stack = (*stack)[:len(*stack)-1]; len(*stack) > 0 {
					class = (*stack)[len(*stack)-1]
				}
				if m := &meters[thread]; !m.Switch(e.at, class) {
					r.Cross(m, e.at, class)
				}
				if e.enter {
					r.AddMessage(trace.Rank(e.fn)*trace.Rank(key.Rank), uint64(e.at%1000), true)
				}
			}
			if first >= 0 {
				r.EndStep(&meters[thread], first)
			}
		}
		r.MoveTo(s, key)
		s.AddReadings(key, readingsOf(step))
		ended()
	}
}

func TestTimesAreThoseOfTheInnermostCalls(t *testing.T) {
	for seed := range uint64(50) {
		steps := randomSteps(rand.New(rand.NewPCG(seed, 1)))
		s := activity.New(trace.Microsecond)
		key := trace.RankKey{Program: 1, Rank: 7}
		record(s, key, steps, func() {})
		want := make(map[cellKey]uint64)
		for _, i := range intervalsOf(steps) {
			for bin := int64(i.from) >> s.Shift(); bin <= int64(i.to)>>s.Shift(); bin++ {
				begin, end := trace.Ticks(bin<<s.Shift()), trace.Ticks((bin+1)<<s.Shift())
				if common := min(end, i.to) - max(begin, i.from); common > 0 {
					want[cellKey{key, bin, i.class}] += uint64(common)
				}
			}
		}
		if got := content(s); !maps.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
		if begin, end := s.Span(); int64(end)>>s.Shift()-int64(begin)>>s.Shift() >= 512 {
			t.Fatalf("seed %d: too many bins", seed)
		}
	}
}

func TestMergingIsExactInAnyOrderAndGrouping(t *testing.T) {
	for seed := range tracetest.Cases(uint64(10), 2) {
		rng := rand.New(rand.NewPCG(seed, 2))
		all := activity.New(trace.Microsecond)
		var parts [3]*activity.Sketch
		for i := range parts {
			parts[i] = activity.New(trace.Microsecond)
		}
		for rank := range trace.Rank(40) {
			key, steps := trace.RankKey{Program: trace.Program(rank % 2), Rank: rank}, randomSteps(rng)
			record(all, key, steps, func() {})
			one := activity.New(trace.Microsecond)
			record(one, key, steps, func() {
				parts[rng.IntN(len(parts))].Merge(decoded(t, one))
				one.Reset()
			})
		}
		merged := activity.New(trace.Microsecond)
		for _, i := range rng.Perm(len(parts)) {
			merged.Merge(parts[i])
		}
		if !maps.Equal(content(merged), content(all)) || !maps.Equal(readings(merged), readings(all)) || !bytes.Equal(merged.AppendBinary(nil), all.AppendBinary(nil)) {
			t.Fatalf("seed %d: merged sketch differs", seed)
		}
	}
}

func decoded(t *testing.T, s *activity.Sketch) *activity.Sketch {
	t.Helper()
	d, err := activity.Decode(s.AppendBinary(nil), math.MaxUint64)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCloneDoesNotChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	s := activity.New(trace.Microsecond)
	record(s, trace.RankKey{}, randomSteps(rng), func() {})
	before := s.AppendBinary(nil)
	c := s.Clone()
	record(s, trace.RankKey{}, randomSteps(rng), func() {})
	if !bytes.Equal(c.AppendBinary(nil), before) || bytes.Equal(s.AppendBinary(nil), before) {
		t.Error("the clone changed, or the sketch did not")
	}
}

func TestManyRanksHaveFewerBins(t *testing.T) {
	s := activity.New(trace.Microsecond)
	for rank := range trace.Rank(10_000) {
		records := []activity.Record{{From: 0, To: 1 << 20, Time: 1 << 20, Class: activity.Own}}
		s.Add(trace.RankKey{Rank: rank}, 0, 1<<20, records)
	}
	if n := len(s.Cells(nil, trace.RankKey{Rank: 9999})); n > 129 || n < 64 {
		t.Errorf("%d bins, want at most 129", n)
	}
	if size := len(s.AppendBinary(nil)); size > 6_000_000 {
		t.Errorf("%d bytes", size)
	}
}

func TestMessagesOfManyRanksFormGroups(t *testing.T) {
	s := activity.New(trace.Microsecond)
	for rank := range trace.Rank(1000) {
		s.AddMessages(trace.RankKey{Rank: rank}, []activity.Sent{{To: (rank + 1) % 1000, Traffic: activity.Traffic{Messages: 2, Bytes: 10}}, {To: -1}})
	}
	all, group := s.Messages(0)
	sum := activity.Traffic{}
	for _, m := range all {
		sum.Messages += m.Messages
		sum.Bytes += m.Bytes
	}
	if group != 16 || sum.Messages != 2000 || sum.Bytes != 10_000 || len(all) != 2*63 {
		t.Errorf("groups of %d ranks, %d pairs, %+v", group, len(all), sum)
	}
}

func TestDecodeRejectsDamage(t *testing.T) {
	s := activity.New(trace.Microsecond)
	record(s, trace.RankKey{Rank: 3}, randomSteps(rand.New(rand.NewPCG(1, 4))), func() {})
	b := s.AppendBinary(nil)
	for n := 0; n < len(b); n += tracetest.Cases(1, 7) {
		if _, err := activity.Decode(b[:n], math.MaxUint64); err == nil {
			t.Fatalf("the first %d of %d bytes are valid", n, len(b))
		}
		for _, change := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(b)
			damaged[n] ^= change
			if d, err := activity.Decode(damaged, math.MaxUint64); err == nil {
				if again := d.AppendBinary(nil); !bytes.Equal(again, damaged) && len(again) > len(damaged) {
					t.Fatalf("byte %d: decodes to something else", n)
				}
			}
		}
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	r := activity.NewRecorder(trace.Microsecond, nameOf)
	s := activity.New(trace.Microsecond)
	var m activity.Meter
	at := trace.Ticks(1 << 40)
	step := func() {
		first := at
		for i := range 1000 {
			if class := r.Class(trace.FuncID(i%len(names)), activity.Host); !m.Switch(at, class) {
				r.Cross(&m, at, class)
			}
			r.AddMessage(trace.Rank(i%3), 8, true)
			at += 5
		}
		r.EndStep(&m, first)
		r.MoveTo(nil, trace.RankKey{})
	}
	step()
	r.MoveTo(s, trace.RankKey{})
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzDecode checks that what is decoded encodes to something that decodes to the same, and merges with itself.
func FuzzDecode(f *testing.F) {
	s := activity.New(trace.Microsecond)
	f.Add(s.AppendBinary(nil))
	record(s, trace.RankKey{Rank: 3}, randomSteps(rand.New(rand.NewPCG(1, 5))), func() {})
	s.AddMessages(trace.RankKey{Rank: 3}, []activity.Sent{{To: 90, Traffic: activity.Traffic{Messages: 2, Bytes: 10}}})
	f.Add(s.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := activity.Decode(b, math.MaxUint32)
		if err != nil {
			return
		}
		again := decoded(t, s)
		if !bytes.Equal(again.AppendBinary(nil), s.AppendBinary(nil)) {
			t.Error("decodes to something else")
		}
		s.Merge(again)
		for _, rank := range s.Ranks() {
			s.Cells(nil, rank)
		}
	})
}

package activity_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// counterName returns one of 40 names, of which a sketch has 32.
func counterName(i int) string {
	if i%2 == 0 {
		return fmt.Sprint("memory of pool ", i)
	}
	return fmt.Sprint("bytes sent to ", i)
}

// readingsOf returns a reading at each event of a step.
func readingsOf(step []event) (all []activity.CounterReading) {
	for _, e := range step {
		r := activity.CounterReading{Counter: activity.CounterOf(counterName(int(e.at % 40))), At: e.at}
		r.Add(uint64(e.at>>3) % 5000)
		all = append(all, r)
	}
	return all
}

type readingKey struct {
	trace.RankKey
	bin     int64
	counter int
}

// readings returns the readings of all ranks.
func readings(s *activity.Sketch) map[readingKey]activity.Reading {
	all := make(map[readingKey]activity.Reading)
	for _, key := range s.Ranks() {
		for _, c := range s.Readings(nil, key) {
			all[readingKey{key, c.Bin, c.Counter}] = c.Reading
		}
	}
	return all
}

// nameAll sets the names of all counters of the tests.
func nameAll(s *activity.Sketch) {
	s.NameCounters(func(_ trace.Program, id activity.CounterID) string {
		for i := range 1000 {
			if activity.CounterOf(counterName(i)) == id {
				return counterName(i)
			}
		}
		return ""
	})
}

func TestReadingsAreSummedUpByBin(t *testing.T) {
	for seed := range uint64(20) {
		steps := randomSteps(rand.New(rand.NewPCG(seed, 6)))
		s := activity.New(trace.Microsecond)
		key := trace.RankKey{Program: 1, Rank: 7}
		record(s, key, steps, func() {})
		nameAll(s)
		names, more := s.Counters(1)
		if len(names) != activity.MaxCounters || !more {
			t.Fatalf("seed %d: %d counters, more: %t", seed, len(names), more)
		}
		for i := 0; i < 40; i += 2 {
			if !slices.Contains(names, counterName(i)) {
				t.Errorf("seed %d: %q is missing, a counter of a resource", seed, counterName(i))
			}
		}
		want := make(map[readingKey]activity.Reading)
		for _, r := range readingsOf(slices.Concat(steps...)) {
			i := slices.IndexFunc(names, func(name string) bool { return activity.CounterOf(name) == r.Counter })
			if i >= 0 {
				k := readingKey{key, int64(r.At) >> s.ReadingShift(), i}
				sum := want[k]
				sum.Merge(r.Reading)
				want[k] = sum
			}
		}
		if got := readings(s); !maps.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
		if begin, end := s.Span(); int64(end)>>s.ReadingShift()-int64(begin)>>s.ReadingShift() >= 512 {
			t.Fatalf("seed %d: too many bins", seed)
		}
	}
}

func TestNamesOfCountersAreEncoded(t *testing.T) {
	s := activity.New(trace.Microsecond)
	s.AddReadings(trace.RankKey{}, []activity.CounterReading{{Counter: activity.CounterOf(counterName(3)), At: 5, Reading: activity.Reading{Count: 1}}})
	plain := len(s.AppendBinary(nil))
	nameAll(s)
	if names, more := decoded(t, s).Counters(0); len(names) != 1 || names[0] != counterName(3) || more {
		t.Errorf("decoded %q, %t", names, more)
	}
	if n := len(s.AppendBinary(nil)); n != plain+len(counterName(3)) {
		t.Errorf("%d bytes, %d without names", n, plain)
	}
}

func TestLargeSumsOfReadingsStay(t *testing.T) {
	s := activity.New(trace.Microsecond)
	r := activity.CounterReading{Counter: 1, At: 5}
	for range 3 {
		r.Add(math.MaxUint64 / 2)
	}
	s.AddReadings(trace.RankKey{}, []activity.CounterReading{r})
	got := decoded(t, s).Readings(nil, trace.RankKey{})
	want := activity.Reading{Count: 3, Sum: math.MaxUint64, Min: math.MaxUint64 / 2, Max: math.MaxUint64 / 2}
	if len(got) != 1 || got[0].Reading != want || got[0].Mean() != float64(want.Max) {
		t.Errorf("got %+v", got)
	}
}

func TestReadingsOfManyRanksAreBounded(t *testing.T) {
	tracetest.SkipShort(t, "adds many ranks")
	var ids []activity.CounterID
	for i := range activity.MaxCounters {
		ids = append(ids, activity.CounterOf(counterName(i)))
	}
	s := activity.New(trace.Microsecond)
	var all []activity.CounterReading
	for rank := range trace.Rank(10_000) {
		all = all[:0]
		for at := trace.Ticks(0); at < 1<<20; at += 1 << 15 {
			for i, id := range ids {
				r := activity.CounterReading{Counter: id, At: at}
				r.Add(uint64(40_000 + 16*int(rank)%999 + int(at>>14)*i%50))
				all = append(all, r)
			}
		}
		s.AddReadings(trace.RankKey{Rank: rank}, all)
	}
	if first, group := s.ReadingRanks(0); len(first) != 313 || first[312] != 312*32 || group != 32 {
		t.Errorf("%d groups of %d ranks, the last from %d on", len(first), group, first[len(first)-1])
	}
	cells := s.Readings(nil, trace.RankKey{Rank: 9999})
	if n := len(cells); n != 32*activity.MaxCounters || cells[0].Count != 16 {
		t.Errorf("%d readings, want 32 of each counter; %+v", n, cells[0])
	}
	if size := len(s.AppendBinary(nil)); size > 5_000_000 {
		t.Errorf("%d bytes", size)
	}
}

func TestGroupsOfRanksDoNotDependOnTheOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	var want []byte
	for range 4 {
		s, part := activity.New(trace.Microsecond), activity.New(trace.Microsecond)
		for _, rank := range rng.Perm(700) {
			r := activity.CounterReading{Counter: activity.CounterOf(counterName(rank % 3)), At: trace.Ticks(1_000_000 + 1000*rank)}
			r.Add(uint64(rank))
			part.AddReadings(trace.RankKey{Rank: trace.Rank(rank)}, []activity.CounterReading{r})
			if rank%7 == 0 {
				s.Merge(decoded(t, part))
				part.Reset()
			}
		}
		s.Merge(part)
		if got := s.AppendBinary(nil); want == nil {
			want = got
		} else if !bytes.Equal(got, want) {
			t.Fatal("the order of ranks changes the sketch")
		}
	}
}

func TestAddingReadingsDoesNotAllocate(t *testing.T) {
	s := activity.New(trace.Microsecond)
	var all []activity.CounterReading
	for i := range 1000 {
		r := activity.CounterReading{Counter: activity.CounterOf(counterName(i % 8)), At: trace.Ticks(1<<40 + 100*i)}
		r.Add(uint64(i))
		all = append(all, r)
	}
	add := func() { s.AddReadings(trace.RankKey{}, all) }
	for range 300 { // sums take more bytes at first
		add()
	}
	if n := testing.AllocsPerRun(100, add); n > 5 {
		t.Errorf("%v allocations for 1000 readings", n)
	}
}

func TestCloneKeepsItsReadings(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	s := activity.New(trace.Microsecond)
	key := trace.RankKey{}
	s.AddReadings(key, readingsOf(slices.Concat(randomSteps(rng)...)))
	before := s.AppendBinary(nil)
	c := s.Clone()
	s.AddReadings(key, readingsOf(slices.Concat(randomSteps(rng)...)))
	nameAll(s)
	if !bytes.Equal(c.AppendBinary(nil), before) || bytes.Equal(s.AppendBinary(nil), before) {
		t.Error("the clone changed, or the sketch did not")
	}
}

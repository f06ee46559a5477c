package workload_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// event is a call to add.
type event struct {
	lane        workload.LaneKey
	work        workload.Work
	entry, exit trace.Ticks
	wait        bool
	counter     workload.CounterState // if not zero, the event is a reading of it, not a call
}

func randomEvents(rng *rand.Rand) []event {
	events := make([]event, 200+rng.IntN(2000))
	ranks, paths, span := 1+rng.IntN(700), 1+rng.IntN(1<<rng.IntN(12)), int64(1)<<(10+rng.IntN(30))
	for i := range events {
		entry := 1_000_000 + rng.Int64N(span)
		events[i] = event{
			lane:  workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rng.IntN(ranks))}, Thread: trace.Thread(rng.IntN(2) * rng.IntN(100))},
			work:  workload.Work{Function: rng.Uint32N(5), Path: callpath.Hash(rng.IntN(paths)).Then("f")},
			entry: trace.Ticks(entry), exit: trace.Ticks(entry + rng.Int64N(1<<rng.IntN(25))), wait: rng.IntN(3) == 0,
		}
	}
	counters := 1 + rng.IntN(1<<rng.IntN(9))
	for i := range events {
		if rng.IntN(3) == 0 {
			n := rng.IntN(counters)
			c := workload.CounterOf(trace.FuncKey{Name: fmt.Sprint("counter ", n)})
			events[i].counter = workload.CounterState{Counter: c, Decreases: n%3 == 0 && rng.IntN(9) == 0}
		}
	}
	return events
}

func add(l *workload.Load, e *event) {
	if e.counter.Hash != 0 {
		addReading(l, e)
		return
	}
	lane, work := l.Lane(e.lane), l.Work(e.work)
	if e.wait {
		l.AddWait(lane, e.entry, e.exit, uint64(e.exit-e.entry)/3, e.work.Function == 0)
		return
	}
	l.Add(lane, e.entry, e.exit, []workload.Cell{{Work: work, Sums: callpath.Sums{Calls: 1, Exclusive: uint64(e.exit - e.entry)}}})
}

func addReading(l *workload.Load, e *event) {
	e.counter.Program = e.lane.Program
	l.AddCounter(e.counter)
	var r []workload.Reading
	if i, ok := l.CounterIndex(e.counter.Counter); ok {
		r = []workload.Reading{{Counter: i}}
		r[0].Add(uint64(e.exit)<<(e.entry%50), uint64(e.exit-e.entry)<<(e.entry%60))
	}
	l.AddReadings(l.Lane(e.lane), e.exit, r)
}

func same(_ trace.Program, function uint32) uint32 { return function }

// content describes a load independently of the order in which it was filled.
func content(l *workload.Load) map[string]string {
	all := map[string]string{"width": fmt.Sprint(l.Width()), "counters": fmt.Sprint(l.Counters())}
	for _, lane := range l.Lanes() {
		all[fmt.Sprint(lane.LaneKey)] = fmt.Sprint(lane.Host, lane.Device, lane.Gaps, lane.First, lane.Last)
		for i := range lane.Windows {
			w := &lane.Windows[i]
			all[fmt.Sprint(lane.LaneKey, w.Number)] = fmt.Sprint(w.Wait, w.Sync)
			for _, c := range w.Cells(nil) {
				all[fmt.Sprint(lane.LaneKey, w.Number, l.Works()[c.Work])] = fmt.Sprint(c.Sums)
			}
		}
		for i := range lane.Counters {
			w := &lane.Counters[i]
			for _, r := range w.Readings(nil) {
				all[fmt.Sprint(lane.LaneKey, w.Number, l.Counters()[r.Counter])] = fmt.Sprint(r.Count, r.Sum, r.Increase)
			}
		}
	}
	return all
}

// TestMergeIsIndependentOfOrder divides events among loads at random, and compares the merged
// result with that of adding all of them to one load.
func TestMergeIsIndependentOfOrder(t *testing.T) {
	for seed := range tracetest.Cases(uint64(40), 8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		events := randomEvents(rng)
		whole := workload.New()
		for i := range events {
			add(whole, &events[i])
		}
		rng.Shuffle(len(events), func(i, k int) { events[i], events[k] = events[k], events[i] })
		parts := make([]*workload.Load, 1+rng.IntN(6))
		for i := range parts {
			parts[i] = workload.New()
		}
		for i := range events {
			p := parts[rng.IntN(len(parts))]
			add(p, &events[i])
			if p != parts[0] && rng.IntN(40) == 0 {
				parts[0].Merge(p, same)
				p.Reset()
			}
		}
		for len(parts) > 1 {
			n := len(parts) - 1
			parts[rng.IntN(n)].Merge(parts[n], same)
			parts = parts[:n]
		}
		got, want := content(parts[0]), content(whole)
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("seed %d: %s is %q, want %q", seed, k, got[k], v)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d entries, want %d", seed, len(got), len(want))
		}
	}
}

func TestWindowsAreBounded(t *testing.T) {
	l := workload.New()
	for rank := range trace.Rank(3000) {
		lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: rank}})
		for at := trace.Ticks(1); at < 1e9; at += 7e6 {
			l.AddWait(lane, at, at+10, 10, false)
		}
	}
	for _, lane := range l.Lanes() {
		if len(lane.Windows) > 17 || len(lane.Windows) < 8 {
			t.Fatalf("%d windows", len(lane.Windows))
		}
	}
}

func TestLongWaitsAreDividedAmongWindows(t *testing.T) {
	l := workload.New()
	lane := l.Lane(workload.LaneKey{})
	width := l.Width()
	l.AddWait(lane, width/2, 3*width, uint64(5*width/2), true)
	sum := uint64(0)
	for _, w := range lane.Windows {
		sum += w.Wait
		if w.Wait > uint64(width) || w.Wait != w.Sync {
			t.Errorf("window %d has %d of waiting, %d of it collective", w.Number, w.Wait, w.Sync)
		}
	}
	if len(lane.Windows) != 4 || sum != uint64(5*width/2) {
		t.Errorf("%d windows with %d in all", len(lane.Windows), sum)
	}
}

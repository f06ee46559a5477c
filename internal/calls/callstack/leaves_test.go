package callstack_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
)

// leafEvents returns events with many calls that make no calls, some of them damaged: exits are missing or belong to
// other functions.
func leafEvents(rng *rand.Rand, n int) (events []trace.Event) {
	at, row := trace.Ticks(1<<40), uint32(0)
	add := func(kind trace.Kind, fn uint32) {
		if at += trace.Ticks(rng.IntN(4)); rng.IntN(100) == 0 {
			at += trace.Ticks(rng.IntN(1 << 22))
		}
		e := trace.Event{Kind: kind, ID: fn, Time: at, Row: row}
		if row++; rng.IntN(300) != 0 {
			events = append(events, e)
		}
	}
	var open []uint32
	for len(events) < n {
		switch fn := uint32(rng.IntN(3)); {
		case rng.IntN(4) == 0 && len(open) < 8:
			open = append(open, fn)
			add(trace.Enter, fn)
		case rng.IntN(4) == 0 && len(open) > 0:
			add(trace.Exit, open[len(open)-1])
			open = open[:len(open)-1]
		default:
			for range rng.IntN(12) {
				add(trace.Enter, fn)
				if rng.IntN(40) == 0 {
					add(trace.Exit, fn+1)
				}
				add(trace.Exit, fn)
			}
		}
	}
	return events
}

// TestLeavesEqualCallsWithReadings builds the same calls with and without readings of counters between all events, which belong
// to no call, but hide that a call makes no calls.
func TestLeavesEqualCallsWithReadings(t *testing.T) {
	for seed := range uint64(50) {
		plain := leafEvents(rand.New(rand.NewPCG(seed, 0)), 3000)
		var apart []trace.Event
		for _, e := range plain {
			apart = append(apart, e, trace.Event{Kind: trace.Count, ID: 9, Time: e.Time})
		}
		calls, paths, activities := buildLeaves(plain, seed%5 > 0)
		wantCalls, wantPaths, wantActivities := buildLeaves(apart, seed%5 > 0)
		if !reflect.DeepEqual(calls, wantCalls) {
			t.Errorf("seed %d: calls differ", seed)
		}
		if !reflect.DeepEqual(paths, wantPaths) {
			t.Errorf("seed %d: got paths %v, want %v", seed, paths, wantPaths)
		}
		if !reflect.DeepEqual(activities, wantActivities) {
			t.Errorf("seed %d: activities differ", seed)
		}
	}
}

func buildLeaves(events []trace.Event, active bool) (callstack.Thread, []callpath.Entry, *activity.Sketch) {
	cfg, sketch := callstack.Default(trace.Microsecond), activity.New(trace.Microsecond)
	cfg.MaxDepth = 6
	cfg.Role = func(trace.CounterID) callstack.CounterRole { return callstack.NodeState }
	if active {
		cfg.Activities = activity.NewRecorder(trace.Microsecond, func(id trace.FuncID) (string, bool) {
			return []string{"f", "MPI_Send()", "g", "h"}[id], true
		})
	}
	b := callstack.NewBuilder(cfg, nil)
	b.Begin(3)
	b.Add(7, events)
	if active {
		cfg.Activities.MoveTo(sketch, trace.RankKey{})
	}
	paths, _ := b.Paths().Take(nil, func(uint32) bool { return false })
	return callstack.Thread{Calls: b.Threads()[0].Calls, Done: b.Threads()[0].Done}, paths, sketch
}

// TestLeavesAreConsecutiveCallsOfOneFunction checks the sequences that the builder passes on with the calls that ended.
func TestLeavesAreConsecutiveCallsOfOneFunction(t *testing.T) {
	total := 0
	for seed := range uint64(50) {
		cfg := callstack.Default(trace.Microsecond)
		cfg.MaxDepth = 6
		cfg.Ended = func(thread *callstack.Thread, from int) {
			for _, l := range thread.Leaves {
				if l.Count < 1 || l.Done < from || l.Done+l.Count > len(thread.Done) {
					t.Fatalf("seed %d: got %+v of calls %d to %d", seed, l, from, len(thread.Done))
				}
				from = l.Done + l.Count
				total += l.Count
				first := thread.Done[l.Done]
				calls := thread.Calls[first:][:l.Count]
				for i := range calls {
					c, like := &calls[i], &calls[0]
					if thread.Done[l.Done+i] != first+int32(i) || c.Func != like.Func || c.Path() != like.Path() ||
						c.Parent != like.Parent || c.ParentStep < 0 || c.Children > 0 || c.Lost() || c.Inclusive() < 0 ||
						i > 0 && c.Entry < calls[i-1].Exit {
						t.Fatalf("seed %d: %d of %+v is %+v after %+v", seed, i, l, *c, *like)
					}
				}
			}
		}
		b := callstack.NewBuilder(cfg, nil)
		b.Begin(3)
		b.Add(7, leafEvents(rand.New(rand.NewPCG(seed, 0)), 3000))
	}
	if total == 0 {
		t.Error("no calls were built together")
	}
}

package peers_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// calls returns how often a rank calls each function in an iteration, and how long a call takes in microseconds.
type calls func(rank int, at float64) map[uint32][2]float64

// iterate returns the load of ranks, or of their GPUs, that do this for ten seconds and wait for each other.
func iterate(ranks int, devices bool, do calls) *workload.Load {
	l := workload.New()
	rng := rand.New(rand.NewPCG(7, 3))
	for now := 0.; now < 10e6; {
		ends, last := make([]float64, ranks), now
		for rank := range ranks {
			lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}})
			lane.Device = devices
			at := now
			work := do(rank, now/1e6)
			for function := range uint32(10) {
				for range int(work[function][0]) {
					time := work[function][1] * math.Exp(0.05*rng.NormFloat64())
					cell := workload.Cell{
						Work: l.Work(workload.Work{Function: function, Path: callpath.Hash(0).Then(name(0, function))}),
						Sums: callpath.Sums{Calls: 1, Exclusive: uint64(time)},
					}
					l.Add(lane, trace.Ticks(begin+at), trace.Ticks(begin+at+time), []workload.Cell{cell})
					at += time
				}
			}
			ends[rank], last = at, max(last, at)
		}
		last += 100
		for rank, end := range ends {
			if !devices {
				lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}})
				l.AddWait(lane, trace.Ticks(begin+end), trace.Ticks(begin+last), uint64(last-end), true)
			}
		}
		now = last
	}
	return l
}

// with returns the usual work of a rank, and other work.
func with(other map[uint32][2]float64) map[uint32][2]float64 {
	all := map[uint32][2]float64{1: {2, 1500}, 2: {5, 300}, 3: {1, 500}}
	maps.Copy(all, other)
	return all
}

func TestExtraWork(t *testing.T) {
	for _, c := range []struct {
		name        string
		ranks       int
		other       map[uint32][2]float64 // of rank 2 from the fifth second on
		function    string
		peers, lost float64 // calls of a peer, and lost seconds
	}{
		{"a function that only one calls", 8, map[uint32][2]float64{9: {6, 200}}, "f9", 0, 0.94},
		{"few peers", 4, map[uint32][2]float64{9: {6, 200}}, "f9", 0, 0.94},
		{"more calls", 8, map[uint32][2]float64{2: {10, 300}}, "f2", 3846, 1.15},
		{"most of its time", 8, map[uint32][2]float64{9: {40, 200}}, "f9", 0, 3.07},
	} {
		for _, devices := range []bool{false, true} {
			all := peers.Compare(iterate(c.ranks, devices, func(rank int, at float64) map[uint32][2]float64 {
				if rank == 2 && at >= 5 {
					return with(c.other)
				}
				return with(nil)
			}), name)
			what := fmt.Sprintf("%s, devices %v", c.name, devices)
			if len(all.Slow) != 1 || !all.Slow[0].Extra() || !slices.Equal(all.Slow[0].Ranks, []trace.Rank{2}) {
				t.Errorf("%s: got %+v", what, all.Slow)
				continue
			}
			s := &all.Slow[0]
			f := &s.Functions[0]
			if s.Pattern != provenance.Since || math.Abs(s.From-5) > 0.1 || s.Peers != c.ranks-1 || s.Device != devices || s.Weak != (c.ranks < 5) {
				t.Errorf("%s: %s %.2f s, %d peers, weak %v", what, s.Pattern, s.From, s.Peers, s.Weak)
			}
			if f.Func != c.function || math.Abs(*f.PeerCalls-c.peers) > 0.05*c.peers || math.Abs(float64(s.LostOwn)/1e6/c.lost-1) > 0.05 {
				t.Errorf("%s: %s with %v calls, %v of a peer, lost %v", what, f.Func, f.Calls, *f.PeerCalls, s.LostOwn)
			}
		}
	}
}

func TestNoExtraWork(t *testing.T) {
	late := func(rank int, at float64, other map[uint32][2]float64) map[uint32][2]float64 {
		if rank == 2 && at >= 5 {
			return with(other)
		}
		return with(nil)
	}
	for what, do := range map[string]calls{
		"its role from the start": func(rank int, _ float64) map[uint32][2]float64 {
			if rank == 2 {
				return with(map[uint32][2]float64{9: {6, 200}})
			}
			return with(nil)
		},
		"other work instead": func(rank int, at float64) map[uint32][2]float64 {
			return late(rank, at, map[uint32][2]float64{1: {0, 0}, 9: {15, 200}})
		},
		"slower calls": func(rank int, at float64) map[uint32][2]float64 {
			return late(rank, at, map[uint32][2]float64{2: {5, 600}})
		},
		"a later phase": func(rank int, at float64) map[uint32][2]float64 {
			switch {
			case at < 5:
				return with(nil)
			case rank == 2:
				return map[uint32][2]float64{7: {6, 500}, 8: {6, 200}}
			}
			return map[uint32][2]float64{7: {6, 500}}
		},
		"all of them": func(_ int, at float64) map[uint32][2]float64 { return late(2, at, map[uint32][2]float64{9: {6, 200}}) },
		"a moment": func(rank int, at float64) map[uint32][2]float64 {
			if at > 5.3 {
				at = 0
			}
			return late(rank, at, map[uint32][2]float64{9: {6, 200}})
		},
	} {
		for _, s := range peers.Compare(iterate(8, false, do), name).Slow {
			if s.Extra() {
				t.Errorf("%s: got %s since %.2f s, %+v", what, s.Place(), s.From, s.Functions)
			}
		}
	}
}

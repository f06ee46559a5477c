package peers_test

import (
	"fmt"
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

// work is a function that a thread calls in each iteration.
type work struct {
	function uint32
	time     float64 // microseconds
}

// program is a simulated program that iterates: its ranks work, and wait for the last one.
type program struct {
	ranks, perHost int
	threads        int // of each rank, which work at the same time
	devices        int // threads that are GPUs
	seconds        float64
	works          func(rank, thread int) []work
	slow           func(rank, thread int, at float64) float64 // factor of the time; nil: 1
	starts         func(rank int) float64                     // seconds; nil: 0
	skips          func(rank, iteration int) bool             // has nothing to do
	noise          float64                                    // logarithm
	stops          float64                                    // probability of a stop of a second in a call
	seed           uint64
}

const begin = 5_000_000_000

func name(_ trace.Program, function uint32) string { return fmt.Sprintf("f%d", function) }

// run returns the load of a program, and how long it took.
func (p program) run() (l *workload.Load, seconds float64) {
	l = workload.New()
	rng := rand.New(rand.NewPCG(p.seed, 1))
	lane := func(rank, thread int) *workload.Lane {
		at := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}, Thread: trace.Thread(thread)})
		at.Host, at.Device = fmt.Sprintf("node%02d", rank/max(1, p.perHost)), thread > 0 && thread >= p.threads
		return at
	}
	for now, i := 0., 0; now < p.seconds*1e6; i++ {
		ends := make(map[[2]int]float64)
		last := now
		for rank := range p.ranks {
			if p.starts != nil && now < 1e6*p.starts(rank) {
				continue
			}
			for thread := range max(1, p.threads) + p.devices {
				at := now
				for _, w := range p.works(rank, thread) {
					if p.skips != nil && p.skips(rank, i) {
						continue
					}
					time := w.time * math.Exp(p.noise*rng.NormFloat64())
					if p.slow != nil {
						time *= p.slow(rank, thread, now/1e6)
					}
					if rng.Float64() < p.stops {
						time += 300_000
					}
					entry, exit := trace.Micros(begin+at), trace.Micros(begin+at+time)
					cell := workload.Cell{
						Work: l.Work(workload.Work{Function: w.function, Path: callpath.Hash(0).Then(name(0, w.function))}),
						Sums: callpath.Sums{Calls: 1, Exclusive: uint64(exit - entry)},
					}
					l.Add(lane(rank, thread), entry, exit, exit, []workload.Cell{cell})
					at += time
				}
				ends[[2]int{rank, thread}] = at
				last = max(last, at)
			}
		}
		last += 200
		for rank := range p.ranks {
			for thread := range max(1, p.threads) {
				if at, ok := ends[[2]int{rank, thread}]; ok {
					l.AddWait(lane(rank, thread), trace.Micros(begin+at), trace.Micros(begin+last), uint64(last-at), true)
				}
			}
		}
		now = last
		seconds = now / 1e6
	}
	return l, seconds
}

func usualWork(int, int) []work { return []work{{1, 4000}, {2, 2500}, {3, 500}} }

// since returns a slowness of some ranks from a time on.
func since(at, factor float64, ranks ...int) func(int, int, float64) float64 {
	return func(rank, _ int, now float64) float64 {
		if now >= at && slices.Contains(ranks, rank) {
			return factor
		}
		return 1
	}
}

func blamed(p *provenance.Peers) (all []provenance.SlowPeer) {
	for _, s := range p.Slow {
		if s.Pattern != provenance.ByRole && s.Pattern != provenance.Roaming {
			all = append(all, s)
		}
	}
	return all
}

func only(t *testing.T, p *provenance.Peers) *provenance.SlowPeer {
	t.Helper()
	if len(p.Slow) != 1 {
		t.Fatalf("%d slow peers: %+v", len(p.Slow), p.Slow)
	}
	return &p.Slow[0]
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %.4g, want %.4g ± %.2g", what, got, want, tolerance)
	}
}

func TestSlowRankSinceSomeTime(t *testing.T) {
	for seed, at := range []float64{3.1, 4.7, 6.23, 8.5} {
		p := program{ranks: 16, perHost: 4, seconds: 12, works: usualWork, noise: 0.05, seed: uint64(seed), slow: since(at, 1.8, 5)}
		l, seconds := p.run()
		s := only(t, peers.Compare(l, name))
		if !slices.Equal(s.Ranks, []trace.Rank{5}) || s.Pattern != provenance.Since || s.To != nil || s.Weak || s.Host != "" || s.Peers != 15 {
			t.Fatalf("slow peer is %+v", s)
		}
		near(t, "start", s.From, at, float64(l.Width())/3e6)
		near(t, "ratio", s.Ratio, 1.8, 0.04)
		saved := (seconds - at) * (1 - 1/1.8)
		near(t, "saved time", float64(s.Saved)/1e6, saved, 0.1*saved)
		near(t, "share", s.Share, saved/seconds, 0.1*saved/seconds)
		if len(s.Functions) != 3 || s.Functions[0].Func != "f1" || s.Twin == nil || *s.Twin == 5 || s.SyncShare >= s.PeerSync {
			t.Errorf("evidence of slow peer is %+v", s)
		}
	}
}

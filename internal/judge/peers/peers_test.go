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
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
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
	iterations     int // instead of seconds, if not 0
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
	l, seconds, _ = p.simulate()
	return l, seconds
}

// saved returns by how many seconds the program would be shorter if nothing were slow.
func (p program) saved() float64 {
	_, slow, iterations := p.simulate()
	p.slow, p.iterations = nil, iterations
	_, seconds := p.run()
	return slow - seconds
}

// simulate returns also the number of iterations.
func (p program) simulate() (l *workload.Load, seconds float64, iterations int) {
	l = workload.New()
	rng := rand.New(rand.NewPCG(p.seed, 1))
	lane := func(rank, thread int) *workload.Lane {
		at := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}, Thread: trace.Thread(thread)})
		at.Host, at.Device = fmt.Sprintf("node%02d", rank/max(1, p.perHost)), thread > 0 && thread >= p.threads
		return at
	}
	for now, i := 0., 0; p.iterations == 0 && now < p.seconds*1e6 || i < p.iterations; i++ {
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
					entry, exit := trace.Ticks(begin+at), trace.Ticks(begin+at+time)
					cell := workload.Cell{
						Work: l.Work(workload.Work{Function: w.function, Path: callpath.Hash(0).Then(name(0, w.function))}),
						Sums: callpath.Sums{Calls: 1, Exclusive: uint64(exit - entry)},
					}
					l.Add(lane(rank, thread), entry, exit, []workload.Cell{cell})
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
					l.AddWait(lane(rank, thread), trace.Ticks(begin+at), trace.Ticks(begin+last), uint64(last-at), true)
				}
			}
		}
		now = last
		seconds, iterations = now/1e6, i+1
	}
	return l, seconds, iterations
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
	tracetest.SkipShort(t, "judges many simulated runs")
	for seed, at := range []float64{3.1, 4.7, 6.23, 8.5} {
		p := program{ranks: 16, perHost: 4, seconds: 12, works: usualWork, noise: 0.05, seed: uint64(seed), slow: since(at, 1.8, 5)}
		l, seconds := p.run()
		s := only(t, peers.Compare(l, name))
		if !slices.Equal(s.Ranks, []trace.Rank{5}) || s.Pattern != provenance.Since || s.To != nil || s.Weak || s.Host != "" || s.Peers != 15 {
			t.Fatalf("slow peer is %+v", s)
		}
		near(t, "start", s.From, at, float64(l.Width())/3e6)
		near(t, "ratio", s.Ratio, 1.8, 0.04)
		saved := p.saved()
		near(t, "saved time", float64(s.Saved)/1e6, saved, 0.1*saved)
		near(t, "share", s.Share, saved/seconds, 0.1*saved/seconds)
		if len(s.Functions) != 3 || s.Functions[0].Func != "f1" || s.Twin == nil || *s.Twin == 5 || s.SyncShare >= s.PeerSync {
			t.Errorf("evidence of slow peer is %+v", s)
		}
	}
}

func TestRankThatIsAlwaysSlow(t *testing.T) {
	for _, ranks := range tracetest.Sample([]int{5, 64, 8}, 2) {
		p := program{ranks: ranks, perHost: 8, seconds: 8, works: usualWork, noise: 0.05, slow: since(0, 1.5, 3)}
		l, seconds := p.run()
		s := only(t, peers.Compare(l, name))
		if !slices.Equal(s.Ranks, []trace.Rank{3}) || s.Pattern != provenance.Always || s.To != nil || s.Peers != ranks-1 {
			t.Fatalf("slow peer is %+v", s)
		}
		near(t, "ratio", s.Ratio, 1.5, 0.03)
		saved := p.saved()
		near(t, "share", s.Share, saved/seconds, 0.1*saved/seconds)
		near(t, "time lost by itself", float64(s.LostOwn)/1e6, seconds/3, 0.1*seconds/3)
		near(t, "time lost by others", float64(s.LostCaused)/1e6, float64(ranks-1)*saved, 0.1*float64(ranks-1)*saved)
	}
}

func TestCostOfMildSlownessInNoise(t *testing.T) {
	tracetest.SkipShort(t, "judges many simulated runs")
	for _, noise := range []float64{0.02, 0.1, 0.2} {
		for _, factor := range []float64{1.15, 1.3, 2} {
			t.Run(fmt.Sprint(factor, " in ", noise), func(t *testing.T) {
				p := program{ranks: 8, seconds: 12, works: usualWork, noise: noise, slow: since(6, factor, 2), seed: 7}
				l, _ := p.run()
				saved := p.saved()
				near(t, "saved time", float64(only(t, peers.Compare(l, name)).Saved)/1e6, saved, 0.2*saved)
			})
		}
	}
}

func TestLoadsHaveFunctionsWithMostTime(t *testing.T) {
	p := program{ranks: 8, seconds: 4, noise: 0.02, slow: since(0, 1.5, 2), works: func(rank, _ int) (all []work) {
		for f := range uint32(15) {
			all = append(all, work{function: f, time: 100 * float64(f+1)})
		}
		if rank == 7 { // alone in its role
			return []work{{function: 20, time: 5000}, {function: 21, time: 10}}
		}
		return all
	}}
	l, _ := p.run()
	for _, load := range peers.Compare(l, name).Loads {
		if load.RID == 7 {
			if f := load.Functions; len(f) != 1 || f[0].Func != "f20" || f[0].Peers != nil { // the other has less than 1 %
				t.Errorf("functions of a rank without peers: %+v", f)
			}
			continue
		}
		want := 1.0
		if load.RID == 2 {
			want = 1.5
		}
		if f := load.Functions; len(f) != 10 || f[0].Func != "f14" || f[9].Func != "f5" || f[0].Calls == 0 {
			t.Fatalf("functions of rank %d: %+v", load.RID, load.Functions)
		}
		for _, f := range load.Functions {
			near(t, fmt.Sprintf("ratio of %s of rank %d", f.Func, load.RID), float64(f.Time)/float64(*f.Peers), want, 0.03)
		}
	}
}

func TestRankThatIsSlowForAWhile(t *testing.T) {
	p := program{ranks: 8, seconds: 12, works: usualWork, noise: 0.05, slow: func(rank, _ int, now float64) float64 {
		if rank == 2 && now > 4 && now < 7.5 {
			return 2
		}
		return 1
	}}
	l, _ := p.run()
	s := only(t, peers.Compare(l, name))
	if s.Ranks[0] != 2 || s.Pattern != provenance.Phase || s.To == nil {
		t.Fatalf("slow peer is %+v", s)
	}
	near(t, "start", s.From, 4, float64(l.Width())/3e6)
	near(t, "end", *s.To, 7.5, float64(l.Width())/3e6)
}

func TestSlowHost(t *testing.T) {
	tracetest.SkipShort(t, "judges many simulated runs")
	for _, ranks := range []int{8, 16, 64} {
		p := program{ranks: ranks, perHost: 4, seconds: 10, works: usualWork, noise: 0.05, slow: since(4.2, 1.9, 4, 5, 6, 7)}
		l, _ := p.run()
		found := peers.Compare(l, name)
		s := only(t, found)
		if s.Host != "node01" || !slices.Equal(s.Ranks, []trace.Rank{4, 5, 6, 7}) || s.Pattern != provenance.Since || s.Peers != ranks-4 {
			t.Fatalf("%d ranks: slow peer is %+v", ranks, s)
		}
		near(t, "start", s.From, 4.2, float64(l.Width())/3e6)
		near(t, "ratio", s.Ratio, 1.9, 0.05)
		saved := p.saved()
		near(t, "saved time", float64(s.Saved)/1e6, saved, 0.1*saved)
		for _, load := range found.Loads {
			if slow := load.RID >= 4 && load.RID < 8; (load.Pattern == provenance.Since) != slow || (load.Saved > 0) != slow {
				t.Errorf("load of rank %d: %+v", load.RID, load)
			}
		}
	}
}

func TestSlowFunctionsOfHost(t *testing.T) {
	p := program{ranks: 8, perHost: 4, seconds: 6, noise: 0.02, works: func(rank, _ int) []work {
		if rank >= 4 {
			return []work{{1, 4000}, {2, 7500}, {3, 500}}
		}
		return usualWork(rank, 0)
	}}
	l, _ := p.run()
	s := only(t, peers.Compare(l, name))
	if s.Host != "node01" || s.Pattern != provenance.Always {
		t.Fatalf("slow peer is %+v", s)
	}
	for _, f := range s.Functions {
		want := 1.
		if f.Func == "f2" {
			want = 3
		}
		near(t, f.Func, f.Mean/f.Peers, want, 0.02*want)
	}
}

func TestSlowDevice(t *testing.T) {
	p := program{
		ranks: 8, perHost: 4, threads: 1, devices: 1, seconds: 10, noise: 0.03,
		works: func(_, thread int) []work {
			if thread == 0 {
				return []work{{1, 800}}
			}
			return []work{{7, 4000}, {8, 2000}}
		},
		slow: func(rank, thread int, now float64) float64 {
			if rank == 6 && thread == 1 && now > 5.3 {
				return 1.4
			}
			return 1
		},
	}
	l, _ := p.run()
	found := peers.Compare(l, name)
	s := only(t, found)
	if !s.Device || s.TID != 1 || !slices.Equal(s.Ranks, []trace.Rank{6}) || s.Pattern != provenance.Since || s.Peers != 7 {
		t.Fatalf("slow peer is %+v", s)
	}
	near(t, "start", s.From, 5.3, float64(l.Width())/3e6)
	saved := p.saved()
	near(t, "saved time", float64(s.Saved)/1e6, saved, 0.1*saved)
	if e := found.Efficiency[0]; e.DeviceParallel == nil || *e.DeviceParallel < 0.5 {
		t.Errorf("efficiency is %+v", e)
	}
}

func TestStreamsOfOneGPUCountAsOne(t *testing.T) {
	l := workload.New()
	host := l.Work(workload.Work{Function: 1})
	kernel := l.Work(workload.Work{Function: 2})
	add := func(rank, thread int, gpu uint64, work uint32, ms ...uint64) {
		lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}, Thread: trace.Thread(thread)})
		lane.Device, lane.GPU = thread > 0, gpu
		at := trace.Ticks(begin)
		for _, busy := range ms {
			cell := workload.Cell{Work: work, Sums: callpath.Sums{Calls: 1, Exclusive: 1000 * busy}}
			l.Add(lane, at, at+trace.Ticks(1000*busy), []workload.Cell{cell})
			at += 250_000
		}
	}
	for rank := range 2 {
		add(rank, 0, 0, host, 250, 250, 250, 250)
	}
	root := l.Work(workload.Work{Function: 3}) // of the whole thread
	add(0, 1, 0, root, 900)
	add(0, 1, 0, kernel, 100, 100, 100, 100)
	add(0, 2, 0, kernel, 25, 25, 25, 25)
	add(1, 1, 0, kernel, 250, 250, 250, 250)
	add(1, 2, 0, kernel, 50, 50, 50, 50) // overlaps the other stream
	add(1, 3, 1, kernel, 75, 75, 75, 75) // of another GPU
	found := peers.Compare(l, func(p trace.Program, f uint32) string {
		if f == 3 {
			return trace.WholeThread
		}
		return name(p, f)
	})
	if want := map[trace.FuncKey]bool{{Name: "f2"}: true}; !maps.Equal(found.DeviceFunctions, want) {
		t.Errorf("functions on GPUs are %v, want %v", found.DeviceFunctions, want)
	}
	e := found.Efficiency[0]
	if e.DeviceParallel == nil || e.DeviceLoadBalance == nil {
		t.Fatalf("efficiency is %+v", e)
	}
	near(t, "busy", *e.DeviceParallel, (0.5+1+0.3)/3, 1e-3)
	near(t, "balance", *e.DeviceLoadBalance, (0.5+1+0.3)/3, 1e-3)
}

func TestSlowThread(t *testing.T) {
	for _, ranks := range []int{1, 4} {
		p := program{
			ranks: ranks, threads: 8, seconds: 8, noise: 0.05, works: usualWork,
			slow: func(rank, thread int, now float64) float64 {
				if rank == ranks-1 && thread == 3 && now > 3 {
					return 1.6
				}
				return 1
			},
		}
		l, _ := p.run()
		s := only(t, peers.Compare(l, name))
		if s.TID != 3 || s.Device || !slices.Equal(s.Ranks, []trace.Rank{trace.Rank(ranks - 1)}) || s.Pattern != provenance.Since {
			t.Fatalf("slow peer is %+v", s)
		}
	}
}

func TestSlowRankWithThreads(t *testing.T) {
	p := program{ranks: 6, threads: 4, seconds: 8, noise: 0.05, works: usualWork, slow: since(3, 1.6, 2)}
	l, _ := p.run()
	s := only(t, peers.Compare(l, name))
	if s.TID != provenance.AllThreads || !slices.Equal(s.Ranks, []trace.Rank{2}) {
		t.Fatalf("slow peer is %+v", s)
	}
}

func TestUnevenWorkBlamesNoRank(t *testing.T) {
	tests := map[string]struct {
		works func(rank, thread int) []work
		ranks []trace.Rank // with the role that does more; nil: not worth a note
	}{
		"last stage of a pipeline has more to do": {func(rank, _ int) []work {
			if rank >= 12 {
				return []work{{1, 4000}, {2, 2000}, {9, 6000}}
			}
			return usualWork(rank, 0)
		}, []trace.Rank{12, 13, 14, 15}},
		"some ranks have twice as many calls": {func(rank, _ int) []work {
			if rank%4 == 0 {
				return slices.Concat(usualWork(rank, 0), usualWork(rank, 0))
			}
			return usualWork(rank, 0)
		}, []trace.Rank{0, 4, 8, 12}},
		"master and workers": {func(rank, _ int) []work {
			if rank == 0 {
				return []work{{5, 300}}
			}
			return usualWork(rank, 0)
		}, nil},
		"each rank has its own functions": {func(rank, _ int) []work {
			return []work{{uint32(rank), 5000}}
		}, nil},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			l, _ := program{ranks: 16, perHost: 4, seconds: 8, noise: 0.05, works: test.works}.run()
			found := peers.Compare(l, name)
			if test.ranks == nil {
				if len(found.Slow) > 0 {
					t.Fatalf("slow peers: %+v", found.Slow)
				}
				return
			}
			s := only(t, found)
			if s.Pattern != provenance.ByRole || !slices.Equal(s.Ranks, test.ranks) || s.Ratio < 1.5 || s.Share < 0.1 {
				t.Errorf("slow peer is %+v", s)
			}
		})
	}
}

func TestSlowRankWithinARole(t *testing.T) {
	p := program{ranks: 16, seconds: 8, noise: 0.05, slow: since(3, 1.5, 13), works: func(rank, _ int) []work {
		if rank >= 8 {
			return []work{{1, 4000}, {2, 2000}, {9, 6000}}
		}
		return usualWork(rank, 0)
	}}
	l, _ := p.run()
	all := blamed(peers.Compare(l, name))
	if len(all) != 1 || !slices.Equal(all[0].Ranks, []trace.Rank{13}) || all[0].Peers != 7 {
		t.Fatalf("blamed: %+v", all)
	}
	near(t, "ratio", all[0].Ratio, 1.5, 0.04)
}

func TestRoamingSlowness(t *testing.T) {
	p := program{ranks: 16, seconds: 12, works: usualWork, noise: 0.05, slow: func(rank, _ int, now float64) float64 {
		if int(now/0.6)*5%16 == rank {
			return 1.6
		}
		return 1
	}}
	l, _ := p.run()
	s := only(t, peers.Compare(l, name))
	if s.Pattern != provenance.Roaming || len(s.Ranks) < 8 {
		t.Errorf("slow peer is %+v", s)
	}
}

func TestHealthyRanksThatDiffer(t *testing.T) {
	for seed := range tracetest.Cases(uint64(20), 5) {
		rng := rand.New(rand.NewPCG(seed, 7))
		speed := make([]float64, 16)
		for i := range speed {
			speed[i] = math.Exp(0.08 * rng.NormFloat64())
		}
		p := program{
			ranks: 16, perHost: 4, threads: 1, devices: 1, seconds: 5, noise: 0.03, seed: seed, works: usualWork,
			slow: func(rank, thread int, _ float64) float64 {
				if thread == 0 {
					return 1
				}
				return speed[rank]
			},
		}
		l, _ := p.run()
		if all := blamed(peers.Compare(l, name)); len(all) > 0 {
			t.Errorf("seed %d: blamed %+v", seed, all)
		}
	}
}

func TestTwoRanks(t *testing.T) {
	t.Run("blames the rank that became slower", func(t *testing.T) {
		l, _ := program{ranks: 2, seconds: 10, works: usualWork, noise: 0.1, slow: since(5.5, 1.6, 1)}.run()
		s := only(t, peers.Compare(l, name))
		if s.Ranks[0] != 1 || !s.Weak || s.Pattern != provenance.Since {
			t.Fatalf("slow peer is %+v", s)
		}
		near(t, "start", s.From, 5.5, float64(l.Width())/3e6)
	})
	t.Run("blames none if the other became faster", func(t *testing.T) {
		l, _ := program{ranks: 2, seconds: 10, works: usualWork, noise: 0.1, slow: since(5.5, 1/1.6, 1)}.run()
		if all := peers.Compare(l, name).Slow; len(all) > 0 {
			t.Fatalf("slow peers: %+v", all)
		}
	})
	t.Run("blames none if one is always slower", func(t *testing.T) {
		l, _ := program{ranks: 2, seconds: 10, works: usualWork, noise: 0.1, slow: since(0, 1.6, 1)}.run()
		if all := peers.Compare(l, name).Slow; len(all) > 0 {
			t.Fatalf("slow peers: %+v", all)
		}
	})
	t.Run("blames none if work grows for both", func(t *testing.T) {
		l, _ := program{ranks: 2, seconds: 10, works: usualWork, noise: 0.1, slow: since(5.5, 1.6, 0, 1)}.run()
		if all := peers.Compare(l, name).Slow; len(all) > 0 {
			t.Fatalf("slow peers: %+v", all)
		}
	})
}

// TestSlowHalfWithShortPast has four ranks of which two become slow early: neither the peers nor the past alone show which.
func TestSlowHalfWithShortPast(t *testing.T) {
	for _, at := range []float64{1.2, 2, 2.5} {
		p := program{ranks: 4, seconds: 10, works: usualWork, noise: 0.02, slow: since(at, 3, 0, 1)}
		l, _ := p.run()
		all := blamed(peers.Compare(l, name))
		if len(all) == 0 {
			t.Errorf("slow since %v s: nobody is blamed", at)
		}
		for _, s := range all {
			if slices.ContainsFunc(s.Ranks, func(r trace.Rank) bool { return r > 1 }) || s.Pattern != provenance.Since {
				t.Errorf("slow since %v s: %+v", at, s)
			}
			near(t, "ratio", s.Ratio, 3, 0.1)
			near(t, "begin", s.From, at, 0.3)
		}
	}
}

func TestHealthyProgramsHaveNoSlowPeers(t *testing.T) {
	tests := map[string]program{
		"work grows for all ranks": {slow: func(_, _ int, now float64) float64 { return 1 + now/4 }},
		"a phase with other work": {slow: func(_, _ int, now float64) float64 {
			if now > 3 && now < 5 {
				return 3
			}
			return 1
		}},
		"ranks that start late":  {starts: func(rank int) float64 { return float64(rank/5) * 1.5 }},
		"ranks with fewer calls": {skips: func(rank, i int) bool { return rank < 6 && i%(rank+2) > 0 }},
		"one rank":               {ranks: 1},
	}
	for what, p := range tests {
		t.Run(what, func(t *testing.T) {
			p.ranks, p.perHost, p.seconds, p.noise, p.works = max(p.ranks, 1), 4, 7, 0.05, usualWork
			if what != "one rank" {
				p.ranks = 12
			}
			l, _ := p.run()
			if all := blamed(peers.Compare(l, name)); len(all) > 0 {
				t.Fatalf("blamed: %+v", all)
			}
		})
	}
}

func TestSlowRankThatStartsLateAndDoesLess(t *testing.T) {
	p := program{
		ranks: 12, seconds: 9, noise: 0.05, works: usualWork, slow: since(4, 1.6, 10),
		starts: func(rank int) float64 { return float64(rank/5) * 0.9 },
		skips:  func(rank, i int) bool { return rank == 10 && i%2 > 0 },
	}
	l, _ := p.run()
	s := blamed(peers.Compare(l, name))
	if len(s) != 1 || !slices.Equal(s[0].Ranks, []trace.Rank{10}) || s[0].Peers != 11 {
		t.Fatalf("slow peers: %+v", s)
	}
	near(t, "start", s[0].From, 4, float64(l.Width())/3e6)
}

func TestNoiseIsNotASlowRank(t *testing.T) {
	for seed := range tracetest.Cases(uint64(100), 26) {
		p := program{ranks: 4 + int(seed)%13, perHost: 4, seconds: 4, works: usualWork, noise: 0.05, stops: 0.0005, seed: seed}
		l, _ := p.run()
		if all := peers.Compare(l, name).Slow; len(all) > 0 {
			t.Errorf("seed %d: %+v", seed, all)
		}
	}
}

// TestFewRanksAreSeldomBlamed has programs with two to four ranks in noise, of which one in a hundred may be blamed.
func TestFewRanksAreSeldomBlamed(t *testing.T) {
	tracetest.SkipShort(t, "judges many simulated runs")
	const seeds = 200
	for _, ranks := range []int{2, 3, 4} {
		for what, p := range map[string]program{
			"noise": {noise: 0.2}, "stops": {noise: 0.05, stops: 0.0005}, "drift": {noise: 0.1, slow: drift},
		} {
			blamed := 0
			for seed := range uint64(seeds) {
				p.ranks, p.seconds, p.works, p.seed = ranks, 4, usualWork, seed
				l, _ := p.run()
				if len(peers.Compare(l, name).Slow) > 0 {
					blamed++
				}
			}
			if blamed > 0.02*seeds { // 1 %, and chance
				t.Errorf("%d ranks with %s: a rank is blamed in %d of %d runs", ranks, what, blamed, seeds)
			}
		}
	}
}

// drift makes ranks slower and faster again, each at times of its own.
func drift(rank, _ int, now float64) float64 {
	return 1 + 0.05*math.Sin(2*math.Pi*now/(0.7+0.13*float64(rank)))
}

func TestEfficiency(t *testing.T) {
	p := program{ranks: 8, seconds: 6, works: usualWork, slow: since(0, 2, 7)}
	l, _ := p.run()
	found := peers.Compare(l, name)
	e := found.Efficiency[0]
	if !e.Entire || e.Ranks != 8 || e.Slowest != 7 {
		t.Fatalf("efficiency is %+v", e)
	}
	near(t, "load balance", e.LoadBalance, 9./16, 0.01)
	near(t, "communication efficiency", e.Communication, 14000./14200, 0.01)
	for _, e := range found.Efficiency {
		near(t, "parallel efficiency", e.Parallel, e.LoadBalance*e.Communication, 1e-9)
	}
	if n := len(found.Efficiency); n < 10 || found.Efficiency[n-1].To < 5.9 {
		t.Errorf("%d windows: %+v", n, found.Efficiency[n-1])
	}
}

// BenchmarkCompare has a large run. It takes about 2 s.
func BenchmarkCompare(b *testing.B) {
	l := workload.New()
	const ranks, works = 10_000, 200
	cells, numbers := make([]workload.Cell, works), make([]uint32, works)
	for i := range numbers {
		numbers[i] = l.Work(workload.Work{Function: uint32(i), Path: callpath.Hash(0).Then(fmt.Sprint(i))})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for rank := range ranks {
		lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}})
		lane.Host = fmt.Sprint("node", rank/16)
		for w := range trace.Ticks(16) {
			at := begin + w<<20
			for i := range cells {
				time := 100_000 * math.Exp(0.02*rng.NormFloat64())
				if rank/16 == 77 && w > 5 {
					time *= 1.7
				}
				cells[i] = workload.Cell{Work: numbers[i], Sums: callpath.Sums{Calls: 100, Exclusive: uint64(time)}}
			}
			l.Add(lane, at, at+1000, slices.Clone(cells))
		}
	}
	for b.Loop() {
		if s := peers.Compare(l, name).Slow; len(s) != 1 || s[0].Host != "node77" {
			b.Fatalf("slow peers: %+v", s)
		}
	}
}

func TestManySlowRanksAreReportedTogether(t *testing.T) {
	var slow []int
	for rank := range 100 {
		if rank%5 == 0 {
			slow = append(slow, rank)
		}
	}
	l, _ := program{ranks: 100, perHost: 4, seconds: 4, works: usualWork, noise: 0.05, slow: since(1.5, 1.7, slow...)}.run()
	s := only(t, peers.Compare(l, name))
	if s.Pattern != provenance.Since || len(s.Ranks) != 20 || s.Host != "" || s.Peers != 80 {
		t.Errorf("slow peer is %+v", s)
	}
}

// TestRankThatIsSlowInOneFunction simulates ranks that wait in a function that is not known to wait: what one of them loses
// in another function, the others lose there.
func TestRankThatIsSlowInOneFunction(t *testing.T) {
	works := func(extra float64) func(rank, thread int) []work {
		return func(rank, _ int) []work {
			own := 0.
			if rank == 1 {
				own = extra
			}
			return []work{{1, 4000}, {2, 100 + own}, {3, 1900 - own}}
		}
	}
	p := program{ranks: 4, perHost: 4, seconds: 30, noise: 0.05, works: works(1500)}
	load, _ := p.run()
	s := only(t, peers.Compare(load, name))
	if s.Pattern != provenance.Always || !slices.Equal(s.Ranks, []trace.Rank{1}) || len(s.Functions) != 1 || s.Functions[0].Func != "f2" {
		t.Fatalf("got %+v", s)
	}
	near(t, "mean time of a call", s.Functions[0].Mean, 1600, 16)
	near(t, "that of peers", s.Functions[0].Peers, 100, 1)
	if !slices.Equal(s.HiddenWaits, []string{"f3"}) {
		t.Errorf("the others wait in %v", s.HiddenWaits)
	}
	near(t, "share of the run that others wait for it", s.Share, 1500./6200, 0.05) // less, because times vary
	p.works = works(200)
	load, _ = p.run()
	if s = only(t, peers.Compare(load, name)); !slices.Equal(s.Ranks, []trace.Rank{1}) || !slices.Equal(s.HiddenWaits, []string{"f3"}) {
		t.Errorf("of 200 us in 6 ms: got %+v", s)
	}
	for _, harmless := range []func(rank, thread int) []work{
		works(10), // too little
		func(rank, _ int) []work { // others do not wait: they have other work
			if rank == 1 {
				return []work{{1, 4000}, {2, 1600}, {3, 1900}}
			}
			return []work{{1, 4000}, {2, 100}, {3, 1900}, {4, 1500}}
		},
		func(rank, _ int) []work { // two groups of ranks
			if rank%2 == 0 {
				return []work{{1, 4000}, {2, 1600}, {3, 400}}
			}
			return []work{{1, 4000}, {2, 100}, {3, 1900}}
		},
	} {
		p.works = harmless
		load, _ := p.run()
		if all := blamed(peers.Compare(load, name)); len(all) > 0 {
			t.Errorf("somebody is blamed: %+v", all)
		}
	}
}

// TestRankBecomesSlowInOneFunction is TestRankThatIsSlowInOneFunction from some time on, in the last third of the run.
func TestRankBecomesSlowInOneFunction(t *testing.T) {
	load := iterate(8, false, func(rank int, at float64) map[uint32][2]float64 {
		work := with(nil)
		switch {
		case at < 7:
		case rank == 2:
			work[3] = [2]float64{1, 1500}
		default:
			work[1] = [2]float64{2, 2000}
		}
		return work
	})
	s := only(t, peers.Compare(load, name))
	if s.Pattern != provenance.Since || !slices.Equal(s.Ranks, []trace.Rank{2}) || s.Functions[0].Func != "f3" || !slices.Equal(s.HiddenWaits, []string{"f1"}) {
		t.Fatalf("got %+v", s)
	}
	near(t, "start", s.From, 7, 0.1)
	near(t, "lost", float64(s.LostOwn)/1e6, 3*1000./6100, 0.03)
}

// TestFunctionIsSlowAtOnePlace simulates places at which one function takes longer, so little that their work as a whole takes less
// than 1.05 times as long.
func TestFunctionIsSlowAtOnePlace(t *testing.T) {
	for _, test := range []struct {
		what     string
		from, to float64
		pattern  provenance.Pattern
	}{
		{"throughout the run", 0, 10, provenance.Always},
		{"from some time on", 4, 10, provenance.Since},
		{"for a while", 3, 5, provenance.Phase},
	} {
		lost := 0.
		load := iterate(8, false, func(rank int, at float64) map[uint32][2]float64 {
			if rank == 2 && test.from <= at && at < test.to {
				lost += 150
				return with(map[uint32][2]float64{3: {1, 650}})
			}
			return with(nil)
		})
		s := only(t, peers.Compare(load, name))
		if s.Pattern != test.pattern || !slices.Equal(s.Ranks, []trace.Rank{2}) || len(s.Functions) != 1 || s.Functions[0].Func != "f3" {
			t.Fatalf("%s: got %+v", test.what, s)
		}
		near(t, test.what+": start", s.From, test.from, 0.1)
		near(t, test.what+": lost", float64(s.LostOwn), lost, 0.1*lost)
		near(t, test.what+": ratio", s.Functions[0].Mean/s.Functions[0].Peers, 1.3, 0.02)
	}
	onHost := func(rank, _ int) []work {
		if rank == 2 || rank == 3 {
			return []work{{1, 4000}, {2, 2500}, {3, 650}}
		}
		return usualWork(rank, 0)
	}
	load, _ := program{ranks: 8, perHost: 2, seconds: 5, noise: 0.05, works: onHost}.run()
	s := only(t, peers.Compare(load, name))
	if s.Host != "node01" || !slices.Equal(s.Ranks, []trace.Rank{2, 3}) || s.Functions[0].Func != "f3" || s.Peers != 6 {
		t.Errorf("host: got %+v", s)
	}
}

// TestFunctionIsHardlySlowAtOnePlace simulates a rank in which one function takes longer, but one call has most of the lost time, or
// the loss is too small to matter.
func TestFunctionIsHardlySlowAtOnePlace(t *testing.T) {
	delay := 500e3
	load := iterate(8, false, func(rank int, at float64) map[uint32][2]float64 {
		switch {
		case rank != 2 || at < 4 || at >= 6:
			return with(nil)
		case at > 5:
			time := 650 + delay
			delay = 0
			return with(map[uint32][2]float64{3: {1, time}})
		}
		return with(map[uint32][2]float64{3: {1, 650}})
	})
	if slow := blamed(peers.Compare(load, name)); len(slow) > 0 {
		t.Errorf("with a single delay: got %+v", slow)
	}
	load = iterate(8, false, func(rank int, _ float64) map[uint32][2]float64 {
		if rank == 2 {
			return with(map[uint32][2]float64{4: {1, 22}})
		}
		return with(map[uint32][2]float64{4: {1, 20}})
	})
	if slow := blamed(peers.Compare(load, name)); len(slow) > 0 {
		t.Errorf("with a small loss: got %+v", slow)
	}
}

// TestFunctionsOfHealthyRanksThatDiffer has ranks whose functions differ, because their data do.
func TestFunctionsOfHealthyRanksThatDiffer(t *testing.T) {
	for seed := range tracetest.Cases(uint64(30), 8) {
		rng := rand.New(rand.NewPCG(seed, 7))
		ranks := 2 + int(seed)%15
		speed := make([][10]float64, ranks)
		for rank := range speed {
			for f := range speed[rank] {
				speed[rank][f] = math.Exp(0.08 * rng.NormFloat64())
			}
		}
		p := program{ranks: ranks, perHost: 4, seconds: 4, noise: 0.03, seed: seed, works: func(rank, _ int) (all []work) {
			for f, speed := range speed[rank] {
				all = append(all, work{uint32(f), 500 * speed})
			}
			return all
		}}
		l, _ := p.run()
		for _, s := range blamed(peers.Compare(l, name)) {
			if len(s.Functions) == 1 { // otherwise for all of its work, which differs as well
				t.Errorf("seed %d: ranks %v of %d are blamed for %+v", seed, s.Ranks, ranks, s.Functions)
			}
		}
	}
}

// TestGapsAreIdle compares the stages of a pipeline, whose threads have no call that includes all others: they are idle
// outside of calls.
func TestGapsAreIdle(t *testing.T) {
	stages := func(gaps bool) *provenance.Peers {
		l := workload.New()
		for i := range 1000 {
			for rank := range 8 {
				lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}})
				lane.Gaps = gaps
				time := trace.Ticks(2000)
				if rank >= 6 {
					time = 5000
				}
				entry := trace.Ticks(begin + 10_000*i)
				cell := workload.Cell{Work: l.Work(workload.Work{Function: uint32(rank / 2)}), Sums: callpath.Sums{Calls: 1, Exclusive: uint64(time)}}
				l.Add(lane, entry, entry+time, []workload.Cell{cell})
			}
		}
		return peers.Compare(l, name)
	}
	for rank, want := range map[int]float64{0: 2e6, 7: 5e6} {
		if got := float64(stages(true).Loads[rank].Useful); math.Abs(got/want-1) > 0.01 {
			t.Errorf("rank %d with gaps: got useful time %v, want %v", rank, got, want)
		}
	}
	if got := float64(stages(false).Loads[0].Useful); got < 9.9e6 {
		t.Errorf("rank 0 without gaps: got useful time %v, want all", got)
	}
	slow := stages(true).Slow
	if len(slow) != 1 || slow[0].Pattern != provenance.ByRole || !slices.Equal(slow[0].Ranks, []trace.Rank{6, 7}) {
		t.Fatalf("got %+v, want the last stage", slow)
	}
	if s := &slow[0]; math.Abs(s.Ratio-2.5) > 0.01 || math.Abs(float64(s.Saved)/3e6-1) > 0.02 || s.LostCaused < 17e6 || s.Functions[0].Func != "f3" {
		t.Errorf("got ratio %.2f, saved %v, lost by others %v, functions %v", s.Ratio, s.Saved, s.LostCaused, s.Functions)
	}
}

// TestLongCallsCountFromTheirEntry expects that calls longer than a window do not make a window busier than its length.
func TestLongCallsCountFromTheirEntry(t *testing.T) {
	l := workload.New()
	for rank := range 4 {
		lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: trace.Rank(rank)}})
		lane.Gaps = true
		for i := range 10 {
			entry := trace.Ticks(begin + 1_000_000*i)
			cell := workload.Cell{Work: l.Work(workload.Work{Function: 1}), Sums: callpath.Sums{Calls: 1, Exclusive: 600_000}}
			l.Add(lane, entry, entry+600_000, []workload.Cell{cell})
		}
	}
	load := peers.Compare(l, name).Loads[0]
	if load.Useful != 6_000_000 {
		t.Errorf("got useful time %d", load.Useful)
	}
	for _, w := range load.Windows {
		if float64(w.Useful) > 1e6*(w.To-w.From)+1 {
			t.Errorf("useful for %d us from %.3f to %.3f s", w.Useful, w.From, w.To)
		}
	}
}

package storetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// functionsOfRank is the number of functions of each rank of many.
const functionsOfRank = 4

// Peers returns a comparison of a number of ranks in some windows of time, one of them slow.
func Peers(ranks, windows int, seed uint64) *provenance.Peers {
	rng := rand.New(rand.NewPCG(seed, 0x9ee5))
	p := &provenance.Peers{Efficiency: []provenance.Efficiency{{Entire: true, To: float64(windows), Ranks: ranks, Parallel: 0.8}}}
	for r := range ranks {
		ratio := 0.95 + 0.1*rng.Float64()
		l := provenance.RankLoad{
			RID: trace.Rank(r), TID: provenance.AllThreads, Host: fmt.Sprintf("node%04d", r/ranksOfHost), Role: 1, Peers: ranks - 1,
			Elapsed: trace.Ticks(windows) * stepLength, Ratio: &ratio,
		}
		for w := range windows {
			ratio := 0.9 + 0.2*rng.Float64()
			useful := trace.Ticks(rng.Int64N(int64(stepLength)))
			l.Windows = append(l.Windows, provenance.LoadWindow{
				From: float64(w), To: float64(w + 1), Useful: useful, Wait: stepLength - useful, Ratio: &ratio,
			})
			l.Useful, l.Wait = l.Useful+useful, l.Wait+stepLength-useful
		}
		for f := range functionsOfRank {
			time := trace.Ticks(rng.Int64N(int64(stepLength)))
			l.Functions = append(l.Functions, provenance.RankFunction{
				Func: fmt.Sprintf("solver::Kernel<double, %d>::apply(Field const&, Field&)", f), Calls: 100, Time: time, Peers: &time,
			})
		}
		p.Loads = append(p.Loads, l)
	}
	for w := range windows {
		p.Efficiency = append(p.Efficiency, provenance.Efficiency{From: float64(w), To: float64(w + 1), Ranks: ranks, Parallel: rng.Float64()})
	}
	p.Slow = []provenance.SlowPeer{{
		Pattern: provenance.Always, Ranks: []trace.Rank{0}, Hosts: []string{"node0000"}, TID: provenance.AllThreads, Role: 1, Peers: ranks - 1,
		Ratio: 1.5, Windows: p.Loads[0].Windows,
	}}
	p.Activity = activities(ranks, windows, rng)
	return p
}

// activities returns the activities of ranks that compute, communicate and write in turn, and send messages to both neighbors,
// and their use of memory, which grows.
func activities(ranks, steps int, rng *rand.Rand) []byte {
	s := activity.New(trace.Microsecond)
	var records []activity.Record
	var readings []activity.CounterReading
	const memory = "monitoring: Memory Footprint (VmRSS) (KB)"
	for r := range ranks {
		records, readings = records[:0], readings[:0]
		at := epoch
		for i := range 8 * steps {
			own, wait := stepLength/16+trace.Ticks(rng.Int64N(int64(stepLength)/32)), stepLength/8
			class := activity.MPI
			if i%20 == 19 {
				class = activity.IO
			}
			records = append(records, activity.Record{From: at, To: at + own, Time: uint64(own), Class: activity.Own},
				activity.Record{From: at + own, To: at + wait, Time: uint64(wait - own), Class: class})
			reading := activity.CounterReading{Counter: activity.CounterOf(memory), At: at}
			reading.Add(uint64(40_000 + 100*i + 10*(r%7)))
			readings = append(readings, reading)
			at += wait
		}
		key := trace.RankKey{Rank: trace.Rank(r)}
		s.Add(key, epoch, at, records)
		s.AddReadings(key, readings)
		t := activity.Traffic{Messages: uint64(steps), Bytes: uint64(steps) << 10}
		s.AddMessages(key, []activity.Sent{{To: trace.Rank((r + 1) % ranks), Traffic: t}, {To: trace.Rank((r + ranks - 1) % ranks), Traffic: t}})
	}
	s.NameCounters(func(trace.Program, activity.CounterID) string { return memory })
	return s.AppendBinary(nil)
}

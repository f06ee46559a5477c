package paramserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	loadRanks     = 2000
	loadNodes     = 32
	loadFunctions = 200
	loadTime      = 10 * time.Second
	loadLate      = 200 * time.Millisecond // after which an answer is late
)

// BenchmarkLoad has the analyzers of 2 000 ranks exchange once a second, with 200
// functions each, for ten seconds: one analyzer for each of 32 nodes, as it is
// meant to be, and one for each rank. Times run from when an exchange was due.
// Clients are generators of encoded exchanges in the same process.
func BenchmarkLoad(b *testing.B) {
	b.Run("nodes=32", func(b *testing.B) { benchLoad(b, loadNodes) })
	b.Run("ranks=2000", func(b *testing.B) { benchLoad(b, loadRanks) })
}

func benchLoad(b *testing.B, analyzers int) {
	nats, _ := benchServer(b)
	var bodies [][]byte
	all := make([]*generator, analyzers)
	for i := range all {
		ranks := loadRanks*(i+1)/analyzers - loadRanks*i/analyzers
		all[i] = &generator{node: fmt.Sprint("node", i), ranks: ranks}
		if i < loadNodes {
			all[i].bus = connect(b, nats)
		} else {
			all[i].bus = all[i%loadNodes].bus
		}
	}
	ids := all[0].register(b, 0, functionsOf(loadFunctions))
	for v := range 16 {
		bodies = append(bodies, encodedBody(b, rand.New(rand.NewPCG(1, uint64(v))), ids, 100))
	}
	var wg sync.WaitGroup
	for i, g := range all {
		g.bodies = append(slices.Clone(bodies[i%16:]), bodies[:i%16]...)
		wg.Go(func() { g.register(b, loadRanks*i/analyzers, nil) })
	}
	wg.Wait()
	b.ResetTimer()
	for range b.N {
		begin := time.Now()
		took := make([][]time.Duration, analyzers)
		for i, g := range all {
			due := begin.Add(time.Second * time.Duration(i) / time.Duration(analyzers))
			wg.Go(func() { took[i] = g.load(b, loadRanks*i/analyzers, due, begin.Add(loadTime)) })
		}
		wg.Wait()
		reportLoad(b, all, slices.Concat(took...), time.Since(begin))
	}
}

// load sends an exchange each second, and returns how long each took since it was
// due.
func (g *generator) load(b *testing.B, first int, due, end time.Time) (took []time.Duration) {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for ; due.Before(end); due = due.Add(time.Second) {
		timer.Reset(time.Until(due))
		<-timer.C
		if err := g.exchange(b.Context(), first); err != nil {
			b.Error(err)
			return took
		}
		took = append(took, time.Since(due))
	}
	return took
}

func reportLoad(b *testing.B, all []*generator, took []time.Duration, lasted time.Duration) {
	b.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	late, _ := slices.BinarySearch(took, loadLate)
	ms := func(share float64) float64 { return float64(took[int(share*float64(len(took)-1))]) / 1e6 }
	b.ReportMetric(ms(0.5), "p50-ms")
	b.ReportMetric(ms(0.99), "p99-ms")
	b.ReportMetric(100*float64(len(took)-late)/float64(len(took)), "late-%")
	b.ReportMetric(float64(len(took))/lasted.Seconds(), "exchanges/s")
	var in, out int64
	for _, g := range all {
		in, out = in+g.out, out+g.in
	}
	b.ReportMetric(float64(in)/float64(len(took)), "B-in/exchange")
	b.ReportMetric(float64(out)/float64(len(took)), "B-out/exchange")
}

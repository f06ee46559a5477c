package paramserver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// original is how many exchanges a second the parameter server of the original
// Chimbuko took at best with the models of hbos; at worst it took 310.
const original = 730

// BenchmarkExchange is how many exchanges with 100 functions and 100 counters a
// server takes, through a NATS server and clients in the same process. As in the
// original each is answered with the models of all functions, or with those that
// changed since the one before, of which there are few at such a pace.
func BenchmarkExchange(b *testing.B) {
	for _, clients := range []int{1, 4, 8} {
		b.Run(fmt.Sprintf("all/clients=%d", clients), func(b *testing.B) { benchExchange(b, clients, true) })
	}
	b.Run("all/no-bus", benchState)
	b.Run("changed/clients=4", func(b *testing.B) { benchExchange(b, 4, false) })
	b.Run("analyzers=4", benchClients)
}

func benchExchange(b *testing.B, clients int, everything bool) {
	nats, _ := benchServer(b)
	all := make([]*generator, clients)
	for i := range all {
		all[i] = &generator{bus: connect(b, nats), node: fmt.Sprint("node", i), ranks: 1, all: everything}
		ids := all[i].register(b, i, functionsOf(100))
		for v := range 8 {
			all[i].bodies = append(all[i].bodies, encodedBody(b, rand.New(rand.NewPCG(uint64(i), uint64(v))), ids, 100))
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for i, g := range all {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := g.exchange(b.Context(), i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	var in, out int64
	for _, g := range all {
		in, out = in+g.out, out+g.in
	}
	reportRate(b, in, out)
}

// benchState is the share of the server in it.
func benchState(b *testing.B) {
	nats, s := benchServer(b)
	g := &generator{bus: connect(b, nats), node: "node", ranks: 1, all: true}
	ids := g.register(b, 0, functionsOf(100))
	for v := range 8 {
		g.bodies = append(g.bodies, encodedBody(b, rand.New(rand.NewPCG(1, uint64(v))), ids, 100))
	}
	b.ReportAllocs()
	for b.Loop() {
		data, err := g.next(0)
		if err == nil {
			data, err = s.exchange(b.Context(), data)
		}
		if err == nil {
			err = g.take(data)
		}
		if err != nil {
			b.Fatal(err)
		}
		g.in += int64(len(data))
	}
	reportRate(b, g.out, g.in)
}

// reportRate reports the figures of b.N exchanges with so many bytes to and from the
// server.
func reportRate(b *testing.B, in, out int64) {
	b.Helper()
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "exchanges/s")
	b.ReportMetric(rate/original, "x-original")
	b.ReportMetric(float64(in)/float64(b.N), "B-in/exchange")
	b.ReportMetric(float64(out)/float64(b.N), "B-out/exchange")
}

// benchClients is the same with whole clients, which gather, encode, and merge
// what comes.
func benchClients(b *testing.B) {
	nats, s := benchServer(b)
	var clients []*paramclient.Client
	var steps [][]*deltas.Contribution
	for i := range 4 {
		c := paramclient.New(paramclient.Config{
			Run: "run", Node: fmt.Sprint("node", i), Session: 1, Shards: 1, Timeout: patience,
			MaxPending: math.MaxInt, /* so fast they are not stored */
		}, connect(b, nats))
		clients = append(clients, c)
		steps = append(steps, benchSteps(rand.New(rand.NewPCG(uint64(i), 1)), trace.RankKey{Program: 0, Rank: trace.Rank(i)}))
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cputime.OfProcess()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for n := 0; left.Add(-1) >= 0; n++ {
				step := *steps[i][n%len(steps[i])]
				step.Step = n
				c.Add(&step)
				if err := c.Sync(b.Context()); err != nil {
					b.Error(err)
					return
				}
				for range c.Merged() {
				}
			}
		})
	}
	done := make(chan struct{})
	saved := make(chan struct{})
	go func() { // as often as so many exchanges need it
		defer close(saved)
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				if err := s.Save(); err != nil {
					b.Error(err)
				}
			}
		}
	}()
	wg.Wait()
	b.StopTimer()
	close(done)
	<-saved
	s.mu.Lock()
	defer s.mu.Unlock()
	reportRate(b, s.in, s.out)
	b.ReportMetric(float64((cputime.OfProcess()-before).Microseconds())/float64(b.N), "CPU-us/exchange")
}

// benchSteps are some steps of a rank.
func benchSteps(rng *rand.Rand, key trace.RankKey) (all []*deltas.Contribution) {
	for range 8 {
		c := contribution(key, 0)
		for i, name := range functionsOf(100) {
			f := found(key, name)
			for range newValues {
				v := timeOf(rng, i)
				f.Model.Learn(v, 0)
				f.Exclusive.Add(uint64(v))
				f.Inclusive.Add(uint64(v))
			}
			c.Functions = append(c.Functions, f)
			c.Counters = append(c.Counters, &summary.Counter{FuncKey: trace.FuncKey{Name: fmt.Sprint("counter ", i)}, Values: *randomSums(rng, i)})
		}
		all = append(all, c)
	}
	return all
}

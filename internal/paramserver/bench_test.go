package paramserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/analyzer"
	"github.com/chimbuko/chimbuko/internal/bus"
	"github.com/chimbuko/chimbuko/internal/outlier"
	"github.com/chimbuko/chimbuko/internal/protocol"
	"github.com/chimbuko/chimbuko/internal/stats"
	"github.com/chimbuko/chimbuko/internal/summary"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// original is how many exchanges a second the parameter server of the original
// Chimbuko took at best with the models of hbos; at worst it took 310.
const original = 730

// newValues is how many calls of each function an exchange brings.
const newValues = 20

// timeOf is a time of a call of a function, in microseconds: the models of many
// calls have some hundred bins.
func timeOf(rng *rand.Rand, function int) int64 {
	return int64(500 * float64(1+function%17) * math.Exp(0.25*rng.NormFloat64()))
}

// randomSums are those of calls of a function.
func randomSums(rng *rand.Rand, function int) *stats.Sums {
	s := new(stats.Sums)
	for range newValues {
		s.Add(uint64(timeOf(rng, function)))
	}
	return s
}

// encodedBody is what an exchange carries of so many functions, of which those of
// shard 0 are all, and counters.
func encodedBody(b *testing.B, rng *rand.Rand, ids []uint32, counters int) []byte {
	b.Helper()
	req := &protocol.ExchangeRequest{Summary: new(protocol.Summary)}
	for i, id := range ids {
		var m outlier.Model
		for range newValues {
			m.Learn(timeOf(rng, i))
		}
		req.Models = append(req.Models, &protocol.Model{Id: id, Model: m.AppendBinary(nil)})
		req.Summary.Functions = append(req.Summary.Functions, &protocol.FunctionProfile{
			Id: id, Exclusive: m.Stats.AppendBinary(nil), Inclusive: randomSums(rng, i).AppendBinary(nil), Anomalies: sumsOf(0).AppendBinary(nil),
		})
	}
	for i := range counters {
		req.Summary.Counters = append(req.Summary.Counters, &protocol.Counter{Name: fmt.Append(nil, "counter ", i), Values: randomSums(rng, i).AppendBinary(nil)})
	}
	body, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// generator speaks the protocol of an analyser with exchanges that were encoded
// before, so that the figures are those of the server and not of the one who loads
// it.
type generator struct {
	bus    *bus.Conn
	node   string
	bodies [][]byte
	ranks  int

	number         uint64
	epoch, version uint64
	in, out        int64
}

func (g *generator) register(b *testing.B, first int, names []string) []uint32 {
	b.Helper()
	req := &protocol.RegisterRequest{Sender: sender(g.node, 1), Shards: 1}
	for r := range g.ranks {
		req.Ranks = append(req.Ranks, &protocol.Rank{Rank: uint32(first + r)})
	}
	for _, n := range names {
		req.Names = append(req.Names, &protocol.FunctionName{Name: []byte(n)})
	}
	data, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	data, err = g.bus.Request(b.Context(), Subject("run", 0, "register"), data)
	reply := new(protocol.RegisterReply)
	if err == nil {
		err = proto.Unmarshal(data, reply)
	}
	if err != nil {
		b.Fatal(err)
	}
	return reply.GetIds()
}

// exchange sends the next step of the ranks from first on.
func (g *generator) exchange(ctx context.Context, first int) error {
	g.number++
	head := &protocol.ExchangeRequest{Sender: sender(g.node, 1), Number: g.number, Epoch: g.epoch, Known: g.version}
	for r := range g.ranks {
		head.Steps = append(head.Steps, &protocol.Steps{Rank: uint32(first + r), From: uint32(g.number - 1), To: uint32(g.number)})
	}
	data, err := proto.Marshal(head)
	if err != nil {
		return err
	}
	data = append(data, g.bodies[g.number%uint64(len(g.bodies))]...)
	g.out += int64(len(data))
	if data, err = g.bus.Request(ctx, Subject("run", 0, "exchange"), data); err != nil {
		return err
	}
	g.in += int64(len(data))
	return g.take(data)
}

// take reads the head of an answer and leaves the models alone.
func (g *generator) take(data []byte) error {
	for len(data) > 0 {
		f, rest, ok := nextField(data)
		switch {
		case !ok:
			return io.ErrUnexpectedEOF
		case f.tag == 1<<3|number && f.value != g.number, f.tag == 10<<3|text:
			return fmt.Errorf("exchange %d was not taken", g.number)
		case f.tag == 4<<3|number:
			g.epoch = f.value
		case f.tag == 5<<3|number:
			g.version = f.value
		case f.tag == replyModels<<3|text:
			return nil
		}
		data = rest
	}
	return nil
}

// benchServer is a server as chimbuko serve runs it, on a bus of its own.
func benchServer(b *testing.B) (*bus.Server, *Server) {
	b.Helper()
	nats := startBus(b)
	dir := b.TempDir()
	state, err := NewState(Config{Run: "run", Shards: 1, Refresh: time.Second, Ranks: 1 << 20}, openIndex(b, filepath.Join(dir, "functions")), 1)
	if err != nil {
		b.Fatal(err)
	}
	s, err := NewServer(connect(b, nats), state, ServerConfig{Dir: dir, Snapshot: 5 * time.Second, Workers: 4, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // until the benchmark ends
	b.Cleanup(func() {
		cancel()
		running.Wait()
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return nats, s
}

func functionsOf(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("void solver::step<%d>(double *, int) [{solver.cpp} {%d,1}]", i, i)
	}
	return names
}

// BenchmarkExchange is how many exchanges with 100 functions and 100 counters a
// server takes, through a NATS server and clients in the same process.
func BenchmarkExchange(b *testing.B) {
	for _, clients := range []int{1, 4, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchExchange(b, clients) })
	}
	b.Run("analysers=4", benchClients)
}

func benchExchange(b *testing.B, clients int) {
	nats, _ := benchServer(b)
	all := make([]*generator, clients)
	for i := range all {
		all[i] = &generator{bus: connect(b, nats), node: fmt.Sprint("node", i), ranks: 1}
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

// reportRate tells the figures of b.N exchanges with so many bytes to and from the
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
	var clients []*Client
	var steps [][]*analyzer.Contribution
	for i := range 4 {
		c := NewClient(ClientConfig{Run: "run", Node: fmt.Sprint("node", i), Session: 1, Shards: 1, Timeout: patience}, connect(b, nats))
		clients = append(clients, c)
		steps = append(steps, benchSteps(rand.New(rand.NewPCG(uint64(i), 1)), rankKey{0, trace.Rank(i)}))
	}
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for n := 0; left.Add(-1) >= 0; n++ {
				step := *steps[i][n%len(steps[i])]
				step.Step = n
				c.Add(&step)
				if err := c.talk(b.Context()); err != nil {
					b.Error(err)
					return
				}
				for range c.Merged() {
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	s.mu.Lock()
	defer s.mu.Unlock()
	reportRate(b, s.in, s.out)
}

// benchSteps are some steps of a rank.
func benchSteps(rng *rand.Rand, key rankKey) (all []*analyzer.Contribution) {
	for range 8 {
		c := contribution(key, 0)
		for i, name := range functionsOf(100) {
			f := found(key, name)
			for range newValues {
				v := timeOf(rng, i)
				f.Model.Learn(v)
				f.Exclusive.Add(uint64(v))
				f.Inclusive.Add(uint64(v))
			}
			c.Functions = append(c.Functions, f)
			c.Counters = append(c.Counters, &summary.Counter{Name: fmt.Sprint("counter ", i), Values: *randomSums(rng, i)})
		}
		all = append(all, c)
	}
	return all
}

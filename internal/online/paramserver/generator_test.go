package paramserver

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

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
	var d summary.Delta
	for i, id := range ids {
		m := summary.ModelDelta{ID: int(id)}
		for range newValues {
			m.Model.Learn(timeOf(rng, i), 0)
		}
		d.Models = append(d.Models, m)
		d.Functions = append(d.Functions, summary.FunctionStats{
			ID: int(id), Exclusive: m.Model.Stats, Inclusive: *randomSums(rng, i), PerStep: *sumsOf(0),
		})
	}
	paths := []callpath.Entry{{Parent: -1, Func: ids[0]}}
	for i, id := range ids { // each function is called by two others
		for _, from := range []int{0, i / 2} {
			paths = append(paths, callpath.Entry{
				Parent: int32(from), Func: id,
				Sums: callpath.Sums{Calls: newValues / 2, Exclusive: uint64(newValues * timeOf(rng, i))},
			})
		}
	}
	d.Paths = pathsOf(callpath.MaxDepth, paths...)
	for i := range counters {
		d.Counters = append(d.Counters, summary.Counter{FuncKey: trace.FuncKey{Name: fmt.Sprint("counter ", i)}, Values: *randomSums(rng, i)})
	}
	req := &protocol.ExchangeRequest{Delta: encoded(d)}
	body, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// generator speaks the protocol of an analyzer with exchanges that were encoded
// before, so that the figures are those of the server and not of the one who loads
// it.
type generator struct {
	bus    *bus.Conn
	node   string
	bodies [][]byte
	ranks  int
	all    bool // requests all models each time, not only changed ones

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
	data, err = g.bus.Request(b.Context(), paramwire.Subject("run", 0, "register"), data)
	reply := new(protocol.RegisterReply)
	if err == nil {
		err = proto.Unmarshal(data, reply)
	}
	if err != nil {
		b.Fatal(err)
	}
	return reply.GetIds()
}

// next is the request with the next step of the ranks from first on.
func (g *generator) next(first int) ([]byte, error) {
	g.number++
	if g.all {
		g.version = 0
	}
	head := &protocol.ExchangeRequest{Sender: sender(g.node, 1), Number: g.number, Epoch: g.epoch, Known: g.version}
	for r := range g.ranks {
		head.Steps = append(head.Steps, &protocol.Steps{Rank: uint32(first + r), From: uint32(g.number - 1), To: uint32(g.number)})
	}
	data, err := proto.Marshal(head)
	data = append(data, g.bodies[g.number%uint64(len(g.bodies))]...)
	g.out += int64(len(data))
	return data, err
}

func (g *generator) exchange(ctx context.Context, first int) error {
	data, err := g.next(first)
	if err == nil {
		data, err = g.bus.Request(ctx, paramwire.Subject("run", 0, "exchange"), data)
	}
	if err != nil {
		return err
	}
	g.in += int64(len(data))
	return g.take(data)
}

func parseError(n int) error {
	if n < 0 {
		return protowire.ParseError(n)
	}
	return nil
}

// take reads the head of an answer and leaves the models alone.
func (g *generator) take(data []byte) error {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 || field == replyModels {
			return parseError(n)
		}
		data = data[n:]
		value := uint64(0)
		if kind == protowire.VarintType {
			value, _ = protowire.ConsumeVarint(data)
		}
		if n = protowire.ConsumeFieldValue(field, kind, data); n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		switch field {
		case 1:
			if value != g.number {
				return fmt.Errorf("the server has exchange %d, want %d", value, g.number)
			}
		case 4:
			g.epoch = value
		case 5:
			g.version = value
		case 10:
			return fmt.Errorf("exchange %d was refused", g.number)
		}
	}
	return nil
}

// benchServer is a server as chimbuko serve runs it, on a separate bus.
func benchServer(b *testing.B) (*bus.Server, *Server) { return serverOf(b, 1<<20) }

// serverOf returns a server of a run with so many ranks.
func serverOf(b *testing.B, ranks int) (*bus.Server, *Server) {
	b.Helper()
	nats := startBus(b)
	dir := b.TempDir()
	state, err := NewState(Config{Run: "run", Shards: 1, Refresh: 100 * time.Millisecond, Ranks: ranks}, 1)
	if err != nil {
		b.Fatal(err)
	}
	s, err := NewServer(connect(b, nats), state, ServerConfig{
		Dir: dir, Snapshot: 5 * time.Second, Workers: 4,
		Log: slog.New(slog.DiscardHandler),
	})
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

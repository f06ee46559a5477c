package paramserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// BenchmarkLoadBytes reports the bytes that the analyzer of a host sends in an exchange after
// each step of about a second, and how much the load of its ranks adds to them: to those that
// the analyzer sends, and to those in both directions.
func BenchmarkLoadBytes(b *testing.B) {
	for _, size := range []struct{ ranks, steps int }{{1, 60}, {8, 60}, {32, 60}, {1, 600}, {8, 600}, {32, 600}} {
		b.Run(fmt.Sprintf("ranks=%d/steps=%d", size.ranks, size.steps), func(b *testing.B) {
			for b.Loop() {
				sent, received := bytesPerExchange(b, size.ranks, size.steps, false)
				without, _ := bytesPerExchange(b, size.ranks, size.steps, true)
				b.ReportMetric(sent, "B-in/exchange")
				b.ReportMetric(received, "B-out/exchange")
				b.ReportMetric(100*(sent-without)/without, "load-%-of-in")
				b.ReportMetric(100*(sent-without)/(without+received), "load-%")
			}
		})
	}
}

func bytesPerExchange(b *testing.B, ranks, steps int, withoutLoad bool) (sent, received float64) {
	b.Helper()
	text, err := scenario.Builtin("scale")
	if err != nil {
		b.Fatal(err)
	}
	s, err := scenario.Parse("scale", text)
	if err == nil {
		err = s.Resize(ranks)
	}
	if err == nil {
		err = s.Stretch(steps)
	}
	if err != nil {
		b.Fatal(err)
	}
	run := simulate.New(s)
	lock := &lockstep{of: &scale{scenario: s, run: run, ranks: ranks}}
	var inputs []analyzer.Input
	for _, of := range run.Streams() {
		inputs = append(inputs, analyzer.Input{
			Path: fmt.Sprintf("rank-%d.bp", of.Rank()), Program: of.Program(),
			Steps: func(*tally.Tally) (trace.Steps, error) { return &heldReader{Stream: of, lock: lock}, nil },
		})
	}
	w := newWorld(b, Config{Ranks: ranks})
	c := &stepwise{b: b, world: w, ranks: ranks, withoutLoad: withoutLoad, Client: paramclient.New(
		paramclient.Config{Run: "run", Node: "node", Session: 1, Shards: 1, Timeout: time.Minute}, w)}
	cfg := analyzer.Default()
	cfg.SpoolDir = b.TempDir()
	c.sync()
	_, err = analyzer.New(cfg, new(flagCounter), nil).Follow(b.Context(), analyzer.Online{
		Sync: c, Poll: time.Millisecond, Sleep: pause, Report: func(*analyzer.Report) {},
		Find: func() ([]analyzer.Input, bool, error) { return inputs, true, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	x := c.Exchanges()
	return float64(x.Sent) / float64(x.Count), float64(x.Received) / float64(x.Count)
}

// stepwise is a client that synchronizes after each step of all ranks.
type stepwise struct {
	*paramclient.Client
	b           *testing.B
	world       *world
	ranks       int
	added       int
	withoutLoad bool
}

func (s *stepwise) Add(c *deltas.Contribution) {
	if s.withoutLoad {
		c.Load = nil
	}
	s.Client.Add(c)
	if s.added++; s.added%s.ranks == 0 {
		s.sync()
	}
}

func (s *stepwise) sync() {
	if err := s.Sync(s.b.Context()); err != nil {
		s.b.Fatal(err)
	}
	s.world.save(0)
}

func (s *stepwise) Finish(context.Context) error {
	s.End()
	for !s.Progress().Final {
		s.sync() //nolint:contextcheck // it has the context of the benchmark
		s.world.state(0).Tick(time.Now())
	}
	return nil
}

func (s *stepwise) Promote(context.Context, *blame.Run) ([]int, error) { return nil, nil }

// BenchmarkLoadMemory reports the memory of the load of 10 000 ranks with 200 functions in all
// windows at the server, the times of a copy and of a snapshot, and how often it is made.
func BenchmarkLoadMemory(b *testing.B) {
	const ranks, functions = 10_000, 200
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	for b.Loop() {
		before := heap()
		live := summary.NewLive()
		rng := rand.New(rand.NewPCG(1, 1))
		width := trace.Ticks(1) << 26 // in a run of about 18 minutes
		cells := make([]workload.Cell, functions)
		for rank := range trace.Rank(ranks) {
			l := workload.New()
			lane := l.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: rank}})
			lane.Host = fmt.Sprintf("node%03d", rank/64)
			for window := range trace.Ticks(16) {
				for i := range cells {
					work := l.Work(workload.Work{Function: uint32(i), Path: callpath.Hash(0).Then(fmt.Sprint(i))})
					sums := callpath.Sums{Calls: 100 + rng.Uint64N(1000), Exclusive: rng.Uint64N(uint64(width) / functions)}
					cells[i] = workload.Cell{Work: work, Sums: sums}
				}
				at := (1<<20 + window) * width
				l.Add(lane, at, at+width/2, cells)
				l.AddWait(lane, at+width/2, at+width-1, uint64(width/4), true)
			}
			live.Add(&summary.Delta{Load: l})
		}
		b.ReportMetric(heap()-before, "MB")
		start := time.Now()
		load := live.Load()
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "copy-ms")
		if windows := len(load.Lanes()[0].Windows); windows != 16 {
			b.Errorf("%d windows", windows)
		}
		encoded := load.AppendBinary(nil)
		start = time.Now()
		encoded = load.AppendBinary(encoded[:0])
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "snapshot-ms")
		b.ReportMetric(float64(len(encoded))/1e6, "snapshot-MB")
		server := newServer(newState(b, Config{Ranks: ranks}), ServerConfig{Dir: b.TempDir(), Snapshot: 5 * time.Second})
		server.state.live, server.state.changes = live, 1
		if err := server.Save(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(server.snap.Duration, "save-s")
		b.ReportMetric(server.snapshotPeriod().Seconds(), "save-every-s")
	}
}

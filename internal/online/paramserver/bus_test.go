package paramserver

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func startBus(tb testing.TB) *bus.Server {
	tb.Helper()
	tracetest.SkipShort(tb, "starts a server")
	s, err := bus.StartServer(tb.Context(), bus.ServerOptions{Dir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// connect returns a connected client of the bus.
func connect(tb testing.TB, s *bus.Server) *bus.Conn {
	tb.Helper()
	c, err := bus.Connect(bus.Options{URL: s.URL(), Name: tb.Name()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := c.Wait(ctx); err != nil {
		tb.Fatal(err)
	}
	return c
}

// process is a parameter server that looks to clients like a separate process.
type process struct {
	conn   *bus.Conn
	server *Server
}

func startProcess(tb testing.TB, b *bus.Server, cfg Config, dir string, epoch uint64) *process {
	tb.Helper()
	p := &process{conn: connect(tb, b)}
	state, err := NewState(cfg, epoch)
	if err == nil {
		err = state.Restore(StatePath(dir, cfg.Shard))
	}
	if err == nil {
		p.server, err = NewServer(p.conn, state, ServerConfig{
			Dir: dir, Snapshot: 10 * time.Millisecond, Workers: 4,
			Log: slog.New(slog.DiscardHandler),
		})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestAnalyzersAndServerOverTheBus runs two analyzers while their server is killed
// twice.
func TestAnalyzersAndServerOverTheBus(t *testing.T) {
	b := startBus(t)
	dir := t.TempDir()
	traces := longTraces(30)
	cfg := Config{Run: "a run", Shards: 1, Ranks: len(traces)}
	p := startProcess(t, b, cfg, dir, 1)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []*testAnalyzer
	var talking, reading sync.WaitGroup
	halfway, goOn := make(chan struct{}, len(traces)), make(chan struct{})
	for i, keys := range [][]trace.RankKey{{{Program: 0, Rank: 0}, {Program: 1, Rank: 0}}, {{Program: 0, Rank: 1}}} {
		a := newAnalyzer(t, connect(t, b), string('a'+rune(i)), 1, nil)
		a.cfg.Run = cfg.Run
		a.start()
		all = append(all, a)
		talking.Go(func() { a.client.Run(ctx) })
		reading.Go(func() {
			for _, key := range keys {
				a.traces = map[trace.RankKey][]*deltas.Contribution{key: traces[key]}
				for range len(traces[key]) / 2 {
					a.readOne(key)
				}
				halfway <- struct{}{}
				<-goOn
				for a.readOne(key) {
				}
			}
			if err := a.client.Finish(ctx); err != nil {
				t.Errorf("analyzer %s: %v", a.cfg.Node, err)
			}
			a.learnFromOthers()
		})
	}
	for epoch := range uint64(2) {
		<-halfway
		p.conn.Close() // without a snapshot, and with requests on their way
		p = startProcess(t, b, cfg, dir, 2+epoch)
		if epoch == 0 {
			close(goOn)
		}
	}
	talking.Go(func() { _ = p.server.Run(ctx) }) // until the test ends it
	reading.Wait()
	cancel()
	talking.Wait()

	s := p.server.state
	o := newOracle(traces, func(n trace.FuncKey) int { return slices.Index(s.names, n) })
	eachLearned(s, s.names, func(context callpath.Context, m outlier.Model) {
		wantSameModel(t, "the server", &m, o.models[context])
	})
	for _, a := range all {
		a.wantModels(o.models)
	}
	wantSameLive(t, s, o)
}

package paramserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/online/bus"
)

// world is a parameter server in this process whose shards can be killed at any
// moment and restart from their snapshots. It is the paramclient.Requester of its
// clients.
type world struct {
	tb     testing.TB
	cfg    Config
	epoch  uint64
	shards []*shardProcess
}

// shardProcess is a shard of the server, or the place of one that is down.
type shardProcess struct {
	mu       sync.Mutex
	server   *Server // nil: down
	disk     []byte  // the last snapshot
	faults   *rand.Rand
	delayed  []delayedRequest
	requests map[string]int // requests by what they were
}

type delayedRequest struct {
	what string
	data []byte
}

func newWorld(tb testing.TB, cfg Config) *world {
	tb.Helper()
	cfg.Run = "run"
	cfg.Shards = max(cfg.Shards, 1)
	w := &world{tb: tb, cfg: cfg}
	for range cfg.Shards {
		w.shards = append(w.shards, &shardProcess{requests: make(map[string]int)})
	}
	for i := range w.shards {
		w.start(i)
	}
	return w
}

// start starts a shard from its last snapshot.
func (w *world) start(shard int) {
	w.tb.Helper()
	cfg, p := w.cfg, w.shards[shard]
	cfg.Shard = shard
	w.epoch++
	state, err := NewState(cfg, w.epoch)
	if err == nil && p.disk != nil {
		err = state.load(p.disk)
	}
	if err != nil {
		w.tb.Fatal(err)
	}
	server := newServer(state, ServerConfig{})
	server.save = func() (int, error) {
		return state.saveWith(func(b []byte) error { p.disk = b; return nil })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

// kill ends a shard without a snapshot.
func (w *world) kill(shard int) {
	p := w.shards[shard]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = nil
}

func (w *world) state(shard int) *State { return w.shards[shard].server.state }

var errLost = errors.New("lost on the way")

// Request passes a request to a shard, unless a fault loses it or the reply.
func (w *world) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	parts := strings.Split(subject, ".")
	shard, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil || shard >= len(w.shards) {
		return nil, fmt.Errorf("no shard serves %s", subject)
	}
	p, what := w.shards[shard], parts[len(parts)-1]
	p.mu.Lock()
	defer p.mu.Unlock()
	fault := 99
	if p.faults != nil {
		fault = p.faults.IntN(20)
	}
	switch fault {
	case 0: // the request is lost
		return nil, errLost
	case 1: // the answer is
		_, _ = p.handle(ctx, what, data)
		return nil, errLost
	case 2: // it comes twice
		_, _ = p.handle(ctx, what, data)
	case 3: // it comes twice, the second time later
		p.delayed = append(p.delayed, delayedRequest{what, append([]byte(nil), data...)})
	case 4: // it arrives after the requester has given up
		p.delayed = append(p.delayed, delayedRequest{what, append([]byte(nil), data...)})
		return nil, errLost
	}
	return p.handle(ctx, what, data)
}

// handle has a request handled as the bus does.
func (p *shardProcess) handle(ctx context.Context, what string, data []byte) ([]byte, error) {
	if p.server == nil {
		return nil, bus.ErrNoService
	}
	p.requests[what]++
	handlers := map[string]bus.Handler{
		"register": p.server.register, "exchange": p.server.exchange, "delays": p.server.delays, "outcome": p.server.outcome,
		"stop": p.server.stop,
	}
	reply, err := handlers[what](ctx, append([]byte(nil), data...))
	if err != nil {
		return nil, &bus.RemoteError{Text: err.Error()}
	}
	return reply, nil
}

// deliver has one of the delayed requests arrive, if there is one.
func (p *shardProcess) deliver(ctx context.Context, rng *rand.Rand) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.delayed) == 0 {
		return false
	}
	i := rng.IntN(len(p.delayed))
	d := p.delayed[i]
	p.delayed = append(p.delayed[:i], p.delayed[i+1:]...)
	_, _ = p.handle(ctx, d.what, d.data)
	return true
}

func (w *world) save(shard int) {
	w.tb.Helper()
	if err := w.shards[shard].server.Save(); err != nil {
		w.tb.Fatal(err)
	}
}

package paramserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// ServerConfig configures a Server.
type ServerConfig struct {
	Dir      string        // of snapshots
	Snapshot time.Duration // between snapshots, unless they take long
	Workers  int           // exchanges at once
	// Stored returns nil when all records that analyzers have sent are durable. They must not be lost,
	// because an analyzer does not read its traces again once the server has its results. Stored may be
	// nil.
	Stored func(context.Context) error
	// Reviewing, if not nil, is called when the review begins.
	Reviewing func(context.Context)
	Log       *slog.Logger
}

// Server serves a State to analyzers over the bus.
type Server struct {
	state    *State
	cfg      ServerConfig
	services []*bus.Service
	progress chan struct{} // receives when an analyzer has reported an end

	saving sync.Mutex
	save   func() (size int, err error) // makes a snapshot; with saving held

	mu      sync.Mutex
	handled stats.Histogram // microseconds for an exchange
	in, out int64           // bytes
	snapAt  time.Time       // of the last snapshot
	snap    api.Snapshot
	failed  error // of the last attempt
}

// StatePath returns the file with the snapshot of a shard.
func StatePath(dir string, shard int) string {
	return filepath.Join(dir, fmt.Sprintf("parameters-%d.state", shard))
}

// maxSharing is the number of ended analyzers that may wait for the same snapshot.
const maxSharing = 64

// NewServer serves a state until Close.
func NewServer(conn *bus.Conn, state *State, cfg ServerConfig) (*Server, error) {
	s := newServer(state, cfg)
	serve := func(what string, workers int, h bus.Handler) error {
		service, err := conn.Serve(paramwire.Subject(state.cfg.Run, state.cfg.Shard, what), "", workers, h)
		if err == nil {
			s.services = append(s.services, service)
		}
		return err
	}
	err := errors.Join(
		serve("register", cfg.Workers, s.register),
		serve("exchange", cfg.Workers, s.exchange),
		serve("delays", maxSharing, s.delays),
		serve("outcome", maxSharing, s.outcome),
		serve("stop", 1, s.stop),
	)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newServer returns a server without a bus.
func newServer(state *State, cfg ServerConfig) *Server {
	path := StatePath(cfg.Dir, state.cfg.Shard)
	return &Server{state: state, cfg: cfg, progress: make(chan struct{}, 1), save: func() (int, error) { return state.Save(path) }}
}

// Close ends the service and makes the state durable.
func (s *Server) Close() error {
	for _, service := range s.services {
		service.Close()
	}
	s.services = nil
	return s.Save()
}

// Save makes the state durable.
func (s *Server) Save() error { return s.saveUpTo(s.state.Changes()) }

// saveUpTo makes the given changes of the state durable. Concurrent callers share
// a snapshot.
func (s *Server) saveUpTo(changes uint64) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.state.savedUpTo(changes) {
		return nil
	}
	start := time.Now()
	size, err := s.save()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	if err == nil {
		s.snapAt, s.snap = start, api.Snapshot{Duration: time.Since(start).Seconds(), Bytes: int64(size)}
	}
	return err
}

// tick is the time between checks of the state if no analyzer reports an end.
const tick = 100 * time.Millisecond

// Snapshots may take one part in snapshotShare of the time: those of 10 000 ranks have hundreds of megabytes. But
// they are never further apart than snapshotLimit, because analyzers keep everything that is not durable.
const (
	snapshotShare = 20
	snapshotLimit = 30 * time.Second
)

// snapshotPeriod returns the time from the beginning of the last snapshot to the next.
func (s *Server) snapshotPeriod() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := time.Duration(s.snap.Duration * float64(time.Second))
	return max(s.cfg.Snapshot, min(snapshotShare*took, snapshotLimit))
}

// Run makes snapshots and advances the phase of the run until ctx ends. The first
// shard returns nil when all ranks are reviewed.
func (s *Server) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	saved := time.Now()
	var last error
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		case <-s.progress:
		}
		now := time.Now()
		before := s.state.Phase()
		after := s.state.Tick(now)
		if after != before && s.cfg.Reviewing != nil {
			s.cfg.Reviewing(ctx)
		}
		if after != before || now.Sub(saved) >= s.snapshotPeriod() {
			saved = now
			err := s.Save()
			if err != nil && last == nil {
				s.cfg.Log.Error("cannot store a snapshot; analyzers keep their data until it succeeds", "error", err)
			}
			last = err
		}
		if s.state.cfg.Shard == 0 && s.state.Reviewed(now) {
			return s.Save()
		}
	}
}

// noteProgress makes Run check the state at once.
func (s *Server) noteProgress() {
	select {
	case s.progress <- struct{}{}:
	default:
	}
}

// answer decodes a request, handles it and encodes the reply.
func answer[Q, R proto.Message](data []byte, req Q, handle func(Q) (R, error)) ([]byte, error) {
	if err := proto.Unmarshal(data, req); err != nil {
		return nil, fmt.Errorf("malformed request: %w", err)
	}
	reply, err := handle(req)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(reply)
}

func (s *Server) register(_ context.Context, data []byte) ([]byte, error) {
	return answer(data, new(protocol.RegisterRequest), func(req *protocol.RegisterRequest) (*protocol.RegisterReply, error) {
		reply, err := s.state.Register(req, time.Now())
		if err == nil {
			err = s.saveUpTo(s.state.requiredChanges(req))
		}
		return reply, err
	})
}

func (s *Server) exchange(_ context.Context, data []byte) ([]byte, error) {
	start := time.Now()
	b, err := s.answerExchange(data, start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handled.Add(time.Since(start).Microseconds())
	s.in += int64(len(data))
	s.out += int64(len(b))
	return b, err
}

func (s *Server) answerExchange(data []byte, now time.Time) ([]byte, error) {
	a, err := s.state.Exchange(data, now)
	if err != nil {
		return nil, err
	}
	if a.Flush && a.GetDurable() < a.GetLast() {
		if err := s.saveUpTo(a.changes); err != nil {
			return nil, err
		}
		a.Durable = a.Last
	}
	if a.Flush {
		s.noteProgress()
	}
	return a.Encode()
}

func (s *Server) delays(_ context.Context, data []byte) ([]byte, error) {
	return answer(data, new(protocol.DelaysRequest), func(req *protocol.DelaysRequest) (*protocol.DelaysReply, error) {
		reply, err := s.state.AddDelays(req, time.Now())
		if err == nil && !req.GetPoll() {
			err = s.Save()
		}
		return reply, err
	})
}

func (s *Server) outcome(ctx context.Context, data []byte) ([]byte, error) {
	if s.cfg.Stored != nil {
		if err := s.cfg.Stored(ctx); err != nil {
			return nil, err
		}
	}
	return answer(data, new(protocol.OutcomeRequest), func(req *protocol.OutcomeRequest) (*protocol.OutcomeReply, error) {
		reply, err := s.state.SetOutcome(req, time.Now())
		if err == nil {
			err = s.Save()
		}
		s.noteProgress()
		return reply, err
	})
}

func (s *Server) stop(context.Context, []byte) ([]byte, error) {
	s.state.Stop(time.Now())
	s.noteProgress()
	return nil, s.Save() // for a restarted server, too
}

// CollectModels returns the models of all shards.
func (s *Server) CollectModels(ctx context.Context, conn *bus.Conn) (map[uint32]summary.Learned, error) {
	all := s.state.Models()
	cfg := s.state.cfg
	for shard := 1; shard < cfg.Shards; shard++ {
		req := &protocol.ExchangeRequest{Sender: &protocol.Sender{Version: protocol.Version, Run: cfg.Run}, Flush: true}
		b, err := proto.Marshal(req)
		if err != nil {
			return nil, err
		}
		if b, err = conn.Request(ctx, paramwire.Subject(cfg.Run, shard, "exchange"), b); err != nil {
			return nil, fmt.Errorf("models of shard %d: %w", shard, err)
		}
		reply := new(protocol.ExchangeReply)
		if err := proto.Unmarshal(b, reply); err != nil {
			return nil, fmt.Errorf("models of shard %d: %w", shard, err)
		}
		for _, m := range reply.GetModels() {
			model, rest, err := outlier.ReadModel(m.GetModel())
			if err != nil || len(rest) > 0 {
				return nil, fmt.Errorf("model of function %d of shard %d: %w", m.GetId(), shard, stats.ErrEncoding)
			}
			l := all[m.GetId()]
			l.Level = max(l.Level, uint8(min(m.GetLevel(), 64)))
			l.Set(callpath.Hash(m.GetPath()), model)
			all[m.GetId()] = l
		}
	}
	return all, nil
}

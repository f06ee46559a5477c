package service

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// openParams starts the parameter server.
func (s *server) openParams() error {
	dir := runfiles.Parameters(s.cfg.Store.Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cfg := s.cfg.Config
	cfg.Run, cfg.Refresh = s.run, 100*time.Millisecond
	if s.cfg.LoadModel != "" {
		models, err := rundir.LoadModels(s.cfg.LoadModel, outlier.NewRules(outlier.Default()))
		if err != nil {
			return err
		}
		if !cfg.Frozen {
			models.Restart()
		}
		for _, f := range models.Functions() {
			cfg.InitialModels = append(cfg.InitialModels, paramserver.InitialModel{FuncKey: f.FuncKey, Learned: f.Export()})
		}
	}
	var err error
	if s.state, err = paramserver.NewState(cfg, uint64(time.Now().UnixNano())); err != nil {
		return err
	}
	if err := s.state.Restore(paramserver.StatePath(dir, s.cfg.Shard)); err != nil {
		return err
	}
	if s.cfg.Reopen {
		s.state.Reopen(s.cfg.Lost)
	}
	if s.cfg.Shard == 0 {
		if err := s.openSender(); err != nil {
			return err
		}
	}
	server := paramserver.ServerConfig{
		Dir: dir, Snapshot: s.cfg.Snapshot, Workers: 4, Stored: s.recordsStored, Reviewing: s.hurryStore, Log: s.log,
	}
	s.params, err = paramserver.NewServer(s.conn, s.state, server)
	if err != nil {
		return err
	}
	s.later(s.params.Close)
	return nil
}

// storedTimeout bounds the wait of a request of an analyzer for the store. The analyzer then tries again.
const storedTimeout = 2 * time.Second

// recordsStored waits until the store has all records of the stream: the disk of the stream may lose
// the last ones in a power failure.
func (s *server) recordsStored(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storedTimeout)
	defer cancel()
	err := s.openStream(ctx)
	if err == nil {
		s.hurryStore(ctx)
		err = s.stream.WaitAcked(ctx)
	}
	if err != nil && !s.hasFinished() {
		return fmt.Errorf("the store does not have all records yet: %w", err)
	}
	return nil
}

// hurrySubject returns the subject on which a process requests that the store hurry.
func hurrySubject(run string) string { return "chimbuko." + paramwire.Token(run) + ".store.hurry" }

// serveHurry makes the store of this process hurry when another process requests it.
func (s *server) serveHurry() error {
	service, err := s.conn.Serve(hurrySubject(s.run), "", 1, func(context.Context, []byte) ([]byte, error) {
		s.storer.Hurry()
		return nil, nil
	})
	if err == nil {
		s.later(func() error { service.Close(); return nil })
	}
	return err
}

// hurryStore makes the store write records as they arrive, because the run is ending. It does not wait for a store
// in another process. If the request is lost, the end of the run only takes longer.
func (s *server) hurryStore(ctx context.Context) {
	if s.storer != nil {
		s.storer.Hurry()
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, storedTimeout)
		defer cancel()
		if _, err := s.conn.Request(ctx, hurrySubject(s.run), nil); err != nil {
			s.log.Debug("cannot reach the process with the store", "error", err)
		}
	}()
}

// openSender prepares the delivery of statistics.
func (s *server) openSender() (err error) {
	if s.cfg.StatsURL == "" && s.cfg.StatsDir == "" {
		return nil
	}
	s.sender, err = legacy.NewSender(legacy.SenderOptions{
		URL: s.cfg.StatsURL, Dir: s.cfg.StatsDir, Spill: runfiles.PendingStats(s.cfg.Store.Dir), Log: s.log,
	})
	if err == nil {
		s.later(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = s.sender.Close(ctx) // the rest stays on disk
			return nil
		})
	}
	return err
}

// work runs all parts until the run has ended or a part fails.
func (s *server) work(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	ended, end := context.WithCancel(ctx) // after the store and the parameter server
	defer end()
	web, err := s.serveWeb(ended, g)
	if err != nil {
		return err
	}
	s.services.Web = web
	if s.cfg.Shard == 0 {
		if err := s.announce(); err != nil {
			return err
		}
		g.Go(func() error { s.keepAnnounced(ended); return nil })
	}
	g.Go(func() error { return node.WatchDir(ended, s.cfg.Store.Dir) })
	g.Go(func() error { s.sample(ended); return nil })
	s.printAddress()
	if s.params != nil && s.cfg.Shard == 0 && s.cfg.Shards > 1 {
		s.startShards(ended, g)
	}
	if s.cfg.OnFinding != "" && s.cfg.Shard == 0 {
		g.Go(func() error { s.watchFindings(ctx, ended); return nil })
	}
	parts, together := errgroup.WithContext(ctx)
	if s.storer != nil {
		parts.Go(func() error { return s.storer.Run(together) })
	}
	if s.params != nil {
		parts.Go(func() error { return s.runParams(together) })
	}
	g.Go(func() error {
		err := parts.Wait()
		if err == nil && s.storer == nil && s.params == nil {
			<-ctx.Done() // the bus and HTTP do not end by themselves
		}
		end()
		return err
	})
	return g.Wait()
}

// sample collects the status of all parts regularly, so that the first request has rates.
func (s *server) sample(ctx context.Context) {
	for wait.Sleep(ctx, meterInterval) == nil {
		for _, f := range s.samplers {
			f(ctx)
		}
	}
}

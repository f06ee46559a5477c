package service

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// findServices returns the services in the run directory, or nil if this process is the
// first. If it does not run the message bus, it waits for another process.
func (s *server) findServices(ctx context.Context) (*runfiles.Services, error) {
	for printed := false; ; printed = true {
		services, err := runfiles.ReadServices(s.cfg.Store.Dir)
		switch {
		case err == nil:
			return services, nil
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("%w (remove it if no process of the run is left)", err)
		case s.cfg.has(RoleBus) || s.cfg.Bus.URL != "":
			return nil, nil //nolint:nilnil // the first
		case !printed:
			fmt.Fprintf(s.cfg.Stderr, "chimbuko: waiting for a process with the role nats in %s (--nats uses an existing server)\n",
				s.cfg.Store.Dir)
		}
		if err := wait.Sleep(ctx, node.WatchEvery/4); err != nil {
			return nil, err
		}
	}
}

// announce writes the addresses of the parts in this process to the run directory, and keeps the
// entries of other processes.
func (s *server) announce() error {
	own, all := s.services, *s.services
	there, err := runfiles.ReadServices(s.cfg.Store.Dir)
	if err == nil && there.Run == s.run {
		all = *there
		if s.cfg.has(RoleBus) {
			all.Host, all.PID, all.Started = own.Host, own.PID, own.Started
		}
		if s.cfg.has(RoleBus) || s.cfg.Bus.URL != "" {
			all.Bus, all.Token, all.Analyzer, all.CA = own.Bus, own.Token, own.Analyzer, own.CA
		}
		if s.cfg.has(RoleWeb) {
			all.Web, all.Secret = own.Web, own.Secret
		}
		if s.cfg.has(RoleParams) {
			all.Shards = own.Shards
		}
		if all.Started.Equal(there.Started) {
			all.Started = there.Started
		}
		if all == *there {
			return nil
		}
	}
	return runfiles.WriteServices(s.cfg.Store.Dir, &all)
}

// keepAnnounced repeats announce, because processes that start at the same time overwrite
// each other.
func (s *server) keepAnnounced(ctx context.Context) {
	for wait.Sleep(ctx, node.WatchEvery) == nil {
		if err := s.announce(); err != nil {
			s.log.Warn("cannot announce the services in the run directory", "error", err)
		}
	}
}

// shards returns the number of shards of the parameter server.
func (s *server) shards() int {
	if !s.cfg.has(RoleParams) {
		if there, err := runfiles.ReadServices(s.cfg.Store.Dir); err == nil {
			return there.Shards
		}
	}
	return s.services.Shards
}

// findElsewhere opens the store of the run outside this process: a server, the process that owns
// the file, or the file itself if the run has ended. Opening the file earlier would lock out its
// owner.
func (s *server) findElsewhere(ctx context.Context) (rundir.Reader, error) {
	if s.cfg.Store.Store != "" {
		return rundir.Place{Server: s.cfg.Store.Store}.Open(ctx)
	}
	c, err := remotestore.Open(ctx, rundir.Owner(s.cfg.Store.Dir))
	if err == nil {
		return c, nil
	}
	if !s.hasFinished() {
		return nil, err
	}
	place, err := rundir.FindStore(s.cfg.Store.Dir)
	if err != nil {
		return nil, err
	}
	return place.Open(ctx)
}

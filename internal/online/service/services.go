package service

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// findServices returns what the run directory tells of the services; nil if this
// process is the first. One that has no message bus of its own waits until
// another tells where it is.
func (s *server) findServices(ctx context.Context) (*rundir.Services, error) {
	for said := false; ; said = true {
		found, err := rundir.ReadServices(s.cfg.Store.Dir)
		switch {
		case err == nil:
			return found, nil
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("%w; remove it if no process of the run is left, they write it anew", err)
		case s.cfg.has(RoleBus) || s.cfg.Bus.URL != "":
			return nil, nil //nolint:nilnil // the first
		case !said:
			fmt.Fprintf(s.cfg.Stderr, "chimbuko: waiting for the process with the role nats to start in %s; a server that is there already is "+
				"given with --nats\n",
				s.cfg.Store.Dir)
		}
		if err := wait.Sleep(ctx, watchEvery/4); err != nil {
			return nil, err
		}
	}
}

// announce tells in the run directory how to reach the parts that are in this
// process, beside what others told there.
func (s *server) announce() error {
	own, all := s.services, *s.services
	there, err := rundir.ReadServices(s.cfg.Store.Dir)
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
	return rundir.WriteServices(s.cfg.Store.Dir, &all)
}

// keepAnnounced announces again what another process, which was started at the
// same time, wrote over.
func (s *server) keepAnnounced(ctx context.Context) {
	for wait.Sleep(ctx, watchEvery) == nil {
		if err := s.announce(); err != nil {
			s.log.Warn("analyzers cannot be told where the services are", "error", err)
		}
	}
}

// shards is how many processes share the parameter server.
func (s *server) shards() int {
	if !s.cfg.has(RoleParams) {
		if there, err := rundir.ReadServices(s.cfg.Store.Dir); err == nil {
			return there.Shards
		}
	}
	return s.services.Shards
}

// findElsewhere opens the store of the run that is not in this process: a server, or
// what its owner tells, or the file if the run has ended. Who opened the file before
// would keep its owner from it.
func (s *server) findElsewhere(ctx context.Context) (provdb.Reader, func() error, error) {
	if s.cfg.Store.Store != "" {
		return rundir.Place{Server: s.cfg.Store.Store}.Open(ctx)
	}
	c, err := remotestore.Open(ctx, rundir.Owner(s.cfg.Store.Dir))
	if err == nil {
		return c, c.Close, nil
	}
	if !s.hasFinished() {
		return nil, nil, err
	}
	place, err := rundir.FindStore(s.cfg.Store.Dir)
	if err != nil {
		return nil, nil, err
	}
	return place.Open(ctx)
}

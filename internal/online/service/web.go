package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/viewer"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// storeStatusSubject returns the subject on which the process with the store reports its status.
func storeStatusSubject(run string) string {
	return "chimbuko." + paramwire.Token(run) + ".store.status"
}

// serveStatus answers requests for the status of the parts of this process.
func (s *server) serveStatus() error {
	serve := func(subject string, status func(context.Context) *api.Status) error {
		service, err := s.conn.Serve(subject, "", 1, func(ctx context.Context, _ []byte) ([]byte, error) { return json.Marshal(status(ctx)) })
		if err == nil {
			s.later(func() error { service.Close(); return nil })
			s.samplers = append(s.samplers, func(ctx context.Context) { status(ctx) })
		}
		return err
	}
	if s.params != nil {
		rates := new(rateMeter)
		status := func(context.Context) *api.Status { return s.paramsStatus(rates) }
		if err := serve(paramwire.Subject(s.run, s.cfg.Shard, "status"), status); err != nil {
			return err
		}
	}
	if s.storer != nil {
		rates := new(rateMeter)
		return serve(storeStatusSubject(s.run), func(ctx context.Context) *api.Status { return s.storeStatus(ctx, rates) })
	}
	return nil
}

// serveWeb starts HTTP, if this process has the role, and returns its address.
func (s *server) serveWeb(ctx context.Context, g *errgroup.Group) (address string, err error) {
	if err := s.serveStatus(); err != nil || !s.cfg.has(RoleWeb) { //nolint:contextcheck // services end with close
		return "", err
	}
	own := rundir.Place{Server: s.cfg.Store.Store, File: filepath.Join(s.cfg.Store.Dir, duckstore.FileName), Run: s.run}
	with, err := s.cfg.Page.References(ctx, viewer.Subject{Name: s.run, Version: s.cfg.Version, Place: own, Reader: s.Reader()})
	if err != nil {
		return "", err
	}
	s.later(with.Close)
	cfg := dashboard.Config{
		Config: insight.Config{Source: s, Run: s.run}, Version: s.cfg.Version, Token: s.services.Secret,
		References: with.List, Neighbors: with.Neighbors, Log: s.log,
	}
	page, err := s.cfg.Page.ServeConfig(ctx, cfg, s.cfg.Store.Dir, s.webBefore)
	if err != nil {
		return "", err
	}
	g.Go(page.Wait)
	return page.Address, nil
}

// printAddress prints the addresses of the run and how to join it.
func (s *server) printAddress() {
	if s.cfg.Shard > 0 {
		return
	}
	w := s.cfg.Stderr
	fmt.Fprintf(w, "chimbuko: run %q in %s; NATS at %s\n", s.run, s.cfg.Store.Dir, redact.URLs(s.services.Bus))
	if s.services.Web != "" {
		address, complete := s.printable(viewer.WithToken(s.services.Web, s.services.Secret))
		if !complete {
			address += " (chimbuko view " + s.cfg.Store.Dir + " prints it with its token)"
		}
		fmt.Fprintf(w, "chimbuko: the page of the run is at %s\n", address)
		if line := viewer.Tunnel(s.cfg.Environ, s.services.Host, s.services.Web); line != "" {
			fmt.Fprintf(w, "chimbuko: to open it from your own machine, run: %s\n", line)
		}
	}
	fmt.Fprintf(w, "chimbuko: analyzers join with: chimbuko ad --run-dir %s TRACE...\n", s.cfg.Store.Dir)
}

// Reader returns the store, of this process or another.
func (s *server) Reader() provdb.Reader {
	if s.keeper == nil {
		return &s.elsewhere
	}
	return s.keeper.Store
}

// Status collects the status of all parts.
func (s *server) Status(ctx context.Context) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, viewer.StatusTimeout)
	defer cancel()
	subjects := []string{storeStatusSubject(s.run)}
	for i := range s.shards() {
		subjects = append(subjects, paramwire.Subject(s.run, i, "status"))
	}
	parts := make([]*api.Status, len(subjects))
	errs := make([]error, len(subjects))
	var wg sync.WaitGroup
	for i, subject := range subjects {
		wg.Go(func() {
			b, err := s.conn.Request(ctx, subject, nil)
			if err == nil {
				parts[i] = new(api.Status)
				err = json.Unmarshal(b, parts[i])
			}
			errs[i] = err
		})
	}
	wg.Wait()
	all := &api.Status{Run: api.RunStatus{
		Name: s.run, State: api.Waiting, Started: s.info.Started, Now: time.Now().UTC(), Version: s.cfg.Version,
	}}
	for i, part := range parts {
		name := "store"
		if i > 0 {
			name = fmt.Sprintf("parameter server, shard %d", i-1)
		}
		if errs[i] != nil {
			all.Health = append(all.Health, api.Health{
				Part: name, Severity: api.SeverityError, Sentence: "not responding (" + awayText(errs[i]) + "); start it with chimbuko serve",
			})
			continue
		}
		merge(all, part)
	}
	if len(all.Shards) == s.shards() {
		warm := int64(0)
		for i := range all.Shards {
			warm += all.Shards[i].Warm
		}
		all.Totals.FunctionsWarm = &warm
	}
	if all.Store != nil {
		all.Totals.RecordsStored = all.Store.Records
	}
	if all.Shards == nil && s.hasFinished() {
		all.Run.State, all.Health = api.Finished, nil
	}
	return all, nil
}

// hasFinished reports whether the run has ended according to the run directory.
func (s *server) hasFinished() bool { return runfiles.HasFinished(s.cfg.Store.Dir) }

// awayText returns a short reason why a part does not respond.
func awayText(err error) string {
	switch {
	case errors.Is(err, bus.ErrNoService):
		return "no process has this role"
	case errors.Is(err, bus.ErrNotConnected):
		return "the message bus is unavailable"
	}
	return err.Error()
}

// merge adds the status of a part.
func merge(all, part *api.Status) {
	if part.Run.State != "" {
		all.Run.State, all.Totals = part.Run.State, part.Totals
		all.Nodes, all.Ranks, all.Sender = part.Nodes, part.Ranks, part.Sender
	}
	if part.Store != nil {
		all.Store = part.Store
	}
	all.Shards = append(all.Shards, part.Shards...)
	all.Health = append(all.Health, part.Health...)
}

// leavePage prints how to view the finished run, or serves its page until ctx ends.
func (s *server) leavePage(ctx context.Context) (err error) {
	if !s.cfg.KeepPage {
		fmt.Fprintf(s.cfg.Stderr, "chimbuko: the page has ended with the run; chimbuko view %s shows it again\n", s.cfg.Store.Dir)
		return nil
	}
	place := rundir.Place{Server: s.cfg.Store.Store, Run: s.run}
	if s.cfg.Store.Store == "" {
		if place, err = rundir.FindStore(s.cfg.Store.Dir); err != nil {
			return err
		}
	}
	v, err := viewer.OpenPlace(ctx, place, s.cfg.Store.Dir, "", s.cfg.Version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	with, err := s.cfg.Page.References(ctx, viewer.Subject{Name: v.Name, Version: s.cfg.Version, Place: place, Reader: v.Reader()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.Close()) }()
	page, err := s.cfg.Page.Serve(ctx, v, with, s.log)
	if err != nil {
		return err
	}
	address, _ := s.printable(page.URL())
	fmt.Fprintf(s.cfg.Stderr, "chimbuko: the page of the run remains at %s until Ctrl-C\n", address)
	return page.Wait()
}

// printable returns an address for Stderr: without the token unless only its owner can
// read it.
func (s *server) printable(visit string) (address string, complete bool) {
	if s.cfg.ShowToken {
		return visit, true
	}
	bare, _, _ := strings.Cut(visit, "?")
	return bare, false
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/show/api"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// storeStatusSubject is where the process with the store tells how it fares.
func storeStatusSubject(run string) string {
	return "chimbuko." + paramserver.Token(run) + ".store.status"
}

// serveStatus has the parts of this process tell how they fare, wherever HTTP is.
func (s *serveRun) serveStatus() error {
	tell := func(subject string, status func(context.Context) *api.Status) error {
		service, err := s.conn.Serve(subject, "", 1, func(ctx context.Context, _ []byte) ([]byte, error) { return json.Marshal(status(ctx)) })
		if err == nil {
			s.later(func() error { service.Close(); return nil })
			s.samplers = append(s.samplers, func(ctx context.Context) { status(ctx) })
		}
		return err
	}
	if s.params != nil {
		rates := new(rateMeter)
		if err := tell(paramserver.Subject(s.run, s.flags.shard, "status"), func(context.Context) *api.Status { return s.paramsStatus(rates) }); err != nil {
			return err
		}
	}
	if s.storer != nil {
		rates := new(rateMeter)
		return tell(storeStatusSubject(s.run), func(ctx context.Context) *api.Status { return s.storeStatus(ctx, rates) })
	}
	return nil
}

// serveWeb starts HTTP, if this process has it, and returns its address.
func (s *serveRun) serveWeb(ctx context.Context, g *errgroup.Group) (address string, err error) {
	if err := s.serveStatus(); err != nil || !s.flags.has(roleWeb) { //nolint:contextcheck // services end with close
		return "", err
	}
	cfg := dashboard.Config{
		Source: s, Run: s.run, Version: s.env.Version, Token: s.services.Secret, MetricsOpen: s.flags.webOpen, AllowedHosts: s.flags.webHosts, Log: s.log,
	}
	if err := s.flags.configure(&cfg, s.flags.out); err != nil {
		return "", err
	}
	own := rundir.Place{Server: s.flags.store, File: filepath.Join(s.flags.out, duckstore.FileName), Run: s.run}
	with, err := s.flags.references(ctx, compared{s.run, s.env.Version, own, s.Reader()})
	if err != nil {
		return "", err
	}
	s.later(with.close)
	cfg.References = with.list
	listener, err := listenAgain(ctx, s.flags.web, s.webBefore)
	if err != nil {
		return "", err
	}
	address = webAddress(listener.Addr(), s.services.Host, s.flags.tlsCert != "")
	cfg.AllowedHosts = append(slices.Clone(cfg.AllowedHosts), hostOf(address))
	g.Go(func() error {
		return serveHTTP(ctx, listener, dashboard.New(cfg), s.flags.tlsCert, s.flags.tlsKey, s.log)
	})
	return address, nil
}

// greet tells a person what runs and what to do next.
func (s *serveRun) greet() {
	if s.flags.shard > 0 {
		return
	}
	w := s.env.Stderr
	fmt.Fprintf(w, "chimbuko: run %q in %s; NATS at %s\n", s.run, s.flags.out, redact.URLs(s.services.Bus))
	if s.services.Web != "" {
		address, whole := shownTo(w, visitOf(s.services.Web, s.services.Secret))
		if !whole {
			address += "; chimbuko view " + s.flags.out + " prints it with its token"
		}
		fmt.Fprintf(w, "chimbuko: the page of the run is at %s\n", address)
		if line := tunnelTo(s.env, s.services.Host, s.services.Web); line != "" {
			fmt.Fprintf(w, "chimbuko: from your own machine it is there after: %s\n", line)
		}
	}
	fmt.Fprintf(w, "chimbuko: analyzers join with: chimbuko ad --run-dir %s TRACE...\n", s.flags.out)
}

// Reader is the store, in this process or another.
func (s *serveRun) Reader() provdb.Reader {
	if s.keeper == nil {
		return &s.elsewhere
	}
	return s.keeper.Store
}

// statusTimeout is how long a part may take to tell how it fares.
const statusTimeout = 900 * time.Millisecond

// Status gathers how all parts fare.
func (s *serveRun) Status(ctx context.Context) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	subjects := []string{storeStatusSubject(s.run)}
	for i := range s.shards() {
		subjects = append(subjects, paramserver.Subject(s.run, i, "status"))
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
	all := &api.Status{Run: api.RunStatus{Name: s.run, State: api.Waiting, Started: s.sum.Started, Now: time.Now().UTC(), Version: s.env.Version}}
	for i, part := range parts {
		name := "store"
		if i > 0 {
			name = fmt.Sprintf("parameter server, shard %d", i-1)
		}
		if errs[i] != nil {
			all.Health = append(all.Health, api.Health{
				Part: name, Severity: api.SeverityError, Sentence: "it does not answer (" + awayText(errs[i]) + "); start it with chimbuko serve",
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

// hasFinished reports whether the run directory says that the run has ended.
func (s *serveRun) hasFinished() bool { return rundir.HasFinished(s.flags.out) }

// awayText says in short why a part does not answer.
func awayText(err error) string {
	switch {
	case errors.Is(err, bus.ErrNoService):
		return "nobody has this role"
	case errors.Is(err, bus.ErrAway):
		return "the message bus is away"
	}
	return err.Error()
}

// merge adds what a part told.
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

// leavePage says how to see the run again, whose page ended with it, or shows it
// until ctx ends.
func (s *serveRun) leavePage(ctx context.Context) (err error) {
	if !s.flags.stay {
		fmt.Fprintf(s.env.Stderr, "chimbuko: its page has ended with the run; chimbuko view %s shows it again\n", s.flags.out)
		return nil
	}
	v := &viewRun{dir: s.flags.out, version: s.env.Version, place: rundir.Place{Server: s.flags.store, Run: s.run}}
	if s.flags.store == "" {
		if v.place, err = rundir.FindStore(s.flags.out); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := v.find(ctx); err != nil {
		return err
	}
	with, err := s.flags.references(ctx, compared{v.name, v.version, v.place, v.Reader()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.close()) }()
	page := &viewPage{
		pageFlags: s.flags.pageFlags, listen: s.flags.web, hosts: s.flags.webHosts, metricsOpen: s.flags.webOpen, cert: s.flags.tlsCert, key: s.flags.tlsKey, log: s.log,
		references: with.list,
	}
	if err := page.start(ctx, v); err != nil {
		return err
	}
	address, _ := shownTo(s.env.Stderr, page.visit())
	fmt.Fprintf(s.env.Stderr, "chimbuko: the page of the run stays at %s until Ctrl-C\n", address)
	return page.wait()
}

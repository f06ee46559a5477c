package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/show/sender"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// removing is how long a server of NATS may take to delete the stream of a run.
const removing = 5 * time.Second

// serveRun is a process with services at work.
type serveRun struct {
	flags  *serveFlags
	env    *Env
	log    *slog.Logger
	run    string
	store  *rundir.Config
	sum    *provdb.Info
	keeper *rundir.Keeper // nil without the role store

	services *rundir.Services
	bus      *bus.Server
	conn     *bus.Conn
	stream   *bus.Stream
	state    *paramserver.State
	params   *paramserver.Server
	sender   *sender.Sender
	consumer *bus.Consumer
	storer   *recordstream.Storer
	closers  []func() error          // in the order of making
	samplers []func(context.Context) // that keep rates up to date
	final    *provdb.Info            // of a run that has ended

	webBefore string // URL of HTTP when the run was served before

	elsewhere rundir.LazyReader // the store, if it is not in this process

	program atomic.Pointer[provdb.Program] // that the run is of; nil: it is not known
}

func runServe(ctx context.Context, env *Env, flags *serveFlags, settings map[string]string) (err error) {
	store, err := flags.keeperFlags.config()
	if err != nil {
		return err
	}
	s := &serveRun{flags: flags, env: env, log: newLog(env.Stderr), run: flags.runName(), store: store}
	s.sum = provdb.NewInfo(env.Version, env.Commit, settings)
	s.sum.Online, s.sum.Name, s.sum.Store = true, s.run, redact.URLs(flags.store)
	s.elsewhere.Find = s.findElsewhere
	s.later(s.elsewhere.Close)
	defer func() { err = errors.Join(err, s.close()) }()
	if ended, err := s.closeEnded(ctx); ended || err != nil {
		return err
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	s.listen()
	err = s.work(ctx)
	if ctx.Err() != nil {
		s.leave(fmt.Sprintf("the services ended before the run had: %v", context.Cause(ctx))) //nolint:contextcheck // ctx has ended
		fmt.Fprintf(env.Stderr, "chimbuko: the run is incomplete; the same command goes on with it, chimbuko finish %s ends it\n", flags.out)
		return errReported
	}
	if err != nil {
		s.leave(fmt.Sprintf("the services failed: %v", err)) //nolint:contextcheck // ctx may have ended
	}
	if err == nil {
		err = s.close()
	}
	if err == nil {
		err = s.tellEnd()
	}
	if err == nil && s.services.Web != "" && flags.shard == 0 {
		err = s.leavePage(ctx)
	}
	return err
}

// close ends what was opened, the last first.
func (s *serveRun) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *serveRun) later(f func() error) { s.closers = append(s.closers, f) }

// open starts all parts, sinks before sources.
func (s *serveRun) open(ctx context.Context) error {
	if err := os.MkdirAll(s.flags.out, 0o755); err != nil {
		return err
	}
	if s.flags.has(roleStore) {
		k, err := rundir.NewOrResume(ctx, s.store, s.sum)
		if err != nil {
			return err
		}
		s.keeper = k
		s.later(k.Close)
	}
	if err := s.openBus(ctx); err != nil {
		return err
	}
	if s.flags.has(roleStore) {
		if err := s.openStream(ctx); err != nil {
			return err
		}
		var err error
		if s.consumer, err = s.stream.Consumer(ctx, "store"); err != nil {
			return err
		}
		s.later(func() error { s.consumer.Close(); return nil }) //nolint:contextcheck // Close bounds itself
		s.storer = recordstream.NewStorer(s.consumer, s.keeper.Store, s.keeper.Run.ID, s.flags.delay, knownSubject(s.run), s.storeEnd, s.log)
	}
	if s.flags.has(roleParams) {
		if err := s.openParams(); err != nil { //nolint:contextcheck // what it starts ends with close
			return err
		}
	}
	return nil
}

// openBus starts the message bus, or finds it, and connects to it.
func (s *serveRun) openBus(ctx context.Context) error {
	before, err := s.findServices(ctx)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // only shown
	s.services = &rundir.Services{
		Run: s.run, Bus: s.flags.url, Shards: s.flags.shards, Host: host, PID: os.Getpid(), Started: time.Now().UTC(), Secret: rand.Text(), Token: rand.Text(), Analyzer: rand.Text(),
	}
	if before != nil { // tokens and addresses stay the same when a service is started again
		s.services.Secret, s.services.Token = before.Secret, before.Token
		s.services.Analyzer = cmp.Or(before.Analyzer, s.services.Analyzer)
		s.webBefore = before.Web
	}
	if ca := cmp.Or(s.flags.ca, s.flags.page.Cert); ca != "" { // a certificate vouches for itself
		if s.services.CA, err = filepath.Abs(ca); err != nil {
			return err
		}
	}
	switch {
	case s.flags.has(roleBus):
		if err := s.startBus(ctx, before); err != nil {
			return err
		}
	case s.flags.url == "":
		s.services.Bus, s.services.CA, s.services.Analyzer = before.Bus, before.CA, before.Analyzer
	default:
		s.services.Token, s.services.Analyzer = "", "" // who uses the server has a token for it
	}
	opt, err := s.flags.options(s.services, "chimbuko serve of "+s.run, s.log)
	if err != nil {
		return err
	}
	if s.conn, err = bus.Connect(opt); err != nil {
		return err
	}
	s.later(func() error { s.conn.Close(); return nil }) //nolint:contextcheck // Close bounds itself
	return s.conn.Wait(ctx)
}

// startBus starts a message bus in this process, where it was before if it can.
func (s *serveRun) startBus(ctx context.Context, before *rundir.Services) error {
	opt := bus.ServerOptions{
		Dir: rundir.Bus(s.flags.out), Listen: s.flags.listen, Token: s.services.Token,
		Access: []bus.Access{analyzerAccess(s.run, s.services.Analyzer)},
		Cert:   s.flags.page.Cert, Key: s.flags.page.Key, CA: s.flags.tlsCA, Log: s.log,
	}
	listen, port, _ := net.SplitHostPort(s.flags.listen) // checked before
	again := opt
	if before != nil && port == "0" {
		if _, old, err := net.SplitHostPort(viewer.HostPort(before.Bus)); err == nil {
			again.Listen = net.JoinHostPort(listen, old)
		}
	}
	server, err := bus.StartServer(ctx, again)
	if err != nil && again.Listen != opt.Listen {
		server, err = bus.StartServer(ctx, opt)
	}
	if err != nil {
		return err
	}
	s.bus = server
	s.later(server.Close)
	s.services.Bus = server.URL()
	if ip := net.ParseIP(listen); listen == "" || ip != nil && ip.IsUnspecified() { // others come over the network
		scheme := "nats"
		if opt.Cert != "" {
			scheme = "tls"
		}
		s.services.Bus = fmt.Sprintf("%s://%s", scheme, net.JoinHostPort(s.services.Host, fmt.Sprint(server.Port())))
	}
	return nil
}

// openStream makes the stream of records, or finds it.
func (s *serveRun) openStream(ctx context.Context) (err error) {
	if s.stream == nil {
		s.stream, err = s.recordStream(ctx)
	}
	return err
}

// recordStream makes the stream of records, or finds it. The process with the store
// says how large it may be and how many servers keep it.
func (s *serveRun) recordStream(ctx context.Context) (*bus.Stream, error) {
	opt := bus.StreamOptions{Name: streamName(s.run), Subjects: []string{recordSubject(s.run), knownSubject(s.run)}}
	if s.flags.has(roleStore) {
		opt.MaxBytes, opt.Replicas = s.flags.maxStream<<20, s.flags.replicas
	}
	return s.conn.Stream(ctx, opt)
}

// removeStream deletes the stream of a run that has ended from a server that is
// there for other runs, too.
func (s *serveRun) removeStream(ctx context.Context) {
	if s.flags.url == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removing)
	defer cancel()
	if err := s.conn.DeleteStream(ctx, streamName(s.run)); err != nil {
		s.log.Warn("the stream of the run, which holds nothing any more, is left on the server of NATS", "stream", streamName(s.run), "reason", err)
	}
}

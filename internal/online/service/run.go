package service

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
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// garbagePercent is the value of GOGC in processes of services: they share a node with the program
// and can spend processor time to save memory.
const garbagePercent = 40

// removeTimeout bounds the deletion of the stream of a run.
const removeTimeout = 5 * time.Second

// server is a process that runs services.
type server struct {
	cfg    *Config
	log    *slog.Logger
	run    string // its name
	info   *provdb.Info
	keeper *rundir.Keeper // nil without the role store

	services *runfiles.Services
	bus      *bus.Server
	conn     *bus.Conn
	streamMu sync.Mutex  // of openStream
	stream   *bus.Stream // after openStream
	state    *paramserver.State
	params   *paramserver.Server
	sender   *legacy.Sender
	consumer *bus.Consumer
	storer   *recordstream.Storer
	closers  []func() error          // the last is called first
	samplers []func(context.Context) // that keep rates up to date
	final    *provdb.Info            // of a finished run

	webBefore string // URL of HTTP before a restart

	elsewhere rundir.LazyReader // the store of another process

	program atomic.Pointer[provdb.Program] // that is analyzed; nil if unknown
}

// Serve runs services until the run has ended. When ctx ends before, it marks the run as
// incomplete and returns node.ErrInterrupted. It returns node.ErrRemoved if the run directory disappears.
func Serve(ctx context.Context, cfg *Config) (err error) {
	cfg.Store.Log = cfg.Log
	s := &server{cfg: cfg, log: cfg.Log, run: cfg.Store.RunName()}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	s.info = provdb.NewInfo(cfg.Version, cfg.Commit, cfg.Settings)
	s.info.Online, s.info.Name, s.info.Store = true, s.run, redact.URLs(cfg.Store.Store)
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
	if _, gone := os.Stat(cfg.Store.Dir); err != nil && errors.Is(gone, os.ErrNotExist) { // regardless of the first error
		err = fmt.Errorf("%s: %w", cfg.Store.Dir, node.ErrRemoved)
	}
	switch {
	case errors.Is(err, node.ErrRemoved):
		_ = s.close() // it fails without the directory
		return err
	case ctx.Err() != nil && !s.hasFinished():
		s.leave(fmt.Sprintf("the services ended before the run: %v", context.Cause(ctx))) //nolint:contextcheck // ctx has ended
		return node.ErrInterrupted
	case ctx.Err() != nil: // only the end of the process was interrupted
		err = nil
	case err != nil:
		s.leave(fmt.Sprintf("the services failed: %v", err)) //nolint:contextcheck // ctx may have ended
	}
	if err == nil {
		err = s.close()
	}
	if err == nil {
		err = s.printEnd()
	}
	if err == nil && s.services.Web != "" && cfg.Shard == 0 && ctx.Err() == nil {
		err = s.leavePage(ctx)
	}
	return err
}

// close calls the closers.
func (s *server) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *server) later(f func() error) { s.closers = append(s.closers, f) }

// open starts all parts, sinks before sources.
func (s *server) open(ctx context.Context) error {
	if err := os.MkdirAll(s.cfg.Store.Dir, 0o755); err != nil {
		return err
	}
	if s.cfg.has(RoleStore) {
		k, err := rundir.NewOrResume(ctx, &s.cfg.Store, s.info)
		if err != nil {
			return err
		}
		s.keeper = k
		s.later(k.Close)
	}
	if err := s.openBus(ctx); err != nil {
		return err
	}
	if s.cfg.has(RoleStore) {
		if err := s.retry(ctx, "the stream of records", s.openStream); err != nil {
			return err
		}
		err := s.retry(ctx, "the stream of records", func(ctx context.Context) (err error) {
			s.consumer, err = s.stream.Consumer(ctx)
			return err
		})
		if err != nil {
			return err
		}
		s.later(func() error { s.consumer.Close(); return nil }) //nolint:contextcheck // Close bounds itself
		s.storer = recordstream.NewStorer(records{s.consumer, s}, s.keeper.Store, s.keeper.Run.ID, s.cfg.Store.Delay,
			recordstream.RunSubject(s.run), s.storeEnd, s.log)
		if err := s.serveHurry(); err != nil { //nolint:contextcheck // it ends with close
			return err
		}
	}
	if s.cfg.has(RoleParams) {
		if err := s.openParams(); err != nil { //nolint:contextcheck // what it starts ends with close
			return err
		}
	}
	return nil
}

// openBus starts the message bus, or finds it, and connects to it.
func (s *server) openBus(ctx context.Context) error {
	before, err := s.findServices(ctx)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // only shown
	s.services = &runfiles.Services{
		Run: s.run, Bus: s.cfg.Bus.URL, Shards: s.cfg.Shards, Host: host, PID: os.Getpid(),
		Started: time.Now().UTC(), Secret: rand.Text(), Token: rand.Text(), Analyzer: rand.Text(),
	}
	if before != nil { // restarted services keep tokens and addresses
		s.services.Secret, s.services.Token = before.Secret, before.Token
		s.services.Analyzer = cmp.Or(before.Analyzer, s.services.Analyzer)
		s.webBefore = before.Web
	}
	if ca := cmp.Or(s.cfg.Bus.CA, s.cfg.Page.Cert); ca != "" { // a certificate is its own authority
		if s.services.CA, err = filepath.Abs(ca); err != nil {
			return err
		}
	}
	switch {
	case s.cfg.has(RoleBus):
		if err := s.startBus(ctx, before); err != nil {
			return err
		}
	case s.cfg.Bus.URL == "":
		s.services.Bus, s.services.CA, s.services.Analyzer = before.Bus, before.CA, before.Analyzer
	default:
		s.services.Token, s.services.Analyzer = "", "" // users of this server have their own
	}
	opt, err := s.cfg.Bus.Client(s.services, fmt.Sprintf("chimbuko serve %s of %s", strings.Join(s.cfg.Roles, ","), s.run), s.log)
	if err != nil {
		return err
	}
	if s.conn, err = bus.Connect(opt); err != nil {
		return err
	}
	s.later(func() error { s.conn.Close(); return nil }) //nolint:contextcheck // Close bounds itself
	return s.conn.Wait(ctx)
}

// startBus starts a message bus in this process, at the previous port if possible.
func (s *server) startBus(ctx context.Context, before *runfiles.Services) error {
	opt := bus.ServerOptions{
		Dir: runfiles.Bus(s.cfg.Store.Dir), Listen: s.cfg.Listen, Token: s.services.Token,
		Access: []bus.Access{recordstream.AnalyzerAccess(s.run, s.services.Analyzer)},
		Cert:   s.cfg.Page.Cert, Key: s.cfg.Page.Key, CA: s.cfg.ClientCA, Log: s.log,
	}
	listen, port, _ := net.SplitHostPort(s.cfg.Listen) // checked before
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
	if ip := net.ParseIP(listen); listen == "" || ip != nil && ip.IsUnspecified() { // for other machines
		s.services.Bus = server.URLOf(s.services.Host)
	}
	return nil
}

// openStream creates the stream of records or attaches to it. The process with the store
// sets its size and its number of replicas.
func (s *server) openStream(ctx context.Context) (err error) {
	s.streamMu.Lock()
	defer s.streamMu.Unlock()
	if s.stream != nil {
		return nil
	}
	subjects := []string{recordstream.RecordSubject(s.run), recordstream.RunSubject(s.run)}
	opt := bus.StreamOptions{Name: recordstream.Name(s.run), Subjects: subjects}
	if s.cfg.has(RoleStore) {
		opt.MaxBytes, opt.Replicas = s.cfg.MaxStream<<20, s.cfg.Replicas
	}
	s.stream, err = s.conn.Stream(ctx, opt)
	return err
}

// removeStream deletes the stream of a finished run from an external server.
func (s *server) removeStream(ctx context.Context) {
	if s.cfg.Bus.URL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if err := s.conn.DeleteStream(ctx, recordstream.Name(s.run)); err != nil {
		s.log.Warn("cannot remove the empty stream of the run from the NATS server", "stream", recordstream.Name(s.run), "error", err)
	}
}

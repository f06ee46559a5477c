package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/bus"
	"github.com/chimbuko/chimbuko/internal/outlier"
	"github.com/chimbuko/chimbuko/internal/paramserver"
	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/recordstream"
	"github.com/chimbuko/chimbuko/internal/rundir"
	"github.com/chimbuko/chimbuko/internal/sender"
)

// serveRun is a process with services at work.
type serveRun struct {
	flags  *serveFlags
	env    *Env
	log    *slog.Logger
	run    string
	sum    *runSummary
	keeper *keeper // nil without the role store

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
	final    *runSummary             // of a run that has ended
}

func runServe(ctx context.Context, env *Env, flags *serveFlags, settings map[string]string) (err error) {
	s := &serveRun{flags: flags, env: env, log: newLog(env.Stderr), run: flags.runName()}
	s.sum = &runSummary{
		State: provdb.Running, Version: env.Version, Commit: env.Commit, Started: time.Now().UTC(), Settings: settings, Online: true, Name: s.run,
		Store: withoutPassword(flags.store),
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if flags.shard > 0 {
		var cancel context.CancelFunc
		ctx, cancel = untilOrphaned(ctx, env.Stdin)
		defer cancel()
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	err = s.work(ctx)
	if ctx.Err() != nil {
		fmt.Fprintf(env.Stderr, "chimbuko: the run is not finished; the same command goes on with it\n")
		return errReported
	}
	if err == nil {
		err = s.close()
	}
	if err == nil {
		err = s.tellEnd()
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
		k, err := keepOnline(ctx, &s.flags.keeperFlags, s.sum)
		if err != nil {
			return err
		}
		s.keeper = k
		s.later(k.close)
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
		s.storer = recordstream.NewStorer(s.consumer, s.keeper.store, s.keeper.run.ID, s.flags.delay, s.storeEnd, s.log)
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
		Run: s.run, Bus: s.flags.url, Shards: s.flags.shards, Host: host, PID: os.Getpid(), Started: time.Now().UTC(), Secret: rand.Text(), Token: rand.Text(),
	}
	if before != nil { // tokens and addresses stay the same when a service is started again
		s.services.Secret, s.services.Token = before.Secret, before.Token
	}
	if s.flags.ca != "" {
		if s.services.CA, err = filepath.Abs(s.flags.ca); err != nil {
			return err
		}
	}
	switch {
	case s.flags.has(roleBus):
		if err := s.startBus(ctx, before); err != nil {
			return err
		}
	case s.flags.url == "":
		s.services.Bus, s.services.CA = before.Bus, before.CA
	default:
		s.services.Token = "" // who uses the server has a token for it
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
		Dir: filepath.Join(s.flags.out, "nats"), Listen: s.flags.listen, Token: s.services.Token,
		Cert: s.flags.tlsCert, Key: s.flags.tlsKey, CA: s.flags.tlsCA, Log: s.log,
	}
	listen, port, _ := net.SplitHostPort(s.flags.listen) // checked before
	again := opt
	if before != nil && port == "0" {
		if _, old, err := net.SplitHostPort(hostPort(before.Bus)); err == nil {
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
		s.stream, err = recordStream(ctx, s.conn, s.run, s.flags.maxStream<<20, s.flags.replicas)
	}
	return err
}

// openParams starts the parameter server.
func (s *serveRun) openParams() error {
	dir := filepath.Join(s.flags.out, "parameters")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cfg := paramserver.Config{
		Run: s.run, Shard: s.flags.shard, Shards: s.flags.shards, Frozen: s.flags.frozen, Ranks: s.flags.ranks,
		Linger: s.flags.linger, Refresh: 100 * time.Millisecond,
	}
	if s.flags.loadFrom != "" {
		models, err := rundir.LoadModels(s.flags.loadFrom, outlier.NewRules(outlier.Default()))
		if err != nil {
			return err
		}
		for _, f := range models.Functions() {
			cfg.Learned = append(cfg.Learned, paramserver.Learned{Program: f.Program, Name: f.Name, Model: f.Learned().Clone()})
		}
	}
	var index *paramserver.Index
	if s.flags.shard == 0 {
		var err error
		if index, err = paramserver.OpenIndex(filepath.Join(dir, "functions")); err != nil {
			return err
		}
		s.later(index.Close)
	}
	var err error
	if s.state, err = paramserver.NewState(cfg, index, uint64(time.Now().UnixNano())); err != nil {
		return err
	}
	if err := s.state.Load(paramserver.StatePath(dir, s.flags.shard)); err != nil {
		return err
	}
	if s.flags.shard == 0 {
		if err := s.openSender(); err != nil {
			return err
		}
	}
	s.params, err = paramserver.NewServer(s.conn, s.state, paramserver.ServerConfig{Dir: dir, Snapshot: s.flags.snapshot, Workers: 4, Log: s.log})
	if err != nil {
		return err
	}
	s.later(s.params.Close)
	return nil
}

// openSender prepares what delivers statistics.
func (s *serveRun) openSender() (err error) {
	if s.flags.statsURL == "" && s.flags.statsDir == "" {
		return nil
	}
	if s.flags.statsDir != "" {
		if err := os.MkdirAll(s.flags.statsDir, 0o755); err != nil {
			return err
		}
	}
	s.sender, err = sender.New(sender.Options{
		URL: s.flags.statsURL, Dir: s.flags.statsDir, Spill: filepath.Join(s.flags.out, "stats-waiting"), Log: s.log, First: firstPacket(s.flags.statsDir),
	})
	if err == nil {
		s.later(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = s.sender.Close(ctx) // what is left is kept and told at the end
			return nil
		})
	}
	return err
}

// firstPacket is the number after those of the packets that are in a directory.
func firstPacket(dir string) (n int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		var i int
		if _, err := fmt.Sscanf(e.Name(), "pserver_output_stats_%d.json", &i); err == nil {
			n = max(n, i+1)
		}
	}
	return n
}

// work runs all parts until the run has ended.
func (s *serveRun) work(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	ended, end := context.WithCancel(ctx) // with the last part that has an end
	defer end()
	web, err := s.serveWeb(ended, g)
	if err != nil {
		return err
	}
	s.services.Web = web
	if s.flags.shard == 0 {
		if err := s.announce(); err != nil {
			return err
		}
		g.Go(func() error { s.keepAnnounced(ended); return nil })
	}
	g.Go(func() error { s.sample(ended); return nil })
	s.greet()
	if s.params != nil && s.flags.shard == 0 && s.flags.shards > 1 {
		s.startShards(ended, g)
	}
	var parts errgroup.Group
	if s.storer != nil {
		parts.Go(func() error { return s.storer.Run(ctx) })
	}
	if s.params != nil {
		statistics, stop := context.WithCancel(ctx)
		defer stop()
		parts.Go(func() error { return s.runParams(ctx, stop) })
		if s.flags.shard == 0 {
			parts.Go(func() error { s.sendStatistics(statistics); return nil })
		}
	}
	g.Go(func() error {
		err := parts.Wait()
		if err == nil && s.storer == nil && s.params == nil {
			<-ctx.Done() // the bus and HTTP have no end of their own
		}
		end()
		return err
	})
	return g.Wait()
}

// sample looks at all parts again and again, so that rates are known to whoever
// asks for the first time.
func (s *serveRun) sample(ctx context.Context) {
	for sleep(ctx, meterInterval) == nil {
		for _, f := range s.samplers {
			f(ctx)
		}
	}
}

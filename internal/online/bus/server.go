package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	defaultListen = "127.0.0.1:0"
	serverStart   = 30 * time.Second // for a server to be ready, with many files to read
	syncEvery     = 10 * time.Second // from the page cache to the disk
	unlimited     = 1 << 50          // bytes; streams have limits of their own
)

// What a server takes of a client; who sends more is disconnected.
const (
	maxClients       = 16384
	maxSubscriptions = 1024             // of a client
	maxPending       = 64 << 20         // bytes that a client does not fetch
	maxCommand       = 4 << 10          // bytes of a line of the protocol, before the message
	greeting         = 5                // seconds for a client to say who it is, and as many for TLS
	writeDeadline    = 10 * time.Second // for a client to take what it is sent
)

// ServerOptions are those of a server in this process.
type ServerOptions struct {
	Dir    string // for the files of streams; made when missing
	Listen string // host:port; "" is 127.0.0.1:0, and port 0 is any free one
	Token  string // clients must know it; "" is accepted on loopback addresses only

	// Access is for clients who do not know Token, and may do less.
	Access []Access

	// Cert and Key are files in PEM format and switch TLS on. With CA clients need
	// certificates that it signed.
	Cert, Key, CA string

	Log *slog.Logger // gets warnings and errors of the server; nil discards them

	most fill          // of clients with limited access; for tests
	ban  time.Duration // for tests
}

// Server is a NATS server in this process that listens on TCP. What streams hold
// survives the end of the process at once, and that of the machine after ten
// seconds. Who may not come, or do something, is refused and logged; so is a message
// larger than 1 MiB, in which size this package sends the parts of its own.
type Server struct {
	nats   *server.Server // another one after each that got stuck
	conf   *server.Options
	dir    string
	fatal  <-chan error
	door   *doorkeeper
	log    *serverLog
	end    context.CancelFunc // of what watches the clients
	ended  chan struct{}
	unlock func()
	scheme string
	host   string
	port   int
	close  sync.Once
}

// StartServer starts a server and returns when clients can use it. It fails when
// the address is taken, and when another server uses the directory. The server
// runs until Close; ctx only bounds the start.
func StartServer(ctx context.Context, opt ServerOptions) (*Server, error) {
	conf, err := opt.natsOptions()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the message server: %w", err)
	}
	unlock, err := lockFile(filepath.Join(opt.Dir, "server.lock"))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("directory %s is in use by another message server: stop that one or give this one its own directory", opt.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("directory of the message server: %w", err)
	}
	fatal := make(chan error, 1)
	log := newServerLog(opt.Log, fatal)
	door, err := newDoorkeeper(opt.Token, opt.Access, log)
	if err == nil && opt.ban > 0 {
		door.banTime = opt.ban
	}
	if opt.Token != "" {
		conf.CustomClientAuthentication = door
	} else if len(opt.Access) > 0 {
		err = errors.New("limited access needs a token for those who may do all")
	}
	var s *server.Server
	if err == nil {
		s, err = start(ctx, conf, log, fatal)
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("message server on %s: %w", opt.listen(), err)
	}
	scheme := "nats"
	if conf.TLS {
		scheme = "tls"
	}
	own := &Server{nats: s, conf: conf, dir: opt.Dir, fatal: fatal, door: door, log: log, ended: make(chan struct{}), unlock: unlock, scheme: scheme, host: reachable(conf.Host), port: s.Addr().(*net.TCPAddr).Port}
	watching, end := context.WithCancel(context.Background())
	own.end = end
	go own.watch(watching, &floodWatch{nats: s, door: door, log: log, most: cmp.Or(opt.most, usualFill), looked: time.Now()}) //nolint:contextcheck // until Close
	return own, nil
}

// watch looks after the clients until ctx ends.
func (s *Server) watch(ctx context.Context, floods *floodWatch) {
	defer close(s.ended)
	tick := time.NewTicker(floodLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.log.tellLeft(s.log.lines.Rest(time.Now()))
			return
		case <-s.log.stuck:
			s.heal(ctx)
			floods.nats = s.nats
		case now := <-tick.C:
			s.log.tellLeft(s.log.lines.Left(now))
			if len(floods.door.access) == 0 {
				continue
			}
			if err := floods.look(now); err != nil {
				s.log.warn("look", "the message server cannot tell what its clients send", "error", err)
			}
		}
	}
}

func (o ServerOptions) listen() string {
	if o.Listen == "" {
		return defaultListen
	}
	return o.Listen
}

// natsOptions checks the options, reads the files of TLS, and says the same in the
// server's own terms.
func (o ServerOptions) natsOptions() (*server.Options, error) {
	if o.Dir == "" {
		return nil, errors.New("the message server needs a directory")
	}
	host, portText, err := net.SplitHostPort(o.listen())
	if err != nil {
		return nil, fmt.Errorf("listen address %q: want host:port", o.listen())
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: %q is no port", o.listen(), portText)
	}
	if o.Token == "" && !loopback(host) {
		return nil, fmt.Errorf("listen address %q can be reached from other machines: set a token", o.listen())
	}
	conf := &server.Options{
		Host: host, Port: int(port),
		MaxPayload: largestPart, MaxControlLine: maxCommand, MaxConn: maxClients, MaxSubs: maxSubscriptions, MaxPending: maxPending,
		AuthTimeout: greeting, WriteDeadline: writeDeadline,
		JetStream: true, StoreDir: o.Dir, SyncInterval: syncEvery,
		// Otherwise the limit is a share of what is free when the server starts,
		// and a stream that has filled the disk could not be opened again.
		JetStreamMaxStore: unlimited,
		NoSigs:            true,
	}
	if port == 0 {
		conf.Port = server.RANDOM_PORT
	}
	switch {
	case o.Cert != "" && o.Key != "":
		conf.TLS, conf.TLSTimeout, conf.TLSVerify = true, greeting, o.CA != ""
		conf.AuthTimeout = 2 * greeting
		conf.TLSConfig, err = server.GenTLSConfig(&server.TLSConfigOpts{CertFile: o.Cert, KeyFile: o.Key, CaFile: o.CA, Verify: o.CA != ""})
		if err != nil {
			return nil, fmt.Errorf("TLS of the message server: %w", err)
		}
		if err := current(conf.TLSConfig, time.Now()); err != nil {
			return nil, fmt.Errorf("certificate %s: %w", o.Cert, err)
		}
	case o.Cert+o.Key+o.CA != "":
		return nil, errors.New("TLS of the message server needs both a certificate and its key")
	}
	return conf, nil
}

// current says why no client would believe a certificate now.
func current(conf *tls.Config, now time.Time) error {
	for _, pair := range conf.Certificates {
		cert, err := x509.ParseCertificate(pair.Certificate[0])
		switch {
		case err != nil:
			return err
		case now.After(cert.NotAfter):
			return fmt.Errorf("it has expired on %s: get another", cert.NotAfter.Format(time.RFC1123))
		case now.Before(cert.NotBefore):
			return fmt.Errorf("it is not valid before %s: get another, or set the clock", cert.NotBefore.Format(time.RFC1123))
		}
	}
	return nil
}

// start runs a server until it is ready or says why it never will be.
func start(ctx context.Context, conf *server.Options, log *serverLog, fatal <-chan error) (*server.Server, error) {
	s, err := server.NewServer(conf)
	if err != nil {
		return nil, err
	}
	s.SetLogger(log, false, false)
	ctx, cancel := context.WithTimeout(ctx, serverStart)
	defer cancel()
	started := make(chan struct{})
	go func() {
		s.Start()
		close(started)
	}()
	for !s.ReadyForConnections(20 * time.Millisecond) {
		select {
		case err = <-fatal:
		case <-ctx.Done():
			err = fmt.Errorf("not ready: %w", ctx.Err())
		default:
			continue
		}
		break
	}
	<-started
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, err
	}
	return s, nil
}

// Port is that on which the server listens.
func (s *Server) Port() int { return s.port }

// URL is where clients on this machine find the server, without the token. When it
// listens on all addresses, others find it under the machine's name and Port.
func (s *Server) URL() string {
	return s.scheme + "://" + net.JoinHostPort(s.host, strconv.Itoa(s.Port()))
}

// Close stops the server and returns when it is down and its directory free. More
// calls do nothing. The error is always nil.
func (s *Server) Close() error {
	s.close.Do(func() {
		s.end()
		<-s.ended
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
		s.unlock()
	})
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// reachable is the host that clients on this machine use for a listener on host.
func reachable(host string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return host
}

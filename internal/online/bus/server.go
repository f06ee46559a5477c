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
	startTimeout   = 30 * time.Second // with many files to read
	syncEvery      = 10 * time.Second // from the page cache to the disk
	maxServerStore = 1 << 50          // bytes; each stream has its own limit
)

// Limits of a client; the server disconnects one that exceeds them.
const (
	maxClients       = 16384
	maxSubscriptions = 1024             // of a client
	maxPending       = 64 << 20         // bytes that wait for a slow client
	maxCommand       = 4 << 10          // bytes of a protocol line, before the message
	authSeconds      = 5                // for a client to authenticate, and again for TLS
	writeDeadline    = 10 * time.Second // for a client to receive
)

// errLocked means that another process holds a lock.
var errLocked = errors.New("locked")

// ServerOptions describe a server in this process.
type ServerOptions struct {
	Dir    string // for the files of streams; created if missing
	Listen string // host:port; "" means 127.0.0.1:0, and port 0 any free port
	Token  string // of clients; "" only on loopback addresses

	// Access lists tokens with fewer rights than Token.
	Access []Access

	// Cert and Key are PEM files and enable TLS. With CA, clients need certificates
	// that it signed.
	Cert, Key, CA string

	Log *slog.Logger // for warnings and errors of the server; nil discards

	limit rateLimit     // of clients with limited access; for tests
	ban   time.Duration // for tests
}

// Server is a NATS server in this process that listens on TCP. Stored messages of a stream survive
// the end of the process, and after ten seconds also a crash of the machine. The server rejects and
// logs unauthorized clients and messages larger than 8 MiB.
type Server struct {
	nats   *server.Server // replaced when its disk was full
	conf   *server.Options
	door   *doorkeeper
	log    *serverLog
	end    context.CancelFunc // of watch
	ended  chan struct{}
	unlock func()
	scheme string
	host   string
	port   int
	close  sync.Once
}

// StartServer starts a server and returns when it accepts clients. It fails if the
// address or the directory is in use. The server runs until Close; ctx only bounds the
// start.
func StartServer(ctx context.Context, opt ServerOptions) (*Server, error) {
	opt.Listen = cmp.Or(opt.Listen, "127.0.0.1:0")
	conf, err := opt.natsOptions()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the message server: %w", err)
	}
	unlock, err := lockFile(filepath.Join(opt.Dir, "server.lock"))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("directory %s is in use by another message server (stop it, or use another directory)", opt.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("directory of the message server: %w", err)
	}
	log := newServerLog(opt.Log)
	door, err := newDoorkeeper(opt.Token, opt.Access, log)
	if err == nil && opt.ban > 0 {
		door.banTime = opt.ban
	}
	if opt.Token != "" {
		conf.CustomClientAuthentication = door
	} else if len(opt.Access) > 0 {
		err = errors.New("limited access needs a token for full access as well")
	}
	var s *server.Server
	if err == nil {
		s, err = start(ctx, conf, log)
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("message server on %s: %w", opt.Listen, err)
	}
	scheme := "nats"
	if conf.TLS {
		scheme = "tls"
	}
	own := &Server{
		nats: s, conf: conf, door: door, log: log, ended: make(chan struct{}), unlock: unlock,
		scheme: scheme, host: localHost(conf.Host), port: s.Addr().(*net.TCPAddr).Port,
	}
	watching, end := context.WithCancel(context.Background())
	own.end = end
	floods := &floodWatch{nats: s, door: door, log: log, limit: cmp.Or(opt.limit, defaultLimit), checked: time.Now()}
	go own.watch(watching, floods) //nolint:contextcheck // until Close
	return own, nil
}

// watch heals the server and disconnects floods until ctx ends.
func (s *Server) watch(ctx context.Context, floods *floodWatch) {
	defer close(s.ended)
	tick := time.NewTicker(floodCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.log.writeRepeats(s.log.lines.Drain(time.Now()))
			return
		case <-s.log.stuck:
			s.heal(ctx)
			floods.nats = s.nats
		case now := <-tick.C:
			s.log.writeRepeats(s.log.lines.Due(now))
			if len(floods.door.access) == 0 {
				continue
			}
			if err := floods.check(now); err != nil {
				s.log.warn("check", "cannot read the traffic of message server clients", "error", err)
			}
		}
	}
}

// natsOptions validates the options, reads the TLS files, and returns the options of
// the server.
func (o ServerOptions) natsOptions() (*server.Options, error) {
	if o.Dir == "" {
		return nil, errors.New("the message server needs a directory")
	}
	host, portText, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: want host:port", o.Listen)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: invalid port %q", o.Listen, portText)
	}
	if o.Token == "" && !isLoopback(host) {
		return nil, fmt.Errorf("listen address %q can be reached from other machines: set a token", o.Listen)
	}
	conf := &server.Options{
		Host: host, Port: int(port),
		MaxPayload: maxPayload, MaxControlLine: maxCommand, MaxConn: maxClients, MaxSubs: maxSubscriptions, MaxPending: maxPending,
		AuthTimeout: authSeconds, WriteDeadline: writeDeadline,
		JetStream: true, StoreDir: o.Dir, SyncInterval: syncEvery,
		// By default the limit is a share of the free space at the start, and a stream
		// that has filled the disk could not be opened again.
		JetStreamMaxStore: maxServerStore,
		NoSigs:            true,
	}
	if port == 0 {
		conf.Port = server.RANDOM_PORT
	}
	switch {
	case o.Cert != "" && o.Key != "":
		conf.TLS, conf.TLSTimeout, conf.TLSVerify = true, authSeconds, o.CA != ""
		conf.AuthTimeout = 2 * authSeconds
		files := &server.TLSConfigOpts{CertFile: o.Cert, KeyFile: o.Key, CaFile: o.CA, Verify: o.CA != ""}
		conf.TLSConfig, err = server.GenTLSConfig(files)
		if err != nil {
			return nil, fmt.Errorf("TLS of the message server: %w", err)
		}
		if err := checkDates(conf.TLSConfig, time.Now()); err != nil {
			return nil, fmt.Errorf("certificate %s: %w", o.Cert, err)
		}
	case o.Cert+o.Key+o.CA != "":
		return nil, errors.New("TLS of the message server needs both a certificate and its key")
	}
	return conf, nil
}

// checkDates rejects certificates that are not valid now.
func checkDates(conf *tls.Config, now time.Time) error {
	for _, pair := range conf.Certificates {
		cert, err := x509.ParseCertificate(pair.Certificate[0])
		switch {
		case err != nil:
			return err
		case now.After(cert.NotAfter):
			return fmt.Errorf("expired on %s", cert.NotAfter.Format(time.RFC1123))
		case now.Before(cert.NotBefore):
			return fmt.Errorf("not valid before %s (check the clock)", cert.NotBefore.Format(time.RFC1123))
		}
	}
	return nil
}

// start runs a server and waits until it is ready or has failed.
func start(ctx context.Context, conf *server.Options, log *serverLog) (*server.Server, error) {
	s, err := server.NewServer(conf)
	if err != nil {
		return nil, err
	}
	s.SetLogger(log, false, false)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	started := make(chan struct{})
	go func() {
		s.Start()
		close(started)
	}()
	for !s.ReadyForConnections(20 * time.Millisecond) {
		select {
		case err = <-log.fatal:
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

// URL returns the address for clients on this machine, without the token. If the server
// listens on all addresses, others use URLOf with the machine's name.
func (s *Server) URL() string { return s.URLOf(s.host) }

// URLOf returns the address with another name or address of this machine.
func (s *Server) URLOf(host string) string {
	return s.scheme + "://" + net.JoinHostPort(host, strconv.Itoa(s.port))
}

// Close stops the server and unlocks its directory. Further calls do nothing. The error is always
// nil.
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

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// localHost returns the host that clients on this machine use for a listener on host.
func localHost(host string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return host
}

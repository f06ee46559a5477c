package bus

import (
	"context"
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

// ServerOptions are those of a server in this process.
type ServerOptions struct {
	Dir    string // for the files of streams; made when missing
	Listen string // host:port; "" is 127.0.0.1:0, and port 0 is any free one
	Token  string // clients must know it; "" is accepted on loopback addresses only

	// Cert and Key are files in PEM format and switch TLS on. With CA clients need
	// certificates that it signed.
	Cert, Key, CA string

	Log *slog.Logger // gets warnings and errors of the server; nil discards them
}

// Server is a NATS server in this process that listens on TCP. What streams hold
// survives the end of the process at once, and that of the machine after ten
// seconds.
type Server struct {
	nats   *server.Server
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
	s, err := start(ctx, conf, opt.Log)
	if err != nil {
		unlock()
		return nil, fmt.Errorf("message server on %s: %w", opt.listen(), err)
	}
	scheme := "nats"
	if conf.TLS {
		scheme = "tls"
	}
	return &Server{nats: s, unlock: unlock, scheme: scheme, host: reachable(conf.Host), port: s.Addr().(*net.TCPAddr).Port}, nil
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
		Host: host, Port: int(port), Authorization: o.Token,
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
		conf.TLS, conf.TLSTimeout, conf.TLSVerify = true, 5, o.CA != ""
		conf.TLSConfig, err = server.GenTLSConfig(&server.TLSConfigOpts{CertFile: o.Cert, KeyFile: o.Key, CaFile: o.CA, Verify: o.CA != ""})
		if err != nil {
			return nil, fmt.Errorf("TLS of the message server: %w", err)
		}
	case o.Cert+o.Key+o.CA != "":
		return nil, errors.New("TLS of the message server needs both a certificate and its key")
	}
	return conf, nil
}

// start runs a server until it is ready or says why it never will be.
func start(ctx context.Context, conf *server.Options, log *slog.Logger) (*server.Server, error) {
	s, err := server.NewServer(conf)
	if err != nil {
		return nil, err
	}
	fatal := make(chan error, 1)
	s.SetLogger(newServerLog(log, fatal), false, false)
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

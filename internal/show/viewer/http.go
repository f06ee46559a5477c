package viewer

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
)

// Limits of the HTTP server.
const (
	webConnections = 512 // at once; a page has two or three
	webHeader      = 64 << 10
	webHeaderTime  = 10 * time.Second
	webIdle        = 2 * time.Minute
	webLogEvery    = 10 * time.Second
)

// newWebServer returns a server with these limits. It logs repeated errors of clients once
// per webLogEvery.
func newWebServer(ctx context.Context, h http.Handler, lines *webLog) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: webHeaderTime, IdleTimeout: webIdle, MaxHeaderBytes: webHeader,
		ErrorLog: log.New(lines, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// webLog logs lines of an HTTP server.
type webLog struct {
	log   *slog.Logger
	lines *throttle.Lines
}

// Write logs a line.
func (l *webLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	// http: TLS handshake error from 127.0.0.1:1234: remote error: …
	key, _, _ := strings.Cut(text, " from ")
	l.warn(key, text)
	return len(line), nil
}

func (l *webLog) warn(key, text string, more ...any) {
	if due, left := l.lines.Allow(key, time.Now()); due {
		l.log.Warn(text, append(more, "left_out", left)...)
	}
}

// boundedListener closes new connections while there are too many.
type boundedListener struct {
	net.Listener
	slots chan struct{} // one per connection
	log   *webLog
}

// Accept waits for the next connection that gets a slot.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &boundedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			l.log.warn("connections", "HTTP refuses a client: too many connections", "address", c.RemoteAddr(), "most", cap(l.slots))
			_ = c.Close() // refused anyway
		}
	}
}

// boundedConn occupies a slot until it is closed.
type boundedConn struct {
	net.Conn
	free func()
}

// Close closes the connection and frees its slot.
func (c *boundedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// Ports of runs. They are below those that systems assign to other connections.
const firstPort, ports = 20_000, 10_000

// portOf returns the usual port of a run, so that links to its page stay valid.
func portOf(run string) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, run) // never fails
	return strconv.Itoa(firstPort + int(h.Sum32()%ports))
}

// listen listens at host:port. With port 0 it first tries the port of the URL before, so that
// open pages reconnect, and then the usual port of run.
func listen(ctx context.Context, address, before, run string, log *slog.Logger) (net.Listener, error) {
	var config net.ListenConfig
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if port == "0" && run != "" {
		usual := portOf(run)
		if _, old, err := net.SplitHostPort(HostPort(before)); err == nil {
			usual = old
		}
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, usual))
		if err == nil {
			return l, nil
		}
		log.Warn("the usual port of the run is in use: earlier links to its page lead elsewhere", "port", usual)
	}
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w (choose another address with --http)", err)
	}
	return l, nil
}

// serveHTTP serves until ctx ends, with TLS if there is a certificate.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, cert, key string, log *slog.Logger) error {
	lines := &webLog{log: log, lines: throttle.New(webLogEvery)}
	server := newWebServer(ctx, h, lines)
	l = &boundedListener{Listener: l, slots: make(chan struct{}, webConnections), log: lines}
	g, over := errgroup.WithContext(ctx)
	g.Go(func() error {
		serve := server.Serve
		if cert != "" {
			serve = func(l net.Listener) error { return server.ServeTLS(l, cert, key) }
		}
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-over.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(last) != nil {
			return server.Close()
		}
		return nil
	})
	return g.Wait()
}

// addressOf returns the URL of a listener, with the host name if it listens everywhere.
func addressOf(addr net.Addr, hostname string, secure bool) string {
	scheme, host := "http", addr.String()
	if secure {
		scheme = "https"
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host = net.JoinHostPort(hostname, fmt.Sprint(tcp.Port))
	}
	return scheme + "://" + host
}

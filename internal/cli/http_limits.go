package cli

import (
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
)

// What HTTP takes of a client.
const (
	webConnections = 512 // at once; a page has two or three
	webHeader      = 64 << 10
	webHeaderTime  = 10 * time.Second
	webIdle        = 2 * time.Minute
	webLogEvery    = 10 * time.Second
)

// newWebServer is a server with these limits. What clients do wrong is logged, the same
// of an address once in a while.
func newWebServer(ctx context.Context, h http.Handler, lines *webLog) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: webHeaderTime, IdleTimeout: webIdle, MaxHeaderBytes: webHeader,
		ErrorLog: log.New(lines, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// webLog takes the lines of a server of HTTP.
type webLog struct {
	log   *slog.Logger
	lines *throttle.Lines
}

func newWebLog(log *slog.Logger) *webLog {
	return &webLog{log: log, lines: throttle.New(webLogEvery)}
}

// Write takes a line.
func (l *webLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	// http: TLS handshake error from 127.0.0.1:1234: remote error: …
	key, _, _ := strings.Cut(text, " from ")
	l.warn(key, text)
	return len(line), nil
}

func (l *webLog) warn(key, text string, more ...any) {
	if due, left := l.lines.Say(key, time.Now()); due {
		l.log.Warn(text, append(more, "left_out", left)...)
	}
}

// boundedListener closes connections at once when there are too many.
type boundedListener struct {
	net.Listener
	places chan struct{} // one for each connection
	log    *webLog
}

func newBoundedListener(l net.Listener, most int, log *webLog) *boundedListener {
	return &boundedListener{Listener: l, places: make(chan struct{}, most), log: log}
}

// Accept waits for the next connection for which there is a place.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &boundedConn{Conn: c, free: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			l.log.warn("connections", "HTTP refuses a client: there are too many connections", "address", c.RemoteAddr(), "most", cap(l.places))
			_ = c.Close() // whoever it is
		}
	}
}

// boundedConn has a place until it is closed.
type boundedConn struct {
	net.Conn
	free func()
}

// Close ends the connection.
func (c *boundedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

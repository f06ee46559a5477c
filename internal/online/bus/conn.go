package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
	"github.com/chimbuko/chimbuko/internal/base/wait"
)

// closeTimeout bounds the time that Close waits for services.
const closeTimeout = 10 * time.Second

var errNotYet = errors.New("no connection so far")

// Conn is a client of the bus. It reconnects by itself whenever the connection is
// lost. Several goroutines may call its methods.
type Conn struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	log     *slog.Logger
	retried atomic.Pointer[nats.Conn] // for the callback between attempts

	mu       sync.Mutex
	session  context.Context // ends when the connection is lost
	lost     context.CancelFunc
	changed  chan struct{} // closed when session is replaced
	lastErr  error
	outage   wait.Outage
	services map[*Service]struct{}
	calls    map[*call]struct{}
	closed   bool

	lines *throttle.Lines // log lines caused by other processes
}

// call is a wait for an answer of the server to a message that was sent to a subject,
// or to one with this prefix.
type call struct {
	subject string
	cancel  context.CancelCauseFunc
}

// Connect returns a client that connects as soon as the server is available. It tries once, for at
// most two seconds for each server, and continues in the background. It fails only if the options
// are invalid.
func Connect(opt Options) (*Conn, error) {
	options, err := opt.natsOptions()
	if err != nil {
		return nil, err
	}
	c := &Conn{
		log: orDiscard(opt.Log), lastErr: errNotYet, session: endedSession, lost: func() {}, changed: make(chan struct{}),
		services: make(map[*Service]struct{}), calls: make(map[*call]struct{}), lines: throttle.New(repeatAfter),
	}
	options = append(options,
		nats.ConnectHandler(func(nc *nats.Conn) { c.up(nc, false) }),
		nats.ReconnectHandler(func(nc *nats.Conn) { c.up(nc, true) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.down(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.note(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { c.report(sub, err) }),
		nats.CustomReconnectDelay(func(attempts int) time.Duration {
			if nc := c.retried.Load(); nc != nil {
				c.note(nc.LastError()) // nothing else reports a rejected handshake
			}
			return retryWait(attempts)
		}))
	if c.nc, err = nats.Connect(opt.URL, options...); err != nil {
		return nil, fmt.Errorf("message server %s: %w", withoutUser(opt.URL), err)
	}
	c.retried.Store(c.nc)
	if c.js, err = jetstream.New(c.nc); err != nil {
		c.nc.Close()
		return nil, err
	}
	if c.nc.IsConnected() {
		c.up(c.nc, false)
	}
	return c, nil
}

// up begins a session, unless one is under way.
func (c *Conn) up(nc *nats.Conn, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !again && c.session.Err() == nil {
		return
	}
	c.lost()
	c.session, c.lost = context.WithCancel(context.Background())
	c.lastErr = nil
	close(c.changed)
	c.changed = make(chan struct{})
	line := []any{"server", nc.ConnectedUrlRedacted()}
	if lasted, was := c.outage.End(time.Now()); was {
		line = append(line, "after_seconds", lasted.Seconds())
	}
	c.log.Info("connected to the message bus", line...)
}

func (c *Conn) down(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost()
	if c.closed {
		return
	}
	if c.lastErr = err; err == nil {
		c.lastErr = errors.New("the server closed the connection")
	}
	c.outage.Failed("", time.Now())
	c.log.Warn("lost the message bus", "reason", c.lastErr)
}

// note keeps the reason for a failed attempt to connect.
func (c *Conn) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || c.closed || c.session.Err() == nil {
		return
	}
	if lasted, log := c.outage.Failed(err.Error(), time.Now()); log {
		c.log.Warn("cannot connect to the message bus, retrying", "reason", err, "for_seconds", lasted.Seconds())
	}
	c.lastErr = err
}

// report logs errors outside of calls.
func (c *Conn) report(sub *nats.Subscription, err error) {
	c.deny(err)
	if c.note(err); sub == nil {
		return
	}
	if due, left := c.lines.Allow(sub.Subject+" "+err.Error(), time.Now()); due {
		c.log.Warn("message bus", "subject", sub.Subject, "reason", err, "left_out", left)
	}
}

// violation matches the server's reports of missing permissions.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]*)"`)

// deny is called when the server rejects a subject. The server does not identify
// the rejected message, so deny ends all calls to that subject.
func (c *Conn) deny(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	match := violation.FindStringSubmatch(err.Error())
	if match == nil {
		c.log.Error("message bus", "reason", err)
		return
	}
	subject := match[2]
	reason := strings.TrimPrefix(strings.TrimPrefix(err.Error(), nats.ErrPermissionViolation.Error()), ": ")
	if due, left := c.lines.Allow(subject, time.Now()); due {
		c.log.Error("the message server rejects a subject", "subject", subject, "reason", err, "left_out", left)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for a := range c.calls {
		if strings.HasPrefix(subject, a.subject) {
			a.cancel(fmt.Errorf("%w: %s", ErrDenied, reason))
		}
	}
}

// Connected reports whether there is a connection.
func (c *Conn) Connected() bool { return c.current().Err() == nil }

// LastError returns the reason for a missing connection, or nil when connected.
func (c *Conn) LastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return c.lastErr
}

// Wait returns nil as soon as there is a connection. If ctx ends first, the error wraps the cause
// of ctx and LastError.
func (c *Conn) Wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		session, changed, closed := c.session, c.changed, c.closed
		c.mu.Unlock()
		if session.Err() == nil {
			return nil
		}
		if closed {
			return c.lostConnection()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", c.lostConnection(), context.Cause(ctx))
		}
	}
}

func (c *Conn) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// lostConnection returns ErrNotConnected with its reason.
func (c *Conn) lostConnection() error {
	if reason := c.LastError(); reason != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, reason)
	}
	return fmt.Errorf("%w: the connection was lost", ErrNotConnected) // and is already restored
}

// within returns a context that also ends with the connection, with the cause ErrNotConnected, and
// when the server rejects the subject or one with this prefix, with ErrDenied. It fails without a
// connection.
func (c *Conn) within(ctx context.Context, subject string) (context.Context, func(), error) {
	session := c.current()
	if session.Err() != nil {
		return nil, nil, c.lostConnection()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(session, func() { cancel(ErrNotConnected) })
	a := &call{subject: subject, cancel: cancel}
	c.mu.Lock()
	c.calls[a] = struct{}{}
	c.mu.Unlock()
	return ctx, func() {
		stop()
		cancel(nil)
		c.mu.Lock()
		delete(c.calls, a)
		c.mu.Unlock()
	}, nil
}

// Close ends the client. It waits at most ten seconds for services to finish their requests.
// Further calls do nothing.
func (c *Conn) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	c.mu.Lock()
	services := slices.Collect(maps.Keys(c.services))
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range services {
		all.Go(func() { s.close(ctx) })
	}
	all.Wait()
	if c.Connected() {
		_ = c.nc.FlushWithContext(ctx) // the server may be gone
	}
	c.mu.Lock()
	c.lost()
	if !c.closed {
		close(c.changed)
	}
	c.closed = true
	c.mu.Unlock()
	c.nc.Close()
}

package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chimbuko/chimbuko/internal/base/throttle"
)

// closing is how long Close waits for what is under way.
const closing = 10 * time.Second

var errNotYet = errors.New("no connection so far")

// Conn is a client of the bus. It comes back by itself whenever the connection is
// lost. All methods may be called by several goroutines.
type Conn struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	log     *slog.Logger
	flight  *flight
	retried atomic.Pointer[nats.Conn] // for the function that is called between attempts

	mu       sync.Mutex
	session  context.Context // ends when the connection is lost
	lost     context.CancelFunc
	changed  chan struct{} // closed when session is replaced
	lastErr  error
	services map[*Service]struct{}
	asking   map[*asking]struct{}
	closed   bool

	lines *throttle.Lines // of the log that others cause
}

// Connect returns a client that connects as soon as the server is there: it tries
// once, for no longer than two seconds for each server, and goes on in the
// background. An error says that the options are wrong.
func Connect(opt Options) (*Conn, error) {
	options, err := opt.natsOptions()
	if err != nil {
		return nil, err
	}
	c := &Conn{log: orDiscard(opt.Log), flight: newFlight(), lastErr: errNotYet, changed: make(chan struct{}), services: make(map[*Service]struct{}), asking: make(map[*asking]struct{}), lines: throttle.New(repeatAfter)}
	c.session, c.lost = context.WithCancel(context.Background())
	c.lost()
	options = append(options,
		nats.ConnectHandler(func(nc *nats.Conn) { c.up(nc, false) }),
		nats.ReconnectHandler(func(nc *nats.Conn) { c.up(nc, true) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.down(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.note(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { c.report(sub, err) }),
		nats.CustomReconnectDelay(func(attempts int) time.Duration {
			if nc := c.retried.Load(); nc != nil {
				c.note(nc.LastError()) // a refused greeting is told nowhere else
			}
			return retryWait(attempts)
		}))
	if c.nc, err = nats.Connect(opt.URL, options...); err != nil {
		return nil, fmt.Errorf("message server %s: %w", withoutUser(opt.URL), err)
	}
	c.retried.Store(c.nc)
	c.js, err = jetstream.New(c.nc,
		jetstream.WithPublishAsyncTimeout(ackTimeout),
		jetstream.WithPublishAsyncMaxPending(2*flightSlots),
		jetstream.WithPublishAsyncAckHandler(func(_ jetstream.JetStream, m *nats.Msg, ack *jetstream.PubAck) { c.flight.landed(m, ack, nil) }),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) { c.flight.landed(m, nil, err) }))
	if err != nil {
		c.nc.Close()
		return nil, err
	}
	if c.nc.IsConnected() {
		c.up(c.nc, false)
	}
	return c, nil
}

// up begins a session, unless there is one that is not known to be over.
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
	c.log.Info("connected to the message bus", "server", nc.ConnectedUrlRedacted())
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
	c.log.Warn("lost the message bus", "reason", c.lastErr)
}

// note keeps why an attempt to connect failed.
func (c *Conn) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || c.closed || c.session.Err() == nil {
		return
	}
	if c.lastErr == nil || c.lastErr.Error() != err.Error() {
		c.log.Warn("cannot connect to the message bus, trying again", "reason", err)
	}
	c.lastErr = err
}

// report takes errors that belong to no call.
func (c *Conn) report(sub *nats.Subscription, err error) {
	c.deny(err)
	if c.note(err); sub == nil {
		return
	}
	if due, left := c.lines.Say(sub.Subject+" "+err.Error(), time.Now()); due {
		c.log.Warn("message bus", "subject", sub.Subject, "reason", err, "left_out", left)
	}
}

// Connected tells whether there is a connection.
func (c *Conn) Connected() bool { return c.current().Err() == nil }

// LastError is why there is no connection, and nil when there is one.
func (c *Conn) LastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return c.lastErr
}

// Wait returns nil when there is a connection. When ctx ends before, the error is
// that of ctx and LastError.
func (c *Conn) Wait(ctx context.Context) error {
	_, err := c.wait(ctx)
	return err
}

// wait returns the session.
func (c *Conn) wait(ctx context.Context) (context.Context, error) {
	for {
		c.mu.Lock()
		session, changed, closed := c.session, c.changed, c.closed
		c.mu.Unlock()
		if session.Err() == nil {
			return session, nil
		}
		if closed {
			return nil, c.away()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", c.away(), context.Cause(ctx))
		}
	}
}

func (c *Conn) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// away is ErrAway with its reason.
func (c *Conn) away() error {
	if reason := c.LastError(); reason != nil {
		return fmt.Errorf("%w: %w", ErrAway, reason)
	}
	return fmt.Errorf("%w: the connection was lost", ErrAway) // and is back already
}

// within is ctx that ends with the connection, too, and then has the cause ErrAway.
// When the server refuses the subject, or one that begins so, it ends with ErrDenied.
// It fails when there is no connection.
func (c *Conn) within(ctx context.Context, subject string) (context.Context, func(), error) {
	session := c.current()
	if session.Err() != nil {
		return nil, nil, c.away()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(session, func() { cancel(ErrAway) })
	a := &asking{subject: subject, cancel: cancel}
	c.mu.Lock()
	c.asking[a] = struct{}{}
	c.mu.Unlock()
	return ctx, func() {
		stop()
		cancel(nil)
		c.mu.Lock()
		delete(c.asking, a)
		c.mu.Unlock()
	}, nil
}

// Close ends the client: services finish what they have begun and messages under
// way are waited for, both for ten seconds at most. More calls do nothing.
func (c *Conn) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	c.mu.Lock()
	services := make([]*Service, 0, len(c.services))
	for s := range c.services {
		services = append(services, s)
	}
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range services {
		all.Go(func() { s.close(ctx) })
	}
	all.Wait()
	if c.Connected() {
		c.flight.wait(ctx)
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
	c.flight.fail(ErrClosed)
}

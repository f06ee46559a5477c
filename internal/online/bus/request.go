package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chimbuko/chimbuko/internal/base/wait"
)

const (
	holdReply    = 15 * time.Second // for a requester that does not fetch the rest
	minHold      = 2 * time.Second  // while other replies wait for the slot
	routeTimeout = time.Second      // for a new subject to reach all servers of a cluster
)

// Request sends data to a service and returns its reply, which the caller owns. It
// waits until ctx ends. The error is
//   - ErrNoService when the subject has no service;
//   - ErrNotConnected when there is no connection, or it was lost before the reply came;
//   - a RemoteError when the handler failed;
//   - ErrDenied when the server does not let this client publish there;
//   - ErrTooLarge.
func (c *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	reply, err := c.request(ctx, subject, data)
	if _, remote := errors.AsType[*RemoteError](err); err != nil && !remote {
		return nil, fmt.Errorf("request %s: %w", subject, err)
	}
	return reply, err
}

func (c *Conn) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := errors.Join(checkName("subject", subject), checkSize(len(data))); err != nil {
		return nil, err
	}
	ctx, done, err := c.within(ctx, subject)
	if err != nil {
		return nil, err
	}
	defer done()
	m := &nats.Msg{Subject: subject}
	rest, err := c.fill(m, data)
	if err != nil {
		return nil, err
	}
	defer rest.close()
	reply, err := c.sendRequest(ctx, m)
	if err != nil {
		return nil, err
	}
	if _, failed := reply.Header[errorHeader]; failed {
		return nil, &RemoteError{Text: string(reply.Data)}
	}
	return collect(ctx, reply, c.requestRest)
}

// sendRequest sends a request and receives a reply of one message each.
func (c *Conn) sendRequest(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	reply, err := c.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, ErrNoService
	}
	return reply, c.explain(ctx, err)
}

// explain returns why a call to NATS failed. See within for the causes that end ctx.
func (c *Conn) explain(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case isDisconnected(err), errors.Is(cause, ErrNotConnected):
		return c.lostConnection()
	case errors.Is(cause, ErrDenied):
		return cause
	}
	return err
}

// isDisconnected reports whether NATS could not send for lack of a connection.
func isDisconnected(err error) bool {
	return isAny(err, nats.ErrReconnectBufExceeded, nats.ErrConnectionClosed, nats.ErrDisconnected,
		nats.ErrConnectionReconnecting, nats.ErrConnectionDraining)
}

// rest serves the rest of a message to the receiver of its beginning.
type rest struct {
	sub       *nats.Subscription
	requested chan struct{} // receives with each request
	served    chan struct{} // closed when the end was sent
}

// fill puts data into m: all of it, or the beginning and the subject that serves the
// rest. It returns nil if m holds all of it.
func (c *Conn) fill(m *nats.Msg, data []byte) (*rest, error) {
	size, err := c.payload(largestPart)
	if err != nil {
		return nil, err
	}
	if len(data) <= size {
		m.Data = data
		return nil, nil
	}
	r := &rest{requested: make(chan struct{}, 1), served: make(chan struct{})}
	served := sync.OnceFunc(func() { close(r.served) })
	inbox := c.restInbox()
	r.sub, err = c.nc.Subscribe(inbox, func(req *nats.Msg) {
		offset, err := strconv.ParseUint(string(req.Data), 10, 31)
		if err != nil || offset >= uint64(len(data)) {
			return
		}
		end := min(int(offset)+size, len(data))
		_ = req.Respond(data[offset:end]) // without a connection the other side fails, too
		select {
		case r.requested <- struct{}{}:
		default:
		}
		if end == len(data) {
			served()
		}
	})
	if err != nil {
		return nil, err
	}
	m.Data = data[:size]
	setHeader(m, sizeHeader, strconv.Itoa(len(data)))
	setHeader(m, restHeader, inbox)
	return r, nil
}

// restInbox returns a new, secret subject that serves the rest of a message.
func (c *Conn) restInbox() string {
	return c.nc.Opts.InboxPrefix + "." + restToken + "." + rand.Text()
}

func (r *rest) close() {
	if r != nil {
		_ = r.sub.Unsubscribe() // it may be gone with the connection
	}
}

// wait returns when the end was sent, when the receiver sends no more requests, or when
// ctx ends.
func (r *rest) wait(ctx context.Context, crowded func() bool) {
	tick := time.NewTicker(minHold / 2)
	defer tick.Stop()
	for idle := time.Duration(0); idle < holdReply && (idle < minHold || !crowded()); {
		select {
		case <-r.requested:
			idle = 0
		case <-r.served:
			return
		case <-tick.C:
			idle += minHold / 2
		case <-ctx.Done():
			return
		}
	}
}

// fetcher requests the part of a message from an offset on.
type fetcher func(ctx context.Context, subject string, offset int) (*nats.Msg, error)

// collect returns the complete message that begins with m.
func collect(ctx context.Context, m *nats.Msg, fetch fetcher) ([]byte, error) {
	text := m.Header.Get(sizeHeader)
	if text == "" {
		return m.Data, nil
	}
	total, err := strconv.ParseUint(text, 10, 31)
	if err != nil || total > MaxMessage {
		return nil, fmt.Errorf("invalid message size %.20q", text)
	}
	from := m.Header.Get(restHeader)
	if !isInbox(from) {
		return nil, fmt.Errorf("cannot fetch the rest of a message from %.100q", from)
	}
	all := append(make([]byte, 0, min(int(total), 8*len(m.Data))), m.Data...)
	for len(all) < int(total) {
		more, err := fetch(ctx, from, len(all))
		if err != nil {
			return nil, fmt.Errorf("fetch byte %d of %d: %w", len(all), total, err)
		}
		if len(more.Data) == 0 {
			break
		}
		all = append(all, more.Data...)
	}
	if len(all) != int(total) {
		return nil, fmt.Errorf("the message has %d bytes, want %d", len(all), total)
	}
	return all, nil
}

// requestRest retries while no service exists: in a cluster the new subject takes time to reach all
// servers.
func (c *Conn) requestRest(ctx context.Context, subject string, offset int) (*nats.Msg, error) {
	for end := time.Now().Add(routeTimeout); ; {
		m, err := c.sendRequest(ctx, &nats.Msg{Subject: subject, Data: strconv.AppendInt(nil, int64(offset), 10)})
		if !errors.Is(err, ErrNoService) {
			return m, err
		}
		if time.Now().After(end) {
			return nil, errors.New("the sender is gone")
		}
		if wait.Sleep(ctx, routeTimeout/20) != nil {
			return nil, context.Cause(ctx)
		}
	}
}

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
)

const (
	holding      = 15 * time.Second // a reply, for a requester who asks for no more parts
	holdingLeast = 2 * time.Second  // when others need the place
	partPatience = time.Second      // until a new subject is known in all of a cluster
)

// Request sends data to a service and returns its reply, which the caller owns. It
// waits until ctx ends. The error is
//   - ErrNoService when nobody serves the subject;
//   - ErrAway when there is no connection, or it was lost before the reply came;
//   - a RemoteError when the handler failed;
//   - ErrDenied when the server does not let us ask there;
//   - ErrTooLarge.
func (c *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	reply, err := c.request(ctx, subject, data)
	if _, remote := errors.AsType[*RemoteError](err); err != nil && !remote {
		return nil, fmt.Errorf("request %s: %w", subject, err)
	}
	return reply, err
}

func (c *Conn) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := errors.Join(checkName("subject", subject), tooLarge(len(data))); err != nil {
		return nil, err
	}
	ctx, done, err := c.within(ctx, subject)
	if err != nil {
		return nil, err
	}
	defer done()
	m := &nats.Msg{Subject: subject, Data: data}
	rest, err := c.fill(m, data)
	if err != nil {
		return nil, err
	}
	defer rest.close()
	reply, err := c.ask(ctx, m)
	if err != nil {
		return nil, err
	}
	if _, failed := reply.Header[errorHeader]; failed {
		return nil, &RemoteError{Text: string(reply.Data)}
	}
	return c.collect(ctx, reply)
}

// ask is a request and a reply of one message each.
func (c *Conn) ask(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	reply, err := c.nc.RequestMsgWithContext(ctx, m)
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, nats.ErrNoResponders):
		return nil, ErrNoService
	case isAway(err), errors.Is(context.Cause(ctx), ErrAway):
		return nil, c.away()
	case errors.Is(context.Cause(ctx), ErrDenied):
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// isAway tells whether NATS could not send for want of a connection.
func isAway(err error) bool {
	for _, kind := range []error{nats.ErrReconnectBufExceeded, nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrConnectionDraining} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// rest gives the parts of a message to the one who got its first.
type rest struct {
	sub   *nats.Subscription
	asked chan struct{} // one for each part that was asked for
	last  chan struct{} // closed when the last part was
}

// fill puts data into m: all of it, or the first part, and where to ask for more.
// The result is nil when there is no more.
func (c *Conn) fill(m *nats.Msg, data []byte) (*rest, error) {
	size, err := c.partSize()
	if err != nil {
		return nil, err
	}
	if len(data) <= size {
		m.Data = data
		return nil, nil
	}
	parts := split(data, size)
	r := &rest{asked: make(chan struct{}, 1), last: make(chan struct{})}
	last := sync.OnceFunc(func() { close(r.last) })
	inbox := c.partsInbox()
	r.sub, err = c.nc.Subscribe(inbox, func(req *nats.Msg) {
		i, err := strconv.ParseUint(string(req.Data), 10, 31)
		if err != nil || i >= uint64(len(parts)) {
			return
		}
		_ = req.Respond(parts[i]) // without a connection the other side learns of it, too
		select {
		case r.asked <- struct{}{}:
		default:
		}
		if i == uint64(len(parts)-1) {
			last()
		}
	})
	if err != nil {
		return nil, err
	}
	m.Data = parts[0]
	setHeader(m, partHeader, part{count: len(parts), total: len(data)}.String())
	setHeader(m, restHeader, inbox)
	return r, nil
}

// partsInbox is a new subject that others may ask for parts. Nobody can guess it.
func (c *Conn) partsInbox() string {
	return c.nc.Opts.InboxPrefix + "." + partsWord + "." + rand.Text()
}

func (r *rest) close() {
	if r != nil {
		_ = r.sub.Unsubscribe() // it may be gone with the connection
	}
}

// wait returns when all parts were asked for, or none for too long, or ctx ends.
func (r *rest) wait(ctx context.Context, crowded func() bool) {
	tick := time.NewTicker(holdingLeast / 2)
	defer tick.Stop()
	for idle := time.Duration(0); idle < holding && (idle < holdingLeast || !crowded()); {
		select {
		case <-r.asked:
			idle = 0
		case <-r.last:
			return
		case <-tick.C:
			idle += holdingLeast / 2
		case <-ctx.Done():
			return
		}
	}
}

// collect returns the whole of which m is the first part.
func (c *Conn) collect(ctx context.Context, m *nats.Msg) ([]byte, error) {
	text := m.Header.Get(partHeader)
	if text == "" {
		return m.Data, nil
	}
	p, err := parsePart(text)
	if err != nil {
		return nil, err
	}
	if !isInbox(m.Header.Get(restHeader)) {
		return nil, fmt.Errorf("no parts can be had from the subject %.100q", m.Header.Get(restHeader))
	}
	all := append(make([]byte, 0, min(p.total, 8*len(m.Data))), m.Data...)
	for i := 1; i < p.count; i++ {
		more, err := c.askPart(ctx, m.Header.Get(restHeader), i)
		if err != nil {
			return nil, fmt.Errorf("part %d of %d: %w", i+1, p.count, err)
		}
		if len(more.Data) > p.total-len(all) {
			break
		}
		all = append(all, more.Data...)
	}
	if len(all) != p.total {
		return nil, fmt.Errorf("the parts are not of a message of %d bytes", p.total)
	}
	return all, nil
}

// askPart asks again when nobody answers: in a cluster the subject is new.
func (c *Conn) askPart(ctx context.Context, subject string, index int) (*nats.Msg, error) {
	tick := time.NewTicker(partPatience / 20)
	defer tick.Stop()
	for end := time.Now().Add(partPatience); ; {
		m, err := c.ask(ctx, &nats.Msg{Subject: subject, Data: strconv.AppendInt(nil, int64(index), 10)})
		if !errors.Is(err, ErrNoService) {
			return m, err
		}
		if time.Now().After(end) {
			return nil, errors.New("the other side is gone")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

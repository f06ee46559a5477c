package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ackTimeout is how long a server may take to confirm a message. It is lost with one
// of a cluster that dies, and nothing tells so.
const ackTimeout = 10 * time.Second

// codeStoreFailed is the server's error code for messages that it could not store.
const codeStoreFailed jetstream.ErrorCode = 10077

// Publish stores a message; nil says that the stream has it. The id names the
// message: a second one of the same id is not stored again, for as long as the
// stream's Dedupe says. So after any error but ErrTooLarge, publish again with the
// same id and data. The error is
//   - ErrFull when the stream has no room at present;
//   - ErrAway when there is no connection, or it was lost before the server
//     confirmed;
//   - ErrDenied when the server does not let us publish there;
//   - ErrTooLarge;
//   - that of ctx when it ended.
func (s *Stream) Publish(ctx context.Context, subject, id string, data []byte) error {
	result := make(chan error, 1)
	s.PublishAsync(ctx, subject, id, data, func(err error) { result <- err })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("publish %s: %w", id, context.Cause(ctx))
	}
}

// PublishAsync is Publish that does not wait for the server: done gets the result,
// in another goroutine and exactly once. It waits only while too much is under way,
// which is about a thousand messages or 32 MiB for all streams of a Conn, or until
// ctx ends. Messages of one goroutine are stored in the order in which they were
// published, as long as there is no error.
//
// The data must not change until done is called. Other results wait for done, so it
// must return soon: it must not publish, nor take a lock that is held by one who
// publishes.
func (s *Stream) PublishAsync(ctx context.Context, subject, id string, data []byte, done func(error)) {
	parts, err := s.parts(ctx, subject, id, data)
	if err != nil {
		go done(fmt.Errorf("publish %s: %w", id, err))
		return
	}
	d := &delivery{stream: s, id: id, left: len(parts), done: done}
	for i, m := range parts {
		if err := s.conn.flight.enter(ctx, m, d.landed); err != nil {
			d.refuse(len(parts)-i, err)
			return
		}
		if _, err := s.conn.js.PublishMsgAsync(m); err != nil {
			s.conn.flight.landed(m, nil, err)
			d.refuse(len(parts)-i-1, err)
			return
		}
	}
}

// parts makes the messages to send.
func (s *Stream) parts(ctx context.Context, subject, id string, data []byte) ([]*nats.Msg, error) {
	size, err := s.conn.partSize()
	if err := errors.Join(err, checkName("subject", subject), checkName("id", id), tooLarge(len(data))); err != nil {
		return nil, err
	}
	if !s.conn.Connected() {
		return nil, s.conn.away()
	}
	if len(data) <= size {
		m := &nats.Msg{Subject: subject, Data: data}
		setHeader(m, jetstream.MsgIDHeader, id)
		return []*nats.Msg{m}, nil
	}
	if err := s.room(ctx, len(data)); err != nil {
		return nil, err
	}
	pieces := split(data, size)
	all := make([]*nats.Msg, len(pieces))
	for i, piece := range pieces {
		p := part{index: i, count: len(pieces), total: len(data)}
		all[i] = &nats.Msg{Subject: subject, Data: piece}
		setHeader(all[i], partHeader, p.String())
		setHeader(all[i], jetstream.MsgIDHeader, partID(id, p))
	}
	return all, nil
}

// partID is what the server knows a part by. Ids have no spaces, so it is never that
// of another message; parts of another size have other ids.
func partID(id string, p part) string { return fmt.Sprintf("%s %d/%d", id, p.index, p.count) }

// room looks whether a large message fits before its first part is stored.
func (s *Stream) room(ctx context.Context, size int) error {
	info, err := s.info(ctx)
	if err != nil || info.Config.MaxBytes <= 0 {
		return err
	}
	switch most := uint64(info.Config.MaxBytes); {
	case uint64(size) > most:
		return fmt.Errorf("%w: %d bytes, and the stream has room for %d", ErrTooLarge, size, most)
	case uint64(size) > most-min(most, info.State.Bytes):
		return fmt.Errorf("%w: %s", ErrFull, s.name)
	}
	return nil
}

// delivery is a message whose parts are under way.
type delivery struct {
	stream *Stream
	id     string
	done   func(error)

	mu   sync.Mutex
	left int   // parts whose result is not known
	err  error // the first
}

func (d *delivery) landed(ack *jetstream.PubAck, err error) {
	if err == nil && ack.Stream != d.stream.name {
		err = fmt.Errorf("the subject belongs to the stream %s", ack.Stream)
	}
	if d.settle(1, err) {
		d.done(d.result())
	}
}

// refuse gives up the parts that were not sent.
func (d *delivery) refuse(parts int, err error) {
	if d.settle(parts, err) {
		go d.done(d.result())
	}
}

// settle tells whether these were the last parts, which is so once.
func (d *delivery) settle(parts int, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
	d.left -= parts
	return parts > 0 && d.left == 0
}

func (d *delivery) result() error {
	if d.err == nil {
		return nil
	}
	return fmt.Errorf("publish %s: %w", d.id, d.stream.publishError(d.err))
}

// publishError gives the errors of NATS the names of this package.
func (s *Stream) publishError(err error) error {
	api, _ := errors.AsType[*jetstream.APIError](err)
	switch {
	case isAway(err):
		return s.conn.away()
	case api != nil && api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "maximum"):
		return fmt.Errorf("%w: %s", ErrFull, s.name)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("no stream takes the subject: %w", err)
	}
	return err
}

package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	heldBytes    = 64 << 20 // of parts whose message is not whole
	shortestWait = 5 * time.Millisecond
)

// Message is one of a stream.
type Message struct {
	Subject, ID string
	Data        []byte
	Seq         uint64    // its place in the stream, greater than that of all before
	Time        time.Time // when the server stored it, or its last part
}

// Consumer takes the messages of a stream. Only one Fetch and one Ack at a time do
// something; others wait.
//
// It delivers each message until it was acknowledged, and mostly once: one that was
// acknowledged may come again when the server fails in the same moment.
type Consumer struct {
	stream *Stream
	closed context.Context
	close  context.CancelFunc

	reading sync.Mutex
	feed    *feed

	deleting sync.Mutex
	gone     uint64 // all below it was deleted

	mu     sync.Mutex
	ledger *ledger
	taken  bool // by another
}

// Consumer makes this process the consumer of the stream, at once: another one of
// the same name that lives gets ErrTaken from now on. All that was not acknowledged
// is delivered again, from the first message on. A stream has consumers of one name
// only. It waits for the server until ctx ends.
func (s *Stream) Consumer(ctx context.Context, durable string) (*Consumer, error) {
	c := &Consumer{stream: s, gone: 1, feed: &feed{owner: owner{stream: s, durable: durable}, session: ended}}
	// Parts that were given up must be stored again when their publisher tries
	// again: by then the server must have forgotten their ids.
	c.ledger = newLedger(s.dedupe+s.dedupe/2, heldBytes)
	err := checkWord("name of the consumer", durable)
	if err == nil {
		err = c.feed.begin(ctx, ctx, c.feed.take)
	}
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", durable, err)
	}
	c.closed, c.close = context.WithCancel(context.Background())
	return c, nil
}

// Fetch returns up to most messages in the order of the stream, where one that was
// sent in parts has the place of its last part. It returns fewer, or none, when wait
// has passed. The caller owns the data. The error, with which there are no messages,
// is
//   - ErrTaken when another consumer has taken over;
//   - ErrAway when there was no connection for all of wait: call again;
//   - ErrClosed after Close;
//   - that of ctx when it ended.
func (c *Consumer) Fetch(ctx context.Context, most int, wait time.Duration) ([]Message, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	ctx, cancel := c.untilClosed(ctx)
	defer cancel()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	waiting, stop := context.WithTimeout(ctx, max(wait, shortestWait))
	defer stop()
	c.tidy(ctx)
	var err error
	for more := true; more && err == nil; {
		ready := c.ready()
		if ready >= most {
			break
		}
		var it item
		if it, more, err = c.feed.read(ctx, waiting, most-ready); more && err == nil {
			c.mu.Lock()
			c.ledger.add(it, time.Now())
			c.mu.Unlock()
		}
	}
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return nil, cause
	case errors.Is(err, ErrTaken):
		c.mu.Lock()
		c.taken = true
		c.mu.Unlock()
		return nil, err
	case c.ready() == 0:
		return nil, err
	}
	return c.hand(ctx, most)
}

// untilClosed is ctx that ends with the consumer, too, and then has the cause
// ErrClosed.
func (c *Consumer) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	closed := c.closed
	if closed.Err() != nil {
		cancel(ErrClosed)
	}
	stop := context.AfterFunc(closed, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

func (c *Consumer) ready() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ledger.ready)
}

// tidy gives up old parts. When they cannot be deleted now, the next Ack does it.
func (c *Consumer) tidy(ctx context.Context) {
	c.mu.Lock()
	before := c.ledger.lost
	c.ledger.giveUp(time.Now())
	some := c.ledger.lost > before
	c.mu.Unlock()
	if some {
		if err := c.trim(ctx); err != nil {
			c.stream.conn.log.Warn("cannot delete parts of messages that never became whole", "stream", c.stream.name, "reason", err)
		}
	}
}

// hand gives out messages that are ready.
func (c *Consumer) hand(ctx context.Context, most int) ([]Message, error) {
	var all []Message
	for len(all) < most && c.ready() > 0 {
		err := c.load(ctx)
		c.mu.Lock()
		switch {
		case err == nil:
			all = append(all, c.ledger.hand())
		case errors.Is(err, jetstream.ErrMsgNotFound): // someone else has deleted it
			c.ledger.skip()
			err = nil
		}
		c.mu.Unlock()
		if err != nil && len(all) == 0 {
			return nil, err
		} else if err != nil {
			break
		}
	}
	return all, nil
}

// load reads the parts of the next message that were not kept.
func (c *Consumer) load(ctx context.Context) error {
	c.mu.Lock()
	m := c.ledger.ready[0]
	c.mu.Unlock()
	for {
		i, seq, ok := m.missing()
		if !ok {
			return nil
		}
		var raw *jetstream.RawStreamMsg
		err := c.stream.conn.settle(ctx, func(ctx context.Context) (err error) {
			raw, err = c.stream.nats.GetMsg(ctx, seq)
			return err
		})
		if err == nil && len(raw.Data) != m.parts[i].size {
			err = jetstream.ErrMsgNotFound
		}
		if err != nil {
			return fmt.Errorf("part of %s: %w", m.ID, err)
		}
		c.mu.Lock()
		m.parts[i] = piece{seq: seq, size: len(raw.Data), data: raw.Data}
		c.ledger.held += len(raw.Data)
		c.mu.Unlock()
	}
}

// Lost counts the messages that never became whole since the Consumer was made, and
// were given up: their publisher died, or tries again and sends them anew.
func (c *Consumer) Lost() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger.lost
}

// Close gives the stream up. What was not acknowledged goes to the next consumer.
// More calls do nothing.
func (c *Consumer) Close() {
	c.close()
	c.reading.Lock()
	defer c.reading.Unlock()
	c.feed.stop()
	_ = c.stream.conn.call(context.Background(), func(ctx context.Context) error {
		return c.feed.remove(ctx, c.feed.name)
	}) // without a connection the next consumer removes it
}

package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chimbuko/chimbuko/internal/base/wait"
)

const (
	ownerKey       = "chimbuko-consumer"  // in the metadata of a stream: its current owner
	consumerPrefix = "chimbuko-"          // of the names of consumers at the server
	idleConsumer   = time.Hour            // after which the server deletes an unused consumer
	batchBytes     = 16 << 20             // far below the limit at which a server drops a slow client
	shortestWait   = 5 * time.Millisecond // of Fetch
	checkEvery     = 2 * time.Second      // whether messages were lost, while none arrive
)

// Message is a message of a stream.
type Message struct {
	Subject, ID string
	Data        []byte
	Seq         uint64    // position in the stream
	Time        time.Time // when the server stored it
}

// Consumer reads the messages of a stream in order. It delivers each message until
// it is acknowledged, and usually once: an acknowledged message may be delivered
// again when the server fails at that moment. Several goroutines may call it.
//
// The stream's metadata name its owner, and the last process to write its name there wins. The
// server's consumer only delivers: messages are deleted from the stream when they are acknowledged,
// so nothing depends on the deliveries that the server has recorded. After any loss, such as that
// of the connection, a new one starts at the next message.
type Consumer struct {
	stream *Stream
	owner  string
	taken  atomic.Bool
	closed context.Context
	close  context.CancelFunc

	reading sync.Mutex
	nats    jetstream.Consumer
	session context.Context // the connection of nats; when it ends, nats must be replaced
	made    int             // consumers made at the server
	count   uint64          // messages that nats has delivered
	next    uint64          // first sequence to read
	pending []jetstream.Msg // received and not returned yet
	checked time.Time
}

// endedSession marks a consumer at the server that must be replaced.
var endedSession = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Consumer makes this process the consumer of the stream: from now on an earlier one gets ErrTaken.
// It delivers all messages that are not acknowledged, starting with the first. Consumer waits for
// the server until ctx ends.
func (s *Stream) Consumer(ctx context.Context) (*Consumer, error) {
	c := &Consumer{stream: s, owner: rand.Text(), session: endedSession, next: 1}
	err := s.conn.settle(ctx, c.claim)
	if err == nil {
		err = c.attach(ctx, ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("consume stream %s: %w", s.name, err)
	}
	c.closed, c.close = context.WithCancel(context.Background())
	return c, nil
}

// claim makes this consumer the owner of the stream.
func (c *Consumer) claim(ctx context.Context) error {
	info, err := c.stream.nats.Info(ctx)
	if err != nil {
		return err
	}
	conf := info.Config
	if conf.Metadata = maps.Clone(conf.Metadata); conf.Metadata == nil {
		conf.Metadata = make(map[string]string)
	}
	conf.Metadata[ownerKey] = c.owner
	_, err = c.stream.conn.js.UpdateStream(ctx, conf)
	return err
}

// attach makes a consumer at the server. It waits for a connection until waiting ends. Once
// connected, only the end of ctx interrupts it.
func (c *Consumer) attach(ctx, waiting context.Context) error {
	conn := c.stream.conn
	err := conn.settle(waiting, func(context.Context) error {
		return conn.call(ctx, func(ctx context.Context) error {
			c.session = conn.current()
			return c.create(ctx)
		})
	})
	if err != nil {
		c.session = endedSession
	}
	return err
}

// create makes a consumer at the server that delivers from c.next on, and deletes all
// others. It returns ErrTaken when this process no longer owns the stream.
func (c *Consumer) create(ctx context.Context) (err error) {
	s := c.stream.nats
	c.nats, err = s.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumerPrefix + rand.Text(), AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: idleConsumer,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: c.next,
	})
	if err != nil {
		return err
	}
	own := c.nats.CachedInfo().Name
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	if info.Config.Metadata[ownerKey] != c.owner {
		return errors.Join(ErrTaken, c.remove(ctx, own))
	}
	list := s.ListConsumers(ctx)
	for other := range list.Info() {
		if other.Name != own && strings.HasPrefix(other.Name, consumerPrefix) {
			err = errors.Join(err, c.remove(ctx, other.Name))
		}
	}
	if err = errors.Join(err, list.Err()); err != nil {
		return err
	}
	c.count, c.checked = 0, time.Now()
	c.made++
	return nil
}

// remove deletes a consumer at the server, if it exists.
func (c *Consumer) remove(ctx context.Context, name string) error {
	err := c.stream.nats.DeleteConsumer(ctx, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return err
}

// Fetch returns up to most messages in the order of the stream. It returns fewer, or
// none, when wait has passed or their size reaches a limit. The caller owns the data.
// With an error it returns no messages. The error is
//   - ErrTaken when another consumer has taken over;
//   - ErrAway when there was no connection for all of wait: call again;
//   - ErrClosed after Close;
//   - the cause of ctx when it ended.
func (c *Consumer) Fetch(ctx context.Context, most int, wait time.Duration) ([]Message, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.closed.Err() != nil {
		return nil, ErrClosed
	}
	defer context.AfterFunc(c.closed, func() { cancel(ErrClosed) })() //nolint:contextcheck // closed ends on its own
	waiting, stop := context.WithTimeout(ctx, max(wait, shortestWait))
	defer stop()
	var err error
	for more := len(c.pending) == 0; more && err == nil && waiting.Err() == nil && len(c.pending) < most; {
		more, err = c.pull(ctx, waiting, most-len(c.pending))
	}
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return nil, cause
	case errors.Is(err, ErrTaken):
		c.taken.Store(true)
		return nil, err
	case len(c.pending) == 0:
		return nil, err
	}
	return c.take(most), nil
}

// take returns pending messages, up to a number and, decompressed, about batchBytes.
func (c *Consumer) take(most int) (all []Message) {
	for size := 0; len(c.pending) > 0 && len(all) < most && size < batchBytes; c.pending = c.pending[1:] {
		m := c.pending[0]
		c.pending[0] = nil
		meta, err := m.Metadata()
		if err != nil {
			continue // unreachable: add has read it
		}
		data := decompress(m.Headers(), m.Data())
		size += len(data)
		all = append(all, Message{
			Subject: m.Subject(), ID: m.Headers().Get(jetstream.MsgIDHeader), Data: data, Seq: meta.Sequence.Stream, Time: meta.Timestamp,
		})
	}
	return all
}

// pull requests up to want messages from the server once and adds them to c.pending. It
// reports whether the caller should pull again. It fails without a connection and when
// another consumer has taken over.
func (c *Consumer) pull(ctx, waiting context.Context, want int) (more bool, err error) {
	if c.session.Err() != nil {
		if err := c.attach(ctx, waiting); err != nil {
			return false, err
		}
	}
	end, _ := waiting.Deadline()
	batch, err := c.nats.Fetch(want, jetstream.FetchMaxWait(max(time.Until(end), time.Millisecond)), jetstream.FetchMaxBytes(batchBytes))
	if err != nil { // the connection was lost
		c.session = endedSession
		return true, nil
	}
	for before := len(c.pending); ; {
		select {
		case m, ok := <-batch.Messages():
			switch {
			case ok && c.add(m):
				continue
			case !ok && batch.Error() == nil:
				c.check(ctx)
				return len(c.pending) == before, nil
			}
			c.session = endedSession
			if skipped := c.skipForged(ctx); !ok && !skipped { // for example, the server elects a leader
				_ = wait.Sleep(waiting, settleTick) // the caller checks waiting
			}
			return true, nil
		case <-c.session.Done():
			return true, nil
		case <-ctx.Done(): // messages that the server sends now are lost
			c.session = endedSession
			return false, nil
		}
	}
}

// add takes the next message. It returns false if a previous one was lost.
func (c *Consumer) add(m jetstream.Msg) bool {
	meta, err := m.Metadata()
	switch {
	case err != nil:
		return false
	case meta.Sequence.Stream < c.next:
		return true // delivered again after another server of a cluster took over
	case meta.Sequence.Consumer != c.count+1:
		return false
	}
	c.count, c.next, c.checked = meta.Sequence.Consumer, meta.Sequence.Stream+1, time.Now()
	c.pending = append(c.pending, m)
	return true
}

// skipForged skips messages that look like reports of the server, and reports whether
// there were any. The client library drops empty messages with the header Status, so
// the consumer would never get past them.
func (c *Consumer) skipForged(ctx context.Context) (skipped bool) {
	_ = c.stream.conn.call(ctx, func(ctx context.Context) error { // after an error the next pull fails, too
		for {
			m, err := c.stream.nats.GetMsg(ctx, c.next, jetstream.WithGetMsgSubject(">"))
			if err != nil || len(m.Data) > 0 || m.Header.Get("Status") == "" {
				return err
			}
			c.next, skipped = m.Sequence+1, true
		}
	})
	return skipped
}

// check replaces the consumer at the server if the last messages were lost. It queries
// the server only when nothing has arrived for a while.
func (c *Consumer) check(ctx context.Context) {
	if time.Since(c.checked) < checkEvery {
		return
	}
	c.checked = time.Now()
	err := c.stream.conn.call(ctx, func(ctx context.Context) error {
		info, err := c.nats.Info(ctx)
		if err == nil && info.Delivered.Consumer > c.count {
			c.session = endedSession
		}
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		c.session = endedSession
	}
}

// Ack deletes m and all messages before it from the stream. After an error it may be
// called again. It returns ErrTaken when Fetch has reported that another consumer has
// taken over.
func (c *Consumer) Ack(ctx context.Context, m Message) error {
	return c.ack(ctx, m, c.stream.conn.settle)
}

// TryAck does the same as Ack, but fails without a connection instead of waiting for one.
func (c *Consumer) TryAck(ctx context.Context, m Message) error {
	return c.ack(ctx, m, c.stream.conn.call)
}

func (c *Consumer) ack(ctx context.Context, m Message, request func(context.Context, func(context.Context) error) error) error {
	err := ErrTaken
	switch {
	case c.closed.Err() != nil:
		err = ErrClosed
	case !c.taken.Load():
		err = request(ctx, func(ctx context.Context) error {
			return c.stream.nats.Purge(ctx, jetstream.WithPurgeSequence(m.Seq+1))
		})
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) { // a deleted stream holds nothing
		return fmt.Errorf("acknowledge %s: %w", m.ID, err)
	}
	return nil
}

// Close gives up the stream. The next consumer gets messages that are not acknowledged. Further
// calls do nothing.
func (c *Consumer) Close() {
	c.close()
	c.reading.Lock()
	defer c.reading.Unlock()
	_ = c.stream.conn.call(context.Background(), func(ctx context.Context) error {
		return c.remove(ctx, c.nats.CachedInfo().Name)
	}) // without a connection the next consumer removes it
}

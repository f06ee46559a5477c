package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

const deleters = 16 // deletions under way

// Ack says that m and all messages before it are done: they are deleted, and not
// delivered again. After an error it may be called again. When another consumer has
// taken over, and Fetch has said so, it is ErrTaken.
func (c *Consumer) Ack(ctx context.Context, m Message) error {
	c.mu.Lock()
	taken := c.taken
	c.ledger.acknowledge(m.Seq)
	c.mu.Unlock()
	err := ErrTaken
	if !taken {
		err = c.trim(ctx)
	}
	if err != nil {
		return fmt.Errorf("acknowledge %s: %w", m.ID, err)
	}
	return nil
}

// trim deletes what is done: all below the first that is needed at once, and the
// rest one by one.
func (c *Consumer) trim(ctx context.Context) error {
	if c.closed.Err() != nil {
		return ErrClosed
	}
	c.deleting.Lock()
	defer c.deleting.Unlock()
	c.mu.Lock()
	floor := c.ledger.floor()
	rest := slices.Clone(c.ledger.done)
	c.mu.Unlock()
	rest = slices.DeleteFunc(rest, func(seq uint64) bool { return seq < floor })
	if floor > c.gone {
		err := c.stream.conn.settle(ctx, func(ctx context.Context) error {
			return c.stream.nats.Purge(ctx, jetstream.WithPurgeSequence(floor))
		})
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) { // it went with all that it held
			return err
		}
		c.gone = floor
	}
	err := c.deleteEach(ctx, rest)
	if err != nil {
		rest = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.deleted(floor, rest)
	return err
}

func (c *Consumer) deleteEach(ctx context.Context, seqs []uint64) error {
	var mu sync.Mutex
	var first error
	var all sync.WaitGroup
	slots := make(chan struct{}, deleters)
	for _, seq := range seqs {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			err := c.stream.conn.settle(ctx, func(ctx context.Context) error { return c.stream.nats.DeleteMsg(ctx, seq) })
			if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil {
				return // it may have been deleted before
			}
			mu.Lock()
			defer mu.Unlock()
			first = errors.Join(first, err)
		})
	}
	all.Wait()
	return first
}

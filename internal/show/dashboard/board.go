package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"
)

// boardLeast is the shortest time between two overviews of a stream.
const boardLeast = 2 * time.Second

// board makes overviews at equal times while there are streams, once for all of them,
// and shows those that have changed.
type board struct {
	make  func(ctx context.Context) (json.RawMessage, error)
	every time.Duration

	mu      sync.Mutex
	last    []byte // nil: none since somebody began to look
	streams map[chan []byte]bool
	stop    context.CancelFunc // of the making
	now     chan struct{}      // asks for one out of turn
}

// join returns a channel of overviews: the last at once if there is one, and then each
// that differs. A reader that is slow misses some, but never the newest. leave must be
// called.
func (b *board) join(ctx context.Context) (overviews <-chan []byte, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.streams == nil {
		b.streams = make(map[chan []byte]bool)
	}
	ch := make(chan []byte, 1)
	b.streams[ch] = true
	if len(b.streams) == 1 {
		ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx)) // other streams may outlive this one
		b.now = make(chan struct{}, 1)
		b.last = nil
		go b.run(ctx, b.now)
	} else if b.last != nil {
		ch <- b.last
	}
	return ch, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.streams, ch); len(b.streams) == 0 {
			b.stop()
		}
	}
}

// wake asks for an overview soon, since somebody changed something.
func (b *board) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.now <- struct{}{}: // never if there are no streams
	default:
	}
}

func (b *board) run(ctx context.Context, now <-chan struct{}) {
	t := time.NewTicker(b.every)
	defer t.Stop()
	for {
		b.look(ctx)
		select {
		case <-t.C:
		case <-now:
		case <-ctx.Done():
			return
		}
	}
}

// look makes an overview and shows it if it is another. What goes wrong is not shown:
// ticks tell what is wrong with the pipeline, and the next look may succeed.
func (b *board) look(ctx context.Context) {
	text, err := b.make(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || ctx.Err() != nil || bytes.Equal(text, b.last) {
		return
	}
	b.last = text
	for ch := range b.streams {
		select {
		case <-ch: // missed
		default:
		}
		ch <- text // there is room, and nobody else sends
	}
}

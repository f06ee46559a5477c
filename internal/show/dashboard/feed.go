package dashboard

import (
	"context"
	"sync"
	"time"
)

// feed publishes a value to all subscribers at regular intervals while it has any.
type feed[T any] struct {
	// make returns a value and whether to publish it. last is the previous value since the first
	// subscriber joined, or nil.
	make  func(ctx context.Context, last *T) (T, bool)
	every time.Duration
	most  int // subscribers

	mu          sync.Mutex
	last        *T
	subscribers map[chan T]bool
	stop        context.CancelFunc
	now         chan struct{} // requests a value out of turn
}

// join returns a channel of values that starts with the last one, if any. A slow reader misses some
// values, but never the newest. The caller must call leave. ok is false if the feed is full.
func (f *feed[T]) join(ctx context.Context) (values <-chan T, leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subscribers) >= f.most {
		return nil, nil, false
	}
	ch := make(chan T, 1)
	if len(f.subscribers) == 0 {
		ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx)) // other subscribers may outlive this one
		f.subscribers, f.now, f.last = make(map[chan T]bool), make(chan struct{}, 1), nil
		go f.run(ctx, f.now)
	} else if f.last != nil {
		ch <- *f.last
	}
	f.subscribers[ch] = true
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(f.subscribers, ch); len(f.subscribers) == 0 {
			f.stop()
		}
	}, true
}

// wake requests a value out of turn. Without subscribers it does nothing.
func (f *feed[T]) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.now <- struct{}{}:
	default:
	}
}

func (f *feed[T]) run(ctx context.Context, now <-chan struct{}) {
	t := time.NewTicker(f.every)
	defer t.Stop()
	for {
		f.publish(ctx)
		select {
		case <-t.C:
		case <-now:
		case <-ctx.Done():
			return
		}
	}
}

func (f *feed[T]) publish(ctx context.Context) {
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	value, ok := f.make(ctx, last)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok || ctx.Err() != nil { // later subscribers have another goroutine
		return
	}
	f.last = &value
	for ch := range f.subscribers {
		select {
		case <-ch: // missed
		default:
		}
		ch <- value // does not block: no other goroutine sends
	}
}

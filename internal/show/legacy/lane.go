package legacy

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// A pause between attempts is between these.
const (
	minPause = 100 * time.Millisecond
	maxPause = 10 * time.Second
)

// deliverer delivers a packet. The status is that of an answer, if there was one.
type deliverer func(ctx context.Context, n int, packet []byte) (status int, err error)

// item is a packet that waits.
type item struct {
	n    int
	size int64
	data []byte // nil if it is in a file
	kept bool   // it is in a file
}

// lane delivers packets to one place in the order in which they were added.
type lane struct {
	place   place
	target  string // as people call it
	deliver deliverer
	spill   string
	limit   int64
	log     *slog.Logger

	wake  chan struct{} // something was added, or finish was called
	hurry chan struct{} // the next pause is not worth waiting for
	ended chan struct{} // closed when nothing is delivered any more

	mu      sync.Mutex
	queue   []item
	memory  int64 // bytes of data in queue
	bytes   int64 // of all in queue
	closing bool
	left    bool // leave was called
	p       Progress
	failing bool
}

func startLane(ctx context.Context, pl place, target string, opt SenderOptions, waiting []item, deliver deliverer) *lane {
	l := &lane{
		place: pl, target: target, deliver: deliver, spill: opt.Spill, limit: opt.Queue, log: opt.Log,
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), ended: make(chan struct{}),
		queue: waiting,
	}
	for _, it := range waiting {
		l.bytes += it.size
	}
	go l.run(ctx)
	return l
}

// run delivers until the lane is finished and empty, or ctx ends.
func (l *lane) run(ctx context.Context) {
	defer close(l.ended)
	for l.wait(ctx) {
		for failures := 0; ; failures++ {
			err := l.attempt(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil || !l.pause(ctx, failures, err) {
				return
			}
		}
	}
}

// wait waits for a packet and reports whether there is one.
func (l *lane) wait(ctx context.Context) bool {
	for {
		l.mu.Lock()
		n, closing := len(l.queue), l.closing
		l.mu.Unlock()
		if n > 0 || closing {
			return n > 0 && ctx.Err() == nil
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return false
		}
	}
}

// attempt tries to deliver the first packet.
func (l *lane) attempt(ctx context.Context) error {
	l.mu.Lock()
	it := l.queue[0] // only this goroutine takes it away
	l.mu.Unlock()
	status, err := 0, error(nil)
	data := it.data
	if it.kept {
		data, err = readFile(l.spill, l.place.file(it.n))
	}
	lost := it.kept && errors.Is(err, fs.ErrNotExist)
	if err == nil {
		status, err = l.deliver(ctx, it.n, data)
	}
	if err != nil && !lost {
		if ctx.Err() == nil {
			l.failed(ctx, it.n, status, err)
		}
		return err
	}
	l.taken(it, status, lost)
	return nil
}

// failed notes an attempt that failed.
func (l *lane) failed(ctx context.Context, n, status int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := refusal(status)
	if !l.failing || refused && !l.p.Refused {
		level := slog.LevelWarn
		if refused {
			level = slog.LevelError
		}
		l.log.Log(ctx, level, "packets wait", "from", n, "to", l.target, "error", err)
	}
	l.failing = true
	l.p.Retries++
	l.p.Status, l.p.Error, l.p.Refused = status, err.Error(), refused
}

// pause waits before the next attempt, longer after each failure, and reports
// whether there is to be one. How long a receiver asks to wait comes first.
func (l *lane) pause(ctx context.Context, failures int, err error) bool {
	d, hurry := backoff(failures), l.hurry
	var answer *answerError
	if errors.As(err, &answer) && answer.after > d {
		d, hurry = answer.after, nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-hurry:
	case <-ctx.Done():
		return false
	}
	return true
}

// backoff is how long to wait after the given number of failures in a row before.
func backoff(failures int) time.Duration {
	d := min(maxPause, minPause<<min(failures+1, 16))
	return d/2 + rand.N(d/2+1)
}

// finish says that nothing will be added, and that a pause is to end now.
func (l *lane) finish() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	signal(l.wake)
	signal(l.hurry)
}

// signal sets a flag that one receiver takes.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

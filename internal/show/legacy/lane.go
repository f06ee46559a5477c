package legacy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Bounds of the pauses between attempts.
const (
	minPause = 100 * time.Millisecond
	maxPause = 10 * time.Second
)

// deliverer delivers a packet. status is that of an HTTP answer, or 0.
type deliverer func(ctx context.Context, n int, packet []byte) (status int, err error)

// item is a waiting packet.
type item struct {
	n    int
	size int64
	data []byte // nil: in a file
}

// lane delivers packets to one destination in the order in which they were added.
type lane struct {
	name    string // prefix of files in spill
	target  string // for people
	deliver deliverer
	spill   string
	limit   int64
	log     *slog.Logger

	wake  chan struct{} // after an addition, or finish
	hurry chan struct{} // ends the current pause
	ended chan struct{} // closed at the end of run

	mu      sync.Mutex
	queue   []item
	memory  int64 // bytes of data in queue
	closing bool
	left    bool // leave was called
	p       Progress
}

func newLane(name, target string, opt SenderOptions, deliver deliverer) *lane {
	return &lane{
		name: name, target: target, deliver: deliver, spill: opt.Spill, limit: opt.Queue, log: opt.Log,
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// file returns the path of the file of a waiting packet.
func (l *lane) file(n int) string {
	return filepath.Join(l.spill, fmt.Sprintf("%s-%012d.json", l.name, n))
}

// load queues the packets that an earlier lane left, and returns the number of the last, or -1. It
// removes unfinished files.
func (l *lane) load() (last int, err error) {
	entries, err := os.ReadDir(l.spill) // in order of names, and so of numbers
	last = -1
	for _, e := range entries {
		if name := e.Name(); name[0] == '.' && filepath.Ext(name) == unfinishedSuffix {
			_ = os.Remove(filepath.Join(l.spill, name))
			continue
		}
		n := 0
		if _, err := fmt.Sscanf(e.Name(), l.name+"-%d.json", &n); err != nil || filepath.Base(l.file(n)) != e.Name() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return last, fmt.Errorf("waiting packets: %w", err)
		}
		l.queue, last = append(l.queue, item{n: n, size: info.Size()}), n
	}
	return last, err
}

// add queues a packet, in memory if there is room.
func (l *lane) add(n int, packet []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	it := item{n, int64(len(packet)), packet}
	l.memory += it.size
	if l.left || l.memory > l.limit {
		if err := l.keep(&it); err != nil {
			l.log.Error("keeping a packet in memory: cannot write its file", "packet", n, "to", l.target, "error", err)
		}
	}
	l.queue = append(l.queue, it)
	signal(l.wake)
}

// keep moves a packet from memory to a file.
func (l *lane) keep(it *item) error {
	err := writeFile(l.file(it.n), it.data)
	if errors.Is(err, fs.ErrNotExist) && os.Mkdir(l.spill, 0o755) == nil { // the directory was removed
		err = writeFile(l.file(it.n), it.data)
	}
	if err == nil {
		it.data = nil
		l.memory -= it.size
	}
	return err
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
	it := l.queue[0] // only this goroutine removes it
	l.mu.Unlock()
	status, err := 0, error(nil)
	data := it.data
	if data == nil {
		data, err = os.ReadFile(l.file(it.n))
	}
	lost := it.data == nil && errors.Is(err, fs.ErrNotExist)
	if err == nil {
		status, err = l.deliver(ctx, it.n, data)
	}
	switch {
	case err == nil || lost:
		l.remove(it, status, lost)
		return nil
	case ctx.Err() == nil:
		l.recordFailure(ctx, it.n, status, err)
	}
	return err
}

// recordFailure records a failed attempt.
func (l *lane) recordFailure(ctx context.Context, n, status int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := isRefusal(status)
	if l.p.LastError == "" || refused && !l.p.Refused {
		level := slog.LevelWarn
		if refused {
			level = slog.LevelError
		}
		l.log.Log(ctx, level, "delivery of packets fails", "from", n, "to", l.target, "error", err)
	}
	l.p.Retries++
	l.p.LastStatus, l.p.LastError, l.p.Refused = status, err.Error(), refused
}

// remove removes the first packet, which was delivered or lost.
func (l *lane) remove(it item, status int, lost bool) {
	if it.data == nil && !lost {
		if err := os.Remove(l.file(it.n)); err != nil {
			l.log.Warn("cannot remove the file of a delivered packet", "packet", it.n, "error", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memory -= int64(len(it.data))
	l.queue[0] = item{}
	l.queue = l.queue[1:]
	if lost {
		l.p.Lost++
		l.log.Error("the file of a waiting packet is missing", "packet", it.n, "file", l.file(it.n), "to", l.target)
		return
	}
	if l.p.LastError != "" {
		l.log.Info("delivery of packets continues", "from", it.n, "to", l.target)
	}
	l.p.Sent++
	l.p.LastStatus, l.p.LastError, l.p.Refused = status, "", false
	l.p.LastSent = time.Now()
}

// pause waits before the next attempt, longer after each failure and at least as long as the
// receiver requests. It returns false if ctx ends.
func (l *lane) pause(ctx context.Context, failures int, err error) bool {
	d := min(maxPause, minPause<<min(failures+1, 16))
	d, hurry := d/2+rand.N(d/2+1), l.hurry
	if answer, ok := errors.AsType[*answerError](err); ok && answer.after > d {
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

// finish ends the lane after the last packet, and the current pause.
func (l *lane) finish() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	signal(l.wake)
	signal(l.hurry)
}

// leave writes the waiting packets to files, and returns an error with their number.
func (l *lane) leave() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
	if len(l.queue) == 0 {
		return nil
	}
	lost, why := 0, error(nil)
	for i := range l.queue {
		if it := &l.queue[i]; it.data != nil {
			if err := l.keep(it); err != nil {
				lost, why = lost+1, err
			}
		}
	}
	if lost > 0 {
		return fmt.Errorf("%d packets were not delivered to %s, and %d of them are lost: %w", len(l.queue), l.target, lost, why)
	}
	return fmt.Errorf("%d packets were not delivered to %s: %s (the next run sends them from %s)",
		len(l.queue), l.target, cmp.Or(l.p.LastError, "no time left"), l.spill)
}

func (l *lane) progress() Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.p
	p.Pending = int64(len(l.queue))
	for i := range l.queue {
		p.PendingBytes += l.queue[i].size
	}
	return p
}

// signal sets a flag for one receiver.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

package bus

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What is under way to streams at most: slots, each for a number of bytes or for
// one message that is smaller.
const (
	flightSlots = 1024
	slotBytes   = 32 << 10
)

// flight keeps the messages that were sent to streams and not yet confirmed.
type flight struct {
	turn  chan struct{} // held by the one who takes slots
	slots chan struct{}

	mu      sync.Mutex
	waiting map[*nats.Msg]func(*jetstream.PubAck, error)
	empty   chan struct{} // closed when nothing waits; nil when nobody wants to know
}

func newFlight() *flight {
	return &flight{turn: make(chan struct{}, 1), slots: make(chan struct{}, flightSlots), waiting: make(map[*nats.Msg]func(*jetstream.PubAck, error))}
}

func slotsOf(m *nats.Msg) int { return 1 + len(m.Data)/slotBytes }

// enter waits for room for m; done is called once, by landed or fail.
func (f *flight) enter(ctx context.Context, m *nats.Msg, done func(*jetstream.PubAck, error)) error {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-f.turn }()
	for taken := range slotsOf(m) {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			f.leave(taken)
			return context.Cause(ctx)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[m] = done
	return nil
}

func (f *flight) leave(slots int) {
	for range slots {
		<-f.slots
	}
}

// landed says how m fared. Only the first call for a message counts.
func (f *flight) landed(m *nats.Msg, ack *jetstream.PubAck, err error) {
	f.mu.Lock()
	done := f.waiting[m]
	delete(f.waiting, m)
	if len(f.waiting) == 0 && f.empty != nil {
		close(f.empty)
		f.empty = nil
	}
	f.mu.Unlock()
	if done == nil {
		return
	}
	f.leave(slotsOf(m))
	if err != nil { // maybe with locks of NATS held
		go done(nil, err)
		return
	}
	done(ack, nil)
}

// wait returns when nothing is under way, or ctx ends.
func (f *flight) wait(ctx context.Context) {
	f.mu.Lock()
	if len(f.waiting) == 0 {
		f.mu.Unlock()
		return
	}
	if f.empty == nil {
		f.empty = make(chan struct{})
	}
	empty := f.empty
	f.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}

// fail gives all that is under way the same error.
func (f *flight) fail(err error) { f.failSubject("", err) }

// failSubject gives all that is under way to a subject, or to any, the same error.
func (f *flight) failSubject(subject string, err error) {
	f.mu.Lock()
	all := make([]*nats.Msg, 0, len(f.waiting))
	for m := range f.waiting {
		if subject == "" || m.Subject == subject {
			all = append(all, m)
		}
	}
	f.mu.Unlock()
	for _, m := range all {
		f.landed(m, nil, err)
	}
}

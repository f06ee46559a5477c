package bus

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ledger puts parts together and knows what of the stream is needed. It neither
// reads a clock nor talks to a server.
type ledger struct {
	patience time.Duration // for the next part of a message
	maxHeld  int           // bytes of parts to keep in memory

	open  map[string]*message // of which parts are missing, by id
	ready []*message          // whole, in the order of their last part
	out   []*message          // handed out and not acknowledged, in the same order
	done  []uint64            // sequences that can be deleted
	last  uint64              // sequence that was read
	held  int                 // bytes of parts in memory
	lost  uint64              // messages that never became whole
}

// message is one that is whole or becomes so.
type message struct {
	Message
	shape   part // without the index
	parts   map[int]piece
	first   uint64   // smallest of the sequences
	extra   []uint64 // sequences of parts that came twice
	touched time.Time
}

// piece is a part. Without data it has to be read from the stream again.
type piece struct {
	seq  uint64
	size int
	data []byte
}

func newLedger(patience time.Duration, maxHeld int) *ledger {
	return &ledger{patience: patience, maxHeld: maxHeld, open: make(map[string]*message)}
}

// add takes the next item of the stream.
func (l *ledger) add(it item, now time.Time) {
	l.last = it.seq
	id := it.Header.Get(jetstream.MsgIDHeader)
	text := it.Header.Get(partHeader)
	if text == "" {
		l.ready = append(l.ready, &message{Message: Message{Subject: it.Subject, ID: id, Data: it.Data, Seq: it.seq, Time: it.time}, first: it.seq})
		return
	}
	p, err := parsePart(text)
	if id, _, _ = strings.Cut(id, " "); err != nil || id == "" || len(it.Data) == 0 || len(it.Data) > p.total {
		l.lost++
		l.done = append(l.done, it.seq)
		return
	}
	shape := part{count: p.count, total: p.total}
	m := l.open[id]
	if m != nil && (m.shape != shape || m.Subject != it.Subject) {
		l.drop(m) // its publisher began again in another way
		m = nil
	}
	if m == nil {
		m = &message{Message: Message{Subject: it.Subject, ID: id}, shape: shape, parts: make(map[int]piece), first: it.seq}
		l.open[id] = m
	}
	m.touched = now
	if _, twice := m.parts[p.index]; twice {
		m.extra = append(m.extra, it.seq)
		return
	}
	one := piece{seq: it.seq, size: len(it.Data)}
	if l.held+one.size <= l.maxHeld {
		one.data = it.Data
		l.held += one.size
	}
	m.parts[p.index] = one
	if len(m.parts) == m.shape.count {
		l.complete(m, it)
	}
}

// complete is called with the last part.
func (l *ledger) complete(m *message, it item) {
	size := 0
	for _, one := range m.parts {
		size += one.size
	}
	if size != m.shape.total {
		l.lost++
		l.drop(m)
		return
	}
	delete(l.open, m.ID)
	m.Seq, m.Time = it.seq, it.time
	l.ready = append(l.ready, m)
}

// drop gives up a message that is not whole.
func (l *ledger) drop(m *message) {
	if l.open[m.ID] == m {
		delete(l.open, m.ID)
	}
	l.release(m)
	l.done = m.sequences(l.done)
}

// giveUp drops messages whose next part did not come in time.
func (l *ledger) giveUp(now time.Time) {
	for _, m := range l.open {
		if now.Sub(m.touched) > l.patience {
			l.lost++
			l.drop(m)
		}
	}
}

// release forgets the data of the parts.
func (l *ledger) release(m *message) {
	for _, one := range m.parts {
		l.held -= len(one.data)
	}
}

// missing returns a part of a whole message that has to be read again.
func (m *message) missing() (index int, seq uint64, ok bool) {
	for i, one := range m.parts {
		if one.data == nil {
			return i, one.seq, true
		}
	}
	return 0, 0, false
}

// hand gives out the first message, of which no part is missing.
func (l *ledger) hand() Message {
	m := l.ready[0]
	l.ready = l.ready[1:]
	if m.parts != nil {
		m.Data = make([]byte, 0, m.shape.total)
		for i := range m.shape.count {
			m.Data = append(m.Data, m.parts[i].data...)
		}
		l.release(m)
		for i, one := range m.parts {
			m.parts[i] = piece{seq: one.seq}
		}
	}
	given := m.Message
	m.Data = nil // the caller's alone
	l.out = append(l.out, m)
	return given
}

// skip gives up the first message that is ready.
func (l *ledger) skip() {
	m := l.ready[0]
	l.ready = l.ready[1:]
	l.lost++
	l.drop(m)
}

// acknowledge marks all messages up to a sequence as done.
func (l *ledger) acknowledge(seq uint64) {
	n := 0
	for n < len(l.out) && l.out[n].Seq <= seq {
		l.done = l.out[n].sequences(l.done)
		n++
	}
	l.out = slices.Delete(l.out, 0, n)
}

func (m *message) sequences(all []uint64) []uint64 {
	if m.parts == nil {
		return append(all, m.Seq)
	}
	for _, one := range m.parts {
		all = append(all, one.seq)
	}
	return append(all, m.extra...)
}

// floor is the first sequence that is needed, or may be read later. What is done
// and not below it lies between parts that are needed.
func (l *ledger) floor() uint64 {
	least := uint64(math.MaxUint64)
	for _, m := range l.open {
		least = min(least, m.first)
	}
	for _, list := range [][]*message{l.ready, l.out} {
		for _, m := range list {
			least = min(least, m.first)
		}
	}
	return min(least, l.last+1)
}

// deleted says that sequences are gone: all below floor, and others.
func (l *ledger) deleted(floor uint64, others []uint64) {
	gone := make(map[uint64]bool, len(others))
	for _, seq := range others {
		gone[seq] = true
	}
	l.done = slices.DeleteFunc(l.done, func(seq uint64) bool { return seq < floor || gone[seq] })
}

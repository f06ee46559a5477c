package sst

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// conn is a connection with one rank of a writer. One goroutine receives; several may
// send.
type conn struct {
	net.Conn
	writer         int // number of the rank
	frames         frames
	formats        map[ffs.ID]*ffs.Format // announced by the peer
	held           [][]byte               // records that wait for their format
	requested      map[ffs.ID]uint32      // conditions of requested formats
	requestedBytes atomic.Int64           // bytes of requested data that have not arrived

	sending   sync.Mutex
	announced map[*outgoing]bool
}

const (
	// readBuffer is the buffer for small frames. Most bytes of long frames go directly
	// from the socket to their destination.
	readBuffer = 64 << 10

	// maxPeerFormats is the number of formats that a peer may announce; there are eight.
	maxPeerFormats = 1000

	// maxHeld is the number of records that may wait for their format.
	maxHeld = 64

	// sendTimeout bounds a blocked send. Messages are few and small, so only a hanging peer reaches
	// it.
	sendTimeout = 30 * time.Second

	// goodbyeTimeout is the same for the last message, which the peer does not need.
	goodbyeTimeout = time.Second
)

// dial connects to the process at a and exchanges handshakes. own is the address of this
// reader; its port only serves as a name, because nothing connects to it. If the port is
// 0, dial sets it to that of the connection, which is unique on this machine.
func dial(ctx context.Context, a address, own *address, buffers *pool) (*conn, error) {
	var d net.Dialer
	socket, err := d.DialContext(ctx, "tcp", a.String())
	if err != nil {
		return nil, err
	}
	c := &conn{
		Conn: socket, formats: make(map[ffs.ID]*ffs.Format), requested: make(map[ffs.ID]uint32), announced: make(map[*outgoing]bool),
	}
	c.frames = frames{r: bufio.NewReaderSize(socket, readBuffer), pool: buffers, expected: c.expected}
	if err := c.within(ctx, func() error { return c.greet(a, own) }); err != nil {
		return nil, err
	}
	return c, nil
}

// within calls f and closes the connection if it fails or ctx ends.
func (c *conn) within(ctx context.Context, f func() error) error {
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // ctx has ended
	err := f()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close() // the first error is the one that matters
	}
	return err
}

// recordOverhead is more than the size of a message without its data.
const recordOverhead = 4096

func (c *conn) expected() int64 { return c.requestedBytes.Load() + recordOverhead }

// greet sends the hello and the handshake, and waits for the handshake of the peer.
func (c *conn) greet(a address, own *address) error {
	if local, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil && own.port == 0 {
		own.ip, own.port = local.Addr().Unmap(), local.Port()
	}
	hello := append(binary.BigEndian.AppendUint16(nil, own.port), 0, 0)
	if _, err := c.Write(handshake{manager: own.manager}.append(hello)); err != nil {
		return err
	}
	fr, err := c.frames.next()
	if err != nil {
		return err
	}
	switch h := fr.handshake; {
	case h == nil:
		return protocolError("something else before its handshake")
	case a.manager != 0 && h.manager != a.manager&^answerBit:
		// The other program would misinterpret all messages.
		return &wrongPeerError{a}
	}
	return nil
}

// wrongPeerError reports that another process listens at the address in a contact file.
type wrongPeerError struct{ address }

func (e *wrongPeerError) Error() string {
	return fmt.Sprintf("another program listens at %v now", e.address)
}

// send sends a message, preceded by its format if the peer does not have it.
func (c *conn) send(m *outgoing, v ffs.Values) error { return c.sendWithin(sendTimeout, m, v) }

func (c *conn) sendWithin(limit time.Duration, m *outgoing, v ffs.Values) error {
	record, err := m.format.Encode(v)
	if err != nil {
		return err
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	var b []byte
	if !c.announced[m] {
		c.announced[m] = true
		b = exchange{kind: announceFormat, first: m.format.ID[:], second: m.rep}.append(b)
	}
	return c.write(limit, appendRecord(b, record))
}

// write writes b; the caller has locked sending.
func (c *conn) write(limit time.Duration, b []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err := c.Write(b)
	return err
}

func (c *conn) exchange(e exchange) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.write(sendTimeout, e.append(nil))
}

// receive returns the next message and its buffer, which belongs to the caller.
func (c *conn) receive() (ffs.Record, []byte, error) {
	for {
		if len(c.held) > 0 {
			if rec, b, ok, err := c.takeHeld(); ok || err != nil {
				return rec, b, err
			}
		}
		fr, err := c.frames.next()
		switch {
		case err != nil:
			return ffs.Record{}, nil, err
		case fr.exchange != nil:
			err = c.handleExchange(fr.exchange)
		case fr.record != nil:
			err = c.hold(fr.record)
		}
		if err != nil {
			return ffs.Record{}, nil, err
		}
	}
}

// hold queues a record, and requests its format if it is unknown.
func (c *conn) hold(record []byte) error {
	c.held = append(c.held, record)
	id := ffs.ID(record[:len(ffs.ID{})])
	if _, requested := c.requested[id]; c.formats[id] != nil || requested {
		return nil
	}
	if len(c.held) > maxHeld {
		return protocolError("%d messages in formats without a description", len(c.held))
	}
	c.requested[id] = uint32(len(c.requested) + 1)
	return c.exchange(exchange{kind: queryFormat, condition: c.requested[id], first: id[:]})
}

// takeHeld returns the first queued record if its format is known.
func (c *conn) takeHeld() (rec ffs.Record, b []byte, ok bool, err error) {
	b = c.held[0]
	f := c.formats[ffs.ID(b[:len(ffs.ID{})])]
	if f == nil {
		return rec, nil, false, nil
	}
	c.held[0] = nil
	if c.held = c.held[1:]; len(c.held) == 0 {
		c.held = nil
	}
	rec, err = f.Decode(b)
	if err != nil {
		err = fmt.Errorf("the program's message %q: %w", f.Name, err)
	}
	return rec, b, true, err
}

// handleExchange handles an exchange about formats.
func (c *conn) handleExchange(e *exchange) error {
	switch e.kind {
	case announceFormat:
		if len(e.first) != len(ffs.ID{}) {
			return protocolError("a format with an id of %d bytes", len(e.first))
		}
		return c.learn(ffs.ID(e.first), e.second)
	case answerFormat:
		for id, condition := range c.requested {
			if condition == e.condition {
				return c.learn(id, e.first)
			}
		}
		return nil
	case queryFormat:
		answer := exchange{kind: answerFormat, condition: e.condition}
		for _, m := range outgoingMessages {
			if string(m.format.ID[:]) == string(e.first) {
				answer.first = m.rep
			}
		}
		return c.exchange(answer)
	}
	return protocolError("an exchange of formats of the unknown kind %d", e.kind)
}

func (c *conn) learn(id ffs.ID, rep []byte) error {
	if len(c.formats) >= maxPeerFormats {
		return protocolError("more than %d formats", maxPeerFormats)
	}
	f, err := ffs.ParseFormat(id, rep)
	if err != nil {
		return fmt.Errorf("the program's format %v: %w", id, err)
	}
	c.formats[id] = f
	return nil
}

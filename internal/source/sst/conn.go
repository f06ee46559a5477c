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

// conn is a connection with one rank of a writer. One goroutine receives;
// several may send.
type conn struct {
	net.Conn
	writer  int // number of the rank
	frames  frames
	formats map[ffs.ID]*ffs.Format // that the peer announced
	held    [][]byte               // records whose formats were asked for
	asked   map[ffs.ID]uint32      // by what condition
	asking  atomic.Int64           // bytes of data that were asked for and have not come

	sending   sync.Mutex
	announced map[*outgoing]bool
}

const (
	// readBuffer is for frames that are small; of long ones, all but what came
	// with the frame before goes from the socket to its own buffer.
	readBuffer = 64 << 10

	// maxPeerFormats is how many formats a peer may announce; there are eight.
	maxPeerFormats = 1000

	// maxHeld is how many records wait for a format that was asked for.
	maxHeld = 64

	// sendTimeout is how long the peer may refuse to take a message. They are
	// few and small, so only one that hangs does.
	sendTimeout = 30 * time.Second

	// goodbyeTimeout is the same for the last message, which it can do without.
	goodbyeTimeout = time.Second
)

// dial connects with the process at a and shakes hands. own is who we are: the
// port in it is only a name, as no one connects to us; where it is 0, it is set
// to that of the connection, which no other reader on this machine has. It ends
// with ctx.
func dial(ctx context.Context, a address, own *address, buffers *pool) (*conn, error) {
	var d net.Dialer
	socket, err := d.DialContext(ctx, "tcp", a.String())
	if err != nil {
		return nil, err
	}
	c := &conn{
		Conn: socket, formats: make(map[ffs.ID]*ffs.Format), asked: make(map[ffs.ID]uint32), announced: make(map[*outgoing]bool),
	}
	c.frames = frames{r: bufio.NewReaderSize(socket, readBuffer), pool: buffers, expected: c.expected}
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // it is over
	err = c.greet(a, own)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close() // the first error is the one that matters
		return nil, err
	}
	return c, nil
}

// recordOverhead is more than a message with data has besides them.
const recordOverhead = 4096

func (c *conn) expected() int64 { return c.asking.Load() + recordOverhead }

// greet sends the hello and the handshake, and waits for that of the peer.
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
		// Whatever we send now would be taken for something else.
		return &strangerError{a}
	}
	return nil
}

// strangerError reports that another process listens where a contact file says
// that its writer does.
type strangerError struct{ address }

func (e *strangerError) Error() string {
	return fmt.Sprintf("another program listens at %v now", e.address)
}

// send sends a message, after its format if the peer does not have that yet.
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

// write writes all at once; sending is held.
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

// receive returns the next message and the buffer that it is in, which is the
// caller's.
func (c *conn) receive() (ffs.Record, []byte, error) {
	for {
		if len(c.held) > 0 {
			if rec, b, ok, err := c.unheld(); ok || err != nil {
				return rec, b, err
			}
		}
		fr, err := c.frames.next()
		switch {
		case err != nil:
			return ffs.Record{}, nil, err
		case fr.exchange != nil:
			err = c.exchanged(fr.exchange)
		case fr.record != nil:
			err = c.hold(fr.record)
		}
		if err != nil {
			return ffs.Record{}, nil, err
		}
	}
}

// hold takes a record, and asks for its format if that is not known.
func (c *conn) hold(record []byte) error {
	c.held = append(c.held, record)
	id := ffs.ID(record[:len(ffs.ID{})])
	if _, asked := c.asked[id]; c.formats[id] != nil || asked {
		return nil
	}
	if len(c.held) > maxHeld {
		return protocolError("%d messages in formats that it did not describe", len(c.held))
	}
	c.asked[id] = uint32(len(c.asked) + 1)
	return c.exchange(exchange{kind: askFormat, condition: c.asked[id], first: id[:]})
}

// unheld returns the first record, if its format is there.
func (c *conn) unheld() (rec ffs.Record, b []byte, ok bool, err error) {
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

// exchanged deals with what the peer says of formats.
func (c *conn) exchanged(e *exchange) error {
	switch e.kind {
	case announceFormat:
		if len(e.first) != len(ffs.ID{}) {
			return protocolError("a format with an id of %d bytes", len(e.first))
		}
		return c.learn(ffs.ID(e.first), e.second)
	case answerFormat:
		for id, condition := range c.asked {
			if condition == e.condition {
				return c.learn(id, e.first)
			}
		}
		return nil
	case askFormat:
		answer := exchange{kind: answerFormat, condition: e.condition}
		for _, m := range sent {
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

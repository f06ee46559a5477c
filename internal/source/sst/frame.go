package sst

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// The first 4 bytes of a frame. The lowest byte of all but the first kind is a checksum.
const (
	magicExchange  = 0x5042494f // of formats
	magicHandshake = 0x434d4800
	magicRecord    = 0x434d4400
	magicWithList  = 0x434d4100 // a record with a list of attributes
	magicLong      = 0x434d4200 // a record of more than 2 GiB
	magicMask      = 0xffffff00
)

const (
	maxExchange  = 64 << 20 // bytes of a description, with its id
	maxHandshake = 64

	// checkedSize is the size below which sent frames have a checksum; 0 means none.
	checkedSize = 10240

	// trustedSize is the memory that a length from the peer alone may allocate.
	trustedSize = 1 << 20
)

// handshake is the first message of both sides of a connection.
type handshake struct {
	manager uint32 // the sender's number
	answer  bool   // the sender has received our handshake
}

const (
	handshakeSize    = 20
	handshakeVersion = 1
	selfHosted       = math.MaxUint32 // formats come over the connection itself
	answerBit        = 1 << 31
)

func (h handshake) append(b []byte) []byte {
	id := h.manager &^ answerBit
	if h.answer {
		id |= answerBit
	}
	for _, v := range []uint32{magicHandshake, handshakeVersion<<24 | handshakeSize, selfHosted, id, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// exchange is a request for a format, an answer, or an announcement.
type exchange struct {
	kind      uint32
	condition uint32 // of a request and its answer
	first     []byte // the id; of an answer the description
	second    []byte // the description
}

// Kinds of exchanges.
const (
	queryFormat    = 0
	answerFormat   = 1
	announceFormat = 2
)

func (e exchange) append(b []byte) []byte {
	for _, v := range []uint32{
		magicExchange, uint32(16 + len(e.first) + len(e.second)), e.kind, e.condition, uint32(len(e.first)),
		uint32(len(e.second)),
	} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return slices.Concat(b, e.first, e.second)
}

// appendRecord appends a frame with a record.
func appendRecord(b, record []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, magicRecord)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(record)))
	b = append(b, record...)
	if len(b)-at < checkedSize {
		b[at] = checksum(b[at+4:])
	}
	return b
}

func checksum(b []byte) (sum byte) {
	for _, v := range b {
		sum += v
	}
	return sum
}

// frame is a frame from the peer; only one of its fields is set.
type frame struct {
	handshake *handshake
	exchange  *exchange
	record    []byte // from the pool
}

// frames reads the frames from the peer.
type frames struct {
	r    *bufio.Reader
	pool *pool
	// expected returns the size of requested data, up to which the memory for a record
	// may be allocated before it arrives.
	expected func() int64
}

// next returns the next frame, whose content belongs to the caller. io.EOF means that
// the peer closed the connection between two frames.
func (f *frames) next() (frame, error) {
	var head [8]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return frame{}, err
	}
	magic, length := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if magic == magicExchange {
		e, err := f.exchange(length)
		return frame{exchange: e}, err
	}
	switch magic & magicMask {
	case magicHandshake:
		h, err := f.handshake(length & 0xffffff)
		return frame{handshake: h}, err
	case magicRecord:
		b, err := f.record(head, length)
		return frame{record: b}, err
	case magicWithList, magicLong:
		return frame{}, &bp.UnsupportedError{
			What:   "a step of more than 2 GiB",
			Advice: "have TAU write steps more often (TAU_ADIOS2_PERIODIC, TAU_ADIOS2_PERIOD)",
		}
	}
	return frame{}, protocolError("bytes that are not a message: % x", head)
}

func (f *frames) handshake(length uint32) (*handshake, error) {
	if length < handshakeSize-4 || length > maxHandshake {
		return nil, protocolError("a handshake of %d bytes", length)
	}
	b := make([]byte, length-8)
	if err := readFull(f.r, b); err != nil {
		return nil, err
	}
	id := binary.LittleEndian.Uint32(b[4:])
	return &handshake{manager: id &^ answerBit, answer: id&answerBit != 0}, nil
}

func (f *frames) exchange(length uint32) (*exchange, error) {
	const rest = 16
	if length < rest || length > maxExchange {
		return nil, protocolError("an exchange of formats of %d bytes", length)
	}
	var head [rest]byte
	if err := readFull(f.r, head[:]); err != nil {
		return nil, err
	}
	e := &exchange{kind: binary.LittleEndian.Uint32(head[:]), condition: binary.LittleEndian.Uint32(head[4:])}
	first, second := binary.LittleEndian.Uint32(head[8:]), binary.LittleEndian.Uint32(head[12:])
	if uint64(first)+uint64(second) != uint64(length-rest) {
		return nil, protocolError("an exchange of formats of %d bytes, with %d and %d in it", length, first, second)
	}
	b, err := f.read(nil, int(length-rest), trustedSize)
	if err != nil {
		return nil, err
	}
	e.first, e.second = b[:first:first], b[first:]
	return e, nil
}

func (f *frames) record(head [8]byte, length uint32) ([]byte, error) {
	if length < uint32(len(ffs.ID{})) || length > math.MaxInt32 {
		return nil, protocolError("a record of %d bytes", length)
	}
	b, err := f.read(f.pool.get(int(length)), int(length), max(trustedSize, f.expected()))
	if err != nil {
		f.pool.put(b)
		return nil, err
	}
	if want := head[0]; want != 0 {
		if got := checksum(head[4:]) + checksum(b); got != want {
			f.pool.put(b)
			return nil, protocolError("a record of %d bytes has the checksum %d, but should have %d", length, got, want)
		}
	}
	return b, nil
}

// read reads n bytes, into b if it is large enough. It allocates at most trusted bytes
// at once, and more only as bytes arrive.
func (f *frames) read(b []byte, n int, trusted int64) ([]byte, error) {
	if cap(b) < n && int64(n) <= trusted {
		b = make([]byte, 0, n+n/8)
	}
	b = b[:0]
	for len(b) < n {
		have := len(b)
		more := min(n-have, max(cap(b)-have, have, trustedSize))
		b = slices.Grow(b, more)[:have+more]
		if err := readFull(f.r, b[have:]); err != nil {
			return b[:0], err
		}
	}
	return b, nil
}

// readFull fills b. It returns io.ErrUnexpectedEOF at the end of the connection.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// protocolError returns an error about an invalid message of the peer.
func protocolError(format string, args ...any) error {
	return fmt.Errorf("the program sent %s", fmt.Sprintf(format, args...))
}

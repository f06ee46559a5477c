package bp

import (
	"encoding/binary"
	"fmt"
)

// cursor reads consecutive little-endian fields. The first error is sticky: later
// reads return zeros, so that one check at the end is enough.
type cursor struct {
	buf  []byte
	off  int
	base int64 // position of buf[0] in its file
	err  *CorruptError
}

func (c *cursor) fail(at int64, format string, args ...any) {
	if c.err == nil {
		c.err = &CorruptError{Step: -1, Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
}

// pos returns the position of the next byte in the file.
func (c *cursor) pos() int64 { return c.base + int64(c.off) }

func (c *cursor) left() int { return len(c.buf) - c.off }

func (c *cursor) bytes(n uint64) []byte {
	if left := uint64(c.left()); c.err == nil && n > left {
		c.fail(c.pos(), "need %d bytes, have %d", n, left)
	}
	if c.err != nil {
		return nil
	}
	b := c.buf[c.off : c.off+int(n) : c.off+int(n)]
	c.off += int(n)
	return b
}

func (c *cursor) u8() uint8 {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// str16 reads a string after its u16 length.
func (c *cursor) str16() []byte { return c.bytes(uint64(c.u16())) }

// done fails unless everything was read.
func (c *cursor) done() {
	if left := c.left(); left > 0 {
		c.fail(c.pos(), "%d bytes are left over", left)
	}
}

// sub returns a cursor over the next n bytes and skips them.
func (c *cursor) sub(n uint64) cursor {
	base := c.pos()
	return cursor{buf: c.bytes(n), base: base, err: c.err}
}

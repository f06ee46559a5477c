package otf2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// The records that all files have.
const (
	endOfChunk    = 0
	endOfFile     = 1
	endOfRecords  = 2
	chunkHeader   = 3
	timestamp     = 5
	attributeList = 6
)

// headerSize is the size of the header of a chunk: its type, the order of bytes, and the numbers of the first and
// the last event.
const headerSize = 18

// undefined is the number of what is not defined.
const undefined = math.MaxUint32

// cursor reads numbers and texts from bytes. After the first error it returns zeros.
type cursor struct {
	path string
	data []byte
	pos  int
	at   int64 // offset of data in the file
	big  bool  // the most significant byte is first
	err  error
}

// setOrder sets the order of bytes, given as in a file, and reports whether it is known.
func (c *cursor) setOrder(b byte) bool {
	c.big = b == '#'
	return b == 'B' || b == '#'
}

// fail sets the error unless there is one.
func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: byte %d: %w", c.path, c.at+int64(c.pos), err)
	}
}

// take returns the next n bytes, or nil.
func (c *cursor) take(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.data)-c.pos {
		c.fail(errCut)
		c.pos = len(c.data)
		return nil
	}
	b := c.data[c.pos : c.pos+n]
	c.pos += n
	return b
}

func (c *cursor) skip(n int) { c.take(n) }

func (c *cursor) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

// u64 returns a number of eight bytes.
func (c *cursor) u64() uint64 {
	b := c.take(8)
	switch {
	case b == nil:
		return 0
	case c.big:
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// number returns a compressed number: a count of bytes, and so many bytes. A count of 255 stands for the greatest
// number.
func (c *cursor) number() uint64 {
	n := c.byte()
	switch {
	case n == 0:
		return 0
	case n == math.MaxUint8:
		return math.MaxUint64
	case n > 8:
		c.pos--
		c.fail(fmt.Errorf("a number of %d bytes", n))
		return 0
	}
	var v uint64
	b := c.take(int(n))
	for i := range b {
		if c.big {
			v = v<<8 | uint64(b[i])
		} else {
			v |= uint64(b[i]) << (8 * i)
		}
	}
	return v
}

// id returns a compressed number of 32 bits.
func (c *cursor) id() uint32 { return uint32(min(c.number(), undefined)) }

// text returns a text that ends with a zero byte.
func (c *cursor) text() string {
	n := bytes.IndexByte(c.data[c.pos:], 0)
	if n < 0 {
		c.fail(errCut)
		return ""
	}
	s := string(c.data[c.pos : c.pos+n])
	c.pos += n + 1
	return s
}

// more reports whether bytes are left.
func (c *cursor) more() bool { return c.err == nil && c.pos < len(c.data) }

// length returns the length of a record.
func (c *cursor) length() int {
	n := uint64(c.byte())
	if n == math.MaxUint8 {
		n = c.u64()
	}
	return int(min(n, math.MaxInt32))
}

// chunks reads a file in chunks. The cursor is in the current one.
type chunks struct {
	cursor
	file  *os.File
	size  int64
	chunk int64
	last  bool // there is no further chunk
	held  int  // bytes of the current chunk before release
}

// release closes the file and frees the memory until the next record is read.
func (c *chunks) release() {
	c.close()
	c.held, c.data = len(c.data), nil
}

// restore undoes release.
func (c *chunks) restore() {
	f, err := os.Open(c.path)
	if err != nil {
		c.fail(err)
		return
	}
	c.file, c.data = f, make([]byte, c.held)
	if _, err := io.ReadFull(io.NewSectionReader(f, c.at, int64(c.held)), c.data); err != nil {
		c.fail(err)
	}
}

// openChunks opens a file.
func openChunks(path string, chunk uint64) (*chunks, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &chunks{cursor: cursor{path: path}, file: f, size: info.Size(), chunk: int64(chunk)}, nil
}

func (c *chunks) close() {
	if c.file != nil {
		_ = c.file.Close() // nothing was written
		c.file = nil
	}
}

// next reads the next chunk, and reports whether there is one.
func (c *chunks) next() bool {
	if c.err != nil || c.last {
		return false
	}
	c.at += int64(len(c.data))
	n := min(c.chunk, c.size-c.at)
	if n <= 0 {
		c.last = true
		c.data, c.pos = nil, 0
		return false
	}
	if int64(cap(c.data)) < n {
		c.data = make([]byte, n)
	}
	c.data, c.pos = c.data[:n], 0
	if k, err := c.file.ReadAt(c.data, c.at); err != nil && !errors.Is(err, io.EOF) {
		c.fail(err)
		return false
	} else if int64(k) < n {
		c.data = c.data[:k]
	}
	if len(c.data) < headerSize || c.data[0] != chunkHeader || !c.setOrder(c.data[1]) {
		c.fail(errors.New("no header of a chunk"))
		return false
	}
	c.pos = headerSize
	return true
}

// record returns the type of the next record, without the end of chunks, or false at the end or after an error.
func (c *chunks) record() (byte, bool) {
	if c.file == nil && !c.last {
		c.restore()
	}
	for {
		if c.err != nil || c.pos >= len(c.data) && !c.next() {
			return 0, false
		}
		if c.pos >= len(c.data) {
			continue
		}
		t := c.data[c.pos]
		c.pos++
		switch t {
		case endOfChunk:
			c.pos = len(c.data)
			continue
		case endOfFile, endOfRecords:
			c.last, c.pos = true, len(c.data)
			return 0, false
		}
		return t, true
	}
}

// body returns a cursor over the rest of a record with a length, and moves to the next.
func (c *chunks) body() (b cursor) {
	n := c.length()
	start := c.pos
	data := c.take(n)
	return cursor{path: c.path, data: data, at: c.at + int64(start), big: c.big, err: c.err}
}

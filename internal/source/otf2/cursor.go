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

// undefined is the number of a missing definition.
const undefined = math.MaxUint32

// cursor reads numbers and texts from bytes. After the first error it returns zeros.
type cursor struct {
	path string
	data []byte
	pos  int
	end  int   // of the readable bytes: the data, or a record
	at   int64 // offset of data in the file
	big  bool  // the most significant byte is first
	err  error
}

// setOrder sets the order of bytes, given as in a file. It returns false for an unknown order.
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
	if c.err != nil || n < 0 || n > c.end-c.pos {
		c.fail(errCut)
		c.pos = c.end
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
	if p := c.pos; c.end-p >= 8 && !c.big {
		c.pos = p + 8
		return binary.LittleEndian.Uint64(c.data[p : p+8])
	}
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
	// If eight bytes of memory follow, one load reads the number, and the mask removes the other bytes.
	if p := c.pos; p < c.end && cap(c.data)-p > 8 && !c.big {
		if n := int(c.data[p]); n <= 8 && n < c.end-p {
			c.pos = p + 1 + n
			return binary.LittleEndian.Uint64(c.data[p+1:p+9]) & (1<<(8*n) - 1)
		}
	}
	return c.anyNumber()
}

// anyNumber is number for every order of bytes, and for damaged and last numbers.
func (c *cursor) anyNumber() uint64 {
	n := c.byte()
	switch {
	case n == 0:
		return 0
	case n == math.MaxUint8:
		return math.MaxUint64
	case n > 8:
		c.pos--
		c.fail(fmt.Errorf("a number of %d bytes", n))
		c.pos = c.end
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
	n := bytes.IndexByte(c.data[c.pos:c.end], 0)
	if n < 0 {
		c.fail(errCut)
		return ""
	}
	s := string(c.data[c.pos : c.pos+n])
	c.pos += n + 1
	return s
}

// more reports whether bytes are left.
func (c *cursor) more() bool { return c.err == nil && c.pos < c.end }

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

// spare is the number of bytes after a chunk in memory, so that cursor.number may load eight bytes everywhere.
const spare = 8

// release closes the file and frees the memory.
func (c *chunks) release() {
	if c.file != nil {
		c.held = len(c.data)
		c.close()
	}
}

// restore undoes release. After an error the data are empty.
func (c *chunks) restore() {
	f, err := os.Open(c.path)
	if err != nil {
		c.fail(err)
		return
	}
	c.file = f
	data := chunkMemory.get(c.held)[:c.held]
	if _, err := f.ReadAt(data, c.at); err != nil {
		c.fail(err)
		return
	}
	c.data = data
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

// close closes the file and frees the memory.
func (c *chunks) close() {
	if c.file != nil {
		_ = c.file.Close() // nothing was written
		c.file = nil
	}
	chunkMemory.put(c.data)
	c.data = nil
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
		c.data, c.pos, c.end = nil, 0, 0
		return false
	}
	if int64(cap(c.data)) < n+spare {
		chunkMemory.put(c.data)
		c.data = chunkMemory.get(int(n))
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
	c.pos, c.end = headerSize, len(c.data)
	return true
}

// record returns the type of the next record, without the end of chunks, or false at the end or after an error.
func (c *chunks) record() (byte, bool) {
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

// begin reads the length of a record, so that the cursor ends with it until finish is called.
func (c *chunks) begin() {
	if p := c.pos; p < c.end && int(c.data[p]) < min(c.end-p, math.MaxUint8) {
		c.pos, c.end = p+1, p+1+int(c.data[p])
		return
	}
	n := c.length()
	start := c.pos
	if c.take(n) != nil {
		c.pos, c.end = start, start+n
	}
}

// finish moves to the next record.
func (c *chunks) finish() { c.pos, c.end = c.end, len(c.data) }

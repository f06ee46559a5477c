package summary

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// cursor reads an encoded Live. The first error stays; after it everything that
// is read is zero.
type cursor struct {
	b    []byte
	size int
	err  error
}

func newCursor(b []byte) (*cursor, error) {
	rest, ok := bytes.CutPrefix(b, []byte(liveMagic))
	if !ok {
		return nil, fmt.Errorf("%w: it does not begin with %q", stats.ErrEncoding, liveMagic)
	}
	return &cursor{b: rest, size: len(b)}, nil
}

// fail says that what was read cannot be.
func (c *cursor) fail(why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: before byte %d of %d: %s", stats.ErrEncoding, c.size-len(c.b), c.size, why)
	}
	c.b = nil
}

// list reads the length of a list, and each element with the given function.
func (c *cursor) list(read func(*cursor)) {
	for n := c.number(); n > 0 && c.err == nil; n-- {
		read(c)
	}
}

// end holds that nothing follows.
func (c *cursor) end() {
	if c.err == nil && len(c.b) > 0 {
		c.fail("there is more than one picture")
	}
}

func (c *cursor) number() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail("a number is missing")
		return 0
	}
	c.b = c.b[n:]
	return v
}

// below reads a number that is at most the given one.
func (c *cursor) below(most uint64) uint64 {
	v := c.number()
	if v > most {
		c.fail("a number is too large")
		return 0
	}
	return v
}

func (c *cursor) signed(least, most int64) int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 || v < least || v > most {
		c.fail("a number is missing or too large")
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) bool() bool { return c.below(1) == 1 }

func (c *cursor) text() string {
	n := c.number()
	if n > uint64(len(c.b)) {
		c.fail("a text is cut off")
		return ""
	}
	s := string(c.b[:n])
	c.b = c.b[n:]
	return s
}

func (c *cursor) sums() stats.Sums {
	if c.err != nil {
		return stats.Sums{}
	}
	s, rest, err := stats.ReadSums(c.b)
	if err != nil {
		c.fail("no sums")
		return stats.Sums{}
	}
	c.b = rest
	return s
}

func (c *cursor) runStats() (s stats.RunStats) {
	if len(c.b) < 7*8 {
		c.fail("moments are cut off")
		return s
	}
	for i, v := range [...]*float64{&s.N, &s.Mean, &s.M2, &s.M3, &s.M4, &s.Min, &s.Max} {
		*v = math.Float64frombits(binary.LittleEndian.Uint64(c.b[8*i:]))
	}
	c.b = c.b[7*8:]
	return s
}

// Package codec encodes numbers and texts as bytes and decodes them. A type describes its
// fields once, in a function for both directions, so that they cannot differ.
package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Coder appends the encoding of values to B, or decodes them from it. The first error of
// decoding stays; every value after it is zero.
type Coder struct {
	B        []byte // encoded, or to decode
	Decoding bool
	Err      error

	malformed error
	at        int // bytes of B that are decoded; an index, since a shorter B would cost a write barrier per value
}

// Decoder returns a Coder that decodes b. Its errors wrap malformed.
func Decoder(b []byte, malformed error) Coder {
	return Coder{B: b, Decoding: true, malformed: malformed}
}

// Left returns the number of bytes left to decode.
func (c *Coder) Left() int { return len(c.B) - c.at }

// Rest returns the bytes left to decode.
func (c *Coder) Rest() []byte { return c.B[c.at:] }

// Continue continues with the given end of Rest, after another decoder has read its beginning.
func (c *Coder) Continue(rest []byte) { c.at = len(c.B) - len(rest) }

// Fail sets the error of decoding, unless there is one.
func (c *Coder) Fail(format string, args ...any) {
	if c.Err == nil {
		c.Err = fmt.Errorf("%w: before byte %d of %d: %w", c.malformed, c.at, len(c.B), fmt.Errorf(format, args...))
	}
	c.at = len(c.B)
}

// End rejects trailing bytes.
func (c *Coder) End() {
	if c.Err == nil && c.Left() > 0 {
		c.Fail("trailing bytes")
	}
}

// Uint codes a number, which decoding limits to most. Most numbers need one or two bytes.
func (c *Coder) Uint(v, most uint64) uint64 {
	if c.Decoding {
		return c.ReadUint(most)
	}
	switch {
	case v < 1<<7:
		c.B = append(c.B, byte(v))
	case v < 1<<14:
		c.B = append(c.B, byte(v)|0x80, byte(v>>7))
	default:
		c.B = binary.AppendUvarint(c.B, v)
	}
	return v
}

// ReadUint decodes a number of at most the given value.
func (c *Coder) ReadUint(most uint64) uint64 {
	b := c.B[c.at:]
	if len(b) > 0 && b[0] < 1<<7 && uint64(b[0]) <= most {
		c.at++
		return uint64(b[0])
	}
	if len(b) > 1 && b[1] < 1<<7 && most >= 1<<14 { // b[0] is 128 or more
		c.at += 2
		return uint64(b[0]&0x7f) | uint64(b[1])<<7
	}
	v, n := binary.Uvarint(b)
	if n <= 0 || v > most {
		c.Fail("number missing or too large")
		return 0
	}
	c.at += n
	return v
}

// Int codes a number that may be negative.
func (c *Coder) Int(v int64) int64 {
	u := c.Uint(uint64(v)<<1^uint64(v>>63), math.MaxUint64)
	return int64(u>>1) ^ -int64(u&1)
}

// ReadInt decodes a number from least to most.
func (c *Coder) ReadInt(least, most int64) int64 {
	v := c.Int(0)
	if v < least || v > most {
		c.Fail("number too large")
		return 0
	}
	return v
}

// Fixed codes a number in eight bytes.
func (c *Coder) Fixed(v uint64) uint64 {
	if !c.Decoding {
		c.B = binary.LittleEndian.AppendUint64(c.B, v)
		return v
	}
	b := c.ReadBytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// Floats codes fractions in eight bytes each.
func (c *Coder) Floats(values ...*float64) {
	for _, v := range values {
		*v = math.Float64frombits(c.Fixed(math.Float64bits(*v)))
	}
}

// Bool codes a flag.
func (c *Coder) Bool(v *bool) {
	n := uint64(0)
	if *v {
		n = 1
	}
	*v = c.Uint(n, 1) == 1
}

// Text codes a text: its length and its bytes.
func (c *Coder) Text(s *string) {
	if c.Decoding {
		*s = string(c.ReadText())
		return
	}
	c.Uint(uint64(len(*s)), 0)
	c.B = append(c.B, *s...)
}

// ReadText decodes a text without a copy.
func (c *Coder) ReadText() []byte { return c.ReadBytes(c.ReadUint(math.MaxUint64)) }

// ReadBytes decodes n bytes without a copy. It returns nil if they are missing.
func (c *Coder) ReadBytes(n uint64) []byte {
	if n > uint64(c.Left()) {
		c.Fail("truncated")
		return nil
	}
	from := c.at
	c.at += int(n)
	return c.B[from:c.at:c.at]
}

// ReadLength decodes the number of elements of a list, each of which takes at least a byte.
func (c *Coder) ReadLength() int { return int(c.ReadUint(uint64(c.Left()))) }

// Unsigned codes a number, which decoding limits to most.
func Unsigned[T ~int | ~uint32 | ~uint64](c *Coder, v *T, most uint64) {
	*v = T(c.Uint(uint64(*v), most))
}

// Signed codes numbers that may be negative. Decoding checks their range.
func Signed[T ~int | ~int32 | ~int64 | ~uint32 | ~uint64](c *Coder, values ...*T) {
	for _, v := range values {
		n := c.Int(int64(*v))
		if *v = T(n); int64(*v) != n {
			*v = 0
			c.Fail("number too large")
		}
	}
}

// List codes the length of a list and its elements, which take at least a byte each. Decoding
// reuses the memory of the list and its elements.
func List[T any](c *Coder, all *[]T, element func(*T)) {
	if !c.Decoding {
		c.Uint(uint64(len(*all)), 0)
		for i := range *all {
			element(&(*all)[i])
		}
		return
	}
	list := (*all)[:0]
	for n := c.ReadLength(); n > 0 && c.Err == nil; n-- {
		if k := len(list); k < cap(list) {
			list = list[:k+1]
		} else {
			list = append(list, *new(T))
		}
		element(&list[len(list)-1])
	}
	*all = list
}

package bp

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

// element is one set of characteristics in BP3 and BP4: one block of a variable, or
// one writer's value of an attribute.
type element struct {
	name []byte
	code uint8 // of the type
	typ  Type
	set  int // number among the sets of the element

	step    uint32 // from 1
	file    uint32
	payload uint64
	count   []uint64
	shape   []uint64
	start   []uint64
	value   []byte
	texts   []string // the value of an array of strings

	operator string
	skip     bool // the set has an unknown part
	c        *cursor
}

func (el *element) fail(reason string) { el.c.fail(el.c.pos(), "%q: %s", el.name, reason) }

// Characteristics of a set.
const (
	charValue      = 0
	charMin        = 1
	charMax        = 2
	charOffset     = 3
	charDimensions = 4
	charVarID      = 5
	charPayload    = 6
	charFile       = 7
	charStep       = 8
	charOperator   = 11
	charMinMax     = 12
)

const (
	localValueDim  = math.MaxUint64 - 2
	joinedArrayDim = math.MaxUint64 - 1
)

// elementParser reads the sections of variables and attributes.
type elementParser struct {
	tally *tally.Tally
	bp3   bool
}

// section reads one section and calls add for each set of each element. It follows
// the lengths in the section, not the counts beside them.
func (p *elementParser) section(c *cursor, add func(*element)) {
	c.u32() // number of elements
	list := c.sub(c.u64())
	for c.err == nil && list.left() > 0 {
		body := list.sub(uint64(list.u32()))
		if list.err == nil {
			p.element(&body, add)
			list.err = body.err
		}
		c.err = list.err
	}
	c.done()
}

func (p *elementParser) element(c *cursor, add func(*element)) {
	c.u32()   // member id
	c.str16() // group
	name := c.str16()
	if p.bp3 {
		c.str16() // path
	} else {
		c.u16() // layout, unused
	}
	code := c.u8()
	c.u64() // number of sets, not reliable
	for set := 0; c.err == nil && c.left() > 0; set++ {
		el := element{name: name, code: code, typ: typeOfBP4(code), set: set, c: c}
		p.set(c, &el)
		if c.err == nil && !el.skip {
			add(&el)
		}
	}
}

func (p *elementParser) set(c *cursor, el *element) {
	c.u8() // number of characteristics
	length := c.u32()
	s := c.sub(uint64(length))
	for s.err == nil && s.left() > 0 && !el.skip {
		switch id := s.u8(); id {
		case charValue:
			p.value(&s, el, length)
		case charMin, charMax:
			s.bytes(uint64(el.typ.Size()))
		case charOffset:
			s.u64()
		case charDimensions:
			parseDimensions(&s, el)
		case charVarID:
			s.u32()
		case charPayload:
			el.payload = s.u64()
		case charFile:
			el.file = s.u32()
		case charStep:
			el.step = s.u32()
		case charOperator:
			parseOperator(&s, el)
		case charMinMax:
			parseMinMax(&s, el)
		default: // its length is unknown, so the rest cannot be read
			p.tally.Add(tally.ElementSkipped, 1)
			el.skip = true
		}
	}
	if c.err == nil {
		c.err = s.err
	}
}

func parseDimensions(s *cursor, el *element) {
	n := int(s.u8())
	d := s.sub(uint64(s.u16()))
	if s.err == nil && d.left() < n*24 {
		s.fail(s.pos(), "%q: %d dimensions do not fit into %d bytes", el.name, n, d.left())
	}
	if s.err != nil || n == 0 {
		return
	}
	all := make([]uint64, 3*n)
	el.count, el.shape, el.start = all[:n:n], all[n:2*n:2*n], all[2*n:]
	for i := range n {
		el.count[i], el.shape[i], el.start[i] = d.u64(), d.u64(), d.u64()
	}
}

// value reads an inline value. The first dimension, which precedes the value, is the
// number of elements of an attribute.
func (p *elementParser) value(s *cursor, el *element, length uint32) {
	switch {
	case el.code == bp4StringArray:
		p.texts(s, el)
	case el.typ == String:
		el.value = p.text(s, el, length)
	default:
		n := uint64(1)
		if len(el.count) > 0 && el.count[0] != 0 {
			n = el.count[0]
		}
		size := uint64(el.typ.Size())
		if size == 0 { // its length is unknown, so the rest cannot be read
			p.tally.Add(tally.ElementSkipped, 1)
			el.skip = true
			return
		}
		if n > uint64(s.left())/size {
			s.fail(s.pos(), "%q: a value of %d elements does not fit into %d bytes", el.name, n, s.left())
			return
		}
		el.value = s.bytes(n * size)
	}
}

// Bytes of a set with one string besides the string itself, without and with
// one dimension.
const (
	valueOverhead     = 35
	dimensionOverhead = 59
)

// text reads a string after its u16 length. ADIOS2 writes strings of 64 KiB and more
// in full but cuts their length to 16 bits; the length of the set is right.
func (p *elementParser) text(s *cursor, el *element, length uint32) []byte {
	n := uint64(s.u16())
	for _, overhead := range []uint32{valueOverhead, dimensionOverhead} {
		if length > overhead {
			if full := uint64(length - overhead); full > math.MaxUint16 && full&math.MaxUint16 == n {
				n = full
				break
			}
		}
	}
	return s.bytes(n)
}

func (p *elementParser) texts(s *cursor, el *element) {
	if len(el.count) == 0 {
		s.fail(s.pos(), "%q: an array of strings without a length", el.name)
		return
	}
	for range el.count[0] {
		b := s.str16()
		if s.err != nil {
			return
		}
		el.texts = append(el.texts, string(b))
	}
}

func parseOperator(s *cursor, el *element) {
	el.operator = string(s.bytes(uint64(s.u8())))
	s.u8() // type before
	n := uint64(s.u8())
	s.u16()
	s.bytes(n * 24)
	s.bytes(uint64(s.u16()))
	if el.operator == "" {
		el.operator = "unknown"
	}
}

func parseMinMax(s *cursor, el *element) {
	size := uint64(el.typ.Size())
	parts := uint64(s.u16())
	s.bytes(2 * size)
	if parts > 1 {
		s.u8()
		s.u64()
		s.bytes(uint64(len(el.count)) * 2)
		s.bytes(2 * parts * size)
	}
}

func (el *element) shapeKind() Shape {
	zero := func(v []uint64) bool { return !slices.ContainsFunc(v, func(x uint64) bool { return x != 0 }) }
	switch {
	case slices.Contains(el.shape, joinedArrayDim):
		return JoinedArray
	case len(el.shape) == 1 && el.shape[0] == localValueDim:
		return LocalValue
	case len(el.count) == 0 || el.value != nil && zero(el.count) && zero(el.shape):
		return GlobalValue
	case zero(el.shape) && zero(el.start):
		return LocalArray
	}
	return GlobalArray
}

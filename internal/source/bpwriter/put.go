package bpwriter

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Type is the type of a variable's elements, by its number in BP4.
type Type uint8

// The supported types.
const (
	Int8   Type = 0
	Int16  Type = 1
	Int32  Type = 2
	Int64  Type = 4
	Float  Type = 5
	Double Type = 6
	String Type = 9 // single values only
	Uint8  Type = 50
	Uint16 Type = 51
	Uint32 Type = 52
	Uint64 Type = 54
)

// sizes are the bytes of one element.
var sizes = map[Type]int{
	Int8: 1, Int16: 2, Int32: 4, Int64: 8, Float: 4, Double: 8, Uint8: 1, Uint16: 2, Uint32: 4, Uint64: 8,
}

// Dims are the size of a block and its position in an array. Each has one number per
// dimension. A local array has only Count.
type Dims struct {
	Shape []uint64 // of the array
	Start []uint64 // of the block in the array
	Count []uint64 // of the block
}

// Characteristics of a set, in the metadata.
const (
	charValue      = 0
	charOffset     = 3
	charDimensions = 4
	charPayload    = 6
	charFile       = 7
	charStep       = 8
	charMinMax     = 12
)

// Int32 adds a single number.
func (s *Step) Int32(name string, v int32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(v))
	s.Value(name, Int32, b[:])
}

// Uint64 adds a single number.
func (s *Step) Uint64(name string, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	s.Value(name, Uint64, b[:])
}

// Value adds a single value: the bytes of a little-endian number, or a string.
func (s *Step) Value(name string, t Type, value []byte) {
	if t == String {
		if len(value) > maxText {
			s.fail("variable %q: a text of %d bytes; BP4 holds %d", brief(name), len(value), maxText)
			return
		}
	} else if size, ok := sizes[t]; !ok || size != len(value) {
		s.fail("variable %q: %d bytes do not fit type %d", brief(name), len(value), t)
		return
	}
	el, at := s.variable(name, t, Dims{})
	if el == nil {
		return
	}
	s.data = append(s.data, 0, 0, 0, 0, 0) // no characteristics
	s.data = append(s.data, "\x04VMD]"...)
	payload := len(s.data)
	if t == String {
		s.data = binary.LittleEndian.AppendUint16(s.data, uint16(len(value)))
	}
	s.data = append(s.data, value...)
	inline := s.data[payload:]
	from := s.beginSet(el)
	if t == String {
		el.sets = append(append(el.sets, charValue), inline...)
		el.sets = s.appendDims(el.sets, Dims{})
	} else {
		el.sets = s.appendDims(el.sets, Dims{})
		el.sets = append(append(el.sets, charValue), inline...)
	}
	s.endSet(el, from, at, payload)
	s.endVariable(at)
}

// Table adds a global array of numbers as TAU writes its tables: one block, row by row.
// Like TAU, it omits a table without rows. It does not retain rows.
func (s *Step) Table(name string, columns int, rows []uint64) {
	if len(rows) == 0 {
		return
	}
	if columns <= 0 || len(rows)%columns != 0 {
		s.fail("variable %q: %d numbers do not form rows of %d", brief(name), len(rows), columns)
		return
	}
	count := [2]uint64{uint64(len(rows) / columns), uint64(columns)}
	var start [2]uint64
	b := s.Array(name, Uint64, Dims{Shape: count[:], Start: start[:], Count: count[:]})
	for i, v := range rows {
		if len(b) < 8*(i+1) {
			return // refused: s.err has the reason
		}
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
}

// Array adds a block of an array and returns its bytes, which the caller fills before it
// adds anything else: little-endian numbers, row-major. It returns nil on error.
func (s *Step) Array(name string, t Type, d Dims) []byte {
	size, ok := extent(t, d)
	if !ok {
		s.fail("variable %q: impossible extent %v of type %d", brief(name), d, t)
		return nil
	}
	el, at := s.variable(name, t, d)
	if el == nil {
		return nil
	}
	width := sizes[t]
	s.data = append(s.data, 1) // one characteristic
	s.data = binary.LittleEndian.AppendUint32(s.data, uint32(3+2*width))
	s.data = append(s.data, charMinMax, 1, 0)
	limits := len(s.data)
	s.data = append(s.data, make([]byte, 2*width)...)
	s.data = append(s.data, "\x04VMD]"...)
	payload := len(s.data)
	s.data = slices.Grow(s.data, size)[:payload+size]

	from := s.beginSet(el)
	el.sets = s.appendDims(el.sets, d)
	el.sets = append(el.sets, charMinMax, 1, 0)
	s.array = array{open: true, variable: s.variables.byName[name], inMeta: len(el.sets), inData: limits, payload: payload, typ: t}
	el.sets = append(el.sets, make([]byte, 2*width)...)
	s.endSet(el, from, at, payload)
	s.endVariable(at)
	return s.data[payload : payload+size : payload+size]
}

// extent returns the size of a block in bytes.
func extent(t Type, d Dims) (int, bool) {
	size := uint64(sizes[t])
	n := len(d.Count)
	if size == 0 || n == 0 || n > 32 || d.Shape != nil && len(d.Shape) != n || len(d.Shape) != len(d.Start) {
		return 0, false
	}
	for _, c := range d.Count {
		hi, lo := bits.Mul64(size, c)
		if hi != 0 || lo > math.MaxInt32*256 {
			return 0, false
		}
		size = lo
	}
	return int(size), true
}

// variable begins a block of a variable in the data, and returns its element and the
// position of the block, or nil on error.
func (s *Step) variable(name string, t Type, d Dims) (el *element, at int) {
	s.seal()
	name = s.truncate(name, "variable", name)
	if s.ended || s.w == nil {
		s.fail("variable %q: the step has not begun or is already written", brief(name))
		return nil, 0
	}
	el, id, _ := s.variables.add(name, t)
	if el.code != t {
		s.fail("variable %q is of type %d and of type %d", brief(name), el.code, t)
		return nil, 0
	}
	s.groups[len(s.groups)-1].count++
	at = len(s.data)
	b := append(s.data, "[VMD\x00\x00\x00\x00\x00\x00\x00\x00"...) // length later
	b = binary.LittleEndian.AppendUint32(b, uint32(id))
	b = appendText(b, name)
	b = append(b, 'K', 0, byte(t), 'n', byte(len(d.Count)))
	b = binary.LittleEndian.AppendUint16(b, uint16(27*len(d.Count)))
	for i := range d.Count {
		for _, v := range d.at(i) {
			b = binary.LittleEndian.AppendUint64(append(b, 'n'), v)
		}
	}
	s.data = b
	return el, at
}

// endVariable sets the length of the block that began at position at.
func (s *Step) endVariable(at int) {
	binary.LittleEndian.PutUint64(s.data[at+4:], uint64(len(s.data)-at-4))
}

// at returns count, shape and start of one dimension.
func (d *Dims) at(i int) [3]uint64 {
	v := [3]uint64{d.Count[i]}
	if d.Shape != nil {
		v[1], v[2] = d.Shape[i], d.Start[i]
	}
	return v
}

package bpwriter

import (
	"cmp"
	"encoding/binary"
	"math"
)

// array is a block that the caller is filling.
type array struct {
	open     bool
	variable int // its element
	inMeta   int // position of the limits in the element's sets
	inData   int // position of the limits in the data
	payload  int
	typ      Type
}

// seal sets the least and the greatest value of the last array, which is complete now.
func (s *Step) seal() {
	if !s.array.open {
		return
	}
	s.array.open = false
	a := &s.array
	width := sizes[a.typ]
	limits := s.data[a.inData : a.inData+2*width]
	putLimits(limits, s.data[a.payload:], a.typ)
	copy(s.variables.list[a.variable].sets[a.inMeta:], limits)
}

// less compares two numbers of a type.
var less = map[Type]func(a, b []byte) bool{
	Int8:   by(func(b []byte) int8 { return int8(b[0]) }),
	Int16:  by(func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) }),
	Int32:  by(func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) }),
	Int64:  by(func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }),
	Uint8:  by(func(b []byte) uint8 { return b[0] }),
	Uint16: by(binary.LittleEndian.Uint16),
	Uint32: by(binary.LittleEndian.Uint32),
	Float:  by(func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }),
	Double: by(func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }),
}

func by[T cmp.Ordered](number func([]byte) T) func(a, b []byte) bool {
	return func(a, b []byte) bool { return number(a) < number(b) }
}

// putLimits writes the least and the greatest of the values to limits. Without values it leaves the
// zeros in limits unchanged.
func putLimits(limits, values []byte, t Type) {
	width, less := sizes[t], less[t]
	if t == Uint64 {
		least, most := limitsOfUint64(values)
		binary.LittleEndian.PutUint64(limits, least)
		binary.LittleEndian.PutUint64(limits[width:], most)
		return
	}
	for at := 0; at+width <= len(values); at += width {
		v := values[at : at+width]
		if at == 0 || less(v, limits[:width]) {
			copy(limits, v)
		}
		if at == 0 || less(limits[width:], v) {
			copy(limits[width:], v)
		}
	}
}

// limitsOfUint64 returns the limits of TAU's tables, which are long.
func limitsOfUint64(values []byte) (least, most uint64) {
	if len(values) >= 8 {
		least = math.MaxUint64
	}
	for ; len(values) >= 8; values = values[8:] {
		v := binary.LittleEndian.Uint64(values)
		least, most = min(least, v), max(most, v)
	}
	return least, most
}

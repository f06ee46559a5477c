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

// putLimits writes the least and the greatest of the values, zeros if there are none.
func putLimits(limits, values []byte, t Type) {
	le := binary.LittleEndian
	switch t {
	case Uint64:
		least, most := limitsOfUint64(values)
		le.PutUint64(limits, least)
		le.PutUint64(limits[8:], most)
	case Int64:
		limitsOf(limits, values, 8, func(b []byte) int64 { return int64(le.Uint64(b)) }, func(b []byte, v int64) { le.PutUint64(b, uint64(v)) })
	case Double:
		limitsOf(limits, values, 8, func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) },
			func(b []byte, v float64) { le.PutUint64(b, math.Float64bits(v)) })
	case Uint32:
		limitsOf(limits, values, 4, le.Uint32, le.PutUint32)
	case Int32:
		limitsOf(limits, values, 4, func(b []byte) int32 { return int32(le.Uint32(b)) }, func(b []byte, v int32) { le.PutUint32(b, uint32(v)) })
	case Float:
		limitsOf(limits, values, 4, func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) },
			func(b []byte, v float32) { le.PutUint32(b, math.Float32bits(v)) })
	case Uint16:
		limitsOf(limits, values, 2, le.Uint16, le.PutUint16)
	case Int16:
		limitsOf(limits, values, 2, func(b []byte) int16 { return int16(le.Uint16(b)) }, func(b []byte, v int16) { le.PutUint16(b, uint16(v)) })
	case Uint8:
		limitsOf(limits, values, 1, func(b []byte) uint8 { return b[0] }, func(b []byte, v uint8) { b[0] = v })
	case Int8:
		limitsOf(limits, values, 1, func(b []byte) int8 { return int8(b[0]) }, func(b []byte, v int8) { b[0] = byte(v) })
	}
}

func limitsOf[T cmp.Ordered](limits, values []byte, width int, get func([]byte) T, put func([]byte, T)) {
	var least, most T
	for at := 0; at+width <= len(values); at += width {
		v := get(values[at:])
		if at == 0 || v < least {
			least = v
		}
		if at == 0 || v > most {
			most = v
		}
	}
	put(limits, least)
	put(limits[width:], most)
}

// limitsOfUint64 is a fast limitsOf for TAU's tables, which are long.
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

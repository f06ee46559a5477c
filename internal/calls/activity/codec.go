package activity

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/codec"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// ErrEncoding marks bytes that do not encode a sketch.
var ErrEncoding = errors.New("malformed activities")

const maxShift = 57 // suffices for runs of any length

// hasReadings, in the byte of the width of bins, marks encodings that end with readings of counters.
const hasReadings = 1 << 7

// AppendBinary appends the encoding of the sketch to b. Equal sketches have equal encodings.
func (s *Sketch) AppendBinary(b []byte) []byte {
	head := s.shift
	if len(s.readings.rows) > 0 {
		head |= hasReadings
	}
	b = binary.AppendVarint(append(b, head), int64(s.begin))
	b = binary.AppendUvarint(b, uint64(s.end-s.begin))
	b = binary.AppendUvarint(b, uint64(len(s.rows)))
	for _, key := range s.Ranks() {
		r := s.rows[key]
		b = binary.AppendUvarint(b, uint64(key.Program))
		b = binary.AppendVarint(b, int64(key.Rank))
		b = binary.AppendUvarint(b, uint64(len(r.blocks)))
		last := int64(s.begin) >> s.shift >> blockShift
		for i := range r.blocks {
			b = binary.AppendUvarint(b, uint64(r.blocks[i].number-last))
			last = r.blocks[i].number
			b = append(binary.AppendUvarint(b, uint64(len(r.blocks[i].cells))), r.blocks[i].cells...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.messages)))
	for _, program := range slices.Sorted(maps.Keys(s.messages)) {
		m := s.messages[program]
		b = append(binary.AppendUvarint(b, uint64(program)), m.shift)
		b = binary.AppendUvarint(b, uint64(len(m.cells)))
		for _, p := range m.sorted() {
			t := m.cells[p]
			b = append(b, byte(p.from), byte(p.to))
			b = binary.AppendUvarint(binary.AppendUvarint(b, t.Messages), t.Bytes)
		}
	}
	if head&hasReadings != 0 {
		b = s.readings.append(b, s.begin)
	}
	return b
}

// Decode decodes all of b, which AppendBinary wrote, with sums of at most most. It takes memory in proportion to b and
// retains nothing of b. Errors wrap ErrEncoding.
func Decode(b []byte, most uint64) (*Sketch, error) {
	r := codec.Decoder(b, ErrEncoding)
	s := New(trace.Microsecond)
	if head := r.ReadBytes(1); head != nil {
		s.shift = head[0] &^ hasReadings
	}
	if s.shift < MinShift || s.shift > maxShift {
		r.Fail("impossible width of bins")
	}
	s.begin = trace.Ticks(r.ReadInt(math.MinInt64, math.MaxInt64))
	if s.end = s.begin + trace.Ticks(r.ReadUint(math.MaxInt64)); s.end < s.begin {
		r.Fail("time too large")
	}
	s.used = s.begin != 0 || s.end != 0
	s.readRows(&r, most)
	s.readMessages(&r, most)
	if len(b) > 0 && b[0]&hasReadings != 0 && r.Err == nil {
		s.readings.read(&r, s.begin, s.end)
	}
	r.End()
	if r.Err == nil && int64(s.end)>>s.shift-int64(s.begin)>>s.shift >= binLimit(len(s.rows)) {
		r.Fail("too many bins")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return s, nil
}

func (s *Sketch) readRows(r *codec.Coder, most uint64) {
	var last *trace.RankKey
	for n := r.ReadLength(); n > 0 && r.Err == nil; n-- {
		key := trace.RankKey{Program: trace.Program(r.ReadUint(math.MaxUint32)), Rank: trace.Rank(r.ReadInt(math.MinInt32, math.MaxInt32))}
		if last != nil && last.Compare(key) >= 0 {
			r.Fail("ranks duplicate or out of order")
			return
		}
		of := new(row)
		number, end := int64(s.begin)>>s.shift>>blockShift, int64(s.end)>>s.shift>>blockShift
		for i := r.ReadLength(); i > 0 && r.Err == nil; i-- {
			step := r.ReadUint(uint64(end - number))
			if step == 0 && len(of.blocks) > 0 {
				r.Fail("duplicate block")
			}
			number += int64(step)
			of.blocks = append(of.blocks, block{number: number, cells: s.readCells(r, number, most)})
		}
		s.rows[key], last = of, &key
	}
}

// readCells reads and checks the cells of a block.
func (s *Sketch) readCells(r *codec.Coder, number int64, most uint64) []byte {
	size := r.ReadLength()
	packed := slices.Clone(r.Rest()[:min(size, r.Left())])
	rest, last := r.Left()-size, -1
	if size == 0 {
		r.Fail("block without cells")
	}
	for r.Left() > rest && r.Err == nil {
		slot := r.ReadBytes(1)
		ticks := r.ReadUint(most)
		if r.Err != nil {
			break
		}
		class := Class(slot[0] & (1<<classBits - 1))
		bin := number<<blockShift | int64(slot[0]>>classBits)
		outside := bin < int64(s.begin)>>s.shift || bin > int64(s.end)>>s.shift
		if int(slot[0]) <= last || int(slot[0]) >= slots || class == None || class >= numClasses || ticks == 0 || outside {
			r.Fail("impossible cell")
		}
		last = int(slot[0])
	}
	if r.Err == nil && r.Left() < rest {
		r.Fail("cells exceed their block")
	}
	return packed
}

func (s *Sketch) readMessages(r *codec.Coder, most uint64) {
	before := int64(-1)
	for n := r.ReadLength(); n > 0 && r.Err == nil; n-- {
		program := r.ReadUint(math.MaxUint32)
		if int64(program) <= before {
			r.Fail("programs duplicate or out of order")
		}
		before = int64(program)
		m := s.matrix(trace.Program(program))
		if head := r.ReadBytes(1); head != nil {
			m.shift = head[0]
		}
		if m.shift > 25 {
			r.Fail("impossible groups of ranks")
		}
		last := -1
		for k := r.ReadLength(); k > 0 && r.Err == nil; k-- {
			b := r.ReadBytes(2)
			t := Traffic{r.ReadUint(most), r.ReadUint(most)}
			if r.Err != nil {
				return
			}
			if at := int(b[0])<<8 | int(b[1]); b[0] >= maxGroups || b[1] >= maxGroups || at <= last || t.Messages == 0 {
				r.Fail("impossible messages")
			} else {
				last = at
			}
			m.cells[pair{uint32(b[0]), uint32(b[1])}] = t
		}
	}
}

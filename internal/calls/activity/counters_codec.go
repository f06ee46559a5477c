package activity

import (
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/codec"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// append appends the encoding of the readings in a span that begins at a time.
func (r *readings) append(b []byte, begin trace.Ticks) []byte {
	b = binary.AppendUvarint(append(b, r.shift), uint64(len(r.counters)))
	for _, program := range slices.Sorted(maps.Keys(r.counters)) {
		t := r.counters[program]
		head := uint64(len(t.ids)) << 1
		if t.more {
			head |= 1
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(program)), uint64(t.ranks))
		b = binary.AppendUvarint(b, head)
		for i, id := range t.ids {
			b = binary.LittleEndian.AppendUint64(b, uint64(id))
			b = append(binary.AppendUvarint(b, uint64(len(t.names[i]))), t.names[i]...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(r.rows)))
	for _, key := range slices.SortedFunc(maps.Keys(r.rows), trace.RankKey.Compare) {
		row := r.rows[key]
		b = binary.AppendUvarint(b, uint64(key.Program))
		b = binary.AppendUvarint(b, uint64(key.Rank))
		b = binary.AppendUvarint(b, uint64(len(row.blocks)))
		last := int64(begin) >> r.shift >> readingShift
		for i := range row.blocks {
			b = binary.AppendUvarint(b, uint64(row.blocks[i].number-last))
			last = row.blocks[i].number
			b = append(binary.AppendUvarint(b, uint64(len(row.blocks[i].cells))), row.blocks[i].cells...)
		}
	}
	return b
}

// read decodes an encoding that append wrote.
func (r *readings) read(c *codec.Coder, begin, end trace.Ticks) {
	if head := c.ReadBytes(1); head != nil {
		r.shift = head[0]
	}
	if r.shift < MinShift || r.shift > maxShift {
		c.Fail("impossible width of bins of counters")
		return
	}
	before := int64(-1)
	for n := c.ReadLength(); n > 0 && c.Err == nil; n-- {
		program := c.ReadUint(math.MaxUint32)
		if int64(program) <= before {
			c.Fail("programs duplicate or out of order")
		}
		before = int64(program)
		r.counters[trace.Program(program)] = readCounters(c)
	}
	r.readRows(c, begin, end)
	if c.Err == nil && int64(end)>>r.shift-int64(begin)>>r.shift >= r.limit() {
		c.Fail("too many bins of counters")
	}
}

func readCounters(c *codec.Coder) *counterTable {
	t := &counterTable{ranks: uint32(c.ReadUint(math.MaxInt32 + 1))}
	head := c.ReadUint(MaxCounters<<1 | 1)
	t.more = head&1 != 0
	for n := head >> 1; n > 0 && c.Err == nil; n-- {
		id := CounterID(c.Fixed(0))
		if k := len(t.ids); k > 0 && t.ids[k-1] >= id {
			c.Fail("counters duplicate or out of order")
		}
		t.ids, t.names = append(t.ids, id), append(t.names, string(c.ReadText()))
	}
	return t
}

func (r *readings) readRows(c *codec.Coder, begin, end trace.Ticks) {
	n := c.ReadLength()
	if n == 0 {
		c.Fail("no ranks with counters")
	}
	var last *trace.RankKey
	for ; n > 0 && c.Err == nil; n-- {
		key := trace.RankKey{Program: trace.Program(c.ReadUint(math.MaxUint32)), Rank: trace.Rank(c.ReadUint(mostGroups - 1))}
		t := r.counters[key.Program]
		if last != nil && last.Compare(key) >= 0 || t == nil || uint32(key.Rank)<<t.groupShift() >= t.ranks {
			c.Fail("ranks duplicate, out of order, or without counters")
		}
		if c.Err != nil {
			return
		}
		r.rows[key], last = r.readRow(c, len(t.ids), begin, end), &key
	}
}

func (r *readings) readRow(c *codec.Coder, counters int, begin, end trace.Ticks) *readingRow {
	first, last := int64(begin)>>r.shift, int64(end)>>r.shift
	row, number := new(readingRow), first>>readingShift
	for i := c.ReadLength(); i > 0 && c.Err == nil; i-- {
		step := c.ReadUint(uint64(last>>readingShift - number))
		if step == 0 && len(row.blocks) > 0 {
			c.Fail("duplicate block of counters")
		}
		number += int64(step)
		cells := readPacked(c, counters, func(bin int64) bool { bin |= number << readingShift; return bin >= first && bin <= last })
		row.blocks = append(row.blocks, block{number: number, cells: cells})
	}
	return row
}

// readPacked reads and checks the packed readings of a block. has reports whether a bin of the block is in the span.
func readPacked(c *codec.Coder, counters int, has func(bin int64) bool) (packed []byte) {
	size := c.ReadLength()
	rest, last := c.Left()-size, -1
	if size == 0 {
		c.Fail("block without readings")
	}
	packed = make([]byte, 0, size)
	for c.Left() > rest && c.Err == nil {
		var slot byte
		if b := c.ReadBytes(1); b != nil {
			slot = b[0]
		}
		head := c.ReadUint(math.MaxUint64)
		r := Reading{Count: head >> 1, Min: c.ReadUint(math.MaxUint64)}
		over, sum := bits.Mul64(r.Count, r.Min)
		if r.Max, r.Sum = r.Min, sum; head&1 != 0 {
			r.Max = r.Min + c.ReadUint(math.MaxUint64-r.Min)
			r.Sum = c.ReadUint(math.MaxUint64)
		} else if over != 0 {
			c.Fail("sum of readings too large")
		}
		if int(slot) <= last || int(slot&counterInSlot) >= counters || !has(int64(slot>>counterBits)) || r.Count == 0 || r.Sum < r.Max {
			c.Fail("impossible readings")
		}
		last = int(slot)
		packed = appendReading(packed, slot, &r)
	}
	if c.Err == nil && c.Left() < rest {
		c.Fail("readings exceed their block")
	}
	return packed
}

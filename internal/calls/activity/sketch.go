package activity

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// The number of ranks of a run limits its number of bins, so that memory is bounded.
const (
	mostBins  = 512
	leastBins = 128
	fewRanks  = 512 // ranks that may have mostBins each
)

// MinShift is the binary logarithm of the width of the shortest bins in ticks of a microsecond.
const MinShift = 8

// Cells of a rank are packed in blocks of this many bins.
const (
	blockShift = 4
	blockBins  = 1 << blockShift
	classBits  = 3
	slots      = blockBins << classBits
)

// Sketch contains the activities of ranks over time, their messages, and readings of their counters. Use New.
type Sketch struct {
	shift      uint8
	used       bool        // begin and end are valid
	begin, end trace.Ticks // limits of everything that was ever added
	rows       map[trace.RankKey]*row
	messages   map[trace.Program]*matrix
	readings   readings
	packed     []byte // scratch
}

// row contains the activities of a rank.
type row struct{ blocks []block }

// block contains the activities of a rank, or its readings of counters, in some bins.
type block struct {
	number int64  // number of its first bin, divided by the number of bins of a block
	cells  []byte // bin and class in a byte, then ticks; or bin and counter in a byte, then readings; in order
	shared bool   // cells also belong to a clone
}

// find returns the index of the block with a number, and inserts the block if it is missing.
func find(blocks *[]block, number int64) int {
	i := len(*blocks) - 1
	if i < 0 || (*blocks)[i].number != number {
		var ok bool
		i, ok = slices.BinarySearchFunc(*blocks, number, func(b block, n int64) int { return cmp.Compare(b.number, n) })
		if !ok {
			*blocks = slices.Insert(*blocks, i, block{number: number})
		}
	}
	return i
}

// set copies the cells.
func (b *block) set(cells []byte) {
	if b.shared || len(cells) > cap(b.cells) {
		b.cells, b.shared = nil, false // release excess memory
	}
	b.cells = append(b.cells[:0], cells...)
}

// Cell is the time of a class in a bin, summed up over the threads of a rank.
type Cell struct {
	Bin   int64 // time divided by the width
	Class Class
	Ticks uint64
}

// ShiftOf returns the binary logarithm of the width of the shortest bins in ticks of a unit.
func ShiftOf(unit trace.Unit) uint8 {
	return MinShift + uint8(bits.Len64(uint64(max(1, trace.Microsecond.Nanos()/unit.Nanos())-1)))
}

// New returns an empty sketch in ticks of a unit.
func New(unit trace.Unit) *Sketch {
	return &Sketch{
		shift: ShiftOf(unit), rows: make(map[trace.RankKey]*row), messages: make(map[trace.Program]*matrix), readings: newReadings(unit),
	}
}

// Shift returns the binary logarithm of the width of bins in ticks.
func (s *Sketch) Shift() uint8 { return s.shift }

// Span returns the time from the first to the last event, or 0, 0 if there are none.
func (s *Sketch) Span() (begin, end trace.Ticks) { return s.begin, s.end }

// Empty reports whether there are no ranks.
func (s *Sketch) Empty() bool { return len(s.rows) == 0 && len(s.readings.rows) == 0 }

// Ranks returns the ranks in order.
func (s *Sketch) Ranks() []trace.RankKey {
	keys := make([]trace.RankKey, 0, len(s.rows))
	for key := range s.rows {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, trace.RankKey.Compare)
	return keys
}

// Cells appends the activities of a rank, in order of bins and classes.
func (s *Sketch) Cells(dst []Cell, key trace.RankKey) []Cell {
	if r := s.rows[key]; r != nil {
		for i := range r.blocks {
			dst = r.blocks[i].appendTo(dst)
		}
	}
	return dst
}

func (b *block) appendTo(dst []Cell) []Cell {
	for at := 0; at < len(b.cells); {
		slot := b.cells[at]
		ticks, n := binary.Uvarint(b.cells[at+1:])
		at += 1 + n
		dst = append(dst, Cell{b.number<<blockShift | int64(slot>>classBits), Class(slot & (1<<classBits - 1)), ticks})
	}
	return dst
}

// binLimit returns the greatest number of bins of a number of ranks.
func binLimit(ranks int) int64 {
	n := int64(mostBins)
	for ; ranks > fewRanks && n > leastBins; ranks /= 4 {
		n /= 2
	}
	return n
}

func (s *Sketch) row(key trace.RankKey) *row {
	r := s.rows[key]
	if r == nil {
		r = new(row)
		s.rows[key] = r
		s.widen()
	}
	return r
}

// extend makes the sketch include a time.
func (s *Sketch) extend(at trace.Ticks) {
	if !s.used {
		s.used, s.begin, s.end = true, at, at
	}
	if at < s.begin || at > s.end {
		s.begin, s.end = min(s.begin, at), max(s.end, at)
		s.widen()
	}
}

// widen widens the bins until there are few enough.
func (s *Sketch) widen() {
	shift := s.shift
	for int64(s.end)>>shift-int64(s.begin)>>shift >= binLimit(len(s.rows)) {
		shift++
	}
	s.widenTo(shift)
	s.readings.widen(s.begin, s.end)
}

func (s *Sketch) widenTo(shift uint8) {
	if shift <= s.shift {
		return
	}
	by := shift - s.shift
	s.shift = shift
	var cells []Cell
	for key, old := range s.rows {
		cells = s.Cells(cells[:0], key)
		wide := new(row)
		e := editor{sketch: s, row: wide}
		for _, c := range cells {
			e.add(c.Bin>>by, c.Class, c.Ticks)
		}
		e.flush()
		*old = *wide
	}
}

// editor changes a row. It unpacks one block at a time.
type editor struct {
	sketch *Sketch
	row    *row
	block  int // index of the unpacked block; valid if open is true
	number int64
	open   bool
	ticks  [slots]uint64
}

// add adds time. Calls in order of bins unpack each block only once.
func (e *editor) add(bin int64, class Class, ticks uint64) {
	if number := bin >> blockShift; !e.open || number != e.number {
		e.flush()
		e.unpack(number)
	}
	e.ticks[(bin&(blockBins-1))<<classBits|int64(class)] += ticks
}

func (e *editor) unpack(number int64) {
	e.number, e.open, e.block = number, true, find(&e.row.blocks, number)
	b := e.row.blocks[e.block].cells
	for at := 0; at < len(b); {
		ticks, n := binary.Uvarint(b[at+1:])
		e.ticks[b[at]] = ticks
		at += 1 + n
	}
}

// flush packs the block.
func (e *editor) flush() {
	if !e.open {
		return
	}
	e.open = false
	b := e.sketch.packed[:0]
	for slot, ticks := range e.ticks {
		if ticks > 0 {
			b = binary.AppendUvarint(append(b, byte(slot)), ticks)
		}
	}
	e.sketch.packed = b
	clear(e.ticks[:])
	e.row.blocks[e.block].set(b)
}

// Add adds the records of a step of a rank, whose first and last events were at first and last.
func (s *Sketch) Add(key trace.RankKey, first, last trace.Ticks, records []Record) {
	s.extend(first)
	s.extend(last)
	for i := range records {
		s.extend(records[i].From) // has no effect unless the clock was set back
		s.extend(records[i].To)
	}
	e := editor{sketch: s, row: s.row(key)}
	for i := range records {
		r := &records[i]
		if r.From == r.To {
			e.add(int64(r.To)>>s.shift, r.Class, r.Time)
			continue
		}
		for from := r.From; from < r.To; {
			bin := int64(from) >> s.shift
			until := min(trace.Ticks((bin+1)<<s.shift), r.To)
			if until <= from { // the end of the bin overflows
				until = r.To
			}
			e.add(bin, r.Class, uint64(until-from))
			from = until
		}
	}
	e.flush()
}

// Merge adds the activities, messages and readings of o. It does not retain o.
func (s *Sketch) Merge(o *Sketch) {
	s.widenTo(o.shift)
	if o.used {
		s.extend(o.begin)
		s.extend(o.end)
	}
	for key := range o.rows {
		s.row(key)
	}
	by := s.shift - o.shift
	var cells []Cell
	e := editor{sketch: s}
	for key := range o.rows {
		e.row = s.rows[key]
		cells = o.Cells(cells[:0], key)
		for _, c := range cells {
			e.add(c.Bin>>by, c.Class, c.Ticks)
		}
		e.flush()
	}
	for program, m := range o.messages {
		s.matrix(program).merge(m)
	}
	s.mergeReadings(&o.readings)
}

// Reset removes all activities, messages and readings. The span of time and the width of bins remain those of everything that
// was ever added.
func (s *Sketch) Reset() {
	clear(s.rows)
	clear(s.messages)
	s.readings.reset()
}

// Clone returns a copy. The copy shares memory until one of the two changes.
func (s *Sketch) Clone() *Sketch {
	c := *s
	c.packed = nil
	c.rows, c.messages = make(map[trace.RankKey]*row, len(s.rows)), make(map[trace.Program]*matrix, len(s.messages))
	for key, r := range s.rows {
		for i := range r.blocks {
			r.blocks[i].shared = true
		}
		c.rows[key] = &row{slices.Clone(r.blocks)}
	}
	for program, m := range s.messages {
		c.messages[program] = m.clone()
	}
	c.readings = s.readings.clone()
	return &c
}

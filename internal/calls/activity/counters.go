package activity

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// MaxCounters is the greatest number of counters of a program. If there are more, those of resources come first (see
// resourceWords), then those with the least hashes. The choice from any part of the counters includes all of these, so none
// of their readings is ever dropped.
const MaxCounters = 32

// The number of series, which are groups of ranks times counters, limits the number of bins of counters, so that memory is
// bounded: by half a million readings, unless there are several programs.
const (
	mostReadings  = 512
	leastReadings = 32
	fewSeries     = 1024 // series that may have mostReadings each
)

// mostGroups is the greatest number of groups of ranks of a program. If there are more ranks, neighbors form a group.
const mostGroups = 512

// Readings of a rank are packed in blocks of this many bins.
const (
	counterBits   = 5
	readingShift  = 8 - counterBits
	readingBins   = 1 << readingShift
	readingSlots  = readingBins << counterBits
	counterInSlot = 1<<counterBits - 1
)

// CounterID identifies a counter by its name. If there are too many counters, those with the least numbers count.
type CounterID uint64

// resourceWords are parts of the names of counters that describe the use of resources over time: memory, processors,
// hardware events, disks, networks and power. Others, such as sizes of messages, belong to single calls.
var resourceWords = []string{
	"%", "mem", "rss", "heap", "load", "papi", "cycles", "instructions", "fault", "switches", "util", "watt", "power", "energy", "temp",
	"freq", "gpu", "io:", "i/o", "net", "bandwidth",
}

// CounterOf returns the counter with a name.
func CounterOf(name string) CounterID {
	hash := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		hash = (hash ^ uint64(name[i])) * 1099511628211
	}
	hash >>= 1
	lower := strings.ToLower(name)
	if !slices.ContainsFunc(resourceWords, func(w string) bool { return strings.Contains(lower, w) }) {
		hash |= 1 << 63
	}
	return CounterID(hash)
}

// Reading sums up readings of a counter. Sums saturate at math.MaxUint64.
type Reading struct {
	Count, Sum, Min, Max uint64 // Min and Max are valid if Count is not 0
}

// Add adds a reading.
func (r *Reading) Add(value uint64) { r.Merge(Reading{1, value, value, value}) }

// Merge adds other readings.
func (r *Reading) Merge(o Reading) {
	switch {
	case o.Count == 0:
	case r.Count == 0:
		*r = o
	default:
		r.Count, r.Sum = LimitedSum(r.Count, o.Count), LimitedSum(r.Sum, o.Sum)
		r.Min, r.Max = min(r.Min, o.Min), max(r.Max, o.Max)
	}
}

// Mean returns the mean of the readings.
func (r *Reading) Mean() float64 {
	return min(max(float64(r.Sum)/float64(r.Count), float64(r.Min)), float64(r.Max))
}

// LimitedSum returns the sum, or the greatest number if the sum overflows.
func LimitedSum(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// CounterReading contains readings of a counter in a bin.
type CounterReading struct {
	Counter CounterID
	At      trace.Ticks // time of one of them
	Reading
}

// ReadingCell contains the readings of a counter of a rank, or of a group of ranks, in a bin.
type ReadingCell struct {
	Bin     int64 // time divided by the width
	Counter int   // index in Counters
	Reading
}

// readings contains the readings of counters of ranks over time.
type readings struct {
	shift    uint8
	counters map[trace.Program]*counterTable
	rows     map[trace.RankKey]*readingRow // by group: the rank without its low bits
	packed   []byte                        // scratch
}

// counterTable contains the counters of a program, in order.
type counterTable struct {
	ids   []CounterID
	names []string // "" if unknown
	more  bool     // other counters were left out
	ranks uint32   // greater than any rank with readings, including readings of counters that were left out
}

// groupShift returns the binary logarithm of the number of ranks of a group.
func (t *counterTable) groupShift() int {
	return max(0, bits.Len32(max(t.ranks, 1)-1)-bits.Len32(mostGroups-1))
}

type readingRow struct{ blocks []block }

func newReadings(unit trace.Unit) readings {
	return readings{ShiftOf(unit), make(map[trace.Program]*counterTable), make(map[trace.RankKey]*readingRow), nil}
}

// ReadingShift returns the binary logarithm of the width of bins of counters in ticks.
func (s *Sketch) ReadingShift() uint8 { return s.readings.shift }

// Counters returns the names of the counters of a program in the order of their indices. Unknown names are "". more is true
// if other counters were left out.
func (s *Sketch) Counters(program trace.Program) (names []string, more bool) {
	if t := s.readings.counters[program]; t != nil {
		return t.names, t.more
	}
	return nil, false
}

// ReadingRanks returns the first rank of each group of ranks of a program that has readings, in order, and the number of
// ranks of a group.
func (s *Sketch) ReadingRanks(program trace.Program) (first []trace.Rank, group int) {
	t := s.readings.counters[program]
	if t == nil {
		return nil, 1
	}
	for key := range s.readings.rows {
		if key.Program == program {
			first = append(first, key.Rank<<t.groupShift())
		}
	}
	slices.Sort(first)
	return first, 1 << t.groupShift()
}

// NameCounters sets the names of counters. Merging keeps them. name returns "" for unknown names.
func (s *Sketch) NameCounters(name func(trace.Program, CounterID) string) {
	for program, t := range s.readings.counters {
		t.names = slices.Clone(t.names)
		for i, id := range t.ids {
			t.names[i] = cmp.Or(name(program, id), t.names[i])
		}
	}
}

// Readings appends the readings of the group of a rank, in order of bins and counters.
func (s *Sketch) Readings(dst []ReadingCell, key trace.RankKey) []ReadingCell {
	if t := s.readings.counters[key.Program]; t != nil && key.Rank >= 0 {
		key.Rank >>= t.groupShift()
		dst = s.readings.rows[key].appendTo(dst)
	}
	return dst
}

func (r *readingRow) appendTo(dst []ReadingCell) []ReadingCell {
	if r != nil {
		for i := range r.blocks {
			dst = r.blocks[i].appendReadings(dst)
		}
	}
	return dst
}

func (b *block) appendReadings(dst []ReadingCell) []ReadingCell {
	for cells := b.cells; len(cells) > 0; {
		slot, r, rest := nextReading(cells)
		dst = append(dst, ReadingCell{b.number<<readingShift | int64(slot>>counterBits), int(slot & counterInSlot), r})
		cells = rest
	}
	return dst
}

// A packed reading begins with its slot, twice the number of readings, and their minimum. Unless all readings are equal, the
// second number is greater by one, and the range and the sum follow.
func nextReading(b []byte) (slot byte, r Reading, rest []byte) {
	slot, b = b[0], b[1:]
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	head := number()
	r.Count, r.Min = head>>1, number()
	if r.Max, r.Sum = r.Min, r.Count*r.Min; head&1 != 0 {
		r.Max = r.Min + number()
		r.Sum = number()
	}
	return slot, r, b
}

func appendReading(b []byte, slot byte, r *Reading) []byte {
	r.Count = min(r.Count, math.MaxUint64>>1)
	over, sum := bits.Mul64(r.Count, r.Min)
	if r.Min == r.Max && over == 0 && sum == r.Sum {
		return binary.AppendUvarint(binary.AppendUvarint(append(b, slot), r.Count<<1), r.Min)
	}
	b = binary.AppendUvarint(binary.AppendUvarint(append(b, slot), r.Count<<1|1), r.Min)
	return binary.AppendUvarint(binary.AppendUvarint(b, r.Max-r.Min), r.Sum)
}

// limit returns the greatest number of bins.
func (r *readings) limit() int64 {
	series := 0 // of all possible ranks, because the choice must not depend on when ranks form groups
	for _, t := range r.counters {
		series += int(min(t.ranks, mostGroups)) * len(t.ids)
	}
	n := int64(mostReadings)
	for ; series > fewSeries && n > leastReadings; series /= 2 {
		n /= 2
	}
	return n
}

// widen widens the bins of a span until there are few enough.
func (r *readings) widen(begin, end trace.Ticks) {
	shift := r.shift
	for most := r.limit(); int64(end)>>shift-int64(begin)>>shift >= most; {
		shift++
	}
	r.widenTo(shift)
}

func (r *readings) widenTo(shift uint8) {
	if shift <= r.shift {
		return
	}
	by := shift - r.shift
	r.shift = shift
	var cells []ReadingCell
	e := readingEditor{readings: r}
	for _, row := range r.rows {
		cells = row.appendTo(cells[:0])
		*row = readingRow{}
		e.row = row
		for i := range cells {
			e.add(cells[i].Bin>>by, cells[i].Counter, cells[i].Reading)
		}
		e.flush()
	}
}

// table returns the counters of a program, which has at least ranks ranks.
func (r *readings) table(program trace.Program, ranks uint32) *counterTable {
	t := r.counters[program]
	if t == nil {
		t = new(counterTable)
		r.counters[program] = t
	}
	before := t.groupShift()
	t.ranks = max(t.ranks, ranks)
	if by := t.groupShift() - before; by > 0 {
		r.regroup(program, by)
	}
	return t
}

// regroup merges neighboring groups of ranks of a program.
func (r *readings) regroup(program trace.Program, by int) {
	e := readingEditor{readings: r}
	var cells []ReadingCell
	for _, key := range slices.SortedFunc(maps.Keys(r.rows), trace.RankKey.Compare) {
		if key.Program != program {
			continue
		}
		cells = r.rows[key].appendTo(cells[:0])
		delete(r.rows, key)
		key.Rank >>= by
		e.row = r.row(key)
		for i := range cells {
			e.add(cells[i].Bin, cells[i].Counter, cells[i].Reading)
		}
		e.flush()
	}
}

// row returns the row of a group.
func (r *readings) row(group trace.RankKey) *readingRow {
	row := r.rows[group]
	if row == nil {
		row = new(readingRow)
		r.rows[group] = row
	}
	return row
}

// include adds counters to those of a program.
func (r *readings) include(program trace.Program, t *counterTable, of *counterTable) {
	t.more = t.more || of.more
	old := t.ids
	for i, id := range of.ids {
		at, ok := slices.BinarySearch(t.ids, id)
		switch name := of.names[i]; {
		case ok:
			t.names[at] = cmp.Or(t.names[at], name)
		case at == MaxCounters:
			t.more = true
		default:
			t.ids, t.names = slices.Insert(slices.Clone(t.ids), at, id), slices.Insert(slices.Clone(t.names), at, name)
			if len(t.ids) > MaxCounters {
				t.ids, t.names, t.more = t.ids[:MaxCounters], t.names[:MaxCounters], true
			}
		}
	}
	if slices.Equal(old, t.ids) || len(old) == 0 {
		return
	}
	moved := t.indices(old)
	for key, row := range r.rows {
		if key.Program == program {
			r.renumber(row, moved)
		}
	}
}

// indices returns the indices of counters, or -1 for those that were left out.
func (t *counterTable) indices(ids []CounterID) []int {
	indices := make([]int, len(ids))
	for i, id := range ids {
		var ok bool
		if indices[i], ok = slices.BinarySearch(t.ids, id); !ok {
			indices[i] = -1
		}
	}
	return indices
}

// renumber replaces the indices of counters by moved, and removes those that become -1.
func (r *readings) renumber(row *readingRow, moved []int) {
	cells := row.appendTo(nil)
	*row = readingRow{}
	e := readingEditor{readings: r, row: row}
	for i := range cells {
		if index := moved[cells[i].Counter]; index >= 0 {
			e.add(cells[i].Bin, index, cells[i].Reading)
		}
	}
	e.flush()
}

// readingEditor changes a row. It unpacks one block at a time.
type readingEditor struct {
	readings *readings
	row      *readingRow
	block    int // index of the unpacked block; valid if open is true
	number   int64
	open     bool
	used     [readingSlots / 64]uint64
	slots    [readingSlots]Reading // valid if used
}

// add adds readings. Calls in order of bins unpack each block only once.
func (e *readingEditor) add(bin int64, counter int, r Reading) {
	if number := bin >> readingShift; !e.open || number != e.number {
		e.flush()
		e.unpack(number)
	}
	e.put(byte(bin&(readingBins-1))<<counterBits|byte(counter), r)
}

func (e *readingEditor) put(slot byte, r Reading) {
	if bit := uint64(1) << (slot & 63); e.used[slot>>6]&bit == 0 {
		e.used[slot>>6] |= bit
		e.slots[slot] = r
		return
	}
	e.slots[slot].Merge(r)
}

func (e *readingEditor) unpack(number int64) {
	e.number, e.open, e.block = number, true, find(&e.row.blocks, number)
	for cells := e.row.blocks[e.block].cells; len(cells) > 0; {
		slot, r, rest := nextReading(cells)
		e.put(slot, r)
		cells = rest
	}
}

// flush packs the block.
func (e *readingEditor) flush() {
	if !e.open {
		return
	}
	e.open = false
	b := e.readings.packed[:0]
	for w, used := range e.used {
		for ; used != 0; used &= used - 1 {
			slot := byte(w<<6 + bits.TrailingZeros64(used))
			b = appendReading(b, slot, &e.slots[slot])
		}
		e.used[w] = 0
	}
	e.readings.packed = b
	e.row.blocks[e.block].set(b)
}

// AddReadings adds readings of a rank. It ignores ranks that cannot exist.
func (s *Sketch) AddReadings(key trace.RankKey, all []CounterReading) {
	if len(all) == 0 || key.Rank < 0 {
		return
	}
	r := &s.readings
	t := r.table(key.Program, uint32(key.Rank)+1)
	for i := range all {
		s.extend(all[i].At)
		if !t.isSettled(all[i].Counter) {
			r.include(key.Program, t, &counterTable{ids: []CounterID{all[i].Counter}, names: []string{""}})
		}
	}
	r.widen(s.begin, s.end) // there may be new ranks or counters
	key.Rank >>= t.groupShift()
	e := readingEditor{readings: r, row: r.row(key)}
	for i := range all {
		if index, ok := slices.BinarySearch(t.ids, all[i].Counter); ok {
			e.add(int64(all[i].At)>>r.shift, index, all[i].Reading)
		}
	}
	e.flush()
}

// isSettled reports whether including a counter would change nothing.
func (t *counterTable) isSettled(id CounterID) bool {
	at, ok := slices.BinarySearch(t.ids, id)
	return ok || at == MaxCounters && t.more
}

// mergeReadings adds the readings of o, whose span s includes.
func (s *Sketch) mergeReadings(o *readings) {
	r := &s.readings
	r.widenTo(o.shift)
	moved := make(map[trace.Program][]int)
	for program, of := range o.counters {
		t := r.table(program, of.ranks)
		r.include(program, t, of)
		moved[program] = t.indices(of.ids)
	}
	r.widen(s.begin, s.end)
	by := r.shift - o.shift
	var cells []ReadingCell
	e := readingEditor{readings: r}
	for key, from := range o.rows {
		indices, group := moved[key.Program], key
		group.Rank >>= r.counters[key.Program].groupShift() - o.counters[key.Program].groupShift()
		e.row = r.row(group)
		cells = from.appendTo(cells[:0])
		for i := range cells {
			if index := indices[cells[i].Counter]; index >= 0 {
				e.add(cells[i].Bin>>by, index, cells[i].Reading)
			}
		}
		e.flush()
	}
}

func (r *readings) reset() {
	clear(r.counters)
	clear(r.rows)
}

// clone returns a copy. The copy shares memory until one of the two changes.
func (r *readings) clone() readings {
	c := readings{r.shift, make(map[trace.Program]*counterTable, len(r.counters)), make(map[trace.RankKey]*readingRow, len(r.rows)), nil}
	for program, t := range r.counters {
		c.counters[program] = &counterTable{slices.Clone(t.ids), slices.Clone(t.names), t.more, t.ranks}
	}
	for key, row := range r.rows {
		for i := range row.blocks {
			row.blocks[i].shared = true
		}
		c.rows[key] = &readingRow{slices.Clone(row.blocks)}
	}
	return c
}

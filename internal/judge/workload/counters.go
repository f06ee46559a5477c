package workload

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// MaxCounters is the greatest number of counters of a program. If there are more, those with the least hashes count: they are also
// among the least in each part of the counters, so none of their readings is ever dropped.
const MaxCounters = 64

// Counter identifies a counter of a program.
type Counter struct {
	Program trace.Program
	Hash    uint32 // hash of the name: short, because loads are sent often; in one of 2 million programs two of 64 are equal
}

// CounterOf returns the counter with a name.
func CounterOf(key trace.FuncKey) Counter {
	return Counter{key.Program, uint32(callpath.Hash(0).Then(key.Name) >> 32)}
}

// Compare orders counters by program and hash.
func (c Counter) Compare(o Counter) int {
	return cmp.Or(cmp.Compare(c.Program, o.Program), cmp.Compare(c.Hash, o.Hash))
}

// CounterState is a counter of a load.
type CounterState struct {
	Counter
	// Decreases is true if a reading was ever less than the one before it on the same thread. Increases are then
	// meaningless, and the load has none.
	Decreases bool
}

// Reading contains the readings of a counter in a window of a lane. Sums saturate at math.MaxUint64.
type Reading struct {
	Counter  uint32 // index in Counters
	Count    uint64
	Sum      uint64
	Increase uint64 // relative to the previous readings on the same thread
}

// Add adds a reading that exceeds the previous one by increase.
func (r *Reading) Add(value, increase uint64) {
	r.Count++
	r.Sum, r.Increase = activity.LimitedSum(r.Sum, value), activity.LimitedSum(r.Increase, increase)
}

// Merge adds other readings of the counter.
func (r *Reading) Merge(o *Reading) {
	r.Count, r.Sum = activity.LimitedSum(r.Count, o.Count), activity.LimitedSum(r.Sum, o.Sum)
	r.Increase = activity.LimitedSum(r.Increase, o.Increase)
}

// CounterWindow contains the readings of a lane in a window of time.
type CounterWindow struct {
	Number int64  // time divided by the width
	cells  []byte // see packReadings
	shared bool   // cells also belong to a clone
}

// Counters returns the counters in the order of their indices.
func (l *Load) Counters() []CounterState { return l.counters }

// CounterName returns the name of a counter, or "" if unknown.
func (l *Load) CounterName(c Counter) string { return l.names[c] }

// NameCounter sets the name of a counter. Encodings and merged loads do not include the name.
func (l *Load) NameCounter(key trace.FuncKey) {
	if l.names == nil {
		l.names = make(map[Counter]string)
	}
	l.names[CounterOf(key)] = key.Name
}

// NameActivities sets the names of the counters of the activities. Only the encoding of the activities includes these names.
func (l *Load) NameActivities() {
	type key struct {
		program trace.Program
		id      activity.CounterID
	}
	names := make(map[key]string, len(l.names))
	for c, name := range l.names {
		names[key{c.Program, activity.CounterOf(name)}] = name
	}
	l.activities.NameCounters(func(program trace.Program, id activity.CounterID) string { return names[key{program, id}] })
}

// AddCounter adds a counter unless there are too many. It may change the indices of counters.
func (l *Load) AddCounter(c CounterState) {
	if l.lacks(c) {
		l.addCounters([]CounterState{c})
	}
}

// lacks reports whether a counter is new, or decreases for the first time.
func (l *Load) lacks(c CounterState) bool {
	i, ok := l.CounterIndex(c.Counter)
	return !ok || c.Decreases && !l.counters[i].Decreases
}

// CounterIndex returns the index of a counter, or false if the load does not have it.
func (l *Load) CounterIndex(c Counter) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(l.counters, c, func(s CounterState, c Counter) int { return s.Compare(c) })
	return uint32(i), ok
}

func (l *Load) addCounters(more []CounterState) {
	if !slices.ContainsFunc(more, l.lacks) {
		return
	}
	old := l.counters
	all := slices.Concat(old, more)
	slices.SortFunc(all, func(a, b CounterState) int { return a.Compare(b.Counter) })
	l.counters = all[:0]
	n := 0 // counters of the program
	for _, c := range all {
		if k := len(l.counters); k > 0 && l.counters[k-1].Counter == c.Counter {
			l.counters[k-1].Decreases = l.counters[k-1].Decreases || c.Decreases
			continue
		} else if n++; k == 0 || l.counters[k-1].Program != c.Program {
			n = 1
		}
		if n <= MaxCounters {
			l.counters = append(l.counters, c)
		}
	}
	moved := l.indicesOf(old)
	for _, lane := range l.lanes {
		for i := range lane.Counters {
			w := &lane.Counters[i]
			l.readings = appendMoved(l.readings[:0], w, moved)
			l.packReadings(w)
		}
		lane.Counters = slices.DeleteFunc(lane.Counters, func(w CounterWindow) bool { return len(w.cells) == 0 })
	}
}

// indicesOf returns the indices of counters, or -1 for those that the load does not have.
func (l *Load) indicesOf(counters []CounterState) []int64 {
	indices := make([]int64, len(counters))
	for k, c := range counters {
		indices[k] = -1
		if i, ok := l.CounterIndex(c.Counter); ok {
			indices[k] = int64(i)
		}
	}
	return indices
}

// appendMoved appends the readings of a window with indices replaced by moved, without those at -1.
func appendMoved(dst []Reading, w *CounterWindow, moved []int64) []Reading {
	from := len(dst)
	dst = w.Readings(dst)
	kept := dst[:from]
	for _, r := range dst[from:] {
		if i := moved[r.Counter]; i >= 0 {
			r.Counter = uint32(i)
			kept = append(kept, r)
		}
	}
	return kept
}

// AddReadings adds readings of a lane, all in the window of a time. It extends the load to the time even if there are no readings,
// because the load may not have their counters. If the load includes the time, readings may be l.readings.
func (l *Load) AddReadings(lane *Lane, at trace.Ticks, readings []Reading) {
	if l.extend(at); len(readings) == 0 {
		return
	}
	number := int64(at) >> l.shift
	i := len(lane.Counters) - 1
	if i < 0 || lane.Counters[i].Number != number {
		var ok bool
		if i, ok = slices.BinarySearchFunc(lane.Counters, number, func(w CounterWindow, n int64) int { return cmp.Compare(w.Number, n) }); !ok {
			lane.Counters = slices.Insert(lane.Counters, i, CounterWindow{Number: number})
		}
	}
	w := &lane.Counters[i]
	l.readings = w.Readings(append(l.readings[:0], readings...))
	l.packReadings(w)
}

// widenReadings merges the windows of a lane.
func (l *Load) widenReadings(lane *Lane, shift uint8) {
	merged := lane.Counters[:0]
	for _, w := range lane.Counters {
		w.Number >>= shift - l.shift
		n := len(merged)
		if n == 0 || merged[n-1].Number != w.Number {
			merged = append(merged, w)
			continue
		}
		l.readings = merged[n-1].Readings(w.Readings(l.readings[:0]))
		l.packReadings(&merged[n-1])
	}
	clear(lane.Counters[len(merged):])
	lane.Counters = merged
}

// mergeReadings adds the readings of a lane of a load with another shift. moved maps its indices of counters to those of l.
func (l *Load) mergeReadings(lane, from *Lane, shift uint8, moved []int64) {
	for i := range from.Counters {
		w := &from.Counters[i]
		l.readings = appendMoved(l.readings[:0], w, moved)
		l.AddReadings(lane, min(max(trace.Ticks(w.Number<<shift), l.begin), l.end), l.readings) // l includes the time already
	}
}

// shareReadings returns the windows of a lane for a clone.
func (lane *Lane) shareReadings() []CounterWindow {
	for i := range lane.Counters {
		lane.Counters[i].shared = true
	}
	return slices.Clone(lane.Counters)
}

// The encoding of readings begins with a number that combines the difference to the previous counter, whether there is an increase,
// and the number of readings up to manyReadings.
const (
	readingBits   = 3
	manyReadings  = 1<<readingBits - 1
	withIncrease  = 1 << readingBits
	readingHeader = readingBits + 1
)

// Readings appends the readings in the window to dst, in order of counters.
func (w *CounterWindow) Readings(dst []Reading) []Reading {
	counter := uint64(0)
	next := 0
	number := func() uint64 {
		v, n := binary.Uvarint(w.cells[next:])
		next += n
		return v
	}
	for next < len(w.cells) {
		head := number()
		counter += head >> readingHeader
		r := Reading{Counter: uint32(counter), Count: head & manyReadings}
		if r.Count == manyReadings {
			r.Count = number()
		}
		if r.Sum = number(); head&withIncrease != 0 {
			r.Increase = number()
		}
		dst = append(dst, r)
	}
	return dst
}

// packReadings replaces the readings of a window by l.readings, and changes their order. It encodes their beginning, their
// number if it is at least manyReadings, their sum, and their increase if there is any.
func (l *Load) packReadings(w *CounterWindow) {
	slices.SortFunc(l.readings, func(a, b Reading) int { return cmp.Compare(a.Counter, b.Counter) })
	b, last := l.packed[:0], uint32(0)
	for i := 0; i < len(l.readings); {
		r := l.readings[i]
		for i++; i < len(l.readings) && l.readings[i].Counter == r.Counter; i++ {
			r.Merge(&l.readings[i])
		}
		head := uint64(r.Counter-last)<<readingHeader | min(r.Count, manyReadings)
		increases := r.Increase > 0 && !l.counters[r.Counter].Decreases
		if increases {
			head |= withIncrease
		}
		b = binary.AppendUvarint(b, head)
		if r.Count >= manyReadings {
			b = binary.AppendUvarint(b, r.Count)
		}
		if b = binary.AppendUvarint(b, r.Sum); increases {
			b = binary.AppendUvarint(b, r.Increase)
		}
		last = r.Counter
	}
	if l.packed = b; w.shared || len(b) > cap(w.cells) {
		w.cells, w.shared = nil, false
	}
	w.cells = append(w.cells[:0], b...)
}

// hasCounters, in the byte of the choice of paths, marks encodings that end with counters.
const hasCounters = 1 << 7

// appendCounters appends the encoding of counters and their readings.
func (l *Load) appendCounters(b []byte, lanes []*Lane) []byte {
	if len(l.counters) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(l.counters)))
	for _, c := range l.counters {
		head := uint64(c.Program) << 1
		if c.Decreases {
			head |= 1
		}
		b = binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, head), c.Hash)
	}
	for _, lane := range lanes {
		b = binary.AppendUvarint(b, uint64(len(lane.Counters)))
		last := int64(l.begin) >> l.shift
		for i := range lane.Counters {
			w := &lane.Counters[i]
			b = binary.AppendUvarint(b, uint64(w.Number-last))
			last = w.Number
			b = append(binary.AppendUvarint(b, uint64(len(w.cells))), w.cells...)
		}
	}
	return b
}

func (l *Load) readCounters(r *reader) {
	of := 0 // number of counters of the program
	n := r.ReadLength()
	if n == 0 {
		r.Fail("no counters")
	}
	for ; n > 0 && r.Err == nil; n-- {
		head := r.ReadUint(math.MaxUint32<<1 | 1)
		c := CounterState{Counter{Program: trace.Program(head >> 1)}, head&1 != 0}
		if b := r.ReadBytes(4); b != nil {
			c.Hash = binary.LittleEndian.Uint32(b)
		}
		if i := len(l.counters); i > 0 && l.counters[i-1].Compare(c.Counter) >= 0 {
			r.Fail("counters duplicate or out of order")
		} else if of++; i == 0 || l.counters[i-1].Program != c.Program {
			of = 1
		}
		if of > MaxCounters {
			r.Fail("too many counters")
		}
		l.counters = append(l.counters, c)
	}
	for _, lane := range l.Lanes() {
		number, end := int64(l.begin)>>l.shift, int64(l.end)>>l.shift
		n := r.ReadLength()
		for i := 0; i < n && r.Err == nil; i++ {
			step := r.ReadUint(uint64(end - number))
			if i > 0 && step == 0 {
				r.Fail("duplicate window of counters")
			}
			number += int64(step)
			l.readReadings(r, lane.Program)
			lane.Counters = append(lane.Counters, CounterWindow{Number: number})
			l.packReadings(&lane.Counters[i])
		}
	}
}

// readReadings reads the readings of a window into l.readings.
func (l *Load) readReadings(r *reader, program trace.Program) {
	l.readings = l.readings[:0]
	size := r.ReadLength()
	rest := r.Left() - size
	if size == 0 {
		r.Fail("no readings")
	}
	counter := uint64(0)
	for r.Left() > rest {
		head := r.ReadUint(uint64(len(l.counters))<<readingHeader | withIncrease | manyReadings)
		counter += head >> readingHeader
		if counter >= uint64(len(l.counters)) || head>>readingHeader == 0 && len(l.readings) > 0 || l.counters[counter].Program != program {
			r.Fail("counter unknown, duplicate or of another program")
			return
		}
		v := Reading{Counter: uint32(counter), Count: head & manyReadings}
		if v.Count == manyReadings {
			v.Count = r.ReadUint(math.MaxUint64)
		}
		if v.Sum = r.ReadUint(math.MaxUint64); head&withIncrease != 0 {
			v.Increase = r.ReadUint(math.MaxUint64)
		}
		if v.Count == 0 {
			r.Fail("counter without readings")
		}
		l.readings = append(l.readings, v)
	}
	if r.Err == nil && r.Left() < rest {
		r.Fail("readings exceed their window")
	}
}

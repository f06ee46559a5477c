// Package workload counts the work of ranks over time: calls and time by thread, by window of time and by kind of work, the time
// spent waiting, and readings of counters. With it, peers that do equal work can be compared, even during a run.
//
// A Load has limited size, and merging loads gives the same result in any order and grouping. Windows are aligned to powers of two
// of ticks; a longer run has wider windows. If there are too many call paths, some count as their function with all paths. If there
// are too many counters, some are omitted. These choices depend only on everything that was ever added, not on its order. The
// package is pure. A Load is not safe for concurrent use.
package workload

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

// MinShift is the binary logarithm of the width of the shortest windows in ticks of a microsecond.
const MinShift = 16

// The number of lanes of a run limits its number of windows, so that memory is bounded.
const (
	mostWindows  = 64
	leastWindows = 16
	fewLanes     = 512 // lanes that may have mostWindows each
)

// maxPaths is the greatest number of call paths. Further paths count as their function.
const maxPaths = 512

// MaxThreads is the number of threads of a rank with a lane of their own. All others share the last lane.
const MaxThreads = 32

// Work is a kind of work: calls of a function with one call path, or with all.
type Work struct {
	Program  trace.Program
	Function uint32        // number that the owner of the load assigns
	Path     callpath.Hash // 0 means all paths that are not kept
}

// Compare orders kinds of work by program, function and path.
func (w Work) Compare(o Work) int {
	return cmp.Or(cmp.Compare(w.Program, o.Program), cmp.Compare(w.Function, o.Function), cmp.Compare(w.Path, o.Path))
}

// LaneKey identifies a thread of a rank.
type LaneKey struct {
	trace.RankKey
	Thread trace.Thread
}

// Compare orders keys by program, rank and thread.
func (k LaneKey) Compare(o LaneKey) int {
	return cmp.Or(k.RankKey.Compare(o.RankKey), cmp.Compare(k.Thread, o.Thread))
}

// Lane contains the work of a thread.
type Lane struct {
	LaneKey
	Host        string          // "" if unknown
	Device      bool            // a stream of a GPU
	GPU         uint64          // number of the GPU of the stream; 0 if unknown
	Gaps        bool            // idle between calls: several calls of the lane are in no other call
	First, Last trace.Ticks     // first entry and last exit; 0 without calls
	Windows     []Window        // windows with calls, in order of time
	Counters    []CounterWindow // windows with readings, in order of time
}

// Window contains the work of a lane in a window of time.
type Window struct {
	Number int64  // time divided by the width
	Wait   uint64 // time of waiting calls within the window, including Sync
	Sync   uint64 // time of collective calls in Wait
	cells  []byte // see mergeCells
	shared bool   // cells also belong to a clone
}

// Load contains the work of some lanes. Use New.
type Load struct {
	shift      uint8
	level      uint8 // number of zero bits at the end of the hashes of all paths
	works      []Work
	index      map[Work]uint32
	paths      int
	lanes      map[LaneKey]*Lane
	begin, end trace.Ticks // 0 if empty
	scratch    []Cell
	packed     []byte         // scratch
	counters   []CounterState // in order
	names      map[Counter]string
	readings   []Reading // scratch
	activities *activity.Sketch
}

// Cell is the work of one kind in a window of a lane.
type Cell struct {
	Work uint32 // index in Works
	callpath.Sums
}

// ShiftOf returns the binary logarithm of the width of the shortest windows in ticks of a unit. That width is about 66 ms.
func ShiftOf(unit trace.Unit) uint8 {
	return MinShift + uint8(bits.Len64(uint64(max(1, trace.Microsecond.Nanos()/unit.Nanos())-1)))
}

// New returns an empty load. Its windows are as wide as those of the loads that are merged into it, at least 1<<MinShift ticks.
func New() *Load { return NewIn(trace.Microsecond) }

// NewIn returns an empty load in ticks of a unit.
func NewIn(unit trace.Unit) *Load {
	return &Load{shift: ShiftOf(unit), index: make(map[Work]uint32), lanes: make(map[LaneKey]*Lane), activities: activity.New(unit)}
}

// Shift returns the binary logarithm of the width of windows in ticks.
func (l *Load) Shift() uint8 { return l.shift }

// Width returns the width of windows.
func (l *Load) Width() trace.Ticks { return 1 << l.shift }

// Span returns the time from the first entry to the last exit, or 0, 0 if there are no calls.
func (l *Load) Span() (begin, end trace.Ticks) { return l.begin, l.end }

// Works returns the kinds of work in the order of their indices.
func (l *Load) Works() []Work { return l.works }

// Lanes returns all lanes in order.
func (l *Load) Lanes() []*Lane {
	all := make([]*Lane, 0, len(l.lanes))
	for _, lane := range l.lanes {
		all = append(all, lane)
	}
	slices.SortFunc(all, func(a, b *Lane) int { return a.Compare(b.LaneKey) })
	return all
}

// MaxFunction returns the greatest number of a function, or -1.
func (l *Load) MaxFunction() int {
	most := -1
	for _, w := range l.works {
		most = max(most, int(w.Function))
	}
	return most
}

// Activities returns the activities of the ranks over time. They belong to the load. Each rank in them should have a lane.
func (l *Load) Activities() *activity.Sketch { return l.activities }

// Empty reports whether there are no lanes.
func (l *Load) Empty() bool { return len(l.lanes) == 0 }

// Lane returns the lane of a thread, and adds the lane if it is new.
func (l *Load) Lane(key LaneKey) *Lane {
	key.Thread = min(key.Thread, MaxThreads-1)
	lane := l.lanes[key]
	if lane == nil {
		lane = &Lane{LaneKey: key}
		l.lanes[key] = lane
		l.widen()
	}
	return lane
}

// Work returns the index of a kind of work. It may change the kinds with other indices: some become those of their function.
func (l *Load) Work(w Work) uint32 {
	if w.Path&(1<<l.level-1) != 0 {
		w.Path = 0
	}
	i, ok := l.index[w]
	if ok {
		return i
	}
	i = uint32(len(l.works))
	l.works = append(l.works, w)
	l.index[w] = i
	if w.Path == 0 {
		return i
	}
	if l.paths++; l.paths <= maxPaths {
		return i
	}
	for l.paths > maxPaths {
		l.raise(l.level + 1)
	}
	return l.Work(w)
}

// raise makes paths whose hashes end in fewer than level zero bits count as their function.
func (l *Load) raise(level uint8) {
	if level <= l.level {
		return
	}
	l.level = level
	old := l.works
	l.works, l.index, l.paths = nil, make(map[Work]uint32), 0
	moved := make([]uint32, len(old))
	for i, w := range old {
		moved[i] = l.Work(w)
	}
	l.renumber(moved)
}

// arrange sorts the kinds of work.
func (l *Load) arrange() {
	if slices.IsSortedFunc(l.works, Work.Compare) {
		return
	}
	slices.SortFunc(l.works, Work.Compare)
	moved := make([]uint32, len(l.works))
	for i, w := range l.works {
		moved[l.index[w]] = uint32(i)
		l.index[w] = uint32(i)
	}
	l.renumber(moved)
}

// renumber changes the indices of work in all cells.
func (l *Load) renumber(moved []uint32) {
	for _, lane := range l.lanes {
		for i := range lane.Windows {
			w := &lane.Windows[i]
			l.scratch = w.Cells(l.scratch[:0])
			for k := range l.scratch {
				l.scratch[k].Work = moved[l.scratch[k].Work]
			}
			w.pack(l)
		}
	}
}

// windowLimit returns the greatest number of windows of a number of lanes.
func windowLimit(lanes int) int64 {
	n := int64(mostWindows)
	for ; lanes > fewLanes && n > leastWindows; lanes /= 4 {
		n /= 2
	}
	return n
}

// extend makes the load include a time.
func (l *Load) extend(at trace.Ticks) {
	if l.begin == 0 && l.end == 0 {
		l.begin, l.end = at, at
	}
	if at < l.begin || at > l.end {
		l.begin, l.end = min(l.begin, at), max(l.end, at)
		l.widen()
	}
}

// widen widens the windows until there are few enough.
func (l *Load) widen() {
	shift := l.shift
	for int64(l.end)>>shift-int64(l.begin)>>shift >= windowLimit(len(l.lanes)) {
		shift++
	}
	l.widenTo(shift)
}

func (l *Load) widenTo(shift uint8) {
	if shift <= l.shift {
		return
	}
	for _, lane := range l.lanes {
		merged := lane.Windows[:0]
		for _, w := range lane.Windows {
			w.Number >>= shift - l.shift
			if n := len(merged); n > 0 && merged[n-1].Number == w.Number {
				merged[n-1].merge(l, &w)
			} else {
				merged = append(merged, w)
			}
		}
		clear(lane.Windows[len(merged):])
		lane.Windows = merged
		l.widenReadings(lane, shift)
	}
	l.shift = shift
}

// window returns the window of a lane at a time.
func (l *Load) window(lane *Lane, at trace.Ticks) *Window {
	l.extend(at)
	number := int64(at) >> l.shift
	n := len(lane.Windows)
	if n > 0 && lane.Windows[n-1].Number == number {
		return &lane.Windows[n-1]
	}
	i, ok := slices.BinarySearchFunc(lane.Windows, number, func(w Window, n int64) int { return cmp.Compare(w.Number, n) })
	if !ok {
		lane.Windows = slices.Insert(lane.Windows, i, Window{Number: number})
	}
	return &lane.Windows[i]
}

// occupy extends the time of a lane to that of a call.
func (lane *Lane) occupy(entry, exit trace.Ticks) {
	if lane.First == 0 && lane.Last == 0 {
		lane.First, lane.Last = entry, exit
	}
	lane.First, lane.Last = min(lane.First, entry), max(lane.Last, exit)
}

// Add adds work from its earliest entry to its latest exit. All of it must have ended in the window of the latest exit. Add may
// change the order of cells.
func (l *Load) Add(lane *Lane, entry, exit trace.Ticks, cells []Cell) {
	entry = min(entry, exit)
	lane.occupy(entry, exit)
	l.extend(entry)
	l.window(lane, exit).add(l, cells)
}

// AddWait adds a call that waits for others, or several that entered and exited in the same window. It divides their time among the
// windows from entry to exit.
func (l *Load) AddWait(lane *Lane, entry, exit trace.Ticks, time uint64, collective bool) {
	entry = min(entry, exit)
	lane.occupy(entry, exit)
	l.extend(entry)
	l.extend(exit)
	part := func(until trace.Ticks) uint64 { // of the time; exact, so that the width of windows does not matter
		if until >= exit || until <= entry { // until <= entry means overflow of the end of the window
			return time
		}
		hi, lo := bits.Mul64(time, uint64(until-entry))
		q, _ := bits.Div64(hi, lo, uint64(exit-entry))
		return q
	}
	before := uint64(0)
	for number := int64(entry) >> l.shift; number <= int64(exit)>>l.shift; number++ {
		until := part(trace.Ticks((number + 1) << l.shift))
		w := l.window(lane, trace.Ticks(max(number<<l.shift, int64(entry))))
		w.Wait += until - before
		if collective {
			w.Sync += until - before
		}
		before = until
	}
}

// Merge adds the work of o. Function i of o is function number(i) of l, or i if number is nil. Merge does not retain o.
func (l *Load) Merge(o *Load, number func(program trace.Program, function uint32) uint32) {
	l.raise(o.level)
	works := make([]uint32, len(o.works))
	for range 2 { // twice, because new work may change indices
		for i, w := range o.works {
			if number != nil {
				w.Function = number(w.Program, w.Function)
			}
			works[i] = l.Work(w)
		}
	}
	l.widenTo(o.shift)
	if o.begin != 0 || o.end != 0 {
		l.extend(o.begin)
		l.extend(o.end)
	}
	for key := range o.lanes {
		l.Lane(key)
	}
	l.addCounters(o.counters)
	counters := l.indicesOf(o.counters)
	for key, from := range o.lanes {
		lane := l.lanes[key]
		lane.Host, lane.Gaps = max(lane.Host, from.Host), lane.Gaps || from.Gaps
		lane.Device, lane.GPU = lane.Device || from.Device, max(lane.GPU, from.GPU)
		if from.First != 0 || from.Last != 0 {
			lane.occupy(from.First, from.Last)
		}
		for i := range from.Windows {
			w := &from.Windows[i]
			at := trace.Ticks(w.Number << o.shift)
			into := l.window(lane, min(max(at, l.begin), l.end))
			into.Wait += w.Wait
			into.Sync += w.Sync
			l.scratch = w.Cells(l.scratch[:0])
			for k := range l.scratch {
				l.scratch[k].Work = works[l.scratch[k].Work]
			}
			into.add(l, l.scratch)
		}
		l.mergeReadings(lane, from, o.shift, counters)
	}
	l.activities.Merge(o.activities)
}

// Reset removes all work and keeps memory. The span of time, the width of windows and the choice of paths remain those of
// everything that was ever added.
func (l *Load) Reset() {
	clear(l.index)
	clear(l.lanes)
	l.activities.Reset()
	l.works, l.paths, l.counters = l.works[:0], 0, l.counters[:0]
}

// Clone returns a copy. The copy shares memory until one of the two changes. Clone may change the indices of work.
func (l *Load) Clone() *Load {
	l.arrange() // so that its clones need not do it
	c := *l
	c.works, c.index, c.lanes = slices.Clone(l.works), maps.Clone(l.index), make(map[LaneKey]*Lane, len(l.lanes))
	c.scratch, c.packed, c.readings = nil, nil, nil
	c.activities = l.activities.Clone()
	c.counters, c.names = slices.Clone(l.counters), maps.Clone(l.names)
	for key, lane := range l.lanes {
		for i := range lane.Windows {
			lane.Windows[i].shared = true
		}
		copied := *lane
		copied.Windows, copied.Counters = slices.Clone(lane.Windows), lane.shareReadings()
		c.lanes[key] = &copied
	}
	return &c
}

// Cells appends the work in the window to dst, in order of its indices.
func (w *Window) Cells(dst []Cell) []Cell {
	r := cellReader{rest: w.cells}
	for r.next() {
		dst = append(dst, r.cell)
	}
	return dst
}

// cellReader decodes the cells of a window.
type cellReader struct {
	rest []byte
	cell Cell // valid if next returned true
}

// next decodes the next cell, if any.
func (r *cellReader) next() bool {
	b := r.rest
	if len(b) == 0 {
		return false
	}
	head, n := binary.Uvarint(b)
	calls := head & manyCalls
	if calls == manyCalls {
		more, k := binary.Uvarint(b[n:])
		n += k
		calls += more
	}
	exclusive, k := binary.Uvarint(b[n:])
	r.rest = b[n+k:]
	r.cell = Cell{r.cell.Work + uint32(head>>callBits), callpath.Sums{Calls: calls, Exclusive: exclusive}}
	return true
}

// merge adds the work of another window with the same kinds of work.
func (w *Window) merge(l *Load, o *Window) {
	w.Wait += o.Wait
	w.Sync += o.Sync
	l.scratch = o.Cells(l.scratch[:0])
	w.add(l, l.scratch)
}

// add adds cells and may change their order. They may be l.scratch.
func (w *Window) add(l *Load, cells []Cell) {
	if len(cells) == 0 {
		return
	}
	sortCells(cells)
	l.packed = mergeCells(l.packed[:0], w.cells, cells)
	w.replace(l)
}

// pack replaces the cells by l.scratch.
func (w *Window) pack(l *Load) {
	sortCells(l.scratch)
	l.packed = mergeCells(l.packed[:0], nil, l.scratch)
	w.replace(l)
}

// replace replaces the cells by l.packed.
func (w *Window) replace(l *Load) {
	if w.shared || len(l.packed) > cap(w.cells) {
		w.cells, w.shared = nil, false // release excess memory
	}
	w.cells = append(w.cells[:0], l.packed...)
}

// The encoding of a cell begins with a number that combines the difference to the previous work and the number of calls up to
// manyCalls.
const (
	callBits  = 5
	manyCalls = 1<<callBits - 1
)

func compareWork(a, b Cell) int { return cmp.Compare(a.Work, b.Work) }

// sortCells sorts cells by work. Most are in order already.
func sortCells(cells []Cell) {
	if !slices.IsSortedFunc(cells, compareWork) {
		slices.SortFunc(cells, compareWork)
	}
}

// mergeCells appends the encoding of the cells of a window and of others, which are in order of their work. Cells of one work
// become one cell. The encoding of a cell is its beginning, the number of calls if it is at least manyCalls, and the time.
func mergeCells(b, window []byte, cells []Cell) []byte {
	r := cellReader{rest: window}
	more, last := r.next(), uint32(0)
	for more || len(cells) > 0 {
		var c Cell
		if more && (len(cells) == 0 || r.cell.Work <= cells[0].Work) {
			c = r.cell
			more = r.next()
		} else {
			c, cells = cells[0], cells[1:]
		}
		for ; len(cells) > 0 && cells[0].Work == c.Work; cells = cells[1:] {
			c.Calls += cells[0].Calls
			c.Exclusive += cells[0].Exclusive
		}
		b = binary.AppendUvarint(c.appendHead(b, last), c.Exclusive)
		last = c.Work
	}
	return b
}

// appendHead appends the encoding of a cell without its time. last is the previous work.
func (c *Cell) appendHead(b []byte, last uint32) []byte {
	b = binary.AppendUvarint(b, uint64(c.Work-last)<<callBits|min(c.Calls, manyCalls))
	if c.Calls >= manyCalls {
		b = binary.AppendUvarint(b, c.Calls-manyCalls)
	}
	return b
}

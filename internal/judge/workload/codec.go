package workload

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/codec"
	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// maxShift suffices for runs of any length.
const maxShift = 57

// dense marks loads that AppendDense wrote.
const dense = 1 << 7

// hasActivities, in the same byte, marks encodings that end with activities.
const hasActivities = 1 << 6

// AppendBinary appends the encoding of the load to b. Equal loads have equal encodings. AppendBinary may change the indices
// of work.
func (l *Load) AppendBinary(b []byte) []byte { return l.append(b, 0) }

// storedMagic begins a stored load; the number of its format follows.
const storedMagic = "chimbuko load "

var storedFormat = fileformat.Format{Number: 1, Oldest: 1, Renew: "finish the run with the chimbuko that began it"}

// AppendStored is like AppendBinary for files, which another version of the program may read.
func (l *Load) AppendStored(b []byte) []byte {
	return l.AppendBinary(fmt.Appendf(b, "%s%d\n", storedMagic, storedFormat.Number))
}

// ReadStored decodes all of b, which AppendStored wrote.
func ReadStored(b []byte) (*Load, error) {
	number, rest, ok := fileformat.CutHead(b, storedMagic)
	if !ok || len(rest) == 0 || rest[0] != '\n' {
		return nil, fmt.Errorf("%w: it begins with %q, want %q", errEncoding, b[:min(len(b), len(storedMagic))], storedMagic)
	}
	if err := storedFormat.Check(number); err != nil {
		return nil, fmt.Errorf("%w: %w", errEncoding, err)
	}
	return Decode(rest[1:], math.MaxUint64)
}

// AppendDense is like AppendBinary with another encoding, which takes ten times as long and compresses to half the size.
func (l *Load) AppendDense(b []byte) []byte { return l.append(b, dense) }

// Flags of a lane, encoded before its host.
const (
	isDevice  = 1
	hasGaps   = 2
	laneFlags = 2 // number of bits
)

func (l *Load) append(b []byte, form uint8) []byte {
	l.arrange()
	level := l.level
	if len(l.counters) > 0 {
		level |= hasCounters
	}
	if !l.activities.Empty() {
		form |= hasActivities
	}
	b = append(b, l.shift|form, level)
	b = binary.AppendVarint(b, int64(l.begin))
	b = binary.AppendUvarint(b, uint64(l.end-l.begin))
	b = binary.AppendUvarint(b, uint64(len(l.works)))
	for _, w := range l.works {
		b = binary.AppendUvarint(b, uint64(w.Program))
		if w.Path == 0 {
			b = binary.AppendUvarint(b, uint64(w.Function)<<1)
			continue
		}
		b = binary.AppendUvarint(b, uint64(w.Function)<<1|1)
		b = binary.LittleEndian.AppendUint64(b, uint64(w.Path))
	}
	lanes := l.Lanes()
	hosts := make(map[string]uint64)
	for _, lane := range lanes {
		hosts[lane.Host] = 0
	}
	b = binary.AppendUvarint(b, uint64(len(hosts)))
	for i, host := range slices.Sorted(maps.Keys(hosts)) {
		hosts[host] = uint64(i)
		b = append(binary.AppendUvarint(b, uint64(len(host))), host...)
	}
	b = binary.AppendUvarint(b, uint64(len(lanes)))
	var means typicalTimes
	if form&dense != 0 {
		means = make(typicalTimes, len(l.works))
	}
	for _, lane := range lanes {
		b = binary.AppendUvarint(b, uint64(lane.Program))
		b = binary.AppendVarint(b, int64(lane.Rank))
		b = binary.AppendUvarint(b, uint64(lane.Thread))
		flags := uint64(0)
		if lane.Device {
			flags |= isDevice
		}
		if lane.Gaps {
			flags |= hasGaps
		}
		b = binary.AppendUvarint(b, hosts[lane.Host]<<laneFlags|flags)
		if lane.Device {
			b = binary.AppendUvarint(b, lane.GPU)
		}
		b = l.appendWindows(b, lane, means)
	}
	b = l.appendCounters(b, lanes)
	if form&hasActivities != 0 {
		b = l.activities.AppendBinary(b)
	}
	return b
}

func (l *Load) appendWindows(b []byte, lane *Lane, means typicalTimes) []byte {
	b = binary.AppendUvarint(b, uint64(len(lane.Windows)))
	if len(lane.Windows) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(lane.First-l.begin))
	b = binary.AppendUvarint(b, uint64(lane.Last-lane.First))
	last := int64(l.begin) >> l.shift
	for i := range lane.Windows {
		w := &lane.Windows[i]
		b = binary.AppendUvarint(b, uint64(w.Number-last))
		last = w.Number
		b = binary.AppendUvarint(b, w.Wait)
		if w.Wait > 0 {
			b = binary.AppendUvarint(b, w.Sync)
		}
		if means != nil {
			b = l.appendDense(b, w, means)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(w.cells)))
		b = append(b, w.cells...)
	}
	return b
}

// typicalTimes has the sums of all cells coded so far, by work. They predict the time of the next cell, and its encoding is the
// difference to the prediction, which is short.
type typicalTimes []callpath.Sums

// next returns the predicted time of a number of calls.
func (t typicalTimes) next(work uint32, calls uint64) uint64 {
	s := &t[work]
	high, low := bits.Mul64(s.Exclusive, calls)
	if high >= s.Calls {
		return 0
	}
	time, _ := bits.Div64(high, low, s.Calls)
	return time
}

func (t typicalTimes) add(c *Cell) {
	t[c.Work].Calls += c.Calls
	t[c.Work].Exclusive += c.Exclusive
}

// appendDense appends the cells of a window: first all cells without their times, which often equal those of another lane, and then
// the times.
func (l *Load) appendDense(b []byte, w *Window, means typicalTimes) []byte {
	l.scratch, l.packed = w.Cells(l.scratch[:0]), l.packed[:0]
	last := uint32(0)
	for i := range l.scratch {
		c := &l.scratch[i]
		l.packed = c.appendHead(l.packed, last)
		last = c.Work
	}
	b = append(binary.AppendUvarint(b, uint64(len(l.packed))), l.packed...)
	for i := range l.scratch {
		c := &l.scratch[i]
		b = binary.AppendVarint(b, int64(c.Exclusive-means.next(c.Work, c.Calls)))
		means.add(c)
	}
	return b
}

// reader decodes a load.
type reader struct {
	codec.Coder
	most  uint64       // greatest sum
	means typicalTimes // nil if the load is not dense
}

var errEncoding = fmt.Errorf("%w: load", stats.ErrEncoding)

// Decode decodes all of b, which AppendBinary wrote, with sums of calls or ticks of at most most. It takes memory in
// proportion to b and retains nothing of b. Errors wrap stats.ErrEncoding.
func Decode(b []byte, most uint64) (*Load, error) {
	r := &reader{Coder: codec.Decoder(b, errEncoding), most: most}
	l := New()
	if head := r.ReadBytes(2); head != nil {
		l.shift, l.level = head[0]&^(dense|hasActivities), head[1]&^hasCounters
	}
	if l.shift < MinShift || l.shift > maxShift || l.level > 64 {
		r.Fail("impossible width of windows or choice of paths")
	}
	l.begin = trace.Ticks(r.ReadInt(math.MinInt64, math.MaxInt64))
	if l.end = l.begin + trace.Ticks(r.ReadUint(math.MaxInt64)); l.end < l.begin {
		r.Fail("time too large")
	}
	l.readWorks(r)
	if len(b) > 0 && b[0]&dense != 0 {
		r.means = make(typicalTimes, len(l.works))
	}
	l.readLanes(r)
	if len(b) > 1 && b[1]&hasCounters != 0 {
		l.readCounters(r)
	}
	if len(b) > 0 && b[0]&hasActivities != 0 && r.Err == nil {
		var err error
		if l.activities, err = activity.Decode(r.ReadBytes(uint64(r.Left())), most); err != nil {
			r.Fail("%v", err)
		}
	}
	r.End()
	if r.Err == nil && int64(l.end)>>l.shift-int64(l.begin)>>l.shift >= windowLimit(len(l.lanes)) {
		r.Fail("too many windows")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return l, nil
}

func (l *Load) readWorks(r *reader) {
	for n := r.ReadLength(); n > 0 && r.Err == nil; n-- {
		w := Work{Program: trace.Program(r.ReadUint(math.MaxUint32))}
		function := r.ReadUint(math.MaxUint32<<1 | 1)
		w.Function = uint32(function >> 1)
		if function&1 != 0 {
			w.Path = callpath.Hash(r.Fixed(0))
			if l.paths++; w.Path == 0 || w.Path&(1<<l.level-1) != 0 || l.paths > maxPaths {
				r.Fail("impossible call path")
			}
		}
		if i := len(l.works); i > 0 && l.works[i-1].Compare(w) >= 0 {
			r.Fail("kinds of work duplicate or out of order")
		}
		l.index[w] = uint32(len(l.works))
		l.works = append(l.works, w)
	}
}

func (l *Load) readLanes(r *reader) {
	var hosts []string
	for n := r.ReadLength(); n > 0 && r.Err == nil; n-- {
		hosts = append(hosts, string(r.ReadText()))
	}
	var last *Lane
	for n := r.ReadLength(); n > 0 && r.Err == nil; n-- {
		lane := new(Lane)
		lane.Program = trace.Program(r.ReadUint(math.MaxUint32))
		lane.Rank = trace.Rank(r.ReadInt(math.MinInt32, math.MaxInt32))
		lane.Thread = trace.Thread(r.ReadUint(MaxThreads - 1))
		host := r.ReadUint(math.MaxUint64)
		lane.Device, lane.Gaps = host&isDevice != 0, host&hasGaps != 0
		if host >>= laneFlags; host >= uint64(len(hosts)) || last != nil && last.Compare(lane.LaneKey) >= 0 {
			r.Fail("lane with an unknown host, duplicate or out of order")
			return
		}
		if lane.Host = hosts[host]; lane.Device {
			lane.GPU = r.ReadUint(math.MaxUint64)
		}
		l.readWindows(r, lane)
		l.lanes[lane.LaneKey], last = lane, lane
	}
}

func (l *Load) readWindows(r *reader, lane *Lane) {
	n := r.ReadLength()
	if n == 0 {
		return
	}
	lane.First = l.begin + trace.Ticks(r.ReadUint(uint64(l.end-l.begin)))
	lane.Last = lane.First + trace.Ticks(r.ReadUint(uint64(l.end-lane.First)))
	number, end := int64(l.begin)>>l.shift, int64(l.end)>>l.shift
	lane.Windows = make([]Window, 0, min(n, mostWindows))
	for i := 0; i < n && r.Err == nil; i++ {
		step := r.ReadUint(uint64(end - number))
		if i > 0 && step == 0 {
			r.Fail("duplicate window")
		}
		number += int64(step)
		w := Window{Number: number, Wait: r.ReadUint(r.most)}
		if w.Wait > 0 {
			w.Sync = r.ReadUint(w.Wait)
		}
		l.readCells(r, lane.Program)
		w.pack(l)
		lane.Windows = append(lane.Windows, w)
	}
}

// readCells reads the cells of a window into l.scratch.
func (l *Load) readCells(r *reader, program trace.Program) {
	l.scratch = l.scratch[:0]
	size := r.ReadLength()
	rest := r.Left() - size
	work := uint64(0)
	for r.Left() > rest {
		head := r.ReadUint(uint64(len(l.works))<<callBits | manyCalls)
		step, calls := head>>callBits, head&manyCalls
		if calls == manyCalls {
			calls += r.ReadUint(math.MaxUint64 - manyCalls)
		}
		if calls > r.most {
			r.Fail("number too large")
		}
		if work += step; work >= uint64(len(l.works)) || step == 0 && len(l.scratch) > 0 || l.works[work].Program != program {
			r.Fail("work unknown, duplicate or of another program")
			return
		}
		c := Cell{uint32(work), callpath.Sums{Calls: calls}}
		if r.means == nil {
			c.Exclusive = r.ReadUint(r.most)
		}
		l.scratch = append(l.scratch, c)
	}
	if r.Err == nil && r.Left() < rest {
		r.Fail("work exceeds its window")
	}
	if r.means == nil {
		return
	}
	for i := range l.scratch {
		c := &l.scratch[i]
		c.Exclusive = r.means.next(c.Work, c.Calls) + uint64(r.ReadInt(math.MinInt64, math.MaxInt64))
		if c.Exclusive > r.most {
			r.Fail("number too large")
		}
		r.means.add(c)
	}
}

package stats

import (
	"encoding/binary"
	"math"
)

// Timeline records how integers changed over time: it counts them in coarse bins for each of up to 16 equal spans of time. Spans
// begin at multiples of their length, which is a power of two and doubles as more time is covered. Merging is therefore exact
// and independent of the order. The zero value is empty and the identity of Merge.
type Timeline struct {
	length uint8 // binary logarithm of the length of a span, in ticks
	least  uint8 // least length, see Follow
	first  int64 // index of the first span; spans[0] and the last are not empty
	spans  []coarse
}

// coarse counts numbers in bins of an eighth of their size.
type coarse struct {
	base   int
	counts []uint64
	total  uint64
}

const (
	maxSpans      = 16
	shortestSpan  = 13 // about 8 ms in microseconds; longer runs have longer spans
	longestSpan   = 59 // covers all times
	coarseBits    = 3
	coarseUnits   = 1 << (coarseBits + 1)
	numCoarseBins = coarseUnits + (63-coarseBits-1)<<coarseBits
)

// CoarseBinOf returns the coarse bin of v.
func CoarseBinOf(v int64) int { return binOf(v, coarseBits) }

func (c *coarse) add(bin int, n uint64) {
	if i := bin - c.base; uint(i) >= uint(len(c.counts)) {
		c.widen(bin)
	}
	c.counts[bin-c.base] += n
	c.total += n
}

// widen extends the counts to a bin and coarseMargin more on its side.
func (c *coarse) widen(bin int) {
	from, to := max(bin-coarseMargin, 0), bin+1+coarseMargin
	if len(c.counts) > 0 {
		if bin >= c.base {
			from = c.base
		} else {
			to = c.base + len(c.counts)
		}
	}
	counts := make([]uint64, to-from)
	if len(c.counts) > 0 {
		copy(counts[c.base-from:], c.counts)
	}
	c.base, c.counts = from, counts
}

const coarseMargin = 6

func (c *coarse) merge(o *coarse) {
	for i, n := range o.counts {
		if n > 0 {
			c.add(o.base+i, n)
		}
	}
}

func (c *coarse) count(bin int) uint64 {
	if i := bin - c.base; uint(i) < uint(len(c.counts)) {
		return c.counts[i]
	}
	return 0
}

// reset removes all counts and keeps the memory.
func (c *coarse) reset() {
	clear(c.counts)
	c.total = 0
}

// Add counts v once at a time in ticks. A negative time counts as 0.
func (t *Timeline) Add(v, at int64) { t.AddCount(v, at, 1) }

// AddCount counts v n times at a time; n is not 0.
func (t *Timeline) AddCount(v, at int64, n uint64) {
	at = max(at, 0)
	if len(t.spans) > 0 {
		if i := at>>t.length - t.first; uint64(i) < uint64(len(t.spans)) {
			t.spans[i].add(CoarseBinOf(v), n)
			return
		}
	}
	t.cover(at>>t.spanBits(), t.spanBits())
	t.spans[at>>t.length-t.first].add(CoarseBinOf(v), n)
}

// SpanAt returns the limits of the span of a time that was counted: its beginning and that of the next span.
func (t *Timeline) SpanAt(at int64) (from, to int64) {
	from = max(at, 0) >> t.length << t.length
	return from, from + min(1<<t.length, math.MaxInt64-from)
}

func (t *Timeline) spanBits() uint8 { return max(t.length, t.least, shortestSpan) }

// Follow makes spans at least as long as those of o, until the next Reset. It saves memory if t will be merged into o, and does not
// change the result.
func (t *Timeline) Follow(o *Timeline) {
	t.least = o.length
	for len(t.spans) > 0 && t.length < t.least {
		t.double()
	}
}

// cover extends the timeline to a span of the given length.
func (t *Timeline) cover(span int64, length uint8) {
	if len(t.spans) == 0 {
		t.length, t.first = length, span
		t.grow(1)
		return
	}
	for t.length < length {
		t.double()
	}
	span >>= t.length - length
	for max(span, t.last())-min(span, t.first) >= maxSpans {
		t.double()
		span >>= 1
	}
	if span < t.first {
		more := int(t.first - span)
		n := len(t.spans)
		t.grow(n + more)
		moved := make([]coarse, more) // to reuse their memory
		copy(moved, t.spans[n:])
		copy(t.spans[more:], t.spans[:n])
		copy(t.spans, moved)
		t.first = span
	}
	if n := int(span-t.first) + 1; n > len(t.spans) {
		t.grow(n)
	}
}

func (t *Timeline) last() int64 { return t.first + int64(len(t.spans)) - 1 }

// grow appends empty spans.
func (t *Timeline) grow(n int) {
	for len(t.spans) < n {
		if len(t.spans) < cap(t.spans) {
			t.spans = t.spans[:len(t.spans)+1]
			t.spans[len(t.spans)-1].reset()
		} else {
			t.spans = append(t.spans, coarse{})
		}
	}
}

// double doubles the length of spans.
func (t *Timeline) double() {
	first, n := t.first>>1, int(t.last()>>1-t.first>>1)+1
	for i := range n {
		a := (first+int64(i))<<1 - t.first // index of the first half of span i
		switch {
		case a < 0:
			t.spans[0], t.spans[i] = t.spans[i], t.spans[0] // i is 0
		case a+1 < int64(len(t.spans)):
			t.spans[a].merge(&t.spans[a+1])
			t.spans[i], t.spans[a] = t.spans[a], t.spans[i]
		default:
			t.spans[i], t.spans[a] = t.spans[a], t.spans[i]
		}
	}
	t.spans = t.spans[:n]
	t.first, t.length = first, t.length+1
}

// Merge adds all counts of o.
func (t *Timeline) Merge(o *Timeline) {
	if len(o.spans) == 0 {
		return
	}
	t.cover(o.first, o.length)
	t.cover(o.last()>>(t.length-o.length), t.length)
	for i := range o.spans {
		t.spans[(o.first+int64(i))>>(t.length-o.length)-t.first].merge(&o.spans[i])
	}
}

// Reset empties the timeline and keeps its memory.
func (t *Timeline) Reset() {
	for i := range t.spans {
		t.spans[i].reset()
	}
	t.spans, t.length, t.least, t.first = t.spans[:0], 0, 0, 0
}

// Clone returns an independent copy.
func (t *Timeline) Clone() Timeline {
	c := Timeline{}
	c.Merge(t)
	return c
}

// Span has the counts in a span of time.
type Span struct {
	From, To int64 // in ticks; To is the beginning of the next
	Total    uint64
	c        *coarse
}

// Spans returns the spans in order. Some may be empty.
func (t *Timeline) Spans() []Span {
	spans := make([]Span, len(t.spans))
	for i := range t.spans {
		from, to := t.SpanAt((t.first + int64(i)) << t.length)
		spans[i] = Span{From: from, To: to, Total: t.spans[i].total, c: &t.spans[i]}
	}
	return spans
}

// Together returns the sum of consecutive spans.
func Together(spans []Span) Span {
	all := Span{c: new(coarse)}
	for i := range spans {
		all.c.merge(spans[i].c)
	}
	if len(spans) > 0 {
		all.From, all.To = spans[0].From, spans[len(spans)-1].To
	}
	all.Total = all.c.total
	return all
}

// Quantile returns the number below which a share q of the numbers in the span lies, assuming that numbers are spread evenly within
// a bin.
func (s *Span) Quantile(q float64) float64 {
	left := q * float64(s.Total)
	for i, n := range s.c.counts {
		if left <= float64(n) && n > 0 {
			low, high := float64(binLow(s.c.base+i, coarseBits)), float64(binLow(s.c.base+i+1, coarseBits))
			if high-low <= 1 {
				return low
			}
			return low + (high-low)*left/float64(n)
		}
		left -= float64(n)
	}
	return 0
}

// Mean returns the mean of the numbers without the share cut of the least and of the greatest, assuming that numbers are spread
// evenly within a bin.
func (s *Span) Mean(cut float64) float64 {
	from, to := cut*float64(s.Total), (1-cut)*float64(s.Total)
	sum, below := 0.0, 0.0
	for i, n := range s.c.counts {
		if first, last := max(from, below), min(to, below+float64(n)); first < last {
			low, high := float64(binLow(s.c.base+i, coarseBits)), float64(binLow(s.c.base+i+1, coarseBits)-1)
			middle := ((first+last)/2 - below) / float64(n)
			sum += (last - first) * (low + (high-low)*middle)
		}
		below += float64(n)
	}
	return sum / max(to-from, 1)
}

// Count returns the count of a coarse bin.
func (s *Span) Count(bin int) uint64 { return s.c.count(bin) }

// Range returns the half-open range of coarse bins that includes all counts.
func (s *Span) Range() (from, to int) { return s.c.base, s.c.base + len(s.c.counts) }

// AppendBinary appends the encoding of the timeline to b.
func (t *Timeline) AppendBinary(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(t.spans)))
	if len(t.spans) == 0 {
		return b
	}
	b = append(b, t.length)
	b = binary.AppendUvarint(b, uint64(t.first))
	for i := range t.spans {
		b = appendCounts(b, t.spans[i].base, t.spans[i].counts)
	}
	return b
}

// size estimates the number of bytes that AppendBinary appends. The estimate is usually too high. Merging never reduces it, and
// longer spans never increase it.
func (t *Timeline) size() int {
	size := 8
	for i := range t.spans {
		size += 1 + countsSize(t.spans[i].counts)
	}
	return size
}

// Fitting returns the timeline if its encoding has at most about most bytes. Otherwise it returns a copy with spans long enough to
// fit, or with a single span. Fitting before merging gives the same result as fitting afterwards.
func (t *Timeline) Fitting(most int) *Timeline {
	if t.size() <= most {
		return t
	}
	c := t.Clone()
	for len(c.spans) > 1 && c.size() > most {
		c.double()
	}
	return &c
}

// Total returns the number of values.
func (t *Timeline) Total() (n uint64) {
	for i := range t.spans {
		n += t.spans[i].total
	}
	return n
}

// Decode replaces the timeline by the one encoded at the start of b, reusing its memory, and returns the rest of b. After an error
// the timeline is empty.
func (t *Timeline) Decode(b []byte) (rest []byte, err error) {
	t.Reset()
	r := reader{b: b}
	n := r.uint(maxSpans)
	if n > 0 {
		t.length = uint8(r.uint(longestSpan))
		t.first = int64(r.uint(math.MaxInt64 >> shortestSpan))
		if t.length < shortestSpan || t.first+int64(n)-1 > math.MaxInt64>>t.length {
			r.bad = true // after the end of time
		}
		t.grow(int(n))
	}
	left := uint64(math.MaxInt64)
	for i := range t.spans {
		left = r.counts(numCoarseBins, left, t.spans[i].add)
	}
	if n > 0 && (t.spans[0].total == 0 || t.spans[n-1].total == 0) {
		r.bad = true
	}
	if r.bad {
		t.Reset()
		return nil, ErrEncoding
	}
	return r.b, nil
}

package stats

import (
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
)

// Histogram counts integers ≥ 0 in bins that are the same for all histograms: a bin for each number below 128, and 64 of
// equal width between each power of two and the next, so that a bin is never wider than 1/64 of its numbers. Merging only
// adds counts, so it is exact and independent of the order. The zero value is empty and the identity of Merge.
type Histogram struct {
	counts []uint64 // of the bins from base; the first and the last are not 0
	base   int
	total  uint64
}

const (
	subBits  = 6 // 64 bins between powers of two
	unitBits = subBits + 1
	unitBins = 1 << unitBits
	// NumBins is the number of bins of all histograms.
	NumBins = unitBins + (63-unitBits)<<subBits
)

// BinOf returns the bin of v; negative numbers count as 0.
func BinOf(v int64) int { return binOf(v, subBits) }

// BinLow returns the lowest number of a bin. For NumBins it returns the largest int64, in place of 2^63.
func BinLow(bin int) int64 { return binLow(bin, subBits) }

// BinMiddle returns the mean of the numbers of a bin.
func BinMiddle(bin int) float64 {
	low := float64(BinLow(bin))
	return low + (float64(BinLow(bin+1))-low-1)/2
}

// Add counts v once.
func (h *Histogram) Add(v int64) { h.AddBin(BinOf(v), 1) }

// AddBin adds n to the count of a bin.
func (h *Histogram) AddBin(bin int, n uint64) {
	if i := bin - h.base; uint(i) < uint(len(h.counts)) {
		h.counts[i] += n
		h.total += n
		return
	}
	if n != 0 {
		h.widen(bin, bin+1)
		h.counts[bin-h.base] += n
		h.total += n
	}
}

// widen extends the histogram to the bins from lo to hi.
func (h *Histogram) widen(lo, hi int) {
	if len(h.counts) > 0 {
		lo, hi = min(lo, h.base), max(hi, h.base+len(h.counts))
	}
	have, shift := h.counts, 0
	if len(have) > 0 {
		shift = h.base - lo
	}
	if hi-lo > cap(have) {
		h.counts = make([]uint64, hi-lo, hi-lo+(hi-lo)/2)
	} else {
		h.counts = have[:hi-lo] // the rest of its capacity is 0
	}
	if hi-lo > cap(have) || shift > 0 {
		copy(h.counts[shift:], have)
		clear(h.counts[:shift])
	}
	h.base = lo
}

// Merge adds all counts of o.
func (h *Histogram) Merge(o *Histogram) {
	if o.total == 0 {
		return
	}
	h.widen(o.base, o.base+len(o.counts))
	to := h.counts[o.base-h.base:]
	for i, n := range o.counts {
		to[i] += n
	}
	h.total += o.total
}

// Reset empties the histogram and keeps its memory.
func (h *Histogram) Reset() {
	clear(h.counts)
	h.counts, h.total = h.counts[:0], 0
}

// Clone returns an independent copy.
func (h *Histogram) Clone() Histogram {
	c := Histogram{}
	c.Merge(h)
	return c
}

// Total returns the number of values.
func (h *Histogram) Total() uint64 { return h.total }

// Count returns the count of a bin.
func (h *Histogram) Count(bin int) uint64 {
	if i := bin - h.base; uint(i) < uint(len(h.counts)) {
		return h.counts[i]
	}
	return 0
}

// CountFrom returns the sum of the counts of a bin and of all bins after it.
func (h *Histogram) CountFrom(bin int) (n uint64) {
	for _, count := range h.counts[min(max(0, bin-h.base), len(h.counts)):] {
		n += count
	}
	return n
}

// Bins yields the nonempty bins and their counts in order.
func (h *Histogram) Bins() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for i, n := range h.counts {
			if n != 0 && !yield(h.base+i, n) {
				return
			}
		}
	}
}

// Quantile returns a number at or below which the share q of the values lies, to the precision of a bin, or 0 if the histogram is
// empty.
func (h *Histogram) Quantile(q float64) float64 {
	want := q * float64(h.total)
	sum := 0.0
	for bin, n := range h.Bins() {
		if c := float64(n); sum+c >= want {
			low, width := float64(BinLow(bin)), float64(BinLow(bin+1)-BinLow(bin))
			if width == 1 {
				return low
			}
			return low + width*min(1, max(0, want-sum)/c) // more than 1 if counts are so large that sums are rounded
		}
		sum += float64(n)
	}
	return 0
}

// Moments returns the moments, assuming that each value is in the middle of its bin.
func (h *Histogram) Moments() RunStats { return h.MomentsBelow(math.Inf(1)) }

// MomentsBelow returns the moments without the bins that begin above limit.
func (h *Histogram) MomentsBelow(limit float64) RunStats {
	var s RunStats
	sum := 0.0
	for bin, n := range h.Bins() {
		if float64(BinLow(bin)) > limit {
			break
		}
		sum += float64(float64(n) * BinMiddle(bin))
		s.N += float64(n)
	}
	if s.N == 0 {
		return s
	}
	s.Mean = sum / s.N
	first := true
	for bin, n := range h.Bins() {
		if float64(BinLow(bin)) > limit {
			break
		}
		x := BinMiddle(bin)
		d := x - s.Mean
		d2 := float64(d * d)
		s.M2 += float64(float64(n) * d2)
		s.M3 += float64(float64(n) * float64(d2*d))
		s.M4 += float64(float64(n) * float64(d2*d2))
		if first {
			s.Min, first = x, false
		}
		s.Max = x
	}
	return s
}

// histogramJSON is the representation of a histogram in the provenance schema.
type histogramJSON struct {
	Counts []uint64  `json:"Histogram Bin Counts"`
	Edges  []float64 `json:"Histogram Bin Edges"`
}

// MarshalJSON returns the representation of the provenance schema: counts, and one more edge than counts. A bin includes its lower
// edge but not its upper one. Adjacent empty bins are joined.
func (h Histogram) MarshalJSON() ([]byte, error) {
	j := histogramJSON{Counts: []uint64{}, Edges: []float64{}}
	next := -1
	for bin, n := range h.Bins() {
		if next >= 0 && bin > next {
			j.Counts = append(j.Counts, 0)
			j.Edges = append(j.Edges, float64(BinLow(bin)))
		}
		if next < 0 {
			j.Edges = append(j.Edges, float64(BinLow(bin)))
		}
		j.Counts = append(j.Counts, n)
		j.Edges = append(j.Edges, float64(BinLow(bin+1)))
		next = bin + 1
	}
	return json.Marshal(j)
}

// AppendBinary appends a compact encoding of the histogram to b.
func (h *Histogram) AppendBinary(b []byte) []byte { return appendCounts(b, h.base, h.counts) }

// Size estimates the number of bytes that AppendBinary appends. The estimate is usually too high. Merging never reduces it.
func (h *Histogram) Size() int { return 2 + countsSize(h.counts) }

// ErrEncoding marks bytes that are not an encoding of statistics.
var ErrEncoding = errors.New("malformed statistics")

// Decode replaces the histogram by the one encoded at the start of b, reusing its memory, and returns the rest of b. After an error
// the histogram is empty.
func (h *Histogram) Decode(b []byte) (rest []byte, err error) {
	h.Reset()
	r := reader{b: b}
	bin, most := ^uint64(0), uint64(math.MaxInt64)
	for used := r.uint(NumBins); used > 0; used-- {
		after, n := r.next(bin, NumBins, most)
		if r.bad {
			break
		}
		if len(h.counts) == 0 {
			h.base = int(after)
			h.counts = slices.Grow(h.counts, int(used))
		}
		last := int(after) - h.base
		h.counts = slices.Grow(h.counts, last+1-len(h.counts))[:last+1] // the rest of its capacity is 0
		h.counts[last] = n
		bin, most = after, most-n
		h.total += n
	}
	if r.bad {
		h.Reset()
		return nil, ErrEncoding
	}
	return r.b, nil
}

package outlier

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Range is the times from Low to High, both included, in microseconds.
type Range struct{ Low, High int64 }

// Side is where a time lies among those that are usual.
type Side uint8

// The sides.
const (
	Amid  Side = iota // in a usual range, or between two
	Above             // longer than all that is usual
	Below             // shorter than all that is usual
)

// Description is a time among all times of its function that were learned, in the
// terms of people. Times are in microseconds, to the precision of a bin.
type Description struct {
	Time   int64
	Count  uint64 // of the times that were learned
	Median int64
	// Usual are the ranges in which times usually lie, in order: one, or those of
	// up to maxUsual modes that most times are in.
	Usual []Range
	// Others is how many usual ranges there are besides.
	Others int
	Side   Side
	// Alike is how many of Count took as long or longer (Above), as short or
	// shorter (Below), or about as long (Amid). The time itself is among them if
	// it was learned.
	Alike uint64
	// Decades tells how rare it is by the detector: of as many times as ten to
	// that power less than one is expected to lie so far out. It is 0 where the
	// detector does not tell, and never more than maxSaid.
	Decades int
}

const (
	maxUsual = 3
	// maxSaid is the highest rarity that means something: beyond it an exponent
	// tells more of the extrapolation than of the function.
	maxSaid = 9
	// usualLow and usualHigh are the quantiles between which times are usual for
	// detectors that do not tell.
	usualLow, usualHigh = 0.01, 0.99
)

// Describe tells of a time how it lies among all others of the function.
func (j *Judge) Describe(v int64) Description {
	v = max(v, 0) // as it was learned
	d := Description{Time: v, Count: j.hist.Total(), Median: int64(j.hist.Quantile(0.5))}
	usual := j.usual()
	d.Side = sideOf(v, usual)
	d.Usual, d.Others = j.mainOf(usual)
	at := stats.BinOf(v)
	for bin, n := range j.hist.Bins() {
		if bin == at || d.Side == Above && bin > at || d.Side == Below && bin < at {
			d.Alike += n
		}
	}
	d.Decades = int(min(math.Floor(j.detector.decades(v)), maxSaid))
	return d
}

func sideOf(v int64, usual []Range) Side {
	switch {
	case v > usual[len(usual)-1].High:
		return Above
	case v < usual[0].Low:
		return Below
	}
	return Amid
}

// usual returns the ranges in which times usually lie, in order and apart; there
// is at least one. Those of modal are what it takes for normal, as far as there
// were such times.
func (j *Judge) usual() []Range {
	all := j.detector.ranges()
	if len(all) == 0 {
		return []Range{{int64(j.hist.Quantile(usualLow)), int64(j.hist.Quantile(usualHigh))}}
	}
	for i := range all {
		all[i] = j.seen(all[i])
	}
	return all
}

// seen is the part of a range from its shortest to its longest time.
func (j *Judge) seen(r Range) Range {
	low, high := int64(-1), int64(-1)
	for bin := range j.hist.Bins() {
		first, last := stats.BinLow(bin), stats.BinLow(bin+1)-1
		if last < r.Low || first > r.High {
			continue
		}
		if low < 0 {
			low = max(first, r.Low)
		}
		high = min(last, r.High)
	}
	if low < 0 {
		return Range{max(r.Low, 0), r.High}
	}
	return Range{low, high}
}

// mainOf returns the ranges that most times are in, in order, and how many others
// there are.
func (j *Judge) mainOf(usual []Range) (main []Range, others int) {
	if len(usual) <= maxUsual {
		return usual, 0
	}
	counts := make([]uint64, len(usual))
	for bin, n := range j.hist.Bins() {
		v := int64(stats.BinMiddle(bin))
		for i, r := range usual {
			if v >= r.Low && v <= r.High {
				counts[i] += n
			}
		}
	}
	order := make([]int, len(usual))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	chosen := slices.Sorted(slices.Values(order[:maxUsual]))
	for _, i := range chosen {
		main = append(main, usual[i])
	}
	return main, len(usual) - maxUsual
}

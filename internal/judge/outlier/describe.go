package outlier

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Range is the times from Low to High, both included, in ticks.
type Range struct{ Low, High int64 }

// Side is the position of a time relative to the usual times.
type Side uint8

// The sides.
const (
	Amid  Side = iota // in a usual range, or between two
	Above             // longer than all usual times
	Below             // shorter than all usual times
)

// Description compares a time with all times of its function in the model, in a form for people. Times are in ticks, to the
// precision of a bin.
type Description struct {
	Time   int64
	Count  uint64 // number of times in the model
	OnPath bool   // set by the caller: Count includes only times on the same call path
	Median int64
	// Usual has the usual ranges in order: one, or the modes with most times, at most maxUsual.
	Usual []Range
	// Others is the number of other usual ranges.
	Others int
	Side   Side
	// Alike is the number of times that are at least as long (Above), at most as long (Below), or about as long (Amid),
	// including the time itself if the model has it.
	Alike uint64
	// Decades is the rarity by the detector: less than one in ten to that power is expected this far out. It is 0 if the
	// detector does not estimate it, and at most maxRarity.
	Decades int
}

const (
	maxUsual = 3
	// maxRarity is the highest meaningful rarity. Beyond it the exponent reflects the extrapolation more than the function.
	maxRarity = 9
	// usualLow and usualHigh are the quantiles of the usual range for detectors without ranges.
	usualLow, usualHigh = 0.01, 0.99
)

// Describe compares a time with all others of the function.
func (j *Judge) Describe(v int64) Description {
	v = max(v, 0) // as Learn does
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
	d.Decades = int(min(math.Floor(j.detector.decades(v)), maxRarity))
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

// usual returns the usual ranges, at least one, disjoint and in order. Those of tail are its normal ranges, limited to the times
// in the model.
func (j *Judge) usual() []Range {
	all := j.detector.ranges()
	if len(all) == 0 {
		return []Range{{int64(j.hist.Quantile(usualLow)), int64(j.hist.Quantile(usualHigh))}}
	}
	for i := range all {
		all[i] = j.clip(all[i])
	}
	return all
}

// clip returns the part of a range from its shortest to its longest time in the model.
func (j *Judge) clip(r Range) Range {
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

// mainOf returns the ranges with most times, in order, and the number of others.
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
	largest := slices.Sorted(slices.Values(order[:maxUsual]))
	for _, i := range largest {
		main = append(main, usual[i])
	}
	return main, len(usual) - maxUsual
}

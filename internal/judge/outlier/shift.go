package outlier

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Shift is a change of a function's usual time, without outliers. Times are in ticks.
type Shift struct {
	Drift         bool    // gradual
	Since         int64   // beginning of the change; for a drift, to the length of a span
	Until         int64   // end of the change; 0 if it lasts
	Before, After float64 // medians
	Calls         uint64  // number of calls since the change
	Lost          float64 // time by which these calls took longer than those before; 0 if they took less
	// Begin and BeforeEnd are the limits of the time of Before, and AfterBegin is the beginning of the time of After.
	Begin, BeforeEnd, AfterBegin int64
}

// The rules of shifts.
const (
	// shiftCalls is the least number of calls before and after, and spanCalls in a span.
	shiftCalls, spanCalls = 50, 10
	// shiftDistance is the least difference of the distributions before and after: the share of calls at the time with the
	// greatest difference.
	shiftDistance = 0.5
	// shiftShare is the least change relative to the time before, and shiftLoss the least change in ticks, the resolution of
	// the clock. A small change per call may be a large change of the sum of all calls, which decides whether it matters.
	shiftShare, shiftLoss = 0.1, 20
	// backShare is the greatest share of calls before and after in spans that resemble the other side.
	backShare = 0.2
	// A change is a drift if it takes at least driftSpans spans and the squared deviations of the
	// spans' medians from a ramp are at most rampShare of those from a jump.
	driftSpans, rampShare = 4, 0.5
	// trimmed is the share of the shortest, and of the longest, times of a span that do not count as lost.
	trimmed = 0.05
)

// Shift returns the largest lasting change of a function's time, or false if there is none.
func (m *Model) Shift() (Shift, bool) {
	spans := m.busySpans()
	var best Shift
	distance, ok := shiftDistance, false
	for k := 1; k < len(spans); k++ {
		before, after := stats.Together(spans[:k]), stats.Together(spans[k:])
		if before.Total < shiftCalls || after.Total < shiftCalls {
			continue
		}
		d := maxDifference(&before, &after)
		if d < distance || ok && d == distance {
			continue
		}
		s := Shift{
			Since: spans[k].From, Begin: spans[0].From, BeforeEnd: spans[k].From, AfterBegin: spans[k].From,
			Before: before.Quantile(0.5), After: after.Quantile(0.5), Calls: after.Total,
		}
		if change := math.Abs(s.After - s.Before); change >= max(shiftShare*s.Before, shiftLoss) && s.lasts(spans, k, len(spans)) {
			best, distance, ok = s, d, true
		}
	}
	if ok {
		best.begin(spans)
		best.drift(spans)
		best.lost(spans)
	}
	return best, ok
}

// changed returns a function that estimates the shares of the calls and of the time of a span during a change, by the share of its calls
// that are closer to the time after the change than to that before. Fewer calls fit into the same time if they take longer. It returns
// nil if as many calls of the spans before and after are closer to one of them.
func (s *Shift) changed(before, after []stats.Span) func(*stats.Span) (calls, time float64) {
	middle := stats.CoarseBinOf(int64((s.Before + s.After) / 2))
	above := func(x *stats.Span) float64 {
		n := 0.0
		for from, to := x.Range(); from < to; to-- {
			if to-1 < middle {
				break
			}
			n += float64(x.Count(to - 1))
		}
		return n / float64(x.Total)
	}
	usual, changed := stats.Together(before), stats.Together(after)
	least, most := above(&usual), above(&changed)
	if least == most {
		return nil
	}
	rate := frequency(after) / frequency(before)
	return func(x *stats.Span) (calls, time float64) {
		calls = max(0, min(1, (above(x)-least)/(most-least)))
		return calls, calls / (calls + (1-calls)*rate)
	}
}

// frequency returns the greatest number of calls per time in spans. The run covers only a part of its first and last span.
func frequency(spans []stats.Span) (most float64) {
	for i := range spans {
		most = max(most, float64(spans[i].Total)/float64(spans[i].To-spans[i].From))
	}
	return most
}

// busySpans returns the spans of the timeline with enough calls.
func (m *Model) busySpans() []stats.Span {
	return slices.DeleteFunc(m.timeline().Spans(), func(s stats.Span) bool { return s.Total < spanCalls })
}

// begin moves the beginning of a change into the span that contains it, by the share of its calls that are like those after it.
func (s *Shift) begin(spans []stats.Span) {
	k := slices.IndexFunc(spans, func(x stats.Span) bool { return x.From == s.Since })
	// The spans on both sides of the beginning may be mixed. Use them only if there are no others.
	first, last := max(1, k-1), min(len(spans)-1, k+1)
	part := s.changed(spans[:first], spans[last:])
	if part == nil {
		return
	}
	_, early := part(&spans[k-1])
	_, changed := part(&spans[k])
	late := 1 - changed
	s.Since += int64(late*float64(spans[k].To-spans[k].From) - early*float64(spans[k-1].To-spans[k-1].From))
	s.Calls = uint64(float64(s.Calls) - late*float64(spans[k].Total) + early*float64(spans[k-1].Total))
}

// lasts reports whether few of the changed spans, with indices from one to another, resemble the others, few others resemble them,
// and neither the first nor the last span resembles the other side.
func (s *Shift) lasts(spans []stats.Span, from, to int) bool {
	var n, other [2]float64
	last := len(spans) - 1
	for i := range spans {
		side, opposite := 0, s.After
		if from <= i && i < to {
			side, opposite = 1, s.Before
		}
		n[side] += float64(spans[i].Total)
		if math.Abs(spans[i].Quantile(0.5)-opposite) < math.Abs(s.After-s.Before)/2 {
			if i == 0 || i == last {
				return false
			}
			other[side] += float64(spans[i].Total)
		}
	}
	return other[0] <= backShare*n[0] && other[1] <= backShare*n[1]
}

// drift sets Drift and the fields that depend on it if the change is gradual.
func (s *Shift) drift(spans []stats.Span) {
	medians := make([]float64, len(spans))
	for i := range spans {
		medians[i] = spans[i].Quantile(0.5)
	}
	ramp, from, to := bestRamp(medians, driftSpans, len(medians)-1)
	if jump, _, _ := bestRamp(medians, 1, 2); !(ramp <= rampShare*jump) {
		return
	}
	s.Drift, s.Before, s.After = true, average(medians[:from+1]), average(medians[to:])
	s.BeforeEnd, s.AfterBegin = spans[from].To, spans[to].From
	s.Since = crossing(spans[from:to+1], medians[from:to+1], s.Before)
	calls := 0.0
	for i := range spans {
		calls += float64(spans[i].Total) * s.part(&spans[i])
	}
	s.Calls = uint64(calls)
}

// bestRamp returns the least sum of squared deviations of y from a ramp: a level up to y[from], a straight line, and another
// level from y[to]. to - from is between least and most; a jump between two values has length 1, one within a span 2. If there is
// no such ramp, the sum is infinite.
func bestRamp(y []float64, least, most int) (sum float64, from, to int) {
	sum = math.Inf(1)
	for length := least; length <= most; length++ {
		for first := range max(0, len(y)-length) {
			var xx, xy, yy, x1, y1 float64
			for i, v := range y {
				x := min(max(float64(i-first)/float64(length), 0), 1)
				xx, xy, yy, x1, y1 = xx+x*x, xy+x*v, yy+v*v, x1+x, y1+v
			}
			n := float64(len(y))
			xx, xy, yy = xx-x1*x1/n, xy-x1*y1/n, yy-y1*y1/n
			if left := max(yy-xy*xy/xx, 0); left < sum {
				sum, from, to = left, first, first+length
			}
		}
	}
	return sum, from, to
}

// crossing returns the time at which the straight line through the medians of spans, except the first and the last, reaches a
// level. The time is limited to the middles of the first and the second span.
func crossing(spans []stats.Span, medians []float64, level float64) int64 {
	middle := func(i int) float64 { return float64(spans[i].From)/2 + float64(spans[i].To)/2 }
	inner := medians[1 : len(medians)-1]
	mean, at := average(inner), (middle(1)+middle(len(inner)))/2
	var xx, xy float64
	for i, v := range inner {
		x := middle(i+1) - at
		xx, xy = xx+x*x, xy+x*(v-mean)
	}
	if xy == 0 {
		return int64(middle(0))
	}
	return int64(min(max(at+(level-mean)*xx/xy, middle(0)), middle(1)))
}

// part returns the share of a span after the beginning of the change.
func (s *Shift) part(x *stats.Span) float64 {
	return min(max(float64(x.To-s.Since)/float64(x.To-x.From), 0), 1)
}

// lost adds up how much longer calls took than those before the change. It compares means without the longest times, because the
// median may change by less, and single calls may have other reasons.
func (s *Shift) lost(spans []stats.Span) {
	first := max(1, slices.IndexFunc(spans, func(x stats.Span) bool { return x.To > s.Since }))
	before := stats.Together(spans[:first])
	usual := before.Mean(trimmed)
	for i := first; i < len(spans); i++ {
		s.Lost += (spans[i].Mean(trimmed) - usual) * float64(spans[i].Total)
	}
	s.Lost = max(s.Lost, 0)
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// maxDifference returns the greatest difference of the cumulative distributions of two spans, as a share of calls.
func maxDifference(x, y *stats.Span) float64 {
	fromX, toX := x.Range()
	fromY, toY := y.Range()
	most, sumX, sumY := 0.0, 0.0, 0.0
	for bin := min(fromX, fromY); bin < max(toX, toY); bin++ {
		sumX += float64(x.Count(bin)) / float64(x.Total)
		sumY += float64(y.Count(bin)) / float64(y.Total)
		most = max(most, math.Abs(sumX-sumY))
	}
	return most
}

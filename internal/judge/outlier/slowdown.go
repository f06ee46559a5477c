package outlier

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Slowdown returns the time in which a function took longer than before and after it, or false if there is none. The rules are those
// of Shift. The result has Until; Before is the median of all calls outside of this time.
func (m *Model) Slowdown() (Shift, bool) {
	spans := m.busySpans()
	from, to := slowest(spans)
	if from == to {
		return Shift{}, false
	}
	during, outside := stats.Together(spans[from:to]), stats.Together(slices.Concat(spans[:from], spans[to:]))
	s := Shift{
		Since: spans[from].From, Until: spans[to-1].To, Begin: spans[0].From, BeforeEnd: spans[from].From, AfterBegin: spans[from].From,
		Before: outside.Quantile(0.5), After: during.Quantile(0.5), Calls: during.Total,
	}
	if during.Total < shiftCalls || outside.Total < shiftCalls || s.After-s.Before < max(shiftShare*s.Before, shiftLoss) ||
		maxDifference(&outside, &during) < shiftDistance || !s.lasts(spans, from, to) {
		return Shift{}, false
	}
	s.limits(spans, from, to)
	return s, true
}

// limits moves the limits of a slowdown into the spans that contain them, and sets the fields that depend on them.
func (s *Shift) limits(spans []stats.Span, from, to int) {
	// The first and the last span of the slowdown and those next to it may be mixed. Use them only if there are no others.
	during, outside := spans[from:to], slices.Concat(spans[:max(1, from-1)], spans[min(to+1, len(spans)-1):])
	if to-from > 2 {
		during = spans[from+1 : to-1]
	}
	calls := float64(s.Calls)
	if part := s.changed(outside, during); part != nil {
		length := func(x *stats.Span) float64 { return float64(x.To - x.From) }
		edge := func(limit *int64, direction float64, outer, inner *stats.Span) {
			n, time := part(outer)
			calls += n * float64(outer.Total)
			moved := time * length(outer)
			if to-from > 1 {
				n, time = part(inner)
				calls -= (1 - n) * float64(inner.Total)
				moved -= (1 - time) * length(inner)
			}
			*limit += int64(direction * moved)
		}
		edge(&s.Since, -1, &spans[from-1], &spans[from])
		edge(&s.Until, 1, &spans[to], &spans[to-1])
	}
	slow, usual := stats.Together(during), stats.Together(outside)
	s.Calls, s.Lost = uint64(calls), max(0, calls*(slow.Mean(trimmed)-usual.Mean(trimmed)))
}

// slowest returns the range of spans, without the first and the last, whose medians are best described by a higher level than those
// of all other spans; 0, 0 if the medians inside are not far above the first and the last.
func slowest(spans []stats.Span) (from, to int) {
	medians := make([]float64, len(spans))
	sum, most := 0.0, 0.0
	for i := range spans {
		medians[i] = spans[i].Quantile(0.5)
		sum += medians[i]
		most = max(most, medians[i])
	}
	if n := len(medians); n < 3 || most-max(medians[0], medians[n-1]) < max(shiftShare*max(medians[0], medians[n-1]), shiftLoss) {
		return 0, 0
	}
	best, n := 0.0, float64(len(medians))
	for i := 1; i < len(medians)-1; i++ {
		inside := 0.0
		for k := i; k < len(medians)-1; k++ {
			inside += medians[k]
			c := float64(k - i + 1)
			// The sum of squared deviations decreases by this if two levels replace one.
			if rise := inside/c - (sum-inside)/(n-c); rise > 0 && rise*rise*c*(n-c)/n > best {
				best, from, to = rise*rise*c*(n-c)/n, i, k+1
			}
		}
	}
	return from, to
}

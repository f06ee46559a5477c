package outlier

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// remembered returns the weight of the times in each coarse bin after forgetting with a
// half-life, or nil if all count fully. The last time in the model is the present, so
// that the result depends on the model alone.
func (f *finder) remembered(m *Model, halfLife int64) map[int]float64 {
	spans := f.line.Spans()
	if halfLife == 0 || len(spans) < 2 {
		return nil
	}
	ages := make([]float64, len(spans)) // in half-lives
	for i := range spans {
		ages[i] = float64(spans[len(spans)-1].From-spans[i].From) / float64(halfLife)
	}
	slower(spans, ages, float64(m.Count()-f.line.Total()))
	if ages[0] < 1.0/8 {
		return nil // insignificant
	}
	type share struct{ counts, all float64 }
	shares := make(map[int]*share)
	for i := range spans {
		weight := math.Exp2(-ages[i])
		from, to := spans[i].Range()
		for bin := from; bin < to; bin++ {
			n := float64(spans[i].Count(bin))
			if n == 0 {
				continue
			}
			s := shares[bin]
			if s == nil {
				s = new(share)
				shares[bin] = s
			}
			s.counts += n * weight
			s.all += n
		}
	}
	// Times from an earlier run are as old as the first span.
	oldest := math.Exp2(-ages[0])
	learned := make(map[int]float64)
	for bin, n := range m.Hist.Bins() {
		learned[stats.CoarseBinOf(int64(stats.BinMiddle(bin)))] += float64(n)
	}
	weights := make(map[int]float64, len(learned))
	for bin, all := range learned {
		s := shares[bin]
		if s == nil {
			s = new(share)
		}
		weights[bin] = min(1, (s.counts+max(all-s.all, 0)*oldest)/all)
	}
	return weights
}

// slower halves the ages until enough weight is left to judge, so that functions that
// are rarely called are not forgotten. before is the number of times before all spans.
func slower(spans []stats.Span, ages []float64, before float64) {
	for ages[0] >= 1.0/8 {
		left := before * math.Exp2(-ages[0])
		for i := range spans {
			left += float64(spans[i].Total) * math.Exp2(-ages[i])
		}
		if left >= weakTimes {
			return
		}
		for i := range ages {
			ages[i] /= 2
		}
	}
}

// leaveOut excludes the long times of a phase of the run that has at most maxPhase of
// all times. Waits depend on other ranks, and while these are late waits have any
// length and would look like the tail of usual waits. As many times remain as outside
// the phase.
func (f *finder) leaveOut() {
	spans := f.line.Spans()
	first, during := phase(spans)
	if during == nil {
		return
	}
	outside, total, top := 0.0, 0.0, 0
	for i := range spans {
		total += float64(spans[i].Total)
		if !during[i] {
			outside += float64(spans[i].Total)
		}
		_, to := spans[i].Range()
		top = max(top, to)
	}
	stay := make([]float64, top-first)
	for bin := first; bin < top; bin++ {
		n, all := 0.0, 0.0
		for i := range spans {
			c := float64(spans[i].Count(bin))
			all += c
			if !during[i] {
				n += c
			}
		}
		stay[bin-first] = 1
		if all > 0 {
			stay[bin-first] = min(1, n/all*total/outside)
		}
	}
	f.n, f.passed = 0, make([]float64, len(f.points))
	for i := range f.points {
		p := &f.points[i]
		if bin := coarseBin(p.v) - first; bin >= 0 && bin < len(stay) {
			f.passed[i] = p.n * (1 - stay[bin])
			p.n -= f.passed[i]
		}
		f.n += p.n
	}
}

// phase finds the lowest coarse bin such that all times from there belong to a phase of
// the run, and returns the spans of the phase, or nil if there is none.
func phase(spans []stats.Span) (first int, during []bool) {
	usable, total, top := 0, 0.0, 0
	for i := range spans {
		if spans[i].Total >= spanCalls {
			usable++
		}
		total += float64(spans[i].Total)
		_, to := spans[i].Range()
		top = max(top, to)
	}
	if usable < 4 {
		return 0, nil
	}
	above, all := make([]uint64, len(spans)), 0.0
	for bin := top - 1; bin >= 0 && all <= maxPhase*total; bin-- {
		with := 0
		for i := range spans {
			n := spans[i].Count(bin)
			above[i] += n
			all += float64(n)
			if spans[i].Total >= spanCalls && some(above[i], &spans[i]) {
				with++
			}
		}
		if all < minPhase*total || all > maxPhase*total || with == 0 || 2*with > usable {
			continue
		}
		first = bin
		if during == nil {
			during = make([]bool, len(spans))
		}
		for i := range spans {
			during[i] = some(above[i], &spans[i])
		}
	}
	return first, during
}

// some reports whether n of the times of a span are a significant share.
func some(n uint64, s *stats.Span) bool { return float64(n) > hardlyAny*float64(s.Total) }

// weigh applies the weights of remembered.
func (f *finder) weigh(weights map[int]float64) {
	left := 0.0
	for _, p := range f.points {
		left += p.n * weights[coarseBin(p.v)]
	}
	if left < minTimes {
		return // the timeline does not belong to the histogram
	}
	f.n = left
	for i := range f.points {
		p := &f.points[i]
		p.n *= weights[coarseBin(p.v)]
	}
}

func coarseBin(v float64) int { return stats.CoarseBinOf(int64(v)) }

// passing reports whether the times from one coarse bin to another belong to a phase of
// the run: they occur, but hardly in most spans.
func (f *finder) passing(first, last int) bool {
	spans, with := 0, 0
	for _, s := range f.line.Spans() {
		if s.Total < spanCalls {
			continue
		}
		spans++
		n := uint64(0)
		from, to := s.Range()
		for bin := max(first, from); bin < to && bin <= last; bin++ {
			n += s.Count(bin)
		}
		if some(n, &s) {
			with++
		}
	}
	return spans >= 4 && with > 0 && 2*with <= spans
}

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// histogram is the chart of a model with the time of one execution. Both axes are logarithmic,
// so that one call is visible beside a million.
type histogram struct {
	Bars   string // path
	Usual  []box
	Limits []float64
	Value  float64
	Anchor string // of the label of the value
	LabelX float64
	This   string
	Ticks  []tick
	Most   string
	Label  string
	Words  string
}

// Sizes of histograms.
const (
	histHeight = 130
	histLeft   = 50
	histTop    = 18
	smallest   = 0.5 // lower end of the axis, in microseconds
)

// newHistogram lays out a model. It returns nil without a histogram.
func newHistogram(m *api.Model, value float64) *histogram {
	if m == nil || len(m.Edges) < 2 || len(m.Counts) == 0 {
		return nil
	}
	from, to := domain(m, value)
	x := func(t float64) float64 {
		return histLeft + min(1, max(0, (logOf(t)-from)/(to-from)))*(width-histLeft-10)
	}
	most := max(1, slices.Max(m.Counts))
	const floor = 0.35 // height of one call on the axis
	tall := func(n int64) float64 {
		return (math.Log10(float64(n)) + floor) / (math.Log10(float64(most)) + floor) * histHeight
	}
	v := &histogram{Value: round(x(value)), This: text.Duration(value), Most: text.About(most), Anchor: "start", LabelX: round(x(value) + 6)}
	if v.Value > width/2 {
		v.Anchor, v.LabelX = "end", round(x(value)-6)
	}
	v.Bars = bars(m, x, tall)
	for _, r := range usualRanges(m) {
		left, right := float64(histLeft), float64(width-10)
		if r.Low != nil {
			left = x(*r.Low)
		}
		if r.High != nil {
			right = x(*r.High)
		}
		v.Usual = append(v.Usual, box{X: round(left), Y: histTop, W: round(max(2, right-left)), H: histHeight})
	}
	if t := m.Threshold; t != nil {
		for _, side := range []*float64{t.Low, t.High} {
			if side != nil {
				v.Limits = append(v.Limits, round(x(*side)))
			}
		}
	}
	for p := math.Floor(from); p <= to; p++ {
		for _, s := range steps(to - from) {
			if t := s * math.Pow(10, p); math.Log10(t) >= from && math.Log10(t) <= to {
				v.Ticks = append(v.Ticks, tick{round(x(t)), histTop + histHeight + 16, tickText(t)})
			}
		}
	}
	v.Ticks = spreadTicks(v.Ticks, 62)
	v.Words = modelWords(m)
	v.Label = fmt.Sprintf("Histogram of %s; this one took %s. Both axes are logarithmic.", v.Words, text.Duration(value))
	return v
}

func logOf(t float64) float64 { return math.Log10(max(t, smallest)) }

// domain returns the range of the axis, in logarithms.
func domain(m *api.Model, value float64) (from, to float64) {
	from, to = logOf(value), logOf(value)
	see := func(t float64) {
		if !math.IsInf(t, 0) && !math.IsNaN(t) {
			from, to = min(from, logOf(t)), max(to, logOf(t))
		}
	}
	for _, e := range m.Edges {
		see(e)
	}
	for _, r := range []*api.Range{m.Typical, m.Threshold} {
		if r != nil && r.Low != nil {
			see(*r.Low)
		}
		if r != nil && r.High != nil {
			see(*r.High)
		}
	}
	room := max((to-from)*0.04, 0.05)
	return from - room, to + room
}

// bars draws the counts. Of bins that share a pixel it draws the tallest.
func bars(m *api.Model, x func(float64) float64, tall func(int64) float64) string {
	var p path
	column := -1
	var left, right, height float64
	flush := func() {
		if column >= 0 {
			p.box(left, histTop+histHeight-height, max(1.5, right-left-0.6), height)
		}
	}
	for i, n := range m.Counts {
		if n <= 0 || i+1 >= len(m.Edges) {
			continue
		}
		l, r := x(m.Edges[i]), x(m.Edges[i+1])
		if c := int(l / 2); c != column {
			flush()
			column, left, right, height = c, l, r, tall(n)
			continue
		}
		right, height = max(right, r), max(height, tall(n))
	}
	flush()
	return p.b.String()
}

// usualRanges returns the usual ranges, one per mode.
func usualRanges(m *api.Model) []api.Range {
	if len(m.Normal) > 0 {
		return m.Normal
	}
	if m.Typical != nil {
		return []api.Range{*m.Typical}
	}
	return nil
}

// steps returns the multiples of powers of ten on an axis of that many decades.
func steps(decades float64) []float64 {
	switch {
	case decades > 2.2:
		return []float64{1}
	case decades > 0.9:
		return []float64{1, 2, 5}
	}
	return []float64{1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9}
}

// tickText formats a time without trailing zeros.
func tickText(t float64) string {
	number, unit, _ := strings.Cut(text.Duration(t), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + unit
}

// spreadTicks removes ticks that are too close to the previous one.
func spreadTicks(list []tick, least float64) (kept []tick) {
	for _, t := range list {
		if len(kept) == 0 || t.X-kept[len(kept)-1].X >= least {
			kept = append(kept, t)
		}
	}
	return kept
}

// modelWords describes a model.
func modelWords(m *api.Model) string {
	words := fmt.Sprintf("%s calls (%s)", text.Int(m.Samples), m.Algorithm)
	if m.Typical != nil {
		words += "; usually " + rangeWords(m.Typical)
	}
	if n := len(m.Normal); n > 1 {
		words += fmt.Sprintf(", or %d other times", n-1)
	}
	if t := m.Threshold; t != nil {
		var sides []string
		if t.Low != nil {
			sides = append(sides, "below "+text.Duration(*t.Low))
		}
		if t.High != nil {
			sides = append(sides, "above "+text.Duration(*t.High))
		}
		if len(sides) > 0 {
			words += "; flagged " + strings.Join(sides, " or ")
		}
	}
	if m.Warming {
		words += "; few samples"
	}
	return words
}

func rangeWords(r *api.Range) string {
	switch {
	case r.Low == nil && r.High == nil:
		return "any time"
	case r.Low == nil:
		return "up to " + text.Duration(*r.High)
	case r.High == nil:
		return "at least " + text.Duration(*r.Low)
	}
	return text.Duration(*r.Low) + " to " + text.Duration(*r.High)
}

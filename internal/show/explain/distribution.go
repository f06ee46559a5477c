package explain

import (
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// row is neighboring bins of a histogram, drawn as one bar.
type row struct {
	from, to float64
	count    float64
	self     bool // has the execution
	gap      bool // a sign that the scale jumps
}

const maxRows = 20

func (p *page) distribution() {
	own := max(0, p.Unit.Micros(p.RuntimeExclusive))
	if p.model.Moments != nil {
		p.momentsText()
		return
	}
	if len(p.model.Counts) == 0 {
		p.missing = append(p.missing, "model of the function")
		return
	}
	below, _, above := p.model.Sides(own)
	p.heading("%s: %s shorter, %s longer than this one", modelTitle(p.Record, &p.model), text.Number(below), text.Number(above))
	p.bars(own, " ◄ this one")
}

// modelTitle names the calls that the model of a record describes: those of the function or, if it is rarely called, those of its
// caller, most of which do not call it.
func modelTitle(r *provenance.Record, m *provenance.Model) string {
	n := int64(m.Total)
	switch {
	case r.Kind != provenance.RarelyCalled:
		return "Own time of " + text.Count(n, "call") + " of the function"
	case len(r.CallStack) > 1:
		return "Time in the function in " + text.Count(n, "call") + " of " + text.Shorten(escape(r.CallStack[1].Func), minWidth/2)
	}
	return "Time in the function in " + text.Count(n, "step") + " of the trace"
}

func (p *page) momentsText() {
	s := p.model.Moments
	p.heading("Own time of the calls of the function")
	p.paragraph("  ", fmt.Sprintf("%s from %s to %s, with mean %s, deviation %s, skewness %s, kurtosis %s.",
		text.Count(int64(*s.Count), "call"), text.Duration(s.Minimum), text.Duration(s.Maximum), text.Duration(*s.Mean),
		text.Duration(s.Stddev), text.ThreeDigits(s.Skewness), text.ThreeDigits(s.Kurtosis)))
}

// bars draws the histogram with a mark at the row of own.
func (p *page) bars(own float64, mark string) {
	rows := rowsOf(&p.model, own)
	most, froms, tos, counts := 0.0, 0, 0, 5
	for _, r := range rows {
		most = max(most, r.count)
		froms, tos = max(froms, width(text.Duration(r.from))), max(tos, width(text.Duration(r.to)))
		counts = max(counts, width(text.Number(r.count)))
	}
	p.line("  %s  %s  %s", right("FROM", froms), right("TO", tos), right("CALLS", counts))
	cells := max(1, p.Width-8-froms-tos-counts-width(mark))
	for _, r := range rows {
		if r.gap {
			p.line("  %s", right("⋮", froms))
			continue
		}
		line := fmt.Sprintf("  %s  %s  %s  %s", right(text.Duration(r.from), froms), right(text.Duration(r.to), tos),
			right(text.Number(r.count), counts), bar(r.count/most, cells))
		if r.self {
			line += mark
		}
		p.line("%s", line)
	}
}

// rowsOf merges the bins into at most maxRows rows: of equal width if the times are of one
// magnitude, else on a logarithmic scale. It leaves out empty rows except that of own.
func rowsOf(m *provenance.Model, own float64) []row {
	low, high := math.Inf(1), own
	for i, n := range m.Counts {
		if n > 0 {
			low, high = min(low, m.Edges[i]), max(high, m.Edges[i+1])
		}
	}
	low = min(low, own)
	rows := group(m, own, func(v float64) float64 { return v })
	for level := 0; len(rows) > maxRows; level++ {
		// Both scales become coarse enough for any numbers.
		scale := logScale(level, m.Unit.Micros(1))
		if high <= 10*low {
			scale = evenScale((high-low)/maxRows, level)
		}
		rows = group(m, own, scale)
	}
	return rows
}

// evenScale numbers intervals of equal width, a round number not below least.
func evenScale(least float64, level int) func(float64) float64 {
	exponent := math.Floor(math.Log10(max(least, 1e-300)))
	step := math.Pow(10, exponent+float64(level/3)) * []float64{1, 2, 5}[level%3]
	return func(v float64) float64 { return math.Floor(v / step) }
}

// logScale numbers intervals of equal width on a logarithmic axis; all below the least are one.
func logScale(level int, least float64) func(float64) float64 {
	perDecade := []float64{24, 16, 12, 8, 6, 4, 3, 2, 1}
	each := 1 / math.Pow(2, float64(level-len(perDecade)+1))
	if level < len(perDecade) {
		each = perDecade[level]
	}
	return func(v float64) float64 {
		if v < least {
			return math.Inf(-1)
		}
		return math.Floor(math.Log10(v) * each)
	}
}

// group merges neighboring bins whose lower edges have the same number in a scale.
func group(m *provenance.Model, own float64, scale func(float64) float64) []row {
	var rows []row
	last, bin := 0.0, m.Bin(own)
	for i, n := range m.Counts {
		from, to, self := m.Edges[i], m.Edges[i+1], i == bin
		if n == 0 && !self {
			continue
		}
		at := scale(from)
		if k := len(rows) - 1; k >= 0 && at == last && n > 0 && rows[k].count > 0 {
			rows[k].to, rows[k].count, rows[k].self = to, rows[k].count+n, rows[k].self || self
		} else {
			rows = append(rows, row{from: from, to: to, count: n, self: self})
		}
		last = at
	}
	self := row{from: own, to: own, self: true}
	switch bin {
	case -1:
		rows = append([]row{self}, rows...)
	case len(m.Counts):
		rows = append(rows, self)
	}
	return withGaps(rows)
}

// withGaps puts a gap between rows that are far apart.
func withGaps(rows []row) []row {
	out := rows[:1:1]
	for _, r := range rows[1:] {
		if before := out[len(out)-1]; r.from > 2*before.to && r.from-before.to > before.to-before.from {
			out = append(out, row{gap: true})
		}
		out = append(out, r)
	}
	return out
}

// Package typical derives the usual times of a function from its model. It is pure.
package typical

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Times is a model and its usual times.
type Times struct {
	provenance.Model
	Usual  []Span // ordered and disjoint; one per mode of a tail model
	Limits bool   // Usual are the normal times of a tail model
}

// Span is a range with both ends, in microseconds.
type Span struct{ Low, High float64 }

// The quantiles of usual times for detectors that do not define them.
const usualLow, usualHigh = 0.01, 0.99

// Read returns the times of algo_params, or nil without a model.
func Read(params json.RawMessage) *Times {
	t := &Times{Model: provenance.ReadModel(params)}
	if len(t.Counts) == 0 && t.Moments == nil {
		return nil
	}
	var in struct {
		Normal [][2]float64 `json:"normal"`
	}
	if m := t.Moments; m != nil {
		t.Usual = []Span{{max(m.Minimum, *m.Mean-m.Stddev), min(m.Maximum, *m.Mean+m.Stddev)}}
	} else if json.Unmarshal(params, &in) == nil && len(in.Normal) > 0 {
		t.Limits = true
		t.modes(in.Normal)
	} else {
		t.Usual = []Span{{t.quantile(usualLow), t.quantile(usualHigh)}}
	}
	return t
}

// modes merges the normal ranges of a tail model.
func (t *Times) modes(normal [][2]float64) {
	slices.SortFunc(normal, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	for _, n := range normal {
		n[0], n[1] = t.Unit.MicrosOf(n[0]), t.Unit.MicrosOf(n[1])
		if k := len(t.Usual) - 1; k >= 0 && n[0] <= t.Usual[k].High+t.Unit.Micros(1) {
			t.Usual[k].High = max(t.Usual[k].High, n[1])
		} else {
			t.Usual = append(t.Usual, Span{n[0], n[1]})
		}
	}
}

// observed returns the part of a span with calls, and their number.
func (t *Times) observed(s Span) (part Span, count float64) {
	for i, n := range t.Counts {
		first, last := t.Edges[i], t.Edges[i+1]
		if n == 0 || last <= s.Low || first > s.High {
			continue
		}
		if t.IsTick(last - first) {
			last = first
		}
		if count == 0 {
			part.Low = max(first, s.Low)
		}
		part.High = min(last, s.High)
		count += n
	}
	if count == 0 {
		return s, 0
	}
	return part, count
}

// Main returns the usual time of most calls.
func (t *Times) Main() Span {
	best, most := t.Usual[0], -1.0
	if t.Moments != nil {
		return best
	}
	for _, s := range t.Usual {
		if part, n := t.observed(s); n > most {
			best, most = part, n
		}
	}
	return best
}

// quantile returns the time below which that share of calls lies.
func (t *Times) quantile(share float64) float64 {
	sum := 0.0
	for i, n := range t.Counts {
		if n > 0 && sum+n >= float64(share*t.Total) {
			if low, high := t.Edges[i], t.Edges[i+1]; high-low > 1 || t.Unit != 0 && !t.IsTick(high-low) {
				return low + float64((high-low)*max(0, (share*t.Total-sum)/n))
			}
			return t.Edges[i]
		}
		sum += n
	}
	return t.Edges[len(t.Edges)-1]
}

// Range returns the span for an answer.
func (s Span) Range() *api.Range { return &api.Range{Low: &s.Low, High: &s.High} }

// Common returns the range of the bins that are not too rare, or nil.
func (t *Times) Common() *api.Range {
	if t.Limit == nil {
		return nil
	}
	var r api.Range
	for i, n := range t.Counts {
		if n > 0 && -math.Log2(n/t.Total) < *t.Limit {
			if r.Low == nil && i > 0 {
				r.Low = &t.Edges[i]
			}
			r.High = &t.Edges[i+1]
		}
	}
	if r.High == nil {
		return nil
	}
	return &r
}

// maxModes bounds the usual times in a sentence.
const maxModes = 3

// UsualText describes the usual times.
func (t *Times) UsualText() string {
	var parts []string
	for _, s := range t.Usual {
		if t.Moments == nil {
			s, _ = t.observed(s)
		}
		parts = append(parts, rangeText(s))
	}
	if len(parts) > maxModes {
		m := t.Main()
		return fmt.Sprintf("%s or one of %d other times", rangeText(m), len(parts)-1)
	}
	return strings.Join(parts, " or ")
}

// rangeText formats a span with the unit once: 0.30–0.50 ms.
func rangeText(s Span) string {
	low, high := text.Duration(s.Low), text.Duration(s.High)
	if low == high {
		return low
	}
	number, unit, ok := strings.Cut(low, " ")
	if _, other, _ := strings.Cut(high, " "); ok && unit == other {
		low = number
	}
	return low + "–" + high
}

// RareText compares a time with those of all calls.
func (t *Times) RareText(v float64) string {
	if t.Moments != nil {
		if sd := t.Moments.Stddev; sd > 0 {
			return fmt.Sprintf("; %s standard deviations from the mean of %s calls", text.ThreeDigits(math.Abs(v-*t.Moments.Mean)/sd),
				text.Number(*t.Moments.Count))
		}
		return ""
	}
	below, at, above := t.Sides(v)
	total := below + at + above
	inside := v >= t.Usual[0].Low && v <= t.Usual[len(t.Usual)-1].High
	switch {
	case inside && at > total/2:
		return ""
	case inside:
		return fmt.Sprintf("; %s of %s calls took about as long", shareText(at/total, false), text.Number(total))
	case v > t.Usual[0].Low:
		return fmt.Sprintf("; longer than %s of %s calls", shareText(below/total, true), text.Number(total))
	}
	return fmt.Sprintf("; shorter than %s of %s calls", shareText(above/total, true), text.Number(total))
}

// shareText formats a share in percent with its significant digits. If down is set, it never
// rounds up to 100 %.
func shareText(share float64, down bool) string {
	percent := 100 * share
	digits := 0
	if rest := min(percent, 100-percent); rest > 0 {
		digits = min(6, max(0, 1-int(math.Floor(math.Log10(rest)))))
	}
	unit := math.Pow10(digits)
	if down {
		percent = math.Floor(percent*unit) / unit
	}
	text := strconv.FormatFloat(percent, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " %"
}

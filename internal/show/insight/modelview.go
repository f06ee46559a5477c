package insight

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// times is a model with what is usual by it.
type times struct {
	provenance.Model
	usual []span // in order and apart; of modal one for each mode
	modal bool
}

// span is from low to high, both included, in microseconds.
type span struct{ low, high float64 }

// The quantiles between which times are usual for detectors that do not tell.
const usualLow, usualHigh = 0.01, 0.99

// readTimes reads algo_params; nil if they tell nothing.
func readTimes(params json.RawMessage) *times {
	t := &times{Model: provenance.ReadModel(params)}
	if len(t.Counts) == 0 && t.Moments == nil {
		return nil
	}
	var in struct {
		Normal [][2]float64 `json:"normal"`
	}
	if m := t.Moments; m != nil {
		t.usual = []span{{max(m.Minimum, *m.Mean-m.Stddev), min(m.Maximum, *m.Mean+m.Stddev)}}
	} else if json.Unmarshal(params, &in) == nil && len(in.Normal) > 0 {
		t.modal = true
		t.modes(in.Normal)
	} else {
		t.usual = []span{{t.quantile(usualLow), t.quantile(usualHigh)}}
	}
	return t
}

// modes puts together what is normal, as far as there were such times.
func (t *times) modes(normal [][2]float64) {
	slices.SortFunc(normal, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	for _, n := range normal {
		if k := len(t.usual) - 1; k >= 0 && n[0] <= t.usual[k].high+1 {
			t.usual[k].high = max(t.usual[k].high, n[1])
		} else {
			t.usual = append(t.usual, span{n[0], n[1]})
		}
	}
}

// seen is the part of a span from its shortest to its longest time, and how many there
// were.
func (t *times) seen(s span) (part span, count float64) {
	for i, n := range t.Counts {
		first, last := t.Edges[i], t.Edges[i+1]
		if n == 0 || last <= s.low || first > s.high {
			continue
		}
		if last-first == 1 { // it holds one whole number
			last = first
		}
		if count == 0 {
			part.low = max(first, s.low)
		}
		part.high = min(last, s.high)
		count += n
	}
	if count == 0 {
		return s, 0
	}
	return part, count
}

// main is the usual time that most calls take.
func (t *times) main() span {
	best, most := t.usual[0], -1.0
	if t.Moments != nil {
		return best
	}
	for _, s := range t.usual {
		if part, n := t.seen(s); n > most {
			best, most = part, n
		}
	}
	return best
}

// quantile is a time below which a share of all is.
func (t *times) quantile(share float64) float64 {
	sum := 0.0
	for i, n := range t.Counts {
		if n > 0 && sum+n >= float64(share*t.Total) {
			if low, high := t.Edges[i], t.Edges[i+1]; high-low > 1 {
				return low + float64((high-low)*max(0, (share*t.Total-sum)/n))
			}
			return t.Edges[i]
		}
		sum += n
	}
	return t.Edges[len(t.Edges)-1]
}

// sides counts the calls that are shorter and longer than a time, and those about as
// long.
func (t *times) sides(v float64) (below, at, above float64) {
	for i, n := range t.Counts {
		switch last := i == len(t.Counts)-1; {
		case t.Edges[i+1] <= v && !(last && v-t.Edges[i+1] <= 1e-6*(t.Edges[i+1]-t.Edges[i])): // edges may be rounded
			below += n
		case t.Edges[i] > v:
			above += n
		default:
			at += n
		}
	}
	return below, at, above
}

// pageModel is a model as the page shows it; nil if nothing is known.
func (k *known) pageModel(params json.RawMessage) *api.Model {
	t := readTimes(params)
	if t == nil {
		return nil
	}
	_, samples, _ := t.Typical()
	p := &api.Model{
		Algorithm: k.algorithm(t), Edges: append([]float64{}, t.Edges...), Counts: make([]int64, 0, len(t.Counts)), Normal: []api.Range{},
		Samples: int64(samples), Typical: t.main().page(), Warming: samples < float64(sureTimes*k.info.minSamples()),
	}
	for _, n := range t.Counts {
		p.Counts = append(p.Counts, int64(n))
	}
	if t.modal {
		for _, s := range t.usual {
			p.Normal = append(p.Normal, *s.page())
		}
	}
	p.Threshold = k.threshold(t)
	return p
}

func (s span) page() *api.Range { return &api.Range{Low: &s.low, High: &s.high} }

// algorithm names the detector: by the model, or where several make such models, by the
// settings of the run.
func (k *known) algorithm(t *times) string {
	switch {
	case t.modal:
		return string(outlier.Modal)
	case t.Moments != nil:
		return string(outlier.SSTD)
	}
	if name := k.info.Settings["algorithm"]; name == string(outlier.HBOS) || name == string(outlier.COPOD) {
		return name
	}
	return "histogram"
}

// threshold is outside of what times are flagged, where the model tells.
func (k *known) threshold(t *times) *api.Range {
	switch k.algorithm(t) {
	case string(outlier.Modal):
		r := &api.Range{High: &t.usual[len(t.usual)-1].high}
		if low := t.usual[0].low; low > 0 {
			r.Low = &low
		}
		return r
	case string(outlier.SSTD):
		sigma, err := strconv.ParseFloat(k.info.Settings["sigma"], 64)
		if err != nil || sigma <= 0 {
			sigma = outlier.Default().Sigma
		}
		low, high := *t.Moments.Mean-float64(sigma*t.Moments.Stddev), *t.Moments.Mean+float64(sigma*t.Moments.Stddev)
		r := &api.Range{High: &high}
		if low > 0 {
			r.Low = &low
		}
		return r
	case string(outlier.HBOS):
		return t.common()
	}
	return nil
}

// common is from the first to the last bin that is not too rare.
func (t *times) common() *api.Range {
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

// judged is the time that an execution was judged by.
func (k *known) judged(r *provenance.Record) float64 {
	if k.info.Settings["statistic"] == "inclusive" {
		return float64(r.RuntimeTotal)
	}
	return float64(r.RuntimeExclusive)
}

// sentence tells what happened in an execution.
func (k *known) sentence(r *provenance.Record) string {
	v := k.judged(r)
	text := fmt.Sprintf("%s %s on rank %d", provenance.ShortName(r.Func), provenance.Duration(v), r.RID)
	if r.Hostname != "" && r.Hostname != "Unknown" {
		text += " (" + provenance.OneLine(r.Hostname) + ")"
	}
	t := readTimes(r.AlgoParams)
	if t == nil {
		return text
	}
	return text + ", typical " + t.usualText() + t.rareText(v)
}

// maxModes is how many usual times a sentence tells.
const maxModes = 3

func (t *times) usualText() string {
	var parts []string
	for _, s := range t.usual {
		if t.Moments == nil {
			s, _ = t.seen(s)
		}
		parts = append(parts, rangeText(s))
	}
	if len(parts) > maxModes {
		m := t.main()
		return fmt.Sprintf("%s or one of %d other times", rangeText(m), len(parts)-1)
	}
	return strings.Join(parts, " or ")
}

// rangeText writes a span with the unit once: 0.30–0.50 ms.
func rangeText(s span) string {
	low, high := provenance.Duration(s.low), provenance.Duration(s.high)
	if low == high {
		return low
	}
	number, unit, ok := strings.Cut(low, " ")
	if _, other, _ := strings.Cut(high, " "); ok && unit == other {
		low = number
	}
	return low + "–" + high
}

// rareText says how many calls were shorter or longer.
func (t *times) rareText(v float64) string {
	if t.Moments != nil {
		if sd := t.Moments.Stddev; sd > 0 {
			return fmt.Sprintf("; %s standard deviations from the mean of %s calls", provenance.ThreeDigits(math.Abs(v-*t.Moments.Mean)/sd),
				provenance.Grouped(*t.Moments.Count))
		}
		return ""
	}
	below, at, above := t.sides(v)
	total := below + at + above
	inside := v >= t.usual[0].low && v <= t.usual[len(t.usual)-1].high
	switch {
	case inside && at > total/2:
		return ""
	case inside:
		return fmt.Sprintf("; %s of %s calls took about as long", shareText(at/total, false), provenance.Grouped(total))
	case v > t.usual[0].low:
		return fmt.Sprintf("; longer than %s of %s calls", shareText(below/total, true), provenance.Grouped(total))
	}
	return fmt.Sprintf("; shorter than %s of %s calls", shareText(above/total, true), provenance.Grouped(total))
}

// shareText is a share in percent. One that is nearly all is never rounded to all, and
// has as many digits as say something.
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

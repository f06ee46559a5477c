package contrast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// maxBars is the number of values in a chart, and timeBins the number of equal parts of a run.
const (
	maxBars  = 8
	timeBins = 200
)

// Explanation lists the differences between a selection and its baseline.
type Explanation struct {
	api.Explained // without fields
	Fields        []Difference
	Thread        string // the name of a thread that one of the fields mentions, in a sentence; may be empty
}

// OfFunction counts executions of a function.
func OfFunction(program trace.Program, name string, executions int) api.ExplainFunction {
	f := api.ExplainFunction{Program: int64(program), Function: name, Executions: executions}
	if name != "" {
		f.Term = Term{Field: FieldKey{Kind: FieldFunction}, Label: name}.String()
	}
	return f
}

// Difference describes how the selection differs in a field. From and To of a time are in seconds since the beginning of the run.
type Difference struct {
	Finding
	Kind   FieldKind
	Values string           // values that separate the selection from the baseline, in words
	Rest   string           // share of the baseline, in words
	Bars   []api.ExplainBar // shares by value, or by parts of a range
	Clause string           // predicate of a sentence about the executions
	Key    FieldKey
	Terms  []Term // terms that select the values; empty if none can
}

// Field is a column of a field of executions.
type Field struct {
	Column
	Key  FieldKey
	Rest string // unit of the shares, such as ranks or calls
}

// Bins divides the time of a run into parts of equal length.
type Bins struct {
	Extent trace.Ticks
	Unit   trace.Unit
}

// Width returns the length of a part.
func (b Bins) Width() trace.Ticks { return max(1, (b.Extent+timeBins-1)/timeBins) }

// Last returns the index of the last part.
func (b Bins) Last() float64 { return float64(max(0, (b.Extent-1)/b.Width())) }

// Most returns an upper bound of the number of parts.
func (b Bins) Most() float64 { return 2 * timeBins }

// Text formats a value of a field. For a time, v is the index of a part.
func (b Bins) Text(key FieldKey, v float64) string {
	switch key.Kind {
	case FieldTime:
		return strconv.FormatFloat(b.seconds(v), 'f', 2, 64) + " s"
	case FieldBytes, FieldState, FieldCounter:
		return amountText(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Explain compares the fields of a selection and adds the differences and a sentence.
func (e *Explanation) Explain(fields []Field, b Bins) {
	columns := make([]Column, len(fields))
	for i := range fields {
		columns[i] = fields[i].Column
	}
	for _, f := range Default().Compare(columns) {
		e.Fields = append(e.Fields, b.difference(&fields[f.Column], f))
	}
	e.Sentence = e.sentence()
}

// amountText abbreviates a number.
func amountText(v float64) string {
	for _, unit := range []struct {
		least, size float64
		name        string
	}{{1e12, 1e12, " T"}, {1e9, 1e9, " G"}, {1e6, 1e6, " M"}, {1e4, 1e3, " k"}} {
		if math.Abs(v) >= unit.least {
			return text.ThreeDigits(v/unit.size) + unit.name
		}
	}
	if v != math.Trunc(v) && math.Abs(v) >= 1 {
		v = math.Round(100*v) / 100
	} else if v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Plain returns a name on one line.
func Plain(name string) string { return text.SingleSpaced(name) }

// difference describes a finding in words and bars.
func (b Bins) difference(f *Field, finding Finding) Difference {
	c := Difference{Finding: finding, Kind: f.Key.Kind, Key: f.Key, Terms: b.terms(f.Key, finding)}
	switch {
	case finding.Least:
		c.Values = b.Text(f.Key, finding.From) + " or more"
	case finding.Most:
		c.Values = b.Text(f.Key, finding.To) + " or less"
	case finding.Range && f.Key.Kind == FieldTime:
		c.Values = b.Text(f.Key, finding.From) + " to " + b.Text(f.Key, finding.To+1)
	case finding.Range && finding.From != finding.To:
		c.Values = b.Text(f.Key, finding.From) + " to " + b.Text(f.Key, finding.To)
	case finding.Range:
		c.Values = b.Text(f.Key, finding.From)
	case len(finding.Numbers) > 0:
		c.Values = joined(finding.Numbers, func(v float64) string { return b.Text(f.Key, v) })
	case f.Key.Kind == FieldPath:
		c.Values = pathsText(finding.Labels)
	default:
		c.Values = joined(finding.Labels, Plain)
	}
	c.Clause = f.clause(c.Values, finding)
	c.Rest = f.restText(finding)
	c.Bars = f.bars(b, finding)
	if f.Key.Kind == FieldTime { // seconds, not parts of the run
		c.From, c.To = b.seconds(finding.From), b.seconds(finding.To+1)
	}
	return c
}

// terms returns the conditions that select the values of a finding.
func (b Bins) terms(key FieldKey, finding Finding) (terms []Term) {
	for _, l := range finding.Labels {
		terms = append(terms, Term{Field: key, Label: l})
	}
	for _, v := range finding.Numbers {
		terms = append(terms, Term{Field: key, From: v, To: v})
	}
	if finding.Range || finding.Least || finding.Most {
		t := Term{Field: key, From: math.Inf(-1), To: math.Inf(1)}
		if !finding.Most {
			t.From = finding.From
		}
		if !finding.Least {
			t.To = finding.To
		}
		if key.Kind == FieldTime {
			t = b.TimeTerm(finding.From, finding.To)
		}
		terms = append(terms, t)
	}
	return terms
}

// TimeTerm returns the condition that selects parts of the run, from first to last.
func (b Bins) TimeTerm(first, last float64) Term {
	t := Term{Field: FieldKey{Kind: FieldTime}, From: b.seconds(first), To: b.seconds(last + 1)}
	switch { // the first and the last part include earlier and later times
	case last >= b.Last():
		t.To = math.Inf(1)
	case first <= 0:
		t.From = math.Inf(-1)
	}
	return t
}

// seconds returns the time at which a part of the run begins.
func (b Bins) seconds(bin float64) float64 { return b.Unit.MicrosOf(bin*float64(b.Width())) / 1e6 }

// pathsText lists up to three call paths by their ends; of more it names two and counts the others.
func pathsText(paths []string) string {
	ends := make([]string, len(paths))
	for i, path := range paths {
		ends[i] = text.PathEnd(path)
	}
	if n := len(ends); n > 3 {
		return fmt.Sprintf("%s, %s and %d others", ends[0], ends[1], n-2)
	}
	return joined(ends, Plain)
}

func joined[T any](list []T, text func(T) string) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, text(v))
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// clause returns the predicate of a sentence about the values of a field.
func (f *Field) clause(values string, finding Finding) string {
	many := len(finding.Labels) > 1 || len(finding.Numbers) > 1 || finding.Range && finding.From != finding.To
	noun := func(one, more string) string {
		if many {
			return more
		}
		return one
	}
	switch f.Key.Kind {
	case FieldHost:
		return "ran on " + values
	case FieldRank:
		return "ran on " + noun("rank ", "ranks ") + values
	case FieldThread:
		return "ran on " + noun("thread ", "threads ") + values
	case FieldDevice:
		return "ran on GPU " + noun("device ", "devices ") + values
	case FieldStream:
		return "ran on GPU " + noun("stream ", "streams ") + values
	case FieldLink:
		return "waited last for a message between ranks " + strings.ReplaceAll(values, linkDash, " and ")
	case FieldPartner:
		return "talked last to " + noun("rank ", "ranks ") + values
	case FieldPath:
		return "ran on the call " + noun("path ", "paths ") + values
	case FieldBytes:
		return "had messages of " + values + " bytes"
	case FieldTime:
		return "began between " + strings.Replace(values, " to ", " and ", 1)
	case FieldStep:
		return "ended in " + noun("step ", "steps ") + values
	}
	return "ran while " + Plain(f.Name) + " was " + values
}

// restText returns the share of the baseline with the values, in words.
func (f *Field) restText(finding Finding) string {
	switch {
	case finding.Bounded:
		return "at most " + text.Percent(100*finding.BaselineShare) + " of all readings"
	case len(f.Shares) == 0:
		return fmt.Sprintf("%s of %s", text.Int(finding.BaselineWith),
			text.Count(finding.BaselineOf, strings.TrimSuffix(f.Rest, "s")))
	case f.Key.Kind == FieldTime || f.Rest == "calls":
		return text.Percent(100*finding.BaselineShare) + " of " + strings.TrimPrefix(strings.Replace(f.Rest, "calls", "all calls", 1), "of ")
	}
	total := 0.0
	for _, share := range f.Shares {
		total += share.Weight
	}
	return fmt.Sprintf("%s of %s", text.Number(math.Round(finding.BaselineShare*total)),
		text.Count(int64(math.Round(total)), strings.TrimSuffix(f.Rest, "s")))
}

// ChanceText returns the probability of chance in words.
func (c *Difference) ChanceText() string {
	if c.Chance < 1e-12 {
		return "< 1e-12"
	}
	return strconv.FormatFloat(c.Chance, 'g', 2, 64)
}

// Strength describes in words how well the values separate the selection from the rest, and whether that may be chance.
func (f *Finding) Strength() string {
	words := "weak"
	switch {
	case f.Bits >= 0.3:
		words = "strong"
	case f.Bits >= Default().LeastBits:
		words = "moderate"
	}
	if f.Chance <= Default().MaxChance {
		return words + "; not chance"
	}
	return words + "; possibly chance"
}

// Support returns the counts behind a difference and its strength.
func (c *Difference) Support() string {
	return fmt.Sprintf("%s of %s here, %s; %s", text.Int(c.With), text.Int(c.Of), c.Rest, c.Strength())
}

// standsOut reports whether a difference is notable, or most executions have it.
func (c *Difference) standsOut() bool {
	return c.Notable || c.Role != Chosen && c.Bits >= Default().LeastBits && c.Share >= 0.5
}

// main returns the difference to describe: the first one or, if that is weak, the first that is not chance.
func (e *Explanation) main() *Difference {
	if !e.Fields[0].standsOut() {
		for i := range e.Fields {
			if f := &e.Fields[i]; f.Role != Chosen && f.Chance <= Default().MaxChance {
				return f
			}
		}
	}
	return &e.Fields[0]
}

// sentence describes the main difference.
func (e *Explanation) sentence() string {
	what := text.Count(e.Selected, "execution")
	if e.Estimated {
		what = "about " + what
	}
	if len(e.Functions) == 1 {
		what += " of " + Plain(e.Functions[0].Function)
	}
	if e.Selected > int64(e.Examined) {
		what = fmt.Sprintf("%s (%s examined)", what, text.Int(e.Examined))
	}
	if len(e.Fields) == 0 {
		return "No field is stored by which " + what + " could differ from others"
	}
	first := e.main()
	count := fmt.Sprintf("%s of %s", text.Int(first.With), what)
	if first.Of < e.Examined { // only some have messages, counters and states
		count = fmt.Sprintf("%s of %s examined closely, of %s,", text.Int(first.With),
			text.Int(first.Of), what)
	}
	if first.With == first.Of && first.Of >= e.Examined {
		count = "All " + strings.TrimPrefix(what, "about ")
		if first.Of == 1 {
			count = "The only execution"
		}
	}
	sentence := fmt.Sprintf("%s %s%s (%s)", count, first.Clause, first.baselineClause(), first.Strength())
	switch {
	case first.Notable && first.Role == Cause:
		return sentence + e.timeClause()
	case first.standsOut(), first.Role != Chosen && first.Chance <= Default().MaxChance: // weak
		return sentence
	}
	return "No stored field sets " + what + " apart: the differences may be chance"
}

// baselineClause returns the part of a sentence about the share of the baseline.
func (c *Difference) baselineClause() string {
	switch c.Kind {
	case FieldHost:
		return ", which has " + c.Rest
	case FieldRank, FieldThread, FieldDevice, FieldStream, FieldTime, FieldStep:
		return ", " + c.Rest
	case FieldState:
		return ", as in " + c.Rest
	}
	return ", as did " + c.Rest
}

// timeClause returns the part of a sentence about the time, if it is notable.
func (e *Explanation) timeClause() string {
	for i := range e.Fields {
		if f := &e.Fields[i]; f.Kind == FieldTime && f.Notable {
			if f.With == f.Of {
				return "; all of them " + f.Clause
			}
			return fmt.Sprintf("; %s of them %s", text.Int(f.With), f.Clause)
		}
	}
	return ""
}

// bars returns the shares of both sides by value.
func (f *Field) bars(b Bins, finding Finding) []api.ExplainBar {
	if f.Shape == Amounts || f.Shape == Spans {
		return f.parts(b, finding)
	}
	type pair struct {
		api.ExplainBar
		number float64
	}
	at := make(map[string]int)
	var list []pair
	slot := func(label string, number float64) *pair {
		if f.Shape == Numbers {
			label = b.Text(f.Key, number)
		}
		i, ok := at[label]
		if !ok {
			i = len(list)
			at[label] = i
			list = append(list, pair{api.ExplainBar{Label: Plain(label)}, number})
		}
		return &list[i]
	}
	for _, c := range f.Selection {
		slot(c.Label, c.Number).Share += 1 / float64(finding.Of)
	}
	total := 0.0
	for _, w := range f.Shares {
		total += w.Weight
	}
	for _, w := range f.Shares {
		slot(w.Label, w.Number).BaselineShare += w.Weight / total
	}
	for _, c := range f.Baseline {
		slot(c.Label, c.Number).BaselineShare += 1 / float64(len(f.Baseline))
	}
	for i := range list {
		list[i].Telling = finding.Range && list[i].number >= finding.From && list[i].number <= finding.To ||
			slices.Contains(finding.Numbers, list[i].number) && f.Shape == Numbers || f.Shape == Labels &&
			slices.ContainsFunc(finding.Labels, func(l string) bool { return Plain(l) == list[i].Label })
	}
	slices.SortStableFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.BaselineShare, a.BaselineShare), cmp.Compare(a.number, b.number),
			cmp.Compare(a.Label, b.Label))
	})
	bars := []api.ExplainBar{}
	for _, p := range list[:min(len(list), maxBars)] {
		bars = append(bars, p.ExplainBar)
	}
	return bars
}

// parts returns the shares of both sides by parts of the range of values.
func (f *Field) parts(b Bins, finding Finding) []api.ExplainBar {
	low, high := math.Inf(1), math.Inf(-1)
	see := func(v float64) { low, high = min(low, v), max(high, v) }
	for _, c := range f.Selection {
		see(c.Number)
	}
	for _, c := range f.Baseline {
		see(c.Number)
	}
	for _, w := range f.Shares {
		see(w.Number)
	}
	if math.IsInf(low, 0) {
		return []api.ExplainBar{}
	}
	const n = 12
	width := (high - low) / n
	if f.Shape == Spans {
		width = max(1, math.Ceil((high-low+1)/n))
	}
	bars := make([]api.ExplainBar, 0, n)
	for i := range n {
		from := low + float64(i)*width
		if i > 0 && from > high {
			break
		}
		telling := finding.Range && from+width > finding.From && from <= finding.To || finding.Least && from+width > finding.From ||
			finding.Most && from <= finding.To ||
			slices.ContainsFunc(finding.Numbers, func(v float64) bool { return v >= from && v < from+width })
		bars = append(bars, api.ExplainBar{Label: b.Text(f.Key, from), Telling: telling})
	}
	part := func(v float64) *api.ExplainBar {
		i := 0
		if width > 0 {
			i = int((v - low) / width)
		}
		return &bars[min(i, len(bars)-1)]
	}
	for _, c := range f.Selection {
		part(c.Number).Share += 1 / float64(finding.Of)
	}
	for _, c := range f.Baseline {
		part(c.Number).BaselineShare += 1 / float64(len(f.Baseline))
	}
	for _, w := range f.Shares {
		part(w.Number).BaselineShare += w.Weight / float64(len(f.Shares))
	}
	return bars
}

// ExplainChange explains a lasting change of a function. All calls since a time changed, so there is no set of anomalies to
// compare.
func ExplainChange(x *provenance.Finding, unit trace.Unit, begin trace.Ticks) *Explanation {
	at := unit.Seconds(max(0, x.First-begin))
	c := Difference{
		Kind: FieldTime, Values: strconv.FormatFloat(at, 'f', 2, 64) + " s or later", Rest: "no call before", Bars: []api.ExplainBar{},
		Finding: Finding{
			Name: "time", Role: When, Least: true, From: at, With: int(x.Calls), Of: int(x.Calls),
			Share: 1, Units: int(x.Calls), Bits: 1, Notable: true,
		},
	}
	c.Clause = "began at " + c.Values
	sentence := fmt.Sprintf("All %s of %s since %.2f s take", text.Count(x.Calls, "call"), Plain(x.Func), at)
	if x.Form == provenance.Temporary {
		to := unit.Seconds(max(0, x.Last-begin))
		c.Values, c.Rest, c.To = fmt.Sprintf("%.2f s to %.2f s", at, to), "no call before or after", to
		c.Clause = "lasted from " + c.Values
		sentence = fmt.Sprintf("Calls of %s from %s took", Plain(x.Func), c.Values)
	}
	e := &Explanation{Fields: []Difference{c}}
	e.Selected, e.Lost = x.Calls, unit.Micros(x.LostOwn)
	e.Functions = []api.ExplainFunction{OfFunction(x.PID, x.Func, int(min(x.Calls, math.MaxInt32)))}
	e.Sentence = fmt.Sprintf("%s about %s instead of %s: the function as a whole changed, single executions are not anomalies",
		sentence, text.Duration(unit.MicrosOf(x.Actual)), text.Duration(unit.MicrosOf(x.Expected)))
	return e
}

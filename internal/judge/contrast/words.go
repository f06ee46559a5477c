package contrast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// maxBars is how many values a picture shows; timeBins is how many parts of equal length the time
// of a run has.
const (
	maxBars  = 8
	timeBins = 200
)

// Explanation is what is different about a selection.
type Explanation struct {
	Sentence  string
	Selected  int64 // executions of the selection
	Lost      trace.Micros
	Reckoned  bool // both are reckoned from a part, as there are very many
	Looked    int  // of them that were looked at
	Typical   int  // executions that it is held against: kept as typical of the same functions,
	Others    int  // and other anomalies of them
	Functions []Count
	Fields    []Difference
}

// Count is how many executions are of a function.
type Count struct {
	Program    trace.Program
	Name       string
	Executions int
}

// Difference is how the selection differs in a field. From and To of a time are seconds
// since the begin of the run.
type Difference struct {
	Finding
	Kind   FieldKind
	Values string // that tell it from the rest, in words
	Rest   string // what it is held against, in words
	Bars   []Bar  // shares by value, or by parts of a range
	Clause string // in a sentence, after how many they are
	Key    FieldKey
	Terms  []Term // that choose the values; empty: nothing can be chosen by them
}

// Bar is how many have a value or lie in a part of a range.
type Bar struct {
	Label         string
	Share         float64 // of the selection
	BaselineShare float64
	Telling       bool // it is one of the values that tell them apart
}

// Field is a column with what it is about.
type Field struct {
	Column
	Key  FieldKey
	Rest string // what shares are of: ranks, calls …
}

// Bins divides the time of a run into parts of equal length.
type Bins struct{ Extent trace.Micros }

// Width returns the length of a part.
func (b Bins) Width() trace.Micros { return max(1, (b.Extent+timeBins-1)/timeBins) }

// Last returns the number of the last part.
func (b Bins) Last() float64 { return float64(max(0, (b.Extent-1)/b.Width())) }

// Most returns a bound of the number of parts.
func (b Bins) Most() float64 { return 2 * timeBins }

// Text returns a value of a field for people; of a time it is the number of a part.
func (b Bins) Text(key FieldKey, v float64) string {
	switch key.Kind {
	case FieldTime:
		return strconv.FormatFloat(v*float64(b.Width())/1e6, 'f', 2, 64) + " s"
	case FieldBytes, FieldState, FieldCounter:
		return amountText(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Explain compares the fields of a selection, and adds the differences and a sentence.
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

// amountText is a number in short.
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

// percent is a share.
func percent(share float64) string {
	switch v := 100 * share; {
	case v == 0:
		return "0 %"
	case v < 0.1:
		return "< 0.1 %"
	case v < 10:
		return strconv.FormatFloat(v, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(v, 'f', 0, 64) + " %"
	}
}

// Plain is a name in one line.
func Plain(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

func several(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return text.Number(float64(n)) + " " + what + "s"
}

// difference puts a finding into words and bars.
func (b Bins) difference(f *Field, found Finding) Difference {
	c := Difference{Finding: found, Kind: f.Key.Kind, Key: f.Key, Terms: b.terms(f.Key, found)}
	switch {
	case found.Least:
		c.Values = b.Text(f.Key, found.From) + " or more"
	case found.Most:
		c.Values = b.Text(f.Key, found.To) + " or less"
	case found.Range && f.Key.Kind == FieldTime:
		c.Values = b.Text(f.Key, found.From) + " to " + b.Text(f.Key, found.To+1)
	case found.Range && found.From != found.To:
		c.Values = b.Text(f.Key, found.From) + " to " + b.Text(f.Key, found.To)
	case found.Range:
		c.Values = b.Text(f.Key, found.From)
	case len(found.Numbers) > 0:
		c.Values = joined(found.Numbers, func(v float64) string { return b.Text(f.Key, v) })
	default:
		c.Values = joined(found.Labels, Plain)
	}
	c.Clause = f.clause(c.Values, found)
	c.Rest = f.restText(found)
	c.Bars = f.bars(b, found)
	if f.Key.Kind == FieldTime { // seconds, not parts of the run
		c.From, c.To = b.seconds(found.From), b.seconds(found.To+1)
	}
	return c
}

// terms choose the values of a finding.
func (b Bins) terms(key FieldKey, found Finding) (terms []Term) {
	for _, l := range found.Labels {
		terms = append(terms, Term{Field: key, Label: l})
	}
	for _, v := range found.Numbers {
		terms = append(terms, Term{Field: key, From: v, To: v})
	}
	if found.Range || found.Least || found.Most {
		t := Term{Field: key, From: math.Inf(-1), To: math.Inf(1)}
		if !found.Most {
			t.From = found.From
		}
		if !found.Least {
			t.To = found.To
		}
		if key.Kind == FieldTime {
			t = b.TimeTerm(found.From, found.To)
		}
		terms = append(terms, t)
	}
	return terms
}

// TimeTerm chooses parts of the run, from the first to the last.
func (b Bins) TimeTerm(first, last float64) Term {
	t := Term{Field: FieldKey{Kind: FieldTime}, From: b.seconds(first), To: b.seconds(last + 1)}
	switch { // what is before the begin is in the first, what is after the end in the last
	case last >= b.Last():
		t.To = math.Inf(1)
	case first <= 0:
		t.From = math.Inf(-1)
	}
	return t
}

// seconds is when a part of the run begins.
func (b Bins) seconds(bin float64) float64 { return bin * float64(b.Width()) / 1e6 }

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

// clause tells the values of a field in a sentence.
func (f *Field) clause(values string, found Finding) string {
	many := len(found.Labels) > 1 || len(found.Numbers) > 1 || found.Range && found.From != found.To
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
		return "were called by " + values
	case FieldBytes:
		return "had messages of " + values + " bytes"
	case FieldTime:
		return "began between " + strings.Replace(values, " to ", " and ", 1)
	case FieldStep:
		return "ended in " + noun("step ", "steps ") + values
	}
	return "ran while " + Plain(f.Name) + " was " + values
}

// restText tells how many of the rest have the values.
func (f *Field) restText(found Finding) string {
	switch {
	case found.Bounded:
		return "at most " + percent(found.BaselineShare) + " of all readings"
	case len(f.Shares) == 0:
		return fmt.Sprintf("%s of %s", text.Number(float64(found.BaselineWith)),
			several(int64(found.BaselineOf), strings.TrimSuffix(f.Rest, "s")))
	case f.Key.Kind == FieldTime || f.Rest == "calls":
		return percent(found.BaselineShare) + " of " + strings.TrimPrefix(strings.Replace(f.Rest, "calls", "all calls", 1), "of ")
	}
	total := 0.0
	for _, share := range f.Shares {
		total += share.Weight
	}
	return fmt.Sprintf("%s of %s", text.Number(math.Round(found.BaselineShare*total)),
		several(int64(math.Round(total)), strings.TrimSuffix(f.Rest, "s")))
}

// chanceText is how likely chance is.
func chanceText(p float64) string {
	if p < 1e-12 {
		return "< 1e-12"
	}
	return strconv.FormatFloat(p, 'g', 2, 64)
}

// ChanceText is the chance in words.
func (c *Difference) ChanceText() string { return chanceText(c.Chance) }

// Support tells, in words, how far a difference goes and on how much it rests.
func (c *Difference) Support() string {
	return fmt.Sprintf("%s of %s here, %s; %.2f bits of 1, chance %s", text.Number(float64(c.With)),
		text.Number(float64(c.Of)), c.Rest, c.Bits, chanceText(c.Chance))
}

// sentence tells what explains most.
func (e *Explanation) sentence() string {
	what := several(e.Selected, "execution")
	if e.Reckoned {
		what = "about " + what
	}
	if len(e.Functions) == 1 {
		what += " of " + Plain(e.Functions[0].Name)
	}
	if e.Selected > int64(e.Looked) {
		what = fmt.Sprintf("%s (%s looked at)", what, text.Number(float64(e.Looked)))
	}
	if len(e.Fields) == 0 {
		return "Nothing is known by which " + what + " could differ from others"
	}
	first := &e.Fields[0]
	count := fmt.Sprintf("%s of %s", text.Number(float64(first.With)), what)
	if first.Of < e.Looked { // messages, counters and states are those of a part
		count = fmt.Sprintf("%s of %s looked at closely, of %s,", text.Number(float64(first.With)),
			text.Number(float64(first.Of)), what)
	}
	if first.With == first.Of && first.Of >= e.Looked {
		count = "All " + strings.TrimPrefix(what, "about ")
		if first.Of == 1 {
			count = "The only execution"
		}
	}
	told := fmt.Sprintf("%s %s%s (%.2f bits of 1, chance %s)", count, first.Clause, first.beside(), first.Bits, chanceText(first.Chance))
	switch {
	case first.Notable:
		if first.Role == Cause {
			told += e.alsoWhen()
		}
		return told
	case first.Role != Chosen && first.Bits >= Default().LeastBits && first.Share >= 0.5:
		return told + "; that may be chance, as they are few"
	}
	return "Nothing that is known sets " + what + " apart: they are spread as chance would have it"
}

// beside tells, in a sentence, how much of the rest has the values.
func (c *Difference) beside() string {
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

// alsoWhen tells the time where that is short.
func (e *Explanation) alsoWhen() string {
	for i := range e.Fields {
		if f := &e.Fields[i]; f.Kind == FieldTime && f.Notable {
			if f.With == f.Of {
				return "; all of them " + f.Clause
			}
			return fmt.Sprintf("; %s of them %s", text.Number(float64(f.With)), f.Clause)
		}
	}
	return ""
}

// bars are shares of both sides, for a picture.
func (f *Field) bars(b Bins, found Finding) []Bar {
	if f.Shape == Amounts || f.Shape == Spans {
		return f.parts(b, found)
	}
	type pair struct {
		Bar
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
			list = append(list, pair{Bar{Label: Plain(label)}, number})
		}
		return &list[i]
	}
	for _, c := range f.Selection {
		slot(c.Label, c.Number).Share += 1 / float64(found.Of)
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
		list[i].Telling = found.Range && list[i].number >= found.From && list[i].number <= found.To ||
			slices.Contains(found.Numbers, list[i].number) && f.Shape == Numbers || f.Shape == Labels &&
			slices.ContainsFunc(found.Labels, func(l string) bool { return Plain(l) == list[i].Label })
	}
	slices.SortStableFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.BaselineShare, a.BaselineShare), cmp.Compare(a.number, b.number),
			cmp.Compare(a.Label, b.Label))
	})
	var bars []Bar
	for _, p := range list[:min(len(list), maxBars)] {
		bars = append(bars, p.Bar)
	}
	return bars
}

// parts are shares of both sides by parts of the range of values.
func (f *Field) parts(b Bins, found Finding) []Bar {
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
		return nil
	}
	const n = 12
	width := (high - low) / n
	if f.Shape == Spans {
		width = max(1, math.Ceil((high-low+1)/n))
	}
	bars := make([]Bar, 0, n)
	for i := range n {
		from := low + float64(i)*width
		if i > 0 && from > high {
			break
		}
		telling := found.Range && from+width > found.From && from <= found.To || found.Least && from+width > found.From || found.Most &&
			from <= found.To ||
			slices.ContainsFunc(found.Numbers, func(v float64) bool { return v >= from && v < from+width })
		bars = append(bars, Bar{Label: b.Text(f.Key, from), Telling: telling})
	}
	part := func(v float64) *Bar {
		i := 0
		if width > 0 {
			i = int((v - low) / width)
		}
		return &bars[min(i, len(bars)-1)]
	}
	for _, c := range f.Selection {
		part(c.Number).Share += 1 / float64(found.Of)
	}
	for _, c := range f.Baseline {
		part(c.Number).BaselineShare += 1 / float64(len(f.Baseline))
	}
	for _, w := range f.Shares {
		part(w.Number).BaselineShare += w.Weight / float64(len(f.Shares))
	}
	return bars
}

// ExplainChange explains a lasting change of a function, which is no set of anomalies:
// all calls from a time on are what changed.
func ExplainChange(x *provenance.Issue, begin trace.Micros) *Explanation {
	at := float64(max(0, x.First-begin)) / 1e6
	c := Difference{
		Kind: FieldTime, Values: strconv.FormatFloat(at, 'f', 2, 64) + " s or later", Rest: "no call before",
		Finding: Finding{
			Name: "time", Role: When, Least: true, From: at, With: int(x.Anomalies), Of: int(x.Anomalies),
			Share: 1, Units: int(x.Anomalies), Bits: 1, Notable: true,
		},
	}
	c.Clause = "came at " + c.Values
	return &Explanation{
		Selected: x.Anomalies, Lost: x.LostTime, Looked: 0, Functions: []Count{{
			Program: x.PID, Name: x.Func,
			Executions: int(min(x.Anomalies, math.MaxInt32)),
		}},
		Sentence: fmt.Sprintf("All %s of %s since %.2f s take about %s instead of %s: it changed on the whole, single executions of it are "+
			"no anomalies",
			several(x.Anomalies, "call"), Plain(x.Func), at, text.Duration(x.After), text.Duration(x.Before)),
		Fields: []Difference{c},
	}
}

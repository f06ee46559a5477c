// Package explain tells a person in a terminal what a record says: what took
// how long and where, what is typical, the call stack, what happened around it,
// and how all other calls of the function are distributed. It writes plain text
// without colors, never sends what it finds in a record to the terminal
// unescaped, and is pure: the same record gives the same text.
package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Options are what a record does not say itself.
type Options struct {
	// Width is the number of columns to fill; 0 stands for DefaultWidth.
	// Fewer than 60 count as 60, and more than 500 as 500.
	Width      int
	Begin      trace.Micros // when the run began; 0: unknown
	Collection string       // where the record is from: anomalies, normalexecs, or empty if unknown
	Run        string       // name of the run; may be empty
	// Others says in sentences what it has to do with other executions; may be empty.
	Others string
}

// DefaultWidth is how many columns are filled unless told otherwise.
const DefaultWidth = 100

const minWidth, maxWidth = 60, 500

// Write explains r to w. Apart from the full name of the function, which has the
// first line for itself, no line is wider than o.Width; a character counts as one
// column. Whatever is odd or missing in r is said, and is no error: errors are
// those of w.
func Write(w io.Writer, r *provenance.Record, o Options) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	o.Width = min(max(o.Width, minWidth), maxWidth)
	p := &page{Record: r, Options: o, model: model{provenance.ReadModel(r.AlgoParams)}}
	p.summary()
	p.stack("Call stack", r.CallStack)
	p.window()
	p.gpu()
	p.counters()
	p.nodeState()
	p.distribution()
	p.absent()
	_, err := w.Write(p.out.Bytes())
	return err
}

// WriteModel draws the times of a function's calls that its model params tells:
// bars of a histogram, or a line of moments. Of an unknown model it says so.
func WriteModel(w io.Writer, params json.RawMessage, width int) error {
	p := &page{
		Record: new(provenance.Record), Options: Options{Width: min(max(width, minWidth), maxWidth)},
		model: model{provenance.ReadModel(params)},
	}
	typical, _, ok := p.model.Typical()
	switch {
	case p.model.Moments != nil:
		p.momentsText()
	case !ok:
		p.heading("No model of the function is known.")
	default:
		p.heading("%s of the function, by their own time", plural(p.model.Total, "call"))
		p.bars(typical, " ◄ median")
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

// page is the text about a record, as far as it is written.
type page struct {
	*provenance.Record
	Options
	model model
	out   bytes.Buffer
	none  []string // what the record does not hold
}

// line writes a line without the spaces at its end. Callers see to it that it
// fits; what still does not, as odd numbers may not, is cut.
func (p *page) line(format string, args ...any) {
	p.out.WriteString(cut(strings.TrimRight(fmt.Sprintf(format, args...), " "), p.Width))
	p.out.WriteByte('\n')
}

// heading begins a section.
func (p *page) heading(format string, args ...any) {
	p.line("")
	p.text("", fmt.Sprintf(format, args...))
	p.line("")
}

// text writes words in lines as wide as the page, each behind indent.
func (p *page) text(indent, words string) {
	for _, l := range wrap(words, p.Width-len(indent)) {
		p.line("%s%s", indent, l)
	}
}

// after is the time from the entry of the execution to t in microseconds.
func (p *page) after(t trace.Micros) float64 { return between(p.Entry, t) }

// whenText says in words when t was.
func (p *page) whenText(t trace.Micros) string {
	switch d := p.after(t); {
	case d < 0:
		return span(-d) + " before it began"
	case d > 0:
		return span(d) + " after it began"
	}
	return "as it began"
}

// between is exact for all times within centuries of the epoch, and cannot
// overflow for others.
func between(from, to trace.Micros) float64 { return float64(to) - float64(from) }

// summary says the most important in a few sentences.
func (p *page) summary() {
	p.out.WriteString(named(p.Func) + "\n")
	p.line("")
	if p.Why != "" {
		p.text("  ", "It "+escaped(p.Why)+".")
		p.text("  ", p.moreText())
		p.text("  ", p.placeText())
	} else {
		p.text("  ", p.tookText())
		p.text("  ", p.placeText())
		if s := p.statusText(); s != "" {
			p.text("  ", s)
		}
	}
	if p.Others != "" {
		p.text("  ", escaped(p.Others))
	}
	p.line("")
	p.text("  ", p.factsText())
}

// tookText compares the times with what is typical.
func (p *page) tookText() string {
	own, total := float64(p.RuntimeExclusive), float64(p.RuntimeTotal)
	typical := p.typicalText(own)
	switch {
	case open(p.Entry, p.Exit):
		return "It had not ended when the record was written. " + sentence(typical)
	case own == total && p.model.known():
		return fmt.Sprintf("It took %s, all of it its own: %s.", span(own), typical)
	case own == total:
		return fmt.Sprintf("It took %s, all of it its own. %s", span(own), sentence(typical))
	case p.model.known():
		return fmt.Sprintf("It took %s of its own, %s, and %s with the calls inside it.", span(own), typical, span(total))
	}
	return fmt.Sprintf("It took %s of its own and %s with the calls inside it. %s", span(own), span(total), sentence(typical))
}

// moreText adds to Why what was lost, and what part of the time was its own.
func (p *page) moreText() string {
	text := "It lost no time against the median."
	if p.LostTime > 0 {
		text = "It lost " + span(float64(p.LostTime)) + " against the median."
	}
	if p.RuntimeExclusive != p.RuntimeTotal {
		text += fmt.Sprintf(" Of the %s with the calls inside it %s were its own.", span(float64(p.RuntimeTotal)),
			span(float64(p.RuntimeExclusive)))
	}
	return text
}

func (p *page) typicalText(own float64) string {
	value, count, ok := p.model.Typical()
	if !ok {
		return "what is typical cannot be said: " + p.model.absence()
	}
	what := fmt.Sprintf("the typical %s (median of %s)", span(value), plural(count, "call"))
	if s := p.model.Moments; s != nil {
		what = fmt.Sprintf("the typical %s ± %s (mean and deviation of %s)", span(value), span(s.Stddev), plural(count, "call"))
	}
	ratio := own / value
	switch {
	case value <= 0 || own < 0 || open(p.Entry, p.Exit):
		return "to be compared with " + what
	case ratio > 0.8 && ratio < 1.25:
		return "close to " + what
	case ratio < 1:
		return threeDigits(100*ratio) + " % of " + what
	case ratio < 9.95:
		return fmt.Sprintf("%.1f times %s", ratio, what)
	}
	return grouped(ratio) + " times " + what
}

func (p *page) placeText() string {
	host := cut(escaped(p.Hostname), minWidth/2)
	if host == "" || host == "Unknown" {
		host = "unknown"
	}
	when := "at a time that is not known"
	switch since := between(p.Begin, p.Entry); {
	case p.Begin != 0 && since < 0:
		when = fmt.Sprintf("%s before the start of the run", seconds(-since))
	case p.Begin != 0:
		when = fmt.Sprintf("%s after the start of the run", seconds(since))
	case p.Entry > 0 && p.Entry < latest:
		when = "at " + time.UnixMicro(int64(p.Entry)).UTC().Format("2006-01-02 15:04:05.000000 MST")
	}
	return fmt.Sprintf("It ran on rank %d (program %d, thread %d, host %s), %s.", p.RID, p.PID, p.TID, host, when)
}

// latest is a time after which a trace is not from this epoch: the year 9999.
const latest = 253_370_764_800e6

var statusTexts = map[provenance.Status]string{
	provenance.Confirmed: "It is a confirmed anomaly: flagged during the run, and still with all that is known.",
	provenance.Withdrawn: "It is a withdrawn anomaly: flagged during the run, but no longer with all that is known.",
	provenance.Promoted:  "It is a promoted anomaly: not flagged during the run, but with all that is known.",
}

func (p *page) statusText() string {
	switch text := statusTexts[p.Status]; {
	case text != "":
		return text
	case p.Status != "":
		return fmt.Sprintf("It is an anomaly with the unknown status %s.", cut(escaped(string(p.Status)), minWidth/2))
	case p.Collection == "normalexecs":
		return "It is no anomaly, but kept as a typical execution to compare anomalies with."
	case p.Collection == "anomalies":
		return "It is an anomaly; no review at the end of the run has confirmed or withdrawn it."
	}
	return ""
}

// factsText holds what one looks up rather than reads.
func (p *page) factsText() string {
	score := "no score"
	if p.OutlierScore >= 0 {
		score = "score " + threeDigits(p.OutlierScore)
		if limit := p.model.Limit; limit != nil {
			score += " (threshold " + threeDigits(*limit) + ")"
		}
	}
	id := cut(escaped(p.EventID), minWidth/2)
	if id == "" {
		id = "unknown"
	}
	facts := []string{"event " + id, fmt.Sprintf("step %d", p.IOStep), score, "severity " + number(p.OutlierSeverity)}
	if p.Kind != "" {
		facts = slices.Insert(facts, 1, "kind "+cut(escaped(string(p.Kind)), minWidth/2))
	}
	if p.Run != "" {
		facts = append(facts, "run "+cut(escaped(p.Run), minWidth/2))
	}
	return strings.Join(facts, " · ")
}

func (p *page) absent() {
	if len(p.none) > 0 {
		p.line("")
		p.text("", "Not in the record: "+strings.Join(p.none, ", ")+".")
	}
}

// sentence makes one of words.
func sentence(words string) string { return strings.ToUpper(words[:1]) + words[1:] + "." }

// number writes a number that is usually whole.
func number(v float64) string {
	if v == math.Trunc(v) {
		return grouped(v)
	}
	return threeDigits(v)
}

// Package explain describes a record as plain text for a terminal: times, place, usual times,
// call stack, surroundings, and the distribution of all calls of the function. It escapes all
// text of records. It is pure.
package explain

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Options are data that a record does not have.
type Options struct {
	// Width is the number of columns, from 60 to 500; 0: DefaultWidth.
	Width      int
	Begin      trace.Ticks // start of the run; 0: unknown
	Collection string      // of the record: anomalies, normalexecs, or empty
	Run        string      // name of the run; may be empty
	// Threads has the known names of threads and streams of the rank; may be nil.
	Threads map[trace.Thread]string
	// Others describes related executions in sentences; may be empty.
	Others string
}

// DefaultWidth is the default number of columns.
const DefaultWidth = 100

const minWidth, maxWidth = 60, 500

// Write describes r. No line except the first, with the full name of the function, is wider
// than o.Width, counted in characters. Only errors of w are returned.
func Write(w io.Writer, r *provenance.Record, o Options) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	o.Width = min(max(o.Width, minWidth), maxWidth)
	p := &page{Record: r, Options: o, model: provenance.ReadModel(r.AlgoParams)}
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

// WriteModel draws the distribution of calls by the model that judged r: bars of a histogram, or a line
// of moments.
func WriteModel(w io.Writer, r *provenance.Record, width int) error {
	p := &page{Record: r, Options: Options{Width: min(max(width, minWidth), maxWidth)}, model: provenance.ReadModel(r.AlgoParams)}
	typical, _, ok := p.model.Typical()
	switch {
	case p.model.Moments != nil:
		p.momentsText()
	case !ok:
		p.heading("The function has no model.")
	default:
		p.heading("%s", modelTitle(r, &p.model))
		p.bars(typical, " ◄ median")
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

// page is the text that is being written about a record.
type page struct {
	*provenance.Record
	Options
	model   provenance.Model
	out     bytes.Buffer
	missing []string // missing parts of the record
}

// line writes a line without trailing spaces, shortened to the width.
func (p *page) line(format string, args ...any) {
	p.out.WriteString(text.Shorten(strings.TrimRight(fmt.Sprintf(format, args...), " "), p.Width))
	p.out.WriteByte('\n')
}

// heading starts a section.
func (p *page) heading(format string, args ...any) {
	p.line("")
	p.paragraph("", fmt.Sprintf(format, args...))
	p.line("")
}

// paragraph writes words in lines of the page, each after indent.
func (p *page) paragraph(indent, words string) {
	for _, l := range wrap(words, p.Width-len(indent)) {
		p.line("%s%s", indent, l)
	}
}

// sinceEntry returns the time from the entry of the execution to t, in microseconds.
func (p *page) sinceEntry(t trace.Ticks) float64 { return p.Unit.Between(p.Entry, t) }

// whenText describes t relative to the execution.
func (p *page) whenText(t trace.Ticks) string {
	switch d := p.sinceEntry(t); {
	case d < 0:
		return text.Duration(-d) + " before its entry"
	case d > 0:
		return text.Duration(d) + " after its entry"
	}
	return "at its entry"
}

// summary writes the most important facts.
func (p *page) summary() {
	p.out.WriteString(functionName(p.Func) + "\n")
	p.line("")
	if p.Why != "" {
		p.paragraph("  ", "It "+escape(p.Why)+".")
		p.paragraph("  ", p.moreText())
		p.paragraph("  ", p.placeText())
	} else {
		p.paragraph("  ", p.tookText())
		p.paragraph("  ", p.placeText())
		if s := p.statusText(); s != "" {
			p.paragraph("  ", s)
		}
	}
	if p.Others != "" {
		p.paragraph("  ", escape(p.Others))
	}
	p.line("")
	p.paragraph("  ", p.factsText())
}

// tookText compares the times with the typical time.
func (p *page) tookText() string {
	own, total := p.Unit.Micros(p.RuntimeExclusive), p.Unit.Micros(p.RuntimeTotal)
	typical, judged := p.typicalText(own), p.model.Moments != nil || len(p.model.Counts) > 0
	switch {
	case open(p.Entry, p.Exit):
		return "It had not ended when the record was written. " + sentence(typical)
	case own == total && judged:
		return fmt.Sprintf("It took %s, all own time: %s.", text.Duration(own), typical)
	case own == total:
		return fmt.Sprintf("It took %s, all own time. %s", text.Duration(own), sentence(typical))
	case judged:
		return fmt.Sprintf("Its own time was %s, %s; with the calls inside it, it took %s.", text.Duration(own), typical, text.Duration(total))
	}
	return fmt.Sprintf("Its own time was %s; with the calls inside it, it took %s. %s",
		text.Duration(own), text.Duration(total), sentence(typical))
}

// moreText adds the lost time and the own time to Why.
func (p *page) moreText() string {
	words := "It lost no time compared with the median."
	if p.LostTime > 0 {
		words = "It lost " + text.Duration(p.Unit.Micros(p.LostTime)) + " compared with the median."
	}
	if p.RuntimeExclusive != p.RuntimeTotal {
		words += fmt.Sprintf(" It took %s with the calls inside it, %s of them own time.", text.Duration(p.Unit.Micros(p.RuntimeTotal)),
			text.Duration(p.Unit.Micros(p.RuntimeExclusive)))
	}
	return words
}

func (p *page) typicalText(own float64) string {
	value, count, ok := p.model.Typical()
	switch {
	case !ok && p.model.HasParams:
		return "the typical time is unknown: the stored model cannot be read"
	case !ok:
		return "the typical time is unknown: no model is stored"
	}
	what := fmt.Sprintf("the typical %s (median of %s)", text.Duration(value), text.Count(int64(count), "call"))
	if s := p.model.Moments; s != nil {
		what = fmt.Sprintf("the typical %s ± %s (mean and deviation of %s)",
			text.Duration(value), text.Duration(s.Stddev), text.Count(int64(count), "call"))
	}
	ratio := own / value
	switch {
	case value <= 0 || own < 0 || open(p.Entry, p.Exit):
		return "compared with " + what
	case ratio > 0.8 && ratio < 1.25:
		return "close to " + what
	case ratio < 1:
		return text.ThreeDigits(100*ratio) + " % of " + what
	case ratio < 9.95:
		return fmt.Sprintf("%.1f times %s", ratio, what)
	}
	return text.Number(ratio) + " times " + what
}

// threadText names a thread by its number, and by its name if it is known.
func (p *page) threadText(thread trace.Thread) string {
	number := fmt.Sprintf("thread %d", thread)
	if name := p.Threads[thread]; name != "" {
		return fmt.Sprintf("%s %q", number, text.Shorten(escape(name), minWidth/2))
	}
	return number
}

func (p *page) placeText() string {
	place := fmt.Sprintf("program %d, %s", p.PID, p.threadText(p.TID))
	if l := p.GPULocation; l != nil {
		place = fmt.Sprintf("program %d, %s", p.PID, locationText(l))
	}
	if host := text.Host(p.Hostname); host != "" {
		place += ", host " + text.Shorten(escape(host), minWidth/2)
	}
	when := "at an unknown time"
	switch since := p.Unit.Between(p.Begin, p.Entry); {
	case p.Begin != 0 && since < 0:
		when = fmt.Sprintf("%s before the start of the run", seconds(-since))
	case p.Begin != 0:
		when = fmt.Sprintf("%s after the start of the run", seconds(since))
	case p.Entry > 0 && p.Unit.Micros(p.Entry) < latest:
		when = "at " + text.UTC(p.Unit.Time(p.Entry))
	}
	return fmt.Sprintf("It ran on rank %d (%s), %s.", p.RID, place, when)
}

// latest is the year 9999; later times are wrong.
const latest = 253_370_764_800e6

var statusTexts = map[provenance.Status]string{
	provenance.Confirmed: "It is a confirmed anomaly: flagged during the run and by the final model.",
	provenance.Withdrawn: "It is a withdrawn anomaly: flagged during the run, but not by the final model.",
	provenance.Promoted:  "It is an anomaly found at the end: flagged only by the final model.",
}

func (p *page) statusText() string {
	switch words := statusTexts[p.Status]; {
	case words != "":
		return words
	case p.Status != "":
		return fmt.Sprintf("It is an anomaly with the unknown status %s.", text.Shorten(escape(string(p.Status)), minWidth/2))
	case p.Collection == "normalexecs":
		return "It is a typical execution, stored to compare anomalies with."
	case p.Collection == "anomalies":
		return "It is an anomaly that the review at the end of the run has not judged yet."
	}
	return ""
}

// factsText lists ids and numbers.
func (p *page) factsText() string {
	rarity := "no rarity"
	if p.OutlierScore >= 0 {
		rarity = "rarity " + text.ThreeDigits(p.OutlierScore)
		if limit := p.model.Limit; limit != nil {
			rarity += " (flagged above " + text.Value(*limit) + ")"
		}
	}
	id := text.Shorten(escape(p.EventID), minWidth/2)
	if id == "" {
		id = "unknown"
	}
	facts := []string{"event " + id, fmt.Sprintf("step %d", p.IOStep), rarity, "own time " + text.Duration(p.Unit.MicrosOf(p.OutlierSeverity))}
	if p.Kind != "" {
		facts = slices.Insert(facts, 1, "kind "+text.Shorten(escape(string(p.Kind)), minWidth/2))
	}
	if p.Run != "" {
		facts = append(facts, "run "+text.Shorten(escape(p.Run), minWidth/2))
	}
	return strings.Join(facts, " · ")
}

func (p *page) absent() {
	if len(p.missing) > 0 {
		p.line("")
		p.paragraph("", "Not in the record: "+strings.Join(p.missing, ", ")+".")
	}
}

// sentence adds an upper-case letter and a period.
func sentence(words string) string { return strings.ToUpper(words[:1]) + words[1:] + "." }

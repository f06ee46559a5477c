package output

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/explain"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/show/typical"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Evidence is what supports a finding.
type Evidence struct {
	Finding  *provenance.Finding
	Examples []*provenance.Record                      // the worst first; none for a lasting change
	Twin     *provenance.Record                        // a typical execution like the first example, or nil
	Differs  *contrast.Explanation                     // difference from other calls; nil for a lasting change
	Unit     trace.Unit                                // of times
	Begin    trace.Ticks                               // of the run
	Threads  map[trace.RankKey]map[trace.Thread]string // known names of the threads of ranks
	Slow     *api.SlowEvidence                         // of a slow peer; else nil
}

// evidenceJSON is the evidence for programs.
type evidenceJSON struct {
	*provenance.Finding
	Executions []exampleJSON     `json:"executions"`
	Twin       *exampleJSON      `json:"twin"`
	Limit      *float64          `json:"limit_us"` // flagged above; null if the detector has none
	Differs    []differenceJSON  `json:"differs"`
	WrongIf    string            `json:"wrong_if"`
	Slow       *api.SlowEvidence `json:"slow_peer,omitempty"`
}

// differenceJSON is a field in which the calls differ from others, with the names of
// api.ExplainField.
type differenceJSON struct {
	Name    string  `json:"name"`
	Values  string  `json:"values"`
	With    int     `json:"with"`
	Of      int     `json:"of"`
	Rest    string  `json:"rest"`
	Bits    float64 `json:"bits"`
	Chance  float64 `json:"chance"`
	Notable bool    `json:"notable"`
}

type exampleJSON struct {
	Event      string       `json:"event_id"`
	Rank       trace.Rank   `json:"rank"`
	Thread     trace.Thread `json:"thread"`
	ThreadName string       `json:"thread_name,omitempty"`
	Host       string       `json:"host"`
	Func       string       `json:"function"`
	Start      float64      `json:"start_s"`
	Took       float64      `json:"own_us"`
	Lost       float64      `json:"lost_us"`
	Why        string       `json:"why,omitempty"`
}

// threadText returns the name of the thread, or else its number.
func (x *exampleJSON) threadText() string {
	return cmp.Or(text.OneLine(x.ThreadName), strconv.FormatUint(uint64(x.Thread), 10))
}

func (e *Evidence) example(r *provenance.Record) exampleJSON {
	return exampleJSON{
		r.EventID, r.RID, r.TID, e.Threads[trace.RankKey{Program: r.PID, Rank: r.RID}][r.TID], text.Host(r.Hostname), r.Func,
		e.Unit.Seconds(r.Entry - e.Begin), e.Unit.Micros(r.RuntimeExclusive),
		e.Unit.Micros(r.LostTime), r.Why,
	}
}

// Answer returns the evidence as an answer. Its rows are the examples.
func (e *Evidence) Answer() *Answer {
	all := evidenceJSON{
		Finding: e.Finding, Executions: []exampleJSON{}, Differs: []differenceJSON{}, WrongIf: wrongIf(e.Finding), Slow: e.Slow,
	}
	if e.Slow != nil {
		all.WrongIf = e.Slow.WrongIf
	}
	for _, r := range e.Examples {
		all.Executions = append(all.Executions, e.example(r))
	}
	if e.Twin != nil {
		all.Twin = new(e.example(e.Twin))
	}
	if e.Differs != nil {
		for i := range e.Differs.Fields {
			c := &e.Differs.Fields[i]
			all.Differs = append(all.Differs, differenceJSON{c.Name, c.Values, c.With, c.Of, c.Rest, c.Bits, c.Chance, c.Notable})
		}
	}
	if len(e.Examples) > 0 && e.Finding.Kind != provenance.Interference {
		if t := typical.Read(e.Examples[0].AlgoParams); t != nil && t.Limits {
			all.Limit = new(t.Usual[len(t.Usual)-1].High / e.Unit.Micros(1)) // in ticks, as the finding
		}
	}
	rows := rowsOf(columns("event_id rank:int thread:int thread_name host function start_s:float own_us:int lost_us:int why"), all.Executions,
		func(x *exampleJSON) []any {
			return []any{
				x.Event, x.Rank, x.Thread, provdb.OrNull(x.ThreadName), provdb.OrNull(x.Host), x.Func, x.Start, x.Took, x.Lost, provdb.OrNull(x.Why),
			}
		})
	answer := &Answer{Text: func(w io.Writer) error { return e.write(w, &all) }, JSON: ticksJSON{e.Unit, all}, Rows: rows}
	if e.Slow != nil {
		answer.Markdown = func(w io.Writer) error { return e.writeSlowMarkdown(w, rows) }
	}
	return answer
}

// writeSlowMarkdown writes the evidence of a slow peer, and its examples.
func (e *Evidence) writeSlowMarkdown(w io.Writer, examples *provdb.Rows) error {
	fmt.Fprintf(w, "## Finding %d: %s\n\n", e.Finding.Number, text.SingleSpaced(e.Finding.Summary))
	fmt.Fprintf(w, "- Evidence: %s.\n- It is wrong if %s.\n", e.Slow.Strength, e.Slow.WrongIf)
	if err := markdownSheet(e.Slow).writeAll(w); err != nil || len(e.Examples) == 0 {
		return err
	}
	fmt.Fprint(w, "\n### Examples\n\n")
	return writeMarkdown(w, examples)
}

// wrongIf returns the condition under which a finding is wrong.
func wrongIf(x *provenance.Finding) string {
	switch x.Kind {
	case provenance.RecurringMode:
		return "the slow calls do other work by design, such as every hundredth step that writes output"
	case provenance.LastingChange:
		if !x.IsChange() {
			return "these ranks had other work than the rest at that time, in a way that the trace does not show"
		}
		return "the program's work changed at that time, as when it refines its mesh"
	case provenance.Interference:
		if x.Form == provenance.Recording {
			return "the program itself does something else whenever a step of the trace ends"
		}
		return "the functions that were hit share a cause inside the program, such as a lock or paging"
	case provenance.SlowPlace:
		return ranks.WrongIf(new(provenance.SlowPeer))
	case provenance.Waiting:
		return "the calls waited for something outside the trace, such as a file system or another program"
	case provenance.ExcessWork:
		return "the program means these calls to do more, such as for a larger part of the data"
	}
	if x.Form == provenance.Rare {
		return "the program means to make these calls, such as for a checkpoint"
	}
	return "these calls did more work than others of the function, in a way that the trace does not show"
}

// lateWords describe what was late.
var lateWords = map[provenance.Late]string{
	provenance.LateHost:          "the host: code on a processor",
	provenance.LateDevice:        "the device: a GPU, or calls that wait for it",
	provenance.LateCommunication: "communication between ranks",
}

func (e *Evidence) write(w io.Writer, all *evidenceJSON) error {
	x := e.Finding
	fmt.Fprintf(w, "Finding %d, %s, %s: %s\n\n", x.Number, x.Kind, x.Status, text.SingleSpaced(x.Summary))
	fmt.Fprintf(w, "  lost        %s, %s of the time of all ranks\n", costOf(e.Unit, x), text.Percent(100*x.Share))
	if x.Kind == provenance.Interference {
		fmt.Fprintf(w, "  delays      %s, typically %s\n", text.Int(x.Calls), text.Duration(e.Unit.MicrosOf(x.Actual)))
	} else if x.Kind == provenance.ExcessWork && x.OfPeers() || x.Form == provenance.Rare {
		fmt.Fprintf(w, "  calls       %s, typically %s\n", text.Int(x.Calls), text.Duration(e.Unit.MicrosOf(x.Actual)))
	} else if x.Calls > 0 {
		fmt.Fprintf(w, "  calls       %s of %s, typically %s instead of %s\n",
			text.Int(x.Calls), text.Int(x.OfCalls), text.Duration(e.Unit.MicrosOf(x.Actual)), text.Duration(e.Unit.MicrosOf(x.Expected)))
	}
	if x.Late != "" {
		fmt.Fprintf(w, "  late        %s\n", lateWords[x.Late])
	}
	if x.Path != "" {
		fmt.Fprintf(w, "  call path   %s\n", text.SingleSpaced(x.Path))
	}
	if x.Reason != "" {
		fmt.Fprintf(w, "  withdrawn   %s\n", text.SingleSpaced(x.Reason))
	}
	if s := e.Slow; s != nil {
		if s.Slow.Saved > 0 {
			fmt.Fprintf(w, "  what if     like its peers, the run would be %s (%s) shorter\n", text.Duration(s.Slow.Saved),
				text.Percent(100*s.Slow.Share))
		}
		fmt.Fprintf(w, "  evidence    %s\n", s.Strength)
	}
	fmt.Fprintf(w, "  confidence  %.3g; it is wrong if %s\n", x.Confidence, all.WrongIf)
	if e.Slow != nil {
		if err := textSheet(e.Slow).writeAll(w); err != nil {
			return err
		}
	}
	if len(e.Examples) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nExamples (chimbuko event shows one)\n\n")
	table := columns("event rank:int thread host start_s:float own_us:int lost_us:int function")
	shown := all.Executions
	if all.Twin != nil {
		shown = append(slices.Clip(shown), *all.Twin)
	}
	err := writeTable(w, rowsOf(table, shown, func(x *exampleJSON) []any {
		return []any{x.Event, x.Rank, x.threadText(), provdb.OrNull(x.Host), x.Start, x.Took, x.Lost, x.Func}
	}))
	if err != nil {
		return err
	}
	if all.Twin != nil {
		fmt.Fprintf(w, "\n%s, the last one, is typical.\n", all.Twin.Event)
	}
	switch {
	case x.Kind == provenance.Interference:
	case x.OfPeers(): // its examples may be of any function, and the comparison does not use them
		return nil
	case x.Kind == provenance.ExcessWork:
		if err := writeMade(w, e.Examples[0].AlgoParams); err != nil {
			return err
		}
	default:
		if err := explain.WriteModel(w, e.Examples[0], 100); err != nil {
			return err
		}
		if all.Limit != nil {
			fmt.Fprintf(w, "\n%s\n", e.limitText(*all.Limit))
		}
	}
	if e.Differs == nil {
		return nil
	}
	fmt.Fprint(w, "\nWhat differs: ")
	return writeExplanation(w, e.Differs)
}

// limitText describes which calls are flagged: those above the limit of the first example's function.
func (e *Evidence) limitText(limit float64) string {
	first, of, shorter := e.Examples[0], "", ""
	for _, r := range e.Examples {
		if r.PID != first.PID || r.Func != first.Func {
			of = " of " + text.OneLine(first.Func)
		}
		if r.OnlyExplainsWaits() {
			shorter = ", and shorter ones that made other ranks wait or waited for an anomaly"
		}
	}
	return fmt.Sprintf("Calls%s above %s are flagged%s.", of, text.Duration(e.Unit.MicrosOf(limit)), shorter)
}

// writeMade writes how many calls the calls of a function made.
func writeMade(w io.Writer, params json.RawMessage) error {
	var model struct {
		Made [][3]int64 `json:"calls_made"`
		Most int64      `json:"most_calls"`
	}
	if json.Unmarshal(params, &model) != nil || len(model.Made) == 0 {
		return nil // another model
	}
	fmt.Fprint(w, "\nCalls made by the calls of the function\n\n")
	err := writeTable(w, rowsOf(columns("from:int to:int calls:int"), model.Made, func(x *[3]int64) []any { return []any{x[0], x[1], x[2]} }))
	fmt.Fprintf(w, "\nCalls that make more than %s calls are flagged.\n", text.Int(model.Most))
	return err
}

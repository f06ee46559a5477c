package output

import (
	"fmt"
	"io"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Summary writes the results of a run, with its directory unless that is empty. Errors
// stick to w.
func Summary(w io.Writer, s *provdb.Info, dir string) {
	t := s.Totals
	fmt.Fprintf(w, "%s, %s of %s on %s in %.2f s (%s)\n", text.Count(t.Events, "event"), text.Count(t.Calls, "call"),
		text.Count(t.Functions, "function"), text.Count(t.Ranks, "rank"), s.Seconds, eventRate(s.EventRate))
	if len(s.Programs) > 0 {
		fmt.Fprintf(w, "%d programs by the names of their traces: %s\n", len(s.Programs), inspect.ProgramsText(s.Programs))
	}
	whose := "their"
	if t.Anomalies == 1 {
		whose = "its"
	}
	fmt.Fprintf(w, "%s stored with %s context: %s of traces became ", text.Count(t.Anomalies, "anomaly"), whose, text.Bytes(s.TraceBytes))
	if s.Store != "" {
		fmt.Fprintf(w, "records on %s\n", s.Store)
	} else {
		fmt.Fprintf(w, "%s of records", text.Bytes(s.RecordBytes))
		if s.Reduction >= 1 {
			fmt.Fprintf(w, " (1 of %.1f bytes)", s.Reduction)
		}
		fmt.Fprintln(w)
	}
	r := s.Review
	fmt.Fprintf(w, "review: %s confirmed, %s found at the end, %s withdrawn; %s calls not judged (too few samples)\n",
		text.Int(r.Confirmed), text.Int(r.Promoted), text.Int(r.Withdrawn), text.Int(r.NotJudged))
	for _, why := range s.Incomplete {
		fmt.Fprintf(w, "incomplete: %s\n", text.SingleSpaced(why))
	}
	if s.Efficiency != "" {
		fmt.Fprintf(w, "\n%s\n", s.Efficiency)
	}
	worstFindings(w, s)
	topFunctions(w, s)
	changes(w, s)
	notes(w, s.Notes)
	if dir == "" {
		return
	}
	fmt.Fprintf(w, "\nThe run is in %s.\n", dir)
	if s.Settings["records"] != "json" {
		fmt.Fprintf(w, "Next: chimbuko findings %[1]s; chimbuko anomalies %[1]s; chimbuko event %[1]s ID\n", dir)
	}
}

// eventRate formats a number of events per second.
func eventRate(rate float64) string {
	if rate < 1e5 {
		return text.ThreeDigits(rate/1e3) + " thousand events/s"
	}
	return fmt.Sprintf("%.1f million events/s", rate/1e6)
}

func notes(w io.Writer, list []tally.Note) {
	for _, n := range list {
		fmt.Fprintf(w, "%s: %s %s\n", n.Severity, text.Int(n.Count), n.Sentence)
	}
}

var topColumns = columns("lost_us:int anomalies:int typical_us:float ranks hosts first_s:float last_s:float function")

func topFunctions(w io.Writer, s *provdb.Info) {
	if len(s.Top) == 0 {
		return
	}
	fmt.Fprintf(w, "\nFunctions that lost most time to anomalies, without waits, compared with their typical time:\n\n")
	_ = writeTable(w, executions.InMicros(s.Unit, rowsOf(topColumns, s.Top, func(f *provdb.TopFunction) []any { // errors stick to w
		return []any{
			f.LostUS, f.Anomalies, f.TypicalUS, text.Ranges(f.Ranks), text.Hosts(f.Hosts), since(s, trace.Ticks(f.FirstUS)),
			since(s, trace.Ticks(f.LastUS)), f.Function,
		}
	})))
	fmt.Fprintf(w, "\nTimes are relative to the start of the run, at %s.\n", text.UTC(s.Unit.Time(s.Totals.Begin)))
}

// since returns a time in seconds since the start of the run.
func since(s *provdb.Info, at trace.Ticks) float64 { return s.Unit.Seconds(at - s.Totals.Begin) }

// changes writes the functions whose typical time changed during the run.
func changes(w io.Writer, s *provdb.Info) {
	for i, c := range s.Changes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		verb, when := "takes", fmt.Sprintf("since +%.3f s", since(s, c.Since))
		switch {
		case c.Until > 0:
			verb, when = "took", fmt.Sprintf("from +%.3f s to +%.3f s", since(s, c.Since), since(s, c.Until))
		case c.Kind == "drift":
			verb = "drifted to"
		}
		why := ""
		if c.ByWork() {
			why = fmt.Sprintf(", because it makes %s calls instead of %s", text.ThreeDigits(c.MadeAfter), text.ThreeDigits(c.MadeBefore))
		}
		if c.Unrecorded != "" {
			why = fmt.Sprintf(", because calls of %s are no longer recorded", text.ShortName(c.Unrecorded))
		}
		fmt.Fprintf(w, "changed: %s %s %s instead of %s %s%s (%s calls)\n", text.SingleSpaced(c.Function), verb,
			text.Duration(s.Unit.MicrosOf(c.After)), text.Duration(s.Unit.MicrosOf(c.Before)), when, why, text.Int(c.Calls))
	}
}

// Import writes the results of an import. Errors stick to w.
func Import(w io.Writer, s *provdb.Info, dir string, size int64) {
	c := s.Imported
	fmt.Fprintf(w, "%s anomalies, %s typical executions and %s metadata of %s steps; %s functions, %s counters, %s models\n",
		text.Int(c.Anomalies), text.Int(c.Typical), text.Int(c.Metadata), text.Int(c.Steps), text.Int(c.Functions), text.Int(c.Counters),
		text.Int(c.Models))
	notes(w, s.Notes)
	if s.Store == "" {
		fmt.Fprintf(w, "\nThe run is in %s: %s.\n", dir, text.Bytes(size))
		return
	}
	fmt.Fprintf(w, "\nThe run is in %s, its records are on %s.\n", dir, s.Store)
}

// AnalyzerSummary is the result of an analyzer of a live run.
type AnalyzerSummary struct {
	Node    string  `json:"node"`
	Reading float64 `json:"reading_seconds"` // until all traces had ended
	Seconds float64 `json:"seconds"`
	provdb.Totals
	Confirmed int64        `json:"confirmed"`
	Promoted  int64        `json:"promoted"`
	Withdrawn int64        `json:"withdrawn"`
	Records   int64        `json:"records_sent"`
	Deferred  int64        `json:"records_deferred"`
	Notes     []tally.Note `json:"notes"`
	Broken    []string     `json:"broken,omitempty"`
}

// Write writes the summary for people. Errors stick to w.
func (s *AnalyzerSummary) Write(w io.Writer) {
	fmt.Fprintf(w, "%s events, %s calls on %d ranks, read in %.2f s; %s records sent\n", text.Int(s.Events), text.Int(s.Calls), s.Ranks,
		s.Reading, text.Int(s.Records))
	fmt.Fprintf(w, "%s anomalies: %s confirmed, %s found at the end, %s withdrawn\n", text.Int(s.Anomalies), text.Int(s.Confirmed),
		text.Int(s.Promoted), text.Int(s.Withdrawn))
	notes(w, s.Notes)
}

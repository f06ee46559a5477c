package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// FindingList is a selection of the findings of a run.
type FindingList struct {
	Unit      trace.Unit           // of times
	All       []provenance.Finding // of the run
	Listed    []provenance.Finding
	Omitted   int  // findings beyond the limit
	Withdrawn bool // withdrawn ones are listed
	Complete  bool // minor ones are listed
	Notes     bool // notes are in the table; otherwise the text counts them and shows the costliest
	// Differs describes how the calls of each listed finding differ from others; empty if they do not. It
	// may be shorter than Listed.
	Differs []string
}

// listedFinding is a finding for programs.
type listedFinding struct {
	provenance.Finding
	Differs string `json:"differs,omitempty"` // how the calls differ from others, in words
}

// differs returns how the calls of the i-th listed finding differ from others.
func (l *FindingList) differs(i int) string {
	if i < len(l.Differs) {
		return text.SingleSpaced(l.Differs[i])
	}
	return ""
}

var findingColumns = columns(`finding:int kind form status severity program:int function call_path role cause:int ranks hosts
	from_s:float to_s:float calls:int of_calls:int expected_us:float actual_us:float period_s:float lost_own_us:int lost_caused_us:int
	lost_us:int share:float confidence:float summary reason examples longest_us:int worst_rank:int trend waits:int wait_ranks:int late`)

var findingTable = columns(`finding:int kind own_us:int caused_us:int total_us:int of_time calls expected_us:float actual_us:float
	ranks hosts from_s:float to over_time example function`)

// Answer returns the findings as an answer.
func (l *FindingList) Answer() *Answer {
	all := make([]listedFinding, len(l.Listed))
	for i, x := range l.Listed {
		all[i] = listedFinding{x, l.differs(i)}
	}
	return &Answer{Text: l.write, JSON: ticksJSON{l.Unit, all}, Rows: executions.InMicros(l.Unit, rowsOf(findingColumns, l.Listed,
		func(x *provenance.Finding) []any {
			var worst any = x.WorstRank
			if x.IsChange() {
				worst = nil
			}
			return []any{
				x.Number, x.Kind, provdb.OrNull(x.Form), x.Status, x.Severity, x.PID, provdb.OrNull(x.Func), provdb.OrNull(x.Path),
				provdb.OrNull(x.Role), provdb.OrNull(x.Cause), provdb.OrNull(text.Ranges(x.Ranks)),
				provdb.OrNull(strings.Join(text.KnownHosts(x.Hosts), ",")), x.From, x.To, x.Calls, x.OfCalls,
				x.Expected, x.Actual, x.Period, x.LostOwn, x.LostCaused, x.Lost, x.Share, x.Confidence, x.Summary, provdb.OrNull(x.Reason),
				provdb.OrNull(strings.Join(x.Examples, ",")), x.Longest, worst, provdb.OrNull(x.Trend), x.Waits, x.WaitRanks,
				provdb.OrNull(x.Late),
			}
		}))}
}

func (l *FindingList) write(w io.Writer) error {
	var table strings.Builder
	shown, differs := l.shown()
	if len(shown) == 0 && !l.Withdrawn && !l.Notes {
		fmt.Fprintln(w, "No findings.")
		l.footer(w)
		return nil
	}
	err := writeTable(&table, executions.InMicros(l.Unit, rowsOf(findingTable, shown, func(x *provenance.Finding) []any {
		var expected, actual, calls any = x.Expected, x.Actual, text.Int(x.Calls)
		if x.Kind == provenance.Interference || x.Form == provenance.Rare || x.OfPeers() && x.Expected == 0 {
			expected = nil
		}
		if x.Kind == provenance.SlowPlace && x.Calls == 0 { // it concerns all work
			expected, actual, calls = nil, nil, nil
		}
		return []any{
			x.Number, x.Kind, x.LostOwn, x.LostCaused, x.Lost, text.Percent(100 * x.Share), calls, expected, actual,
			provdb.OrNull(text.Ranges(x.Ranks)), provdb.OrNull(text.Hosts(x.Hosts)), x.From, until(x), sparkline(x.OverTime),
			provdb.OrNull(x.Example()), provdb.OrNull(x.Func),
		}
	})))
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n") {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		if 0 < i && i <= len(shown) {
			l.remarks(w, &shown[i-1])
			if differs[i-1] != "" {
				remark(w, "%s", text.WithoutSources(differs[i-1]))
			}
		}
	}
	if l.Omitted > 0 {
		fmt.Fprintf(w, "\nand %s: give a larger --limit\n", text.Count(l.Omitted, "more finding"))
	}
	l.footer(w)
	return nil
}

// shown returns the rows of the table, and how the calls of each differ from others.
func (l *FindingList) shown() (rows []provenance.Finding, differs []string) {
	for i := range l.Listed {
		if l.Notes || !l.Listed[i].Noted() {
			rows, differs = append(rows, l.Listed[i]), append(differs, l.differs(i))
		}
	}
	return rows, differs
}

// footer counts the findings that are not listed.
func (l *FindingList) footer(w io.Writer) {
	s := provdb.NewFindingSummary(l.All)
	if s.Notes > 0 && !l.Notes && !l.Withdrawn {
		writeNotes(w, &s, "--notes")
	}
	if s.Minor > 0 && !l.Complete && !l.Withdrawn {
		fmt.Fprintf(w, "\n%s\n", minorText(s))
	}
	if s.Withdrawn > 0 && !l.Withdrawn {
		fmt.Fprintf(w, "\n%s\n", withdrawnText(s))
	}
}

func minorText(s provdb.FindingSummary) string {
	cost, together := "cost", " together"
	if s.Minor == 1 {
		cost, together = "costs", ""
	}
	return fmt.Sprintf("%s %s %s of the time%s (--all lists %s)", text.Count(s.Minor, "minor finding"), cost,
		text.Percent(100*s.MinorShare), together, pronoun(s.Minor))
}

// writeNotes writes the number of notes, the command that lists them, and the costliest ones.
func writeNotes(w io.Writer, s *provdb.FindingSummary, command string) {
	fmt.Fprintf(w, "\n%s about normal behavior, %s of the time (%s lists %s)\n", text.Count(s.Notes, "note"),
		text.Percent(100*s.NotesShare), command, pronoun(s.Notes))
	for i := range s.WorstNotes {
		x := &s.WorstNotes[i]
		fmt.Fprintf(w, "  %s: %s of the time\n", x.Summary, text.Percent(100*x.Share))
	}
}

func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func withdrawnText(s provdb.FindingSummary) string {
	return fmt.Sprintf("%s withdrawn, worth %s of the time (--withdrawn lists %s)", wereText(s.Withdrawn),
		text.Percent(100*s.WithdrawnShare), pronoun(s.Withdrawn))
}

func wereText(n int) string {
	if n == 1 {
		return "1 finding was"
	}
	return text.Int(n) + " findings were"
}

// remarks writes details below the line of a finding.
func (l *FindingList) remarks(w io.Writer, x *provenance.Finding) {
	line := func(format string, args ...any) { remark(w, format, args...) }
	switch {
	case x.Status == provenance.Withdrawn:
		line("withdrawn: %s", x.Reason)
		return
	case x.Kind == provenance.RecurringMode, x.Kind == provenance.Interference, x.Kind == provenance.LastingChange,
		x.OfPeers(), x.Noted():
		line("%s", x.Summary)
		return
	case x.Cause > 0:
		line("waited because of finding %d, %s", x.Cause, cmp.Or(text.SingleSpaced(l.All[x.Cause-1].Func), string(l.All[x.Cause-1].Kind)))
	}
	if x.Waits > 0 {
		line("and made %s lose %s of it%s", waitsText(x.Waits, x.WaitRanks), micros(l.Unit, x.LostCaused), l.victims(x))
	}
	switch {
	case x.Cause > 0:
	case x.Role == provenance.Victim:
		line("waited for a late rank; the cause is unknown")
	case x.Role == provenance.Culprit && x.Kind == provenance.Waiting:
		line("messages were late, but no anomaly of their senders explains it")
	case x.Form == provenance.Burst:
		line("in bursts")
	case x.Form == provenance.Rare:
		line("the function is rarely called")
	case len(x.Ranks) > 1 && x.WorstTime > x.LostOwn/2:
		line("rank %d lost %s of it", x.WorstRank, micros(l.Unit, x.WorstTime))
	}
}

// remark writes a line below that of a finding.
func remark(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "         "+format+"\n", args...)
}

// victims lists the functions that waited because of a finding.
func (l *FindingList) victims(x *provenance.Finding) string {
	var names []string
	counts := make(map[string]int64)
	for i := range l.All {
		if v := &l.All[i]; v.Cause == x.Number {
			if counts[v.Func] == 0 {
				names = append(names, v.Func)
			}
			counts[v.Func] += v.Calls
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for i, name := range names {
		names[i] = text.SingleSpaced(name) + " " + text.Int(counts[name])
	}
	return ": " + strings.Join(names, ", ")
}

// micros formats a duration.
func micros(unit trace.Unit, t trace.Ticks) string { return text.Duration(unit.Micros(t)) }

// costOf returns the lost time of a finding, with its parts if it made others wait.
func costOf(unit trace.Unit, x *provenance.Finding) string {
	if x.LostCaused == 0 {
		return micros(unit, x.Lost)
	}
	return fmt.Sprintf("%s (%s own, %s caused)", micros(unit, x.Lost), micros(unit, x.LostOwn), micros(unit, x.LostCaused))
}

// until returns the end of a finding for a table.
func until(x *provenance.Finding) string {
	if x.To == nil {
		return "ongoing"
	}
	return fmt.Sprintf("%+.3f s", *x.To)
}

func waitsText(waits, ranks int64) string {
	return fmt.Sprintf("%s on %s", text.Count(waits, "wait"), text.Count(ranks, "rank"))
}

// worstFindings writes the costliest findings of a run.
func worstFindings(w io.Writer, s *provdb.Info) {
	f := &s.Findings
	switch count := text.Count(f.Count, "finding"); {
	case f.Count == 0:
		fmt.Fprintln(w, "\nNo findings.")
	case f.Count == 1:
		fmt.Fprintf(w, "\n%s:\n\n", count)
	case f.Count == len(f.Worst):
		fmt.Fprintf(w, "\n%s, the costliest first:\n\n", count)
	default:
		fmt.Fprintf(w, "\nThe %d costliest of %s:\n\n", len(f.Worst), count)
	}
	for i := range f.Worst {
		x := &f.Worst[i]
		fmt.Fprintf(w, "%3d. %s: lost %s, %s of the time\n", x.Number, x.Summary, costOf(s.Unit, x), text.Percent(100*x.Share))
	}
	if f.Notes > 0 {
		writeNotes(w, f, "findings --notes")
	}
	if f.Minor > 0 {
		fmt.Fprintf(w, "\n%s\n", minorText(*f))
	}
	if f.Withdrawn > 0 {
		fmt.Fprintf(w, "\n%s\n", withdrawnText(*f))
	}
}

// LinkText describes how an anomaly of a run with a unit depends on others. culprit may be nil.
func LinkText(unit trace.Unit, l *provenance.Link, culprit *executions.Execution) string {
	var by executions.Execution
	if culprit != nil {
		by = *culprit
	}
	words := ""
	if s := l.Sentence(unit, by.Function, by.Rank, by.Host); s != "" {
		words = s + ". "
	}
	if l.Culprit != "" {
		words += "The culprit is event " + l.Culprit + ". "
	}
	return fmt.Sprintf("%sFinding %d.", words, l.Finding)
}

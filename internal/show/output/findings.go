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

// FindingList is some findings of a run.
type FindingList struct {
	All     []provenance.Finding // of the run
	Listed  []provenance.Finding
	Omitted int          // findings that are left out at the end
	Begin   trace.Micros // of the run
}

var findingColumns = columns(`finding:int kind role cause:int lost_us:int anomalies:int longest_us:int
	waits:int wait_ranks:int waits_lost_us:int ranks hosts worst_rank:int first_s:float last_s:float
	trend before_us:float after_us:float example program:int function call_path`)

var findingTable = columns("finding:int kind lost_us:int anomalies ranks hosts from_s:float to_s:float over_time trend example function")

// Answer returns the findings as an answer.
func (l *FindingList) Answer() *Answer {
	return &Answer{Text: l.write, Rows: rowsOf(findingColumns, l.Listed, func(x *provenance.Finding) []any {
		var worst, before, after any = x.WorstRank, nil, nil
		if x.IsChange() {
			worst, before, after = nil, x.Before, x.After
		}
		return []any{
			x.Number, x.Kind, optional(x.Role), optional(x.Cause), x.LostTime, x.Anomalies, x.Longest,
			x.Waits, x.WaitRanks, x.WaitTime, optional(text.Ranges(x.Ranks)), optional(strings.Join(x.Hosts, ",")), worst, l.after(x.First),
			l.after(x.Last), optional(x.Trend), before, after, optional(x.Example), x.PID, x.Func, optional(x.Path),
		}
	})}
}

// after returns a time in seconds since the beginning of the run.
func (l *FindingList) after(t trace.Micros) float64 { return float64(t-l.Begin) / 1e6 }

func (l *FindingList) write(w io.Writer) error {
	var table strings.Builder
	err := writeTable(&table, rowsOf(findingTable, l.Listed, func(x *provenance.Finding) []any {
		return []any{
			x.Number, x.Kind, x.LostTime, text.Int(x.Anomalies), optional(text.Ranges(x.Ranks)), optional(text.Hosts(x.Hosts)),
			l.after(x.First), l.after(x.Last), sparkline(x.OverTime), optional(x.Trend), optional(x.Example), x.Func,
		}
	}))
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n") {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		if 0 < i && i <= len(l.Listed) {
			l.remarks(w, &l.Listed[i-1])
		}
	}
	if l.Omitted > 0 {
		fmt.Fprintf(w, "\nand %s: give a larger --limit\n", text.Count(l.Omitted, "more finding"))
	}
	return nil
}

// remarks writes the waits and the cause of a finding below its line.
func (l *FindingList) remarks(w io.Writer, x *provenance.Finding) {
	line := func(format string, args ...any) { fmt.Fprintf(w, "       "+format+"\n", args...) }
	if x.Waits > 0 {
		line("and made %s lose %s%s", waitsText(x.Waits, x.WaitRanks), micros(x.WaitTime), l.victims(x))
	}
	switch {
	case x.IsChange():
		line("takes %s instead of %s", text.Duration(x.After), text.Duration(x.Before))
	case x.Cause > 0:
		line("waited because of finding %d, %s", x.Cause, text.SingleSpaced(l.All[x.Cause-1].Func))
	case x.Role == provenance.Victim:
		line("waited for a late rank; the cause is unknown")
	case x.Role == provenance.Culprit && x.Kind == provenance.CommWait:
		line("messages were late, but no anomaly of their senders explains it")
	case len(x.Ranks) > 1 && x.WorstTime > x.LostTime/2:
		line("rank %d lost %s of it", x.WorstRank, micros(x.WorstTime))
	}
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
			counts[v.Func] += v.Anomalies
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
func micros(t trace.Micros) string { return text.Duration(float64(t)) }

func waitsText(waits, ranks int64) string {
	return fmt.Sprintf("%s on %s", text.Count(waits, "wait"), text.Count(ranks, "rank"))
}

// worstFindings writes the worst findings of a run.
func worstFindings(w io.Writer, s *provdb.Info) {
	if s.Findings.Count == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s; the worst:\n\n", text.Count(s.Findings.Count, "finding"))
	for i := range s.Findings.Worst {
		x := &s.Findings.Worst[i]
		fmt.Fprintf(w, "%3d. %s\n", x.Number, findingText(x))
	}
}

// findingText describes a finding in a line.
func findingText(x *provenance.Finding) string {
	if x.IsChange() {
		return fmt.Sprintf("%s: %s, %s instead of %s", text.SingleSpaced(x.Func), x.Kind, text.Duration(x.After), text.Duration(x.Before))
	}
	where := text.Count(len(x.Ranks), "rank")
	if len(x.Ranks) == 1 {
		where = fmt.Sprintf("rank %d", x.Ranks[0])
	}
	line := fmt.Sprintf("%s: %s, %s on %s lost %s", text.SingleSpaced(x.Func), x.Kind, text.Int(x.Anomalies), where, micros(x.LostTime))
	if x.Waits > 0 {
		line += fmt.Sprintf(" and made %s lose %s", waitsText(x.Waits, x.WaitRanks), micros(x.WaitTime))
	}
	return line
}

// LinkText describes how an anomaly depends on others. culprit may be nil.
func LinkText(l *provenance.Link, culprit *executions.Execution) string {
	var by executions.Execution
	if culprit != nil {
		by = *culprit
	}
	words := ""
	if s := l.Sentence(by.Function, by.Rank, by.Host); s != "" {
		words = s + ". "
	}
	if l.Culprit != "" {
		words += "The culprit is event " + l.Culprit + ". "
	}
	return fmt.Sprintf("%sFinding %d.", words, l.Finding)
}

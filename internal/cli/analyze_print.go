package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// printSummary writes the results of a run for people, with its directory unless out is
// empty. Errors stick to w.
func printSummary(w io.Writer, s *provdb.Info, out string) {
	t := s.Totals
	fmt.Fprintf(w, "%s events, %s calls of %d functions on %d ranks in %.2f s (%.1f million events/s)\n",
		grouped(t.Events), grouped(t.Calls), t.Functions, t.Ranks, s.Seconds, s.EventRate/1e6)
	fmt.Fprintf(w, "%s anomalies kept with all around them: %s of traces became ", grouped(t.Anomalies), sizeText(s.TraceBytes))
	if s.Store != "" {
		fmt.Fprintf(w, "records on %s\n", s.Store)
	} else {
		fmt.Fprintf(w, "%s of records (1 of %.1f bytes)\n", sizeText(s.RecordBytes), s.Reduction)
	}
	r := s.Review
	fmt.Fprintf(w, "review: %s confirmed, %s promoted, %s withdrawn; %s calls not judged (too few samples)\n",
		grouped(r.Confirmed), grouped(r.Promoted), grouped(r.Withdrawn), grouped(r.NotJudged))
	for _, why := range s.Incomplete {
		fmt.Fprintf(w, "incomplete: %s\n", oneLine(why))
	}
	printWorstIssues(w, s)
	printTop(w, s)
	printChanges(w, s)
	for _, n := range s.Notes {
		fmt.Fprintf(w, "%s: %s %s\n", n.Severity, grouped(n.Count), n.Sentence)
	}
	if out == "" {
		return
	}
	fmt.Fprintf(w, "\nThe run is in %s.\n", out)
	if s.Settings["records"] != "json" {
		fmt.Fprintf(w, "Ask it: chimbuko issues %[1]s; chimbuko anomalies %[1]s; chimbuko event %[1]s ID\n", out)
	}
}

func printTop(w io.Writer, s *provdb.Info) {
	if len(s.Top) == 0 {
		return
	}
	fmt.Fprintf(w, "\nFunctions that lost most time to anomalies, above what is typical of them:\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LOST\tANOMALIES\tTYPICAL\tRANKS\tHOSTS\tFIRST\tLAST\tFUNCTION")
	begin := s.Top[0].FirstUS
	for _, f := range s.Top {
		begin = min(begin, f.FirstUS)
	}
	for _, f := range s.Top {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t+%.3f s\t+%.3f s\t%s\n", microsText(float64(f.LostUS)), grouped(f.Anomalies), microsText(f.TypicalUS),
			rankList(f.Ranks), hostList(f.Hosts), float64(f.FirstUS-begin)/1e6, float64(f.LastUS-begin)/1e6, oneLine(f.Function))
	}
	_ = t.Flush() // errors stick to w
	fmt.Fprintf(w, "\nTimes count from the first anomaly, at %s.\n", utc(begin))
}

// printChanges tells which functions usually take another time than before.
func printChanges(w io.Writer, s *provdb.Info) {
	for i, c := range s.Changes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		how := "takes"
		if c.Kind == "drift" {
			how = "has come to take"
		}
		fmt.Fprintf(w, "changed: %s %s %s instead of %s since %s (%s calls)\n", oneLine(c.Function), how,
			microsText(c.After), microsText(c.Before), utc(int64(c.Since)), grouped(int64(c.Calls)))
	}
}

// microsText writes a time in a unit that suits it.
func microsText(us float64) string {
	switch {
	case us < 1e3:
		return strconv.FormatFloat(us, 'f', 0, 64) + " us"
	case us < 1e6:
		return strconv.FormatFloat(us/1e3, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(us/1e6, 'f', 2, 64) + " s"
}

// rankList writes ranks as 0-3,7.
func rankList(ranks []trace.Rank) string { return text.Ranges(ranks) }

// hostsShown is how many hosts are named of many.
const hostsShown = 3

// hostList names hosts; of many only the first.
func hostList(hosts []string) string {
	list := oneLine(strings.Join(hosts[:min(hostsShown, len(hosts))], ","))
	if len(hosts) > hostsShown {
		list += fmt.Sprintf(",... (%d)", len(hosts))
	}
	return list
}

var numerals = []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

// counted formats a number of things in words.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	if n < len(numerals) {
		return numerals[n] + " " + thing
	}
	return grouped(int64(n)) + " " + thing
}

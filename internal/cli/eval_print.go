package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// printEval writes a score for people. Errors stick to w.
func printEval(w io.Writer, s *truth.Score) {
	ratio := func(value float64, of int) string {
		if of == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", 100*value)
	}
	exact := len(s.Troubles) > 0
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "FOUND/PLANTED\tOTHER FLAGS\tPER MILLION CALLS\tPRECISION\tRECALL\t")
	if exact {
		fmt.Fprint(t, "F1\tEXCUSED FLAGS\t")
	}
	fmt.Fprintf(t, "\n%d/%d\t%s\t%.1f\t%s\t%s\t", s.Found, s.Planted, grouped(int64(s.Other)), s.OtherPerMillion,
		ratio(s.Precision, s.Found+s.Other), ratio(s.Recall, s.Planted))
	if exact {
		fmt.Fprintf(t, "%s\t%s\t", ratio(s.F1, s.Planted+s.Other), grouped(int64(s.Excused)))
	}
	fmt.Fprintln(t)
	_ = t.Flush() // errors stick to w
	if exact {
		printTroubles(w, s.Troubles)
	}
	printMissed(w, s.MissedList)
}

func printTroubles(w io.Writer, troubles []truth.TroubleScore) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TROUBLE\tKIND\tWHERE\tFOUND/PLANTED\tVICTIMS FLAGGED\tAFTER")
	for i := range troubles {
		s := &troubles[i]
		after := "not found"
		if s.Seen {
			after = fmt.Sprintf("%.3f s", float64(s.After)/1e6)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d/%d\t%d/%d\t%s\n", oneLine(s.Name), oneLine(s.Kind), whereText(&s.Trouble),
			s.Found, s.Planted, s.VictimsFlagged, s.Victims, after)
	}
	_ = t.Flush() // errors stick to w
}

// whereText writes the place of a trouble as node02: 8-11; of many hosts only some.
func whereText(t *truth.Trouble) string {
	hosts, ranks := hostList(t.Hosts), rankList(t.Ranks)
	switch {
	case hosts == "" && ranks == "":
		return "-"
	case hosts == "":
		return "ranks " + ranks
	case ranks == "":
		return hosts
	}
	return hosts + ": " + ranks
}

// missedShown is how many of the calls are shown that an exact truth lists; there
// may be very many.
const missedShown = 20

func printMissed(w io.Writer, missed []truth.Missed) {
	if len(missed) > 0 {
		fmt.Fprintln(w)
	}
	listed := 0
	for _, m := range missed {
		injected := grouped(int64(m.Injected)) + " us injected"
		if m.Trouble != "" {
			if listed++; listed > missedShown {
				continue
			}
			injected += "  " + oneLine(m.Trouble)
		} else if m.Injected <= 0 {
			injected = "a slow kernel"
		}
		fmt.Fprintf(w, "missed: rank %d  %d.%06d  %s  %s\n", m.Rank, m.Entry/1e6, m.Entry%1e6, oneLine(m.Function), injected)
	}
	if more := listed - missedShown; more > 0 {
		fmt.Fprintf(w, "missed: %s more, all of which --json lists\n", grouped(int64(more)))
	}
}

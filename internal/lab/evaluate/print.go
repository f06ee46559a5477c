package evaluate

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// Print writes a score as tables. Errors stick to w.
func Print(w io.Writer, s *truth.Score) {
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
	fmt.Fprintf(t, "\n%d/%d\t%s\t%.1f\t%s\t%s\t", s.Found, s.Planted, text.Int(s.Other), s.OtherPerMillion,
		ratio(s.Precision, s.Found+s.Other), ratio(s.Recall, s.Planted))
	if exact {
		fmt.Fprintf(t, "%s\t%s\t", ratio(s.F1, s.Planted+s.Other), text.Int(s.Excused))
	}
	fmt.Fprintln(t)
	_ = t.Flush() // errors stick to w
	if exact {
		fmt.Fprintln(w)
		PrintTroubles(w, s.Troubles)
	}
	printMissed(w, s.MissedList)
}

// PrintTroubles writes a table of how well each trouble was found. Errors stick to w.
func PrintTroubles(w io.Writer, troubles []truth.TroubleScore) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TROUBLE\tKIND\tWHERE\tFOUND/PLANTED\tVICTIMS FLAGGED\tAFTER")
	for i := range troubles {
		s := &troubles[i]
		after := "not found"
		if s.Seen {
			after = fmt.Sprintf("%.3f s", float64(s.After)/1e6)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d/%d\t%d/%d\t%s\n", text.OneLine(s.Name), text.OneLine(s.Kind), Location(&s.Trouble),
			s.Found, s.Planted, s.VictimsFlagged, s.Victims, after)
	}
	_ = t.Flush() // errors stick to w
}

// Location formats hosts and ranks of a trouble as node02: 8-11.
func Location(t *truth.Trouble) string {
	hosts, ranks := text.Hosts(t.Hosts), text.Ranges(t.Ranks)
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

// missedShown bounds the printed calls of an exact truth, which may have very many.
const missedShown = 20

func printMissed(w io.Writer, missed []truth.Missed) {
	if len(missed) > 0 {
		fmt.Fprintln(w)
	}
	listed := 0
	for _, m := range missed {
		injected := text.Int(m.Injected) + " us injected"
		if m.Trouble != "" {
			if listed++; listed > missedShown {
				continue
			}
			injected += "  " + text.OneLine(m.Trouble)
		} else if m.Injected <= 0 {
			injected = "a slow kernel"
		}
		fmt.Fprintf(w, "missed: rank %d  %d.%06d  %s  %s\n", m.Rank, m.Entry/1e6, m.Entry%1e6, text.OneLine(m.Function), injected)
	}
	if more := listed - missedShown; more > 0 {
		fmt.Fprintf(w, "missed: %s more (--json lists all)\n", text.Int(more))
	}
}

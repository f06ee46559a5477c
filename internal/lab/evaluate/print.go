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
	printExternal(w, s.External)
	printFindings(w, s.Findings)
	printMissed(w, s.MissedList)
}

func printExternal(w io.Writer, s *truth.ExternalScore) {
	if s == nil {
		return
	}
	fmt.Fprintln(w)
	if s.Stops > 0 {
		fmt.Fprintf(w, "%d of %s found, %d named as culprit\n", s.Found, text.Count(s.Stops, "stop"), s.Named)
	}
	fmt.Fprintf(w, "%s outside troubles, %s not explained by the scheduler's record: %.1f per million calls\n",
		text.Count(s.Outside, "flag"), text.Int(s.Unexplained), s.UnexplainedPerMillion)
}

// sentence returns a summary that fits into a line.
func sentence(s string) string { return text.Shorten(text.SingleSpaced(s), 160) }

func printFindings(w io.Writer, s *truth.FindingScore) {
	if s == nil {
		return
	}
	if len(s.Troubles) > 0 {
		fmt.Fprintln(w)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TROUBLE\tLOST\tCOVERED\tPLACE\tCOSTLIEST FINDING ABOUT IT")
		for i := range s.Troubles {
			x := &s.Troubles[i]
			lost, covered, place, finding := "unknown", "-", "wrong", "none"
			if x.Lost > 0 {
				lost, covered = text.Duration(float64(x.Lost)), text.Percent(100*float64(x.Covered)/float64(x.Lost))
			}
			if x.Named {
				place = "right"
			}
			if x.Finding > 0 {
				finding = fmt.Sprintf("%d %s: %s", x.Finding, x.FindingKind, x.Summary)
			} else {
				place = "-"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", text.OneLine(x.Name), lost, covered, place, sentence(finding))
		}
		_ = t.Flush() // errors stick to w
		if s.Lost > 0 {
			fmt.Fprintf(w, "findings cover %s of %s lost, and name the right place for %d of %s\n",
				text.Percent(100*float64(s.Covered)/float64(s.Lost)), text.Duration(float64(s.Lost)), s.Named, text.Count(len(s.Troubles), "trouble"))
		}
	}
	alarms := 0
	for i := range s.Others {
		if !s.Others[i].Informational {
			alarms++
		}
	}
	fmt.Fprintf(w, "\n%s outside troubles, without interference: %s of the time\n",
		text.Count(alarms, "finding"), text.Percent(100*s.OthersShare))
	for i := range s.Others {
		x := &s.Others[i]
		kind := string(x.Kind)
		if x.Informational {
			kind += " (note)"
		}
		fmt.Fprintf(w, "  %d %s, %s: %s\n", x.Number, kind, text.Percent(100*x.Share), sentence(x.Summary))
	}
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

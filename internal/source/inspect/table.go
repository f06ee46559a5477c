package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

// Print writes a table of the files and facts about all of them. Errors stick to w.
func (info *Info) Print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "RANK\tENGINE\tSTATE\tSTEPS\tFUNCTION EVENTS\tMESSAGES\tCOUNTER "+
		"EVENTS\tTHREADS\tFUNCTIONS\tCOUNTERS\tSECONDS\tSIZE\t  TRACE")
	row := func(rank, engine, state string, c *counts, functions int, name string) {
		threads := strconv.Itoa(c.Threads)
		if c.GPUThreads > 0 {
			threads += fmt.Sprintf(" (%d GPU)", c.GPUThreads)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%.3f\t%s\t  %s\n", rank, engine, state, c.Steps,
			text.Int(c.FuncEvents), text.Int(c.CommEvents), text.Int(c.CounterEvents), threads,
			functions, c.Counters, float64(c.Last-c.First)/1e9, text.Bytes(c.Bytes), name)
	}
	for _, f := range info.Files {
		row(f.rankText(), cmp.Or(f.Engine, "-"), f.state(), &f.counts, f.Functions, f.Path)
	}
	if len(info.Files) > 1 {
		row("total", "", "", &info.Totals.counts, info.Totals.DistinctFunctions, fmt.Sprintf("%d traces", len(info.Files)))
	}
	_ = t.Flush() // errors stick to w
	fmt.Fprintln(w)
	info.printFacts(w)
}

func (info *Info) printFacts(w io.Writer) {
	if hosts := text.Hosts(info.Totals.Hosts); hosts != "" {
		fmt.Fprintf(w, "hosts:   %s\n", hosts)
	}
	var programs []string
	for _, f := range info.Files {
		if f.Program != "" && !slices.Contains(programs, f.Program) {
			programs = append(programs, f.Program)
		}
	}
	if len(programs) > 0 {
		fmt.Fprintf(w, "program: %s\n", strings.Join(programs, ", "))
	}
	if t := info.Totals; t.First > 0 {
		utc := func(ns micros) string { return time.Unix(0, int64(ns)).UTC().Format("2006-01-02 15:04:05.000000 MST") }
		fmt.Fprintf(w, "from:    %s\nto:      %s\n", utc(t.First), utc(t.Last))
	}
	for _, f := range info.Files {
		for _, r := range f.Ranks {
			fmt.Fprintf(w, "rank %d:  %s function events, %s messages, %s counter events in %s\n",
				r.Rank, text.Int(r.FuncEvents), text.Int(r.CommEvents), text.Int(r.CounterEvents), f.Path)
		}
	}
	for _, n := range info.Totals.Notes {
		fmt.Fprintf(w, "%s: %s %s\n", n.Severity, text.Int(n.Count), n.Sentence)
	}
	for _, f := range info.Files {
		for _, g := range f.Gaps {
			fmt.Fprintf(w, "%s: byte %s: %s", f.Path, text.Int(g.Offset), g.Name)
			if g.Length > 0 {
				fmt.Fprintf(w, ", %s", text.Bytes(g.Length))
			}
			fmt.Fprintln(w)
		}
	}
}

func (f *FileInfo) rankText() string {
	switch {
	case f.Rank != nil:
		return strconv.Itoa(int(*f.Rank))
	case len(f.Ranks) > 0:
		return fmt.Sprintf("%d ranks", len(f.Ranks))
	}
	return "-"
}

// state returns broken, closed or active. A killed writer leaves its trace active, so state adds
// the time since such a trace has grown.
func (f *FileInfo) state() string {
	age := time.Since(f.modified)
	silent := 0
	unit := ""
	switch {
	case f.Error != "":
		return "broken"
	case !f.Active:
		return "closed"
	case f.modified.IsZero() || age <= time.Minute:
		return "active"
	case age > 48*time.Hour:
		silent, unit = int(age.Hours()/24), "day"
	case age > 2*time.Hour:
		silent, unit = int(age.Hours()), "hour"
	default:
		silent, unit = int(age.Minutes()), "minute"
	}
	return "active, silent for " + text.Count(silent, unit)
}

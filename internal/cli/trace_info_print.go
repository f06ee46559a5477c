package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// printInfo writes the table for people. Errors stick to w.
func printInfo(w io.Writer, info *traceInfo) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "RANK\tENGINE\tSTATE\tSTEPS\tFUNCTION EVENTS\tMESSAGES\tCOUNTER "+
		"EVENTS\tTHREADS\tFUNCTIONS\tCOUNTERS\tSECONDS\tSIZE\t  TRACE")
	row := func(rank, engine, state string, c counts, functions int, name string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%.3f\t%s\t  %s\n", rank, engine, state, c.Steps,
			grouped(c.FuncEvents), grouped(c.CommEvents), grouped(c.CounterEvents), threads(c),
			functions, c.Counters, float64(c.LastUS-c.FirstUS)/1e6, sizeText(c.Bytes), name)
	}
	for _, f := range info.Files {
		row(rankText(f), orDash(f.Engine), stateText(f), f.counts, f.Functions, f.Path)
	}
	if len(info.Files) > 1 {
		row("total", "", "", info.Totals.counts, info.Totals.DistinctFunctions, fmt.Sprintf("%d traces", len(info.Files)))
	}
	_ = t.Flush() // errors stick to w
	fmt.Fprintln(w)
	printFacts(w, info)
}

func printFacts(w io.Writer, info *traceInfo) {
	if len(info.Totals.Hosts) > 0 {
		fmt.Fprintf(w, "hosts:   %s\n", strings.ReplaceAll(hostList(info.Totals.Hosts), ",", ", "))
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
	if t := info.Totals; t.FirstUS > 0 {
		fmt.Fprintf(w, "from:    %s\nto:      %s\n", utc(t.FirstUS), utc(t.LastUS))
	}
	for _, f := range info.Files {
		for _, r := range f.Ranks {
			fmt.Fprintf(w, "rank %d:  %s function events, %s messages, %s counter events in %s\n",
				r.Rank, grouped(r.FuncEvents), grouped(r.CommEvents), grouped(r.CounterEvents), f.Path)
		}
	}
	for _, n := range info.Totals.Notes {
		fmt.Fprintf(w, "%s: %s %s\n", n.Severity, grouped(n.Count), n.Sentence)
	}
}

func utc(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05.000000 MST") }

func rankText(f *fileInfo) string {
	switch {
	case f.Rank != nil:
		return strconv.Itoa(int(*f.Rank))
	case len(f.Ranks) > 0:
		return fmt.Sprintf("%d ranks", len(f.Ranks))
	}
	return "-"
}

// stateText tells whether the writer is done. One that was killed leaves its
// trace active, which its age gives away.
func stateText(f *fileInfo) string {
	switch {
	case f.err != nil:
		return "broken"
	case !f.Active:
		return "closed"
	}
	if age := time.Since(f.modified); !f.modified.IsZero() && age > time.Minute {
		return "active, silent for " + ageText(age)
	}
	return "active"
}

func ageText(d time.Duration) string {
	switch {
	case d > 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d > 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}

func threads(c counts) string {
	if c.GPUThreads > 0 {
		return fmt.Sprintf("%d (%d GPU)", c.Threads, c.GPUThreads)
	}
	return strconv.Itoa(c.Threads)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// grouped writes a number with a comma after each three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func sizeText(n int64) string {
	switch {
	case n < 1e3:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

package quality

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

// target is a target for findings, and how far it is reached.
type target struct{ text, measured string }

// Targets for findings. Those of troubles are for the report half.
const (
	leastCovered    = 0.95
	leastCoveredAll = 0.99
	leastNamed      = 0.95
	mostOutside     = 1.
	mostOutsideTime = 0.001
	mostUnexplained = 50.
	leastSame       = 0.9
)

// targetTexts returns a list item for each target.
func targetTexts(results []*FindingResult) (lines []string) {
	var all FindingCounts
	for _, r := range results {
		all.Add(&r.Report)
	}
	ofClean := func(of func(*FindingCounts) (float64, bool)) func(*FindingResult) (float64, bool) {
		return func(r *FindingResult) (float64, bool) {
			c := r.All()
			v, ok := of(&c)
			return v, ok && c.Troubled == 0
		}
	}
	for _, t := range []target{
		{
			fmt.Sprintf("at least %g %% of the lost time covered in each data set", 100*leastCovered),
			reached(results, func(r *FindingResult) (float64, bool) { return r.Report.covered() },
				func(v float64) bool { return v >= leastCovered }, percentage),
		},
		{fmt.Sprintf("at least %g %% of all lost time covered", 100*leastCoveredAll), percentage(all.covered()) + " %"},
		{
			fmt.Sprintf("at least %g %% of the troubles named correctly", 100*leastNamed),
			fmt.Sprintf("%s %% (%s; %d minor ones do not count)", percentage(all.named()), ratio(all.Named, all.Troubles), all.Minor),
		},
		{
			fmt.Sprintf("at most %g finding in a run without trouble", mostOutside),
			reached(results, ofClean((*FindingCounts).others), func(v float64) bool { return v <= mostOutside },
				func(v float64, _ bool) string { return fmt.Sprintf("%.2g", v) }),
		},
		{
			fmt.Sprintf("at most %g %% of the time of a run without trouble", 100*mostOutsideTime),
			reached(results, ofClean((*FindingCounts).othersShare), func(v float64) bool { return v <= mostOutsideTime },
				func(v float64, _ bool) string { return fmt.Sprintf("%.2g %%", 100*v) }),
		},
		{
			fmt.Sprintf("at most %g unexplained flags per million calls of a run without trouble", mostUnexplained),
			reached(results, ofClean((*FindingCounts).unexplained), func(v float64) bool { return v <= mostUnexplained }, perMillion),
		},
		{
			fmt.Sprintf("the same findings with at least %g %% of the seeds", 100*leastSame),
			reached(results, func(r *FindingResult) (float64, bool) {
				c := r.All()
				return float64(c.stable()) / float64(len(c.Lists)), len(c.Lists) >= seeds+moreSeeds
			}, func(v float64) bool { return v >= leastSame }, percentage),
		},
	} {
		lines = append(lines, wrap(fmt.Sprintf("- %s: **%s**", t.text, t.measured), "  "))
	}
	return lines
}

// reached states the number of data sets for which a figure is good, and lists the others.
func reached(results []*FindingResult, of func(*FindingResult) (float64, bool), good func(float64) bool,
	format func(float64, bool) string,
) string {
	n, others := 0, []string{}
	for _, r := range results {
		v, ok := of(r)
		switch {
		case !ok:
			continue
		case !good(v):
			others = append(others, fmt.Sprintf("%s %s", r.Data, format(v, true)))
		}
		n++
	}
	text := fmt.Sprintf("%d of %d data sets", n-len(others), n)
	if len(others) > 0 {
		text += "; not " + strings.Join(others, ", ")
	}
	return text
}

// WriteFindings writes the table of findings and how far the targets are reached.
func WriteFindings(w io.Writer, results []*FindingResult) error {
	_, err := fmt.Fprintf(w, "%s\n%s\n", findingTable(results), strings.Join(targetTexts(results), "\n"))
	return err
}

// WriteLists writes how many seeds have which list of findings, for data sets where they differ.
func WriteLists(w io.Writer, results []*FindingResult) {
	for _, r := range results {
		all := r.All()
		if len(all.Lists) < seeds+moreSeeds || all.stable() == len(all.Lists) {
			continue
		}
		counts := make(map[string]int)
		for _, list := range all.Lists {
			counts[list]++
		}
		for _, list := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(w, "%s, %s: %s\n", r.Data, text.Count(counts[list], "seed"), strings.ReplaceAll(list, "\n", "; "))
		}
	}
}

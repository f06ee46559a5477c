package quality

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// PeerResult has the measurements of a data set, by halves.
type PeerResult struct {
	Data        string
	Fit, Report []*PeerRun
}

// peerColumn is a column of the table of slow peers.
type peerColumn struct {
	head, text string
	// cell returns the text of a cell, or "" if it does not apply.
	cell func(runs []*PeerRun) string
}

var peerColumns = []peerColumn{
	{
		"named", "runs in which the costliest slow peer has exactly the ranks of the trouble",
		func(runs []*PeerRun) string { return ratioOf(runs, func(r *PeerRun) bool { return r.Named }) },
	},
	{
		"first", "runs in which this is the first of all findings",
		func(runs []*PeerRun) string { return ratioOf(runs, func(r *PeerRun) bool { return r.First }) },
	},
	{"start", "median and greatest error of the start, in seconds", func(runs []*PeerRun) string {
		errors := values(runs, func(r *PeerRun) float64 { return math.Abs(r.Start) })
		if len(errors) == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f, %.2f", median(errors), slices.Max(errors))
	}},
	{"cost", "median and range of the estimated cost divided by the true cost", func(runs []*PeerRun) string {
		costs := values(runs, func(r *PeerRun) float64 { return r.Cost })
		if len(costs) == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f (%.2f–%.2f)", median(costs), slices.Min(costs), slices.Max(costs))
	}},
	{
		"within 20 %", "runs in which the estimated cost is within 20 % of the truth",
		func(runs []*PeerRun) string {
			if len(values(runs, func(r *PeerRun) float64 { return r.Cost })) == 0 {
				return ""
			}
			return ratioOf(runs, (*PeerRun).closeCost)
		},
	},
	{
		"blamed", "runs in which any other place is named as a slow peer, of all runs; findings of other kinds do not count",
		func(runs []*PeerRun) string { return ratio(countRuns(runs, (*PeerRun).blames), len(runs)) },
	},
}

func (r *PeerRun) closeCost() bool { return math.Abs(r.Cost-1) <= 0.2 }

func (r *PeerRun) blames() bool { return len(r.Blamed) > 0 }

func countRuns(runs []*PeerRun, is func(*PeerRun) bool) (n int) {
	for _, r := range runs {
		if is(r) {
			n++
		}
	}
	return n
}

// ratioOf returns how many of the runs with trouble have a property.
func ratioOf(runs []*PeerRun, is func(*PeerRun) bool) string {
	of := countRuns(runs, func(r *PeerRun) bool { return r.Troubled })
	return ratio(countRuns(runs, func(r *PeerRun) bool { return r.Troubled && is(r) }), of)
}

// values returns those that are numbers.
func values(runs []*PeerRun, of func(*PeerRun) float64) (all []float64) {
	for _, r := range runs {
		if v := of(r); !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	return all
}

// peerTexts returns a list item for each column.
func peerTexts() (lines []string) {
	for _, c := range peerColumns {
		lines = append(lines, columnText(c.head, c.text))
	}
	return lines
}

// PeerTable returns the table of slow peers in Markdown.
func PeerTable(results []*PeerResult) string {
	if len(results) == 0 {
		return ""
	}
	head := []string{"data set", "half", "runs"}
	for _, c := range peerColumns {
		head = append(head, c.head)
	}
	rows := [][]string{head}
	for _, r := range results {
		for _, half := range []struct {
			name string
			runs []*PeerRun
		}{{"fit", r.Fit}, {"report", r.Report}} {
			if len(half.runs) == 0 {
				continue
			}
			cells := []string{r.Data, half.name, fmt.Sprint(len(half.runs))}
			for _, c := range peerColumns {
				text := c.cell(half.runs)
				if text == "" {
					text = unknown
				}
				cells = append(cells, text)
			}
			rows = append(rows, cells)
		}
	}
	return align(rows, 2)
}

// Targets of the comparison of peers, in the report half.
const (
	leastFirst     = 0.95
	leastCloseCost = 0.95
)

// peerTargets returns a list item for each target.
func peerTargets(results []*PeerResult) (lines []string) {
	share := func(is func(*PeerRun) bool) func(*PeerResult) (int, int) {
		return func(r *PeerResult) (int, int) {
			all := countRuns(r.Report, func(r *PeerRun) bool { return r.Troubled && !isRecorded(r.Name) })
			return countRuns(r.Report, func(r *PeerRun) bool { return r.Troubled && is(r) }), all
		}
	}
	add := func(text string, of func(*PeerResult) (n, all int), least float64) {
		good, sets, others := 0, 0, []string{}
		for _, r := range results {
			n, all := of(r)
			if all == 0 {
				continue
			}
			if sets++; float64(n) >= least*float64(all) {
				good++
			} else {
				others = append(others, fmt.Sprintf("%s %d/%d", r.Data, n, all))
			}
		}
		measured := fmt.Sprintf("%d of %d data sets", good, sets)
		if len(others) > 0 {
			measured += "; not " + strings.Join(others, ", ")
		}
		lines = append(lines, wrap(fmt.Sprintf("- %s: **%s**", text, measured), "  "))
	}
	add(fmt.Sprintf("the right rank or host is the first finding in at least %g %% of the runs of a scenario", 100*leastFirst),
		share(func(r *PeerRun) bool { return r.First }), leastFirst)
	add(fmt.Sprintf("its cost is within 20 %% of the truth in at least %g %% of the runs", 100*leastCloseCost),
		share((*PeerRun).closeCost), leastCloseCost)
	add("no place is blamed in any run without trouble", func(r *PeerResult) (int, int) {
		clean := countRuns(r.Report, func(r *PeerRun) bool { return !r.Troubled })
		return clean - countRuns(r.Report, func(r *PeerRun) bool { return !r.Troubled && r.blames() }), clean
	}, 1)
	return lines
}

func isRecorded(name string) bool { return slices.Contains(PeerTraces, name) }

// Failures describes the runs that miss a target, or have a wrong start.
func (r *PeerResult) Failures(runs []*PeerRun) (lines []string) {
	for _, x := range runs {
		var wrong []string
		if x.Troubled && !x.Named {
			wrong = append(wrong, "not named")
		}
		if x.Named && !math.IsNaN(x.Cost) && !x.closeCost() {
			wrong = append(wrong, fmt.Sprintf("cost %.2f of the truth", x.Cost))
		}
		if x.Named && math.Abs(x.Start) > 1 {
			wrong = append(wrong, fmt.Sprintf("start wrong by %+.2f s", x.Start))
		}
		if x.blames() {
			wrong = append(wrong, "blames others")
		}
		if len(wrong) == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("- %s: %s", x.Name, strings.Join(wrong, ", ")))
		if x.Measured != "" {
			lines = append(lines, "  - right: "+x.Measured)
		}
		for _, b := range x.Blamed {
			lines = append(lines, "  - blamed: "+b)
		}
		for _, n := range x.Notes {
			lines = append(lines, "  - note: "+n)
		}
	}
	return lines
}

package quality

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// DefaultDetector is the detector whose findings are measured.
var DefaultDetector outlier.Algorithm = analyzer.Default().Outlier.Algorithm

// FindingCounts compares the findings of runs with their troubles.
type FindingCounts struct {
	Runs     int
	Troubled int // runs with trouble
	// Lost is the time that troubles added, in microseconds, and Covered the part that findings about them have.
	Lost, Covered float64
	// Named counts the troubles whose costliest finding names the right ranks and function. Minor troubles are not among them.
	Troubles, Named, Minor int
	// Others counts the listed findings that belong to no trouble, without interference. OthersShare is the
	// sum of their shares of the time of their runs.
	Others      int
	OthersShare float64
	// Notes and NotesShare are the same for notes about normal behavior, which do not count as
	// findings.
	Notes      int
	NotesShare float64
	// Recorded is the number of calls of runs with a scheduler's record, and Unexplained the number of flags
	// in them, outside troubles, that it does not explain.
	Recorded                      int64
	Unexplained                   int
	Stops, StopsFound, StopsNamed int
	// Lists has the kinds, places and functions of the listed findings of each run.
	Lists []string
}

// Add adds the counts of other runs.
func (c *FindingCounts) Add(o *FindingCounts) {
	c.Runs += o.Runs
	c.Troubled += o.Troubled
	c.Lost += o.Lost
	c.Covered += o.Covered
	c.Troubles += o.Troubles
	c.Named += o.Named
	c.Minor += o.Minor
	c.Others += o.Others
	c.OthersShare += o.OthersShare
	c.Notes += o.Notes
	c.NotesShare += o.NotesShare
	c.Recorded += o.Recorded
	c.Unexplained += o.Unexplained
	c.Stops += o.Stops
	c.StopsFound += o.StopsFound
	c.StopsNamed += o.StopsNamed
	c.Lists = append(c.Lists, o.Lists...)
}

// Reports returns the findings of a run that were not withdrawn.
func Reports(findings []provenance.Finding) (all []truth.Report) {
	for i := range findings {
		if f := &findings[i]; f.Status != provenance.Withdrawn {
			all = append(all, truth.Report{
				Number: f.Number, Kind: truth.Finding(f.Kind), Program: f.PID, Function: f.Func, Ranks: f.Ranks, From: f.First, To: f.Last,
				LostOwn: f.LostOwn, Share: f.Share, Summary: f.Summary, Cause: f.Cause, Listed: f.Listed() || f.Noted(),
				Informational: f.Severity == provenance.Note,
			})
		}
	}
	return all
}

// Links has the findings of flags.
type Links struct {
	finding map[trace.EventKey]int
	culprit map[trace.EventKey]bool
}

// NewLinks returns the links of the anomalies of a run. A call is a culprit if it has that role, or if another call
// names it.
func NewLinks(links []provenance.Link) *Links {
	l := &Links{finding: make(map[trace.EventKey]int, len(links)), culprit: make(map[trace.EventKey]bool)}
	for i := range links {
		x := &links[i]
		own, other := trace.EventKey{Program: x.PID, ID: x.EventID}, trace.EventKey{Program: x.CulpritPID, ID: x.Culprit}
		l.finding[own] = x.Finding
		if x.Role == provenance.Culprit {
			l.culprit[own] = true
		}
		if x.Culprit != "" && other != own {
			l.culprit[other] = true
		}
	}
	return l
}

// Set sets the finding of a flag, and whether it is a culprit or only a victim.
func (l *Links) Set(f *truth.Flag) {
	key := trace.EventKey{Program: f.Program, ID: f.Event}
	f.Finding, f.Culprit = l.finding[key], l.culprit[key]
	f.Induced = f.Induced && !f.Culprit
}

// link sets the findings of all flags.
func (f *flags) link() {
	if f.concluded == nil {
		return
	}
	links := NewLinks(f.concluded.Links)
	for i := range f.all {
		links.Set(&f.all[i].Flag)
	}
}

// scoreFindings compares the findings with the truth. m has all flags.
func (f *flags) scoreFindings(m *truth.Matcher) *FindingCounts {
	ranks := make(map[trace.Program]int)
	for _, r := range f.collector.Ranks() {
		ranks[r.Program]++
	}
	m.LeastLoss = trace.Ticks(analyzer.Default().Outlier.LeastLoss)
	m.LeastCost = trace.Ticks(provenance.MinorShare * float64(f.concluded.Time))
	s := m.Findings(Reports(f.concluded.Findings), ranks)
	c := &FindingCounts{
		Runs: 1, Lost: float64(s.Lost), Covered: float64(s.Covered), Troubles: len(s.Troubles), Named: s.Named, Minor: s.Minor,
		Lists: []string{listOf(f.concluded.Findings)},
	}
	for i := range s.Others {
		n, share := &c.Others, &c.OthersShare
		if s.Others[i].Informational {
			n, share = &c.Notes, &c.NotesShare
		}
		*n++
		*share += s.Others[i].Share
	}
	score := m.Score(0)
	if len(score.Troubles)+score.Planted > 0 {
		c.Troubled = 1
	}
	if e := score.External; e != nil {
		c.Stops, c.StopsFound, c.StopsNamed, c.Unexplained, c.Recorded = e.Stops, e.Found, e.Named, e.Unexplained, f.calls
	}
	return c
}

// listOf returns kind, place and function of the listed findings, without notes. The place of a finding is its rank if it has one,
// and otherwise its hosts.
func listOf(findings []provenance.Finding) string {
	var lines []string
	for i := range findings {
		f := &findings[i]
		if !f.Listed() {
			continue
		}
		place := "all"
		switch {
		case len(f.Ranks) == 1:
			place = fmt.Sprint("rank ", f.Ranks[0])
		case len(f.Hosts) > 0:
			place = text.Hosts(f.Hosts)
		}
		lines = append(lines, fmt.Sprintf("%d %s %s %s", f.PID, f.Kind, place, f.Func))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// stable returns how many runs have the list that most of them have.
func (c *FindingCounts) stable() (most int) {
	counts := make(map[string]int)
	for _, list := range c.Lists {
		counts[list]++
		most = max(most, counts[list])
	}
	return most
}

// FindingResult has the measures of findings on a data set, by halves.
type FindingResult struct {
	Data        string
	Fit, Report FindingCounts
}

func (r *FindingResult) add(c *FindingCounts, fit bool) {
	if fit {
		r.Fit.Add(c)
	} else {
		r.Report.Add(c)
	}
}

// All returns the sum of both halves.
func (r *FindingResult) All() FindingCounts {
	var all FindingCounts
	all.Add(&r.Fit)
	all.Add(&r.Report)
	return all
}

// ofFindings returns a figure of a result.
func ofFindings(of func(*FindingCounts) (float64, bool)) func(*Result) (float64, bool) {
	return func(r *Result) (float64, bool) {
		if r.Findings == nil {
			return 0, false
		}
		return of(r.Findings)
	}
}

func (c *FindingCounts) covered() (float64, bool) { return c.Covered / c.Lost, c.Lost > 0 }

func (c *FindingCounts) named() (float64, bool) {
	return float64(c.Named) / float64(c.Troubles), c.Troubles > 0
}

// others and othersShare are averages of runs.
func (c *FindingCounts) others() (float64, bool) {
	return float64(c.Others) / float64(c.Runs), c.Runs > 0
}

func (c *FindingCounts) othersShare() (float64, bool) {
	return c.OthersShare / float64(c.Runs), c.Runs > 0
}

func (c *FindingCounts) stopsFound() (float64, bool) {
	return float64(c.StopsFound) / float64(c.Stops), c.Stops > 0
}

func (c *FindingCounts) stopsNamed() (float64, bool) {
	return float64(c.StopsNamed) / float64(c.Stops), c.Stops > 0
}

func (c *FindingCounts) unexplained() (float64, bool) {
	return 1e6 * float64(c.Unexplained) / float64(c.Recorded), c.Recorded > 0
}

// findingColumn is a column of the table of findings.
type findingColumn struct {
	head, text string
	// cell returns the text of a cell, or "" if the figure is unknown.
	cell func(*FindingCounts) string
}

// halfColumns are in the table for each half, and wholeColumns once.
var (
	halfColumns = []findingColumn{
		{
			"covered", "time lost by troubles that findings about them cover, in percent",
			func(c *FindingCounts) string { return percentage(c.covered()) },
		},
		{
			"named", "troubles whose costliest finding names the right place, of all troubles",
			func(c *FindingCounts) string { return ratio(c.Named, c.Troubles) },
		},
		{
			"outside", "findings of a run outside troubles, and the share of its time that they cost, without interference. Notes " +
				"about normal behavior, such as a slow mode that all ranks have throughout the run, are not findings; they follow",
			func(c *FindingCounts) string {
				if c.Runs == 0 {
					return ""
				}
				per := func(n int, share float64) string {
					if n == 0 {
						return "0"
					}
					return fmt.Sprintf("%.2g (%.2g %%)", float64(n)/float64(c.Runs), 100*share/float64(c.Runs))
				}
				text := per(c.Others, c.OthersShare)
				if c.Notes > 0 {
					text += ", notes " + per(c.Notes, c.NotesShare)
				}
				return text
			},
		},
	}
	wholeColumns = []findingColumn{
		{
			"stops", "stops of a rank that are found, that are named as culprits, and all stops",
			func(c *FindingCounts) string {
				if c.Stops == 0 {
					return ""
				}
				return fmt.Sprintf("%d/%d/%d", c.StopsFound, c.StopsNamed, c.Stops)
			},
		},
		{"unexplained", "flags outside troubles that the scheduler's record does not explain, per million calls", func(c *FindingCounts) string {
			return perMillion(c.unexplained())
		}},
		{
			"same", fmt.Sprintf("of %d seeds, the number with the most common list of findings (kinds, places and functions, without notes). "+
				"The place is the rank if there is only one, and otherwise the hosts", seeds+moreSeeds),
			func(c *FindingCounts) string {
				if len(c.Lists) < seeds+moreSeeds {
					return ""
				}
				return ratio(c.stable(), len(c.Lists))
			},
		},
	}
)

// findingTexts returns a list item for each column of the table of findings.
func findingTexts() (lines []string) {
	for _, c := range slices.Concat(halfColumns, wholeColumns) {
		lines = append(lines, columnText(c.head, c.text))
	}
	return lines
}

// findingTable returns the table of findings, and their sums, in Markdown.
func findingTable(results []*FindingResult) string {
	head := []string{"data set"}
	for _, half := range []string{"fit", "report"} {
		for _, c := range halfColumns {
			head = append(head, half+": "+c.head)
		}
	}
	for _, c := range wholeColumns {
		head = append(head, c.head)
	}
	rows := [][]string{head}
	all := &FindingResult{Data: "all"}
	for _, r := range results {
		rows = append(rows, findingRow(r))
		all.Fit.Add(&r.Fit)
		all.Report.Add(&r.Report)
	}
	all.Fit.Lists, all.Report.Lists = nil, nil // of different data sets
	return align(append(rows, findingRow(all)), 1)
}

// findingRow returns the cells of a result.
func findingRow(r *FindingResult) []string {
	cells := []string{r.Data}
	add := func(columns []findingColumn, c *FindingCounts) {
		for _, column := range columns {
			text := unknown
			if c.Runs > 0 {
				text = cmp.Or(column.cell(c), unknown)
			}
			cells = append(cells, text)
		}
	}
	all := r.All()
	add(halfColumns, &r.Fit)
	add(halfColumns, &r.Report)
	add(wholeColumns, &all)
	return cells
}

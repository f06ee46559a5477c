package quality

import (
	"fmt"
	"math"
)

// figure is a number of a Result for which floors.csv may have a bound.
type figure struct {
	name string
	most bool // the bound is an upper one
	// of returns the figure, or false if it is unknown or undefined.
	of func(*Result) (float64, bool)
	// claim is the worst value for which a bound is written.
	claim float64
	// share of the figure and slack are the tolerance of the bound.
	share, slack float64
	digits       int
}

var figures = []figure{
	{name: "precision", of: (*Result).precision, claim: 0.5, slack: 0.01, digits: 2},
	{name: "recall", of: (*Result).recall, claim: 0.8, slack: 0.01, digits: 2},
	{name: "f1", of: (*Result).f1, claim: 0.7, slack: 0.01, digits: 2},
	{name: "per_million", most: true, of: (*Result).perMillion, claim: 1000, share: 0.1, slack: 1},
	{name: "withdrawn", most: true, of: (*Result).withdrawn, claim: 5000, share: 0.1, slack: 1},
	{name: "troubles", of: (*Result).troubles, claim: 1, digits: 2},
	{name: "after", most: true, of: (*Result).after, claim: 10, share: 0.1, slack: 0.1, digits: 1},
	{name: "first_step", most: true, of: (*Result).firstStep, claim: 0.01, share: 0.1, digits: 4},
	{name: "late_recall", of: (*Result).lateRecall, claim: 0.8, slack: 0.01, digits: 2},
	{name: "late_other", most: true, of: (*Result).lateOther, claim: 5, slack: 1},
	{name: "covered", of: ofFindings((*FindingCounts).covered), claim: 0.5, slack: 0.02, digits: 2},
	{name: "named", of: ofFindings((*FindingCounts).named), claim: 0.5, slack: 0.02, digits: 2},
	{name: "outside", most: true, of: ofFindings((*FindingCounts).others), claim: 5, slack: 1},
	{name: "outside_share", most: true, of: ofFindings((*FindingCounts).othersShare), claim: 0.02, share: 0.2, slack: 0.001, digits: 4},
	{name: "stops_found", of: ofFindings((*FindingCounts).stopsFound), claim: 0.3, slack: 0.07, digits: 2},
	{name: "stops_named", of: ofFindings((*FindingCounts).stopsNamed), claim: 0.3, slack: 0.07, digits: 2},
	{name: "unexplained", most: true, of: ofFindings((*FindingCounts).unexplained), claim: 1000, share: 0.1, slack: 5},
}

func (r *Result) precision() (float64, bool) {
	return float64(r.Found) / float64(r.Found+r.Other), r.Planted > 0 && r.Other >= 0 && r.Found+r.Other > 0
}

func (r *Result) recall() (float64, bool) {
	return float64(r.Found) / float64(r.Planted), r.Planted > 0
}

func (r *Result) f1() (float64, bool) {
	return float64(2*r.Found) / float64(r.Found+r.Planted+r.Other), r.Planted > 0 && r.Other >= 0
}

func (r *Result) perMillion() (float64, bool) {
	return 1e6 * float64(r.Other) / float64(r.Normal), r.Other >= 0 && r.Normal > 0
}

func (r *Result) withdrawn() (float64, bool) {
	return 1e6 * float64(r.Withdrawn) / float64(r.Normal), r.Withdrawn >= 0 && r.Normal > 0
}

// seen returns the number of found troubles.
func (r *Result) seen() (n int) {
	for _, after := range r.Delays {
		if !math.IsInf(after, 1) {
			n++
		}
	}
	return n
}

func (r *Result) troubles() (float64, bool) {
	return float64(r.seen()) / float64(len(r.Delays)), len(r.Delays) > 0
}

func (r *Result) after() (float64, bool) {
	if len(r.Delays) == 0 {
		return 0, false
	}
	return median(r.Delays), true
}

func (r *Result) firstStep() (float64, bool) {
	return float64(r.FirstFlags) / float64(r.FirstCalls), r.FirstCalls > 0
}

func (r *Result) lateRecall() (float64, bool) {
	if r.Late == nil || r.Late.Found+r.Late.Missed == 0 {
		return 0, false
	}
	return float64(r.Late.Found) / float64(r.Late.Found+r.Late.Missed), true
}

// lateOther is the average of runs.
func (r *Result) lateOther() (float64, bool) {
	if r.Late == nil {
		return 0, false
	}
	return float64(r.Late.Other) / float64(r.Runs), true
}

// column is a column of the table.
type column struct {
	head, text string
	// cell returns the text of a cell, or "" if the figure is unknown.
	cell func(*Result) string
}

var columns = []column{
	{"found/planted", "planted calls flagged at the end, of all planted calls", func(r *Result) string { return ratio(r.Found, r.Planted) }},
	{"precision", "found / (found + wrong), in percent", percent((*Result).precision)},
	{"recall", "found / planted, in percent", percent((*Result).recall)},
	{"F1", "harmonic mean of the two, in percent", percent((*Result).f1)},
	{"wrong/million", "flags per million normal calls, which no trouble affects as cause or victim, outside the region of a lasting " +
		"trouble; examples of slow modes, which are reported as a whole, do not count", rate((*Result).perMillion)},
	{"taken back", "flags withdrawn at the end of the run, per million normal calls", rate((*Result).withdrawn)},
	{"troubles", "flagged troubles, of all troubles", func(r *Result) string { return ratio(r.seen(), len(r.Delays)) }},
	{"after", "median time in seconds from the start of a trouble, or from the entry of its first affected call if that is later, to the " +
		"exit of the first call flagged because of it. For a trouble found only at the end of the run, the end counts instead; `never` " +
		"means that half of the troubles were not flagged", func(r *Result) string {
		v, ok := r.after()
		switch {
		case !ok:
			return ""
		case math.IsInf(v, 1):
			return "never"
		}
		return fmt.Sprintf("%.3f", v)
	}},
	{
		"first step", "flags on normal calls in the first I/O step, when models have the fewest samples, of all its calls",
		func(r *Result) string { return ratio(r.FirstFlags, int(r.FirstCalls)) },
	},
	{
		"late", fmt.Sprintf("found, missed and wrong in I/O steps from %d on, for the data sets with figures of the original", LateStep),
		func(r *Result) string {
			if r.Late == nil {
				return ""
			}
			return fmt.Sprintf("%d/%d/%d", r.Late.Found, r.Late.Missed, r.Late.Other)
		},
	},
}

// ratio returns part/all, or "" if all is 0.
func ratio(part, all int) string {
	if all <= 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", part, all)
}

// percent rounds down, so that only all is 100.
func percent(of func(*Result) (float64, bool)) func(*Result) string {
	return func(r *Result) string {
		return percentage(of(r))
	}
}

func percentage(v float64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.1f", math.Floor(1000*v+1e-9)/10)
}

func rate(of func(*Result) (float64, bool)) func(*Result) string {
	return func(r *Result) string {
		return perMillion(of(r))
	}
}

func perMillion(v float64, ok bool) string {
	switch {
	case !ok:
		return ""
	case v == 0 || v >= 10:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", max(v, 0.1))
}

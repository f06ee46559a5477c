package comparison

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Growth of lost time in percentage points, and of all time in percent, at which the level of a verdict becomes watch or bad.
const (
	watchPoints, badPoints = 0.1, 1
	watchTime, badTime     = 1, 5
)

// A host lost most of the time if its share is at least mostShare, and all of it from allShare.
const mostShare, allShare = 0.5, 0.995

func verdict(d *api.Difference, runs [2]*Run, sides [2]*side) api.Verdict {
	var empty []string
	for i, r := range runs {
		if d.Exclusive[i] == 0 && d.Anomalies[i] == 0 && len(r.Functions) == 0 {
			empty = append(empty, "AB"[i:i+1])
		}
	}
	if len(empty) > 0 {
		return api.Verdict{Level: api.LevelUnknown, Sentence: "Nothing to compare: no data of " + strings.Join(empty, " and ") + "."}
	}
	parts := []string{lostSentence(d, runs, sides), countSentence(d), timeSentence(d)}
	if distance(d.Exclusive) > distance(d.Lost) { // the larger change comes first
		parts = []string{parts[2], parts[0], parts[1]}
	}
	if words := efficiencySentence(d); words != "" {
		parts = append([]string{words}, parts...)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return api.Verdict{Level: level(d), Sentence: strings.Join(parts, " ")}
}

// growth returns the growth of the time of all calls in percent. comparable is false if the runs did not do the same work, or
// one of the times is unknown.
func growth(d *api.Difference) (percent float64, comparable bool) {
	if d.Exclusive[0] <= 0 || d.Exclusive[1] <= 0 {
		return 0, false
	}
	return 100 * (d.Exclusive[1] - d.Exclusive[0]) / d.Exclusive[0], similar(d.Calls)
}

func level(d *api.Difference) api.Level {
	if d.Exclusive[0] <= 0 || d.Exclusive[1] <= 0 {
		return api.LevelUnknown
	}
	points := d.LostPercent[1] - d.LostPercent[0]
	percent, ok := growth(d)
	fall := 0.0
	for i := range d.Efficiency {
		fall = max(fall, efficiencyPoints(&d.Efficiency[i]))
	}
	switch {
	case points >= badPoints || ok && percent >= badTime || fall >= badEfficiency:
		return api.LevelBad
	case points >= watchPoints || ok && percent >= watchTime || fall >= watchEfficiency:
		return api.LevelWatch
	}
	return api.LevelGood
}

// lostSentence compares the lost time and names the call path with the largest change.
func lostSentence(d *api.Difference, runs [2]*Run, sides [2]*side) string {
	lost := d.Lost
	timesKnown := d.Exclusive[0] > 0 && d.Exclusive[1] > 0
	percents := [2]string{text.Percent(d.LostPercent[0]), text.Percent(d.LostPercent[1])}
	switch {
	case d.Lost == [2]float64{}:
		return "Neither A nor B lost time to anomalies."
	case similar(lost):
		words := fmt.Sprintf("A and B lost about the same to anomalies, %s and %s", text.Duration(lost[0]), text.Duration(lost[1]))
		if timesKnown {
			words += fmt.Sprintf(", %s and %s of all time", percents[0], percents[1])
		}
		return words + "."
	}
	more, sign, larger := "more", 1.0, 1
	if lost[1] < lost[0] {
		more, sign, larger = "less", -1, 0
	}
	words := fmt.Sprintf("B lost %s %s than A to anomalies", text.Duration(distance(lost)), more)
	if timesKnown {
		words += fmt.Sprintf(" (%s of all time instead of %s)", percents[1], percents[0])
	}
	i := slices.IndexFunc(d.Changes, func(c api.PathChange) bool { return sign*(c.Lost[1]-c.Lost[0]) > 0 })
	if i < 0 {
		return words + "."
	}
	c := &d.Changes[i]
	name, by := text.ShortName(c.Function), text.Duration(distance(c.Lost))
	switch c.Kind {
	case New, Gone:
		words += fmt.Sprintf(": %s is %s with %s", name, c.Kind, by)
	default:
		words += fmt.Sprintf(": %s lost %s %s", name, by, more)
	}
	key := pathKey{trace.FuncKey{Program: trace.Program(c.Program), Name: c.Function}, c.CallPath}
	return words + where(sides[larger].paths[key], len(runs[larger].Hosts)) + "."
}

// where names the host on which a call path lost most, if the run has several hosts.
func where(p *Path, hosts int) string {
	if p == nil || hosts < 2 || len(p.Hosts) == 0 || p.Lost <= 0 {
		return ""
	}
	switch share := p.Hosts[0].Lost / p.Lost; {
	case share >= allShare:
		return ", on " + text.OneLine(p.Hosts[0].Host)
	case share >= mostShare:
		return ", mostly on " + text.OneLine(p.Hosts[0].Host)
	}
	return ""
}

// countSentence counts call paths whose anomalies are new or gone.
func countSentence(d *api.Difference) string {
	var parts []string
	for _, kind := range []string{New, Gone} {
		switch n := d.Counts.Changes[kind]; {
		case n == 1:
			parts = append(parts, "1 is "+kind)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%s are %s", text.Int(n), kind))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Of the call paths with anomalies, " + strings.Join(parts, " and ") + "."
}

// timeSentence compares the time of all calls and names the function with the largest change, which need not have anomalies.
func timeSentence(d *api.Difference) string {
	percent, sameWork := growth(d)
	if math.Abs(percent) < watchTime {
		return ""
	}
	longer, sign := "longer", 1.0
	if percent < 0 {
		longer, sign = "shorter", -1
	}
	words := fmt.Sprintf("All calls of B together took %s %s than those of A (%s)", text.Duration(distance(d.Exclusive)), longer,
		text.Percent(math.Abs(percent)))
	if !sameWork {
		return words + fmt.Sprintf("; B made %s calls instead of %s.", text.Int(d.Calls[1]), text.Int(d.Calls[0]))
	}
	i := slices.IndexFunc(d.Functions, func(f api.FunctionChange) bool { return sign*(f.Exclusive[1]-f.Exclusive[0]) > 0 })
	if i < 0 {
		return words + "."
	}
	f := &d.Functions[i]
	words += ", most of it in " + text.ShortName(f.Function)
	switch {
	case f.Calls[0] == 0 || f.Calls[1] == 0:
	case sign*(f.Mean[1]-f.Mean[0]) <= 0: // only the number of calls explains the change
		words += fmt.Sprintf(": %s instead of %s", text.Count(f.Calls[1], "call"), text.Int(f.Calls[0]))
	default:
		words += fmt.Sprintf(": %s per call instead of %s", text.Duration(f.Mean[1]), text.Duration(f.Mean[0]))
	}
	return words + "."
}

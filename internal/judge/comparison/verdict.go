package comparison

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

// The levels of a verdict.
const (
	LevelGood    = "good"
	LevelUnknown = "unknown"
	LevelWatch   = "watch"
	LevelBad     = "bad"
)

// Verdict is what changed in a few words.
type Verdict struct {
	Level    string `json:"level"`
	Sentence string `json:"sentence"`
}

// Percentage points of lost time, and percents of all time, from which on a growth is
// worth a look, and from which on it is bad.
const (
	watchPoints, badPoints = 0.1, 1
	watchTime, badTime     = 1, 5
)

// A host has most of what was lost from this share on, and all of it from the other.
const mostShare, allShare = 0.5, 0.995

func (d *Difference) verdict(a, b *Run) Verdict {
	var empty []string
	for i, r := range []*Run{a, b} {
		if d.Exclusive[i] == 0 && d.Anomalies[i] == 0 && len(r.Functions) == 0 {
			empty = append(empty, "AB"[i:i+1])
		}
	}
	if len(empty) > 0 {
		return Verdict{LevelUnknown, "Nothing is known of " + strings.Join(empty, " and ") + ", so there is nothing to compare."}
	}
	parts := []string{d.lostText(a, b), d.countText(), d.timeText()}
	if apart(d.Exclusive) > float64(apart(d.Lost)) { // what matters more comes first
		parts = []string{d.timeText(), d.lostText(a, b), d.countText()}
	}
	parts = slices.DeleteFunc(parts, func(text string) bool { return text == "" })
	return Verdict{d.level(), strings.Join(parts, " ")}
}

// growth is by how many percent all time grew; not ok where it tells nothing: one of the
// times is not known, or the runs did not do the same work.
func (d *Difference) growth() (percent float64, ok bool) {
	if d.Exclusive[0] <= 0 || d.Exclusive[1] <= 0 {
		return 0, false
	}
	calls := [2]float64{float64(d.Calls[0]), float64(d.Calls[1])}
	return 100 * (d.Exclusive[1] - d.Exclusive[0]) / d.Exclusive[0], apart(calls) <= SameShare*max(calls[0], calls[1])
}

func (d *Difference) level() string {
	points := d.LostPercent[1] - d.LostPercent[0]
	if d.Exclusive[0] <= 0 || d.Exclusive[1] <= 0 {
		return LevelUnknown
	}
	percent, ok := d.growth()
	switch {
	case points >= badPoints || ok && percent >= badTime:
		return LevelBad
	case points >= watchPoints || ok && percent >= watchTime:
		return LevelWatch
	}
	return LevelGood
}

// lostText tells of the lost time, and which call path has most of the change.
func (d *Difference) lostText(a, b *Run) string {
	lost := [2]float64{float64(d.Lost[0]), float64(d.Lost[1])}
	known := d.Exclusive[0] > 0 && d.Exclusive[1] > 0
	switch {
	case d.Lost == [2]int64{}:
		return "Neither A nor B lost anything to anomalies."
	case apart(lost) <= SameShare*max(lost[0], lost[1]):
		words := fmt.Sprintf("A and B lost about the same to anomalies, %s and %s", text.Duration(lost[0]), text.Duration(lost[1]))
		if known {
			words += fmt.Sprintf(", %s and %s of all time", percentText(d.LostPercent[0]), percentText(d.LostPercent[1]))
		}
		return words + "."
	}
	more, sign := "more", 1.0
	if lost[1] < lost[0] {
		more, sign = "less", -1
	}
	words := fmt.Sprintf("B lost %s %s than A to anomalies", text.Duration(apart(lost)), more)
	if known {
		words += fmt.Sprintf(" (%s of all time instead of %s)", percentText(d.LostPercent[1]), percentText(d.LostPercent[0]))
	}
	i := slices.IndexFunc(d.Changes, func(c Change) bool { return sign*float64(c.Lost[1]-c.Lost[0]) > 0 })
	if i < 0 {
		return words + "."
	}
	c := &d.Changes[i]
	by := text.Duration(float64(apart(c.Lost)))
	switch c.Kind {
	case New:
		words += fmt.Sprintf(": %s is new with %s", text.ShortName(c.Function), by)
	case Gone:
		words += fmt.Sprintf(": %s is gone with %s", text.ShortName(c.Function), by)
	default:
		words += fmt.Sprintf(": %s lost %s %s", text.ShortName(c.Function), by, more)
	}
	at, run := 1, b
	if sign < 0 {
		at, run = 0, a
	}
	return words + where(c, at, len(run.Hosts)) + "."
}

// where names the host on which most of the time was lost, if there are several hosts.
func where(c *Change, at, hosts int) string {
	switch share := c.mostly[at]; {
	case hosts < 2 || len(c.Hosts[at]) == 0 || share < mostShare:
		return ""
	case share >= allShare:
		return ", on " + text.OneLine(c.Hosts[at][0])
	}
	return ", mostly on " + text.OneLine(c.Hosts[at][0])
}

// countText counts call paths whose anomalies are new or gone.
func (d *Difference) countText() string {
	var parts []string
	for _, kind := range []string{New, Gone} {
		n := d.Count(kind)
		switch {
		case n == 1:
			parts = append(parts, "1 is "+kind)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%s are %s", number(int64(n)), kind))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Of the call paths with anomalies " + strings.Join(parts, " and ") + "."
}

// timeText returns how all time changed, and which function has most of that: a function
// that became slower in all its calls need not have an anomaly.
func (d *Difference) timeText() string {
	percent, same := d.growth()
	if math.Abs(percent) < watchTime {
		return ""
	}
	longer, sign := "longer", 1.0
	if percent < 0 {
		longer, sign = "shorter", -1
	}
	words := fmt.Sprintf("All calls of B together took %s %s than those of A (%s)", text.Duration(apart(d.Exclusive)), longer,
		percentText(math.Abs(percent)))
	if !same {
		return words + fmt.Sprintf("; there were %s of them instead of %s.", number(d.Calls[1]), number(d.Calls[0]))
	}
	i := slices.IndexFunc(d.Functions, func(f FunctionChange) bool { return sign*(f.Exclusive[1]-f.Exclusive[0]) > 0 })
	if i < 0 {
		return words + "."
	}
	f := &d.Functions[i]
	words += ", most of it in " + text.ShortName(f.Function)
	if f.Calls[0] > 0 && f.Calls[1] > 0 {
		words += fmt.Sprintf(": %s a call instead of %s", text.Duration(f.Mean[1]), text.Duration(f.Mean[0]))
	}
	return words + "."
}

// percentText is a percentage with as many digits as say something.
func percentText(v float64) string {
	switch {
	case v == 0:
		return "0 %"
	case v < 0.01:
		return "< 0.01 %"
	}
	return text.ThreeDigits(v) + " %"
}

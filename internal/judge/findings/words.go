package findings

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// summary describes a finding in a sentence.
func (c *conclusion) summary(g *group) string {
	name := text.ShortName(g.Func)
	actual, expected := c.duration(g.Actual), c.duration(g.Expected)
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	if g.peer != nil {
		return c.peerSummary(g)
	}
	switch g.Kind {
	case provenance.LastingChange:
		if g.Form == provenance.Temporary {
			c.sayTemporary(g, say)
			break
		}
		say("%s takes %s instead of %s since %s (%s)", name, actual, expected, c.clock(g.First), g.Form)
		if g.start {
			say(", after a start with %s of its calls", text.Percent(100*float64(g.OfCalls-g.Calls)/float64(g.OfCalls)))
		}
		if g.madeCalls[1] > 0 {
			say(", because it makes %s calls instead of %s", text.ThreeDigits(g.madeCalls[1]), text.ThreeDigits(g.madeCalls[0]))
		}
		if g.byWorkOf != "" {
			say(", when %s began to make more calls", text.ShortName(g.byWorkOf))
		}
		if g.unrecorded != "" {
			say(", because calls of %s are no longer recorded, and their time counts as its own", text.ShortName(g.unrecorded))
		}
	case provenance.Interference:
		c.sayInterference(g, say)
	case provenance.RecurringMode, provenance.ExcessWork:
		say("%s: %s ", name, g.callsText())
		if g.Kind == provenance.ExcessWork {
			made, usual := g.made()
			say("made %s instead of %s and ", text.Count(made, "call"), text.Int(usual))
		}
		say("took %s instead of %s", actual, expected)
		if g.Period != nil {
			say(", every %s", text.Duration(*g.Period*1e6))
		}
		switch {
		case g.everywhere && !g.ofRole:
			say(", on all ranks")
		case g.everywhere && len(g.Ranks) == 1:
			say(", on %s, which alone has its role,", Where(&g.Finding))
		case g.everywhere:
			say(", on %s, all with the role,", Where(&g.Finding))
		default:
			say(", on %s", g.where())
		}
		if g.always {
			say(" throughout the run")
		} else {
			say(" from %s to %s", c.clock(g.First), c.clock(g.Last))
		}
	case provenance.Waiting:
		say("%s: %s on %s waited %s instead of %s", name, text.Count(g.Calls, "call"), Where(&g.Finding), actual, expected)
		switch {
		case g.cause != nil && g.cause.peer != nil:
			say(" because of finding %d (%s)", g.cause.Number, Where(&g.cause.Finding))
		case g.cause != nil && g.cause.Func != "":
			say(" because of finding %d (%s)", g.cause.Number, text.ShortName(g.cause.Func))
		case g.cause != nil:
			say(" because of finding %d (%s)", g.cause.Number, g.cause.Kind)
		case g.Status != provenance.Withdrawn:
			say("; the cause is unknown")
		}
	default:
		c.sayOutlier(g, say)
	}
	if g.Waits > 0 {
		say("; %s on %s lost %s because of it", text.Count(g.Waits, "wait"), text.Count(g.WaitRanks, "rank"),
			c.duration(float64(g.LostCaused)))
	}
	return b.String()
}

// sayTemporary describes a temporary change.
func (c *conclusion) sayTemporary(g *group, say func(format string, args ...any)) {
	say("%s took %s instead of %s from %s to %s", text.ShortName(g.Func), c.duration(g.Actual), c.duration(g.Expected),
		c.clock(g.First), c.clock(g.Last))
	if n := len(g.others); n > 0 {
		least, most := math.Inf(1), 0.0
		for _, x := range g.others {
			ratio := x.Actual / max(1, x.Expected)
			least, most = min(least, ratio), max(most, ratio)
		}
		say(", and %s took ", text.Count(n, "other function"))
		if from := fmt.Sprintf("%.1f", least); from != fmt.Sprintf("%.1f", most) {
			say("%s to ", from)
		}
		say("%.1f times as long", most)
	}
}

// sayInterference describes interference.
func (c *conclusion) sayInterference(g *group, say func(format string, args ...any)) {
	typical, share, times := c.duration(g.Actual), text.Percent(100*c.shareOfRanks(g)), text.Int(g.Calls)+" times"
	if g.Form == provenance.Recording {
		say("Writing the trace delayed %s %s by about %s, %s of the time there; most often in %s", Where(&g.Finding), times, typical, share,
			g.mostHit())
		return
	}
	if n := len(g.members); g.Calls > int64(n) {
		times = fmt.Sprintf("about %s (%s visible, the others in long calls)", times, text.Int(n))
	}
	what := "Delays"
	if g.Form == provenance.Long {
		what = "Long delays"
	}
	say("%s of about %s hit whatever ran on %s %s, %s of the time there", what, typical, Where(&g.Finding), times, share)
	if n, least := g.costliest(); float64(least) > likeTimes*g.Actual {
		say(", half of it in %s of at least %s", text.Count(n, "delay"), c.duration(float64(least)))
	}
	say("; most often %s", g.mostHit())
}

// sayOutlier describes outliers and rare calls.
func (c *conclusion) sayOutlier(g *group, say func(format string, args ...any)) {
	name, actual := text.ShortName(g.Func), c.duration(g.Actual)
	if n := g.functions(); n > 1 {
		say("%s and %s: %s on %s took about %s longer than usual", name, text.Count(n-1, "other function"), text.Count(g.Calls, "call"),
			g.where(), c.duration(quantile(g.losses(), 0.5)))
		return
	}
	if g.Form != provenance.Rare {
		say("%s: %s on %s took %s instead of %s", name, g.callsText(), g.where(), actual, c.duration(g.Expected))
		if g.Form == provenance.Burst {
			say(", in bursts")
		}
		return
	}
	say("%s: %s on %s took %s; it is rarely called", name, text.Count(g.Calls, "call"), g.where(), actual)
	if g.Period != nil {
		say(", every %s", text.Duration(*g.Period*1e6))
	}
	if g.everywhere {
		say(", by all ranks at once")
	}
}

// where names the place of a finding: ranks, or their GPUs if all of its calls ran on them.
func (g *group) where() string {
	if len(g.members) == 0 || slices.ContainsFunc(g.members, func(i int32) bool { return !g.all[i].OnDevice }) {
		return Where(&g.Finding)
	}
	if len(g.Ranks) == 1 {
		return "the GPU of " + Where(&g.Finding)
	}
	return "the GPUs of " + Where(&g.Finding)
}

func (c *conclusion) clock(at trace.Ticks) string {
	return text.Clock(c.seconds(at), c.seconds(c.end))
}

// shareOfRanks returns the share of the time of its ranks that the finding itself lost.
func (c *conclusion) shareOfRanks(g *group) float64 {
	return float64(g.LostOwn) / max(1, float64(c.end-c.begin)*float64(len(g.Ranks)))
}

// callsText returns the number of calls of a finding, or their share if they are many.
func (g *group) callsText() string {
	switch share := float64(g.Calls) / max(1, float64(g.OfCalls)); {
	case g.OfCalls == 0:
		return text.Count(g.Calls, "call")
	case g.Kind == provenance.RecurringMode || share >= 0.01 && g.Calls >= leastHits:
		return text.Percent(100*share) + " of the calls"
	}
	return fmt.Sprintf("%s of %s", text.Int(g.Calls), text.Count(g.OfCalls, "call"))
}

// made returns the median number of calls that the executions made, and the usual number.
func (g *group) made() (made, usual int64) {
	var all, usually []float64
	for _, i := range g.members {
		all, usually = append(all, float64(g.all[i].Children)), append(usually, float64(g.all[i].UsualChildren))
	}
	return int64(quantile(all, 0.5)), int64(quantile(usually, 0.5))
}

// costliest returns how many of the longest delays lost half of the time, and the shortest of these delays.
func (g *group) costliest() (n int, least trace.Ticks) {
	var lost []trace.Ticks
	for _, i := range g.members {
		lost = append(lost, g.all[i].Lost)
	}
	slices.Sort(lost)
	for sum := trace.Ticks(0); 2*sum < g.LostOwn && n < len(lost); n++ {
		least = lost[len(lost)-1-n]
		sum += least
	}
	return n, least
}

// mostHit returns the function that was hit most.
func (g *group) mostHit() string {
	counts := make(map[string]int)
	for _, i := range g.members {
		counts[g.all[i].Func]++
	}
	names := slices.Sorted(maps.Keys(counts))
	return text.ShortName(slices.MaxFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(b, a))
	}))
}

// reasonOf returns why anomalies were withdrawn.
func reasonOf(x *provenance.Finding) string {
	if x.OfCalls == 0 {
		return "such times are usual among all calls of the run"
	}
	return fmt.Sprintf("such times are usual among all %s calls of the run; %s of them had been flagged", text.Int(x.OfCalls),
		text.Percent(100*float64(x.Calls)/float64(x.OfCalls)))
}

// Where returns the rank of a finding, or the number of its ranks, with hosts.
func Where(x *provenance.Finding) string {
	words := text.Count(len(x.Ranks), "rank")
	if len(x.Ranks) == 1 {
		words = fmt.Sprintf("rank %d", x.Ranks[0])
	}
	if hosts := text.Hosts(x.Hosts); hosts != "" {
		words += " (" + hosts + ")"
	}
	return words
}

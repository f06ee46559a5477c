package findings

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Constants of the rules in docs/findings.md.
const (
	// A path is to blame for its delays, rather than an interruption, if they are more than blameRatio times as frequent in
	// its time without delays as those of all other paths together, or more than eachRatio times as those of each other path
	// with at least leastHits, and the probability of so many by chance is below blameChance. Other paths count if a delay of
	// the median length is visible in them: at least visibleRatio times their mean call.
	blameRatio   = 5
	eachRatio    = 2
	blameChance  = 1e-6
	visibleRatio = 10

	// Delays are interference if at least leastHits of them hit functions, at least leastFunctions of which at least leastEach
	// times, because one or two delays may have a cause of their own; or if they hit leastHits functions; or if leastHits of
	// them hit at least leastFunctions functions besides the one hit most.
	leastHits      = 10
	leastFunctions = 3
	leastEach      = 3

	// A rank has a finding for its interference alone if it loses more than rankRatio times as much as the median rank of its
	// host.
	rankRatio = 2

	// Slow calls recur if there are at least leastHits of them, if they occur in at least half of the occupancy parts of the
	// run that as many calls at random times would hit, and if the middle half of their lost times is within a factor of
	// likeTimes. They must also be at least modeShare of the calls on their ranks, or periodic, or have times that are not rare by
	// themselves: rare calls are outliers, however many of them a long run has.
	occupancy = 16
	likeTimes = 2
	modeShare = 0.01

	// Slow calls are periodic if the standard deviation of the gaps between those of a thread is less than gapDeviation times
	// the mean.
	gapDeviation = 0.1

	// Slow calls are the same on all ranks and throughout the run if counts by rank, and by quarter of the run, differ as much by
	// chance with a probability of at least byChance.
	byChance = 1e-3
	quarters = summary.ModeParts

	// A lasting change after less than one in startCalls of the calls only shows that the program had started. The detector
	// does not consider such a small share of calls usual either.
	startCalls = 8

	// Waits of unknown cause for a GPU, threads or another program that cost less than symptomShare of the time are notes.
	symptomShare = 1e-3

	// falseAlarms is the share of normal calls that the detector flags.
	falseAlarms = 1e-6
)

// recurs reports whether outliers recur throughout the run.
func (c *conclusion) recurs(g *group) bool {
	if len(g.members) < leastHits || g.OfCalls == 0 || !c.isShare(g) && g.period(c.run.Unit) == nil {
		return false
	}
	lost := g.losses()
	return c.isSpread(g) && quantile(lost, 0.75) <= likeTimes*quantile(lost, 0.25)
}

// usual reports whether the times of all calls are common by themselves.
func (g *group) usual() bool {
	return !slices.ContainsFunc(g.members, func(i int32) bool { return !g.all[i].Usual })
}

// isShare reports whether the calls are a considerable share of those on their ranks.
func (c *conclusion) isShare(g *group) bool {
	if g.usual() {
		return true
	}
	ranks := make(map[trace.Rank]bool)
	for _, i := range g.members {
		ranks[g.all[i].Rank] = true
	}
	all := max(c.profile.ranks[g.PID], len(ranks))
	return float64(len(g.members))*float64(all) >= modeShare*float64(g.OfCalls)*float64(len(ranks))
}

// isSpread reports whether calls occur in at least half of the parts of the run that as many at random times would hit.
func (c *conclusion) isSpread(g *group) bool {
	hit := make(map[int]bool)
	for _, i := range g.members {
		hit[c.partOf(g.all[i].Entry, occupancy)] = true
	}
	return float64(len(hit)) >= expectedOccupancy(len(g.members), occupancy)/2
}

// describeMode sets the period of recurring calls and the ranks that have them.
func (c *conclusion) describeMode(g *group) {
	g.Period = g.period(c.run.Unit)
	c.spread(g)
}

// spread decides whether calls are on all ranks and throughout the run, and therefore normal for the program.
func (c *conclusion) spread(g *group) {
	all := max(c.profile.ranks[g.PID], len(g.Ranks))
	ranks := make([]int64, c.withRolesOf(g, all))
	for _, i := range g.members {
		at, _ := slices.BinarySearch(g.Ranks, g.all[i].Rank)
		ranks[at]++
	}
	g.everywhere, g.always = evenChance(ranks) >= byChance, c.timeChance(g) >= byChance
	g.ofRole = len(ranks) < all
	if g.everywhere && g.always {
		g.Severity = provenance.Note
	}
}

// timeChance returns the probability that calls differ as much by time. It compares those of a slow mode with all calls of
// which the mode is a share, because a program may call a function more often at one time than at another.
func (c *conclusion) timeChance(g *group) float64 {
	mode := c.profile.mode(&g.all[g.members[0]])
	ofMode := mode != nil && len(mode.Parts) == quarters
	times := make([]int64, quarters)
	begin, end := c.spanOf(g.PID)
	for _, i := range g.members {
		ofMode = ofMode && c.profile.mode(&g.all[i]) == mode
		times[partOf(g.all[i].Entry, begin, end, quarters)]++
	}
	if !ofMode {
		return evenChance(times)
	}
	clear(times)
	calls := make([]float64, quarters)
	for part := range calls {
		calls[part] = mode.Parts[part].Calls
	}
	for _, i := range g.members {
		part := slices.IndexFunc(mode.Parts[:quarters-1], func(p outlier.Part) bool { return int64(g.all[i].Exit) < p.Until })
		if part < 0 {
			part = quarters - 1
		}
		times[part]++
	}
	return shareChance(times, calls)
}

// period returns the time between the executions of a thread in seconds, or nil if it is irregular.
func (g *group) period(unit trace.Unit) *float64 {
	last := make(map[threadKey]trace.Ticks)
	var gaps []float64
	for _, i := range g.members {
		a := &g.all[i]
		t := threadKey{a.Rank, a.Thread}
		if at, ok := last[t]; ok {
			gaps = append(gaps, float64(a.Entry-at))
		}
		last[t] = a.Entry
	}
	mean, deviation := moments(gaps)
	if len(gaps) < 2 || mean <= 0 || deviation >= gapDeviation*mean {
		return nil
	}
	mean = unit.MicrosOf(mean) / 1e6
	return &mean
}

// excuse turns findings that show no trouble into notes: waits that are only a symptom, and calls that are not rare if they
// explain no more waits than chance does: one wait in twenty is late by chance at the same time as such a call (blame.ByChance).
func (c *conclusion) excuse() {
	type counts struct{ explained, unknown int64 }
	programs := make(map[trace.Program]counts)
	var usual []*group
	for _, g := range c.all {
		if g.cause != nil || g.peer != nil {
			continue
		}
		n := programs[g.PID]
		switch {
		case g.isUnknownWait():
			n.unknown += g.Calls
			if c.waitsForRanks(g.Func) || g.Share < symptomShare {
				g.Severity = provenance.Note
			}
		case g.Kind == provenance.Outlier && g.usual():
			n.explained += g.Waits
			usual = append(usual, g)
		}
		programs[g.PID] = n
	}
	for _, g := range usual {
		if n := programs[g.PID]; binomialTail(n.explained, n.explained+n.unknown, blame.ByChance) >= byChance {
			g.Severity = provenance.Note
		}
	}
}

// isUnknownWait reports whether the calls of a group waited for something that was late without an unusual call, such as a rank that
// has more work than others. No message was late, and no rank was held up.
func (g *group) isUnknownWait() bool {
	return (g.Kind == provenance.Waiting || g.Kind == provenance.RecurringMode) && g.Role != provenance.Culprit &&
		len(g.members) > 0 && g.all[g.members[0]].Wait != blame.Nothing
}

// waitsForRanks reports whether calls of a function wait for other ranks.
func (c *conclusion) waitsForRanks(function string) bool {
	w := c.run.WaitOf(function)
	return w == blame.Ranks || w == blame.Group
}

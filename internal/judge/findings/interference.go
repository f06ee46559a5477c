package findings

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// interference sets the keys of delays that hit whatever runs, unless they have a key. order has the anomalies in order of
// entry.
func (c *conclusion) interference(order []int32, keys map[int32]*key) {
	order = slices.DeleteFunc(slices.Clone(order), func(i int32) bool { return keys[i] != nil })
	programs := make(map[trace.Program][]int32)
	for _, i := range order {
		a := &c.run.Anomalies[i]
		u, ok := c.profile.paths[c.pathOf(a)]
		if ok && u.calls > 0 && !u.waits && a.Wait == blame.Nothing && a.Kind != provenance.TooManyCalls && !a.OnDevice &&
			a.Lost > 0 && a.Kind != provenance.RarelyCalled {
			programs[a.Program] = append(programs[a.Program], i)
		}
	}
	for program, hits := range programs {
		if hits, hosts := c.interferenceOf(c.notToBlame(program, hits), c.heldUp(program, order)); len(hits) > 0 {
			c.place(program, append(hits, c.likeOthers(program, hits, c.inWaits(program, hosts, order))...), keys)
		}
	}
}

// interferenceOf returns the delays that are interference, and their hosts. If the numbers of delays of hosts differ by more
// than chance, it tests each host separately, and those with too few delays together, because what interrupts one host does not
// explain a few delays on others.
func (c *conclusion) interferenceOf(hits, heldUp []int32) (of []int32, hosts map[string]bool) {
	byHost, held := make(map[string][]int32), make(map[string][]int32)
	for _, i := range heldUp {
		host := c.run.Anomalies[i].Host
		held[host] = append(held[host], i)
	}
	for _, i := range hits {
		host := c.run.Anomalies[i].Host
		byHost[host] = append(byHost[host], i)
	}
	hosts = make(map[string]bool)
	var counts []int64
	var rest []int32
	for host, some := range byHost {
		counts = append(counts, int64(len(some)))
		some = slices.Concat(some, held[host])
		if hosts[host] = c.isInterference(some); !hosts[host] {
			rest = append(rest, some...)
		}
	}
	slices.Sort(counts)
	if evenChance(counts) >= byChance {
		rest = slices.Concat(hits, heldUp)
	}
	all := c.isInterference(rest)
	for host := range hosts {
		hosts[host] = hosts[host] || all
	}
	return slices.DeleteFunc(hits, func(i int32) bool { return !hosts[c.run.Anomalies[i].Host] }), hosts
}

// heldUp returns the delays that held up a rank in a collective call, so that it stayed there after others had left.
func (c *conclusion) heldUp(program trace.Program, order []int32) (hits []int32) {
	for _, i := range order {
		if a := &c.run.Anomalies[i]; a.Program == program && a.Wait == blame.Group && c.links[i].Role == provenance.Culprit {
			hits = append(hits, i)
		}
	}
	return hits
}

// inWaits returns the delays that hit a rank of these hosts in a function that waits for others, and so made others wait.
func (c *conclusion) inWaits(program trace.Program, hosts map[string]bool, order []int32) (hits []int32) {
	for _, i := range order {
		a := &c.run.Anomalies[i]
		if a.Program == program && hosts[a.Host] && (a.Wait == blame.Ranks || a.Wait == blame.Group) && c.links[i].Role == provenance.Culprit {
			hits = append(hits, i)
		}
	}
	return hits
}

// likeOthers returns the delays in functions that wait. It omits those of a function on a rank that has far more of them than of
// the delays that hit whatever runs, because there the function waited for something late.
func (c *conclusion) likeOthers(program trace.Program, hits, inWaits []int32) []int32 {
	type place struct {
		function string
		rank     trace.Rank
	}
	ranks, functions, places := make(map[trace.Rank]int64), make(map[string]int64), make(map[place]int64)
	for _, i := range hits {
		ranks[c.run.Anomalies[i].Rank]++
	}
	waiting, all := c.waiting(program)
	for _, i := range inWaits {
		a := &c.run.Anomalies[i]
		functions[a.Func]++
		places[place{a.Func, a.Rank}]++
		waiting[a.Rank], all = waiting[a.Rank]-a.Lost, all-a.Lost
	}
	return slices.DeleteFunc(inWaits, func(i int32) bool {
		a := &c.run.Anomalies[i]
		n, of := places[place{a.Func, a.Rank}], functions[a.Func]
		share := float64(ranks[a.Rank]+1) / float64(len(hits)+1)
		if all > 0 {
			share = max(share, float64(waiting[a.Rank])/float64(all))
		}
		return float64(n) > eachRatio*share*float64(of) && binomialTail(n, of, share) < blameChance
	})
}

// waiting returns the time that each rank of a program waited, and the sum.
func (c *conclusion) waiting(program trace.Program) (ranks map[trace.Rank]trace.Ticks, all trace.Ticks) {
	ranks = make(map[trace.Rank]trace.Ticks)
	for i := range c.comparison.Loads {
		if l := &c.comparison.Loads[i]; l.PID == program && l.TID == provenance.AllThreads && !l.Device {
			ranks[l.RID] += l.Wait
			all += l.Wait
		}
	}
	return ranks, all
}

// suspect is a call path of a program that may be to blame for its delays.
type suspect struct {
	path string
	usage
	time float64 // without delays
	mean float64 // mean time of a call
	// Delays by length: those of the path's slow mode, and others; nil if there are none.
	mode, others *lengths
}

// lengths counts delays by length; a length is a range between powers of two.
type lengths struct {
	hits   [maxLengths]int64
	blamed uint64 // bit set of the lengths for which the path is to blame
}

const maxLengths = 48

func lengthOf(a *blame.Anomaly) int { return min(bits.Len64(uint64(a.Lost)), maxLengths-1) }

// between returns the number of delays with lengths from one to another that the path is not to blame for.
func (l *lengths) between(from, to int) (n int64) {
	if l != nil {
		for k := from; k <= to; k++ {
			if l.blamed>>k&1 == 0 {
				n += l.hits[k]
			}
		}
	}
	return n
}

// shortest returns the length of the shortest delays that the path is not to blame for, or 0.
func (l *lengths) shortest() int {
	for k := range maxLengths {
		if l.between(k, k) > 0 {
			return k
		}
	}
	return 0
}

// median returns the median length of these delays in ticks, to a factor of two.
func (l *lengths) median(from, to int) float64 {
	left := (l.between(from, to) + 1) / 2
	for from < to && l.between(from, from) < left {
		left -= l.between(from, from)
		from++
	}
	return middle(from)
}

// middle returns the middle of a length in ticks.
func middle(length int) float64 { return 0.75 * math.Exp2(float64(length)) }

func (x *suspect) hits(from, to int) int64 {
	return x.mode.between(from, to) + x.others.between(from, to)
}

// of returns the counts that include an anomaly.
func (x *suspect) of(a *blame.Anomaly) **lengths {
	if a.Kind == provenance.Recurring {
		return &x.mode
	}
	return &x.others
}

// exposed returns the time of the path, or 0 if the path is to blame for all of its delays.
func (x *suspect) exposed() float64 {
	blamed := x.mode != nil && x.mode.blamed != 0 || x.others != nil && x.others.blamed != 0
	if blamed && x.hits(0, maxLengths-1) == 0 {
		return 0
	}
	return x.time
}

// suspects returns the call paths of a program that compute, by the mean time of their calls.
func (c *conclusion) suspects(program trace.Program, hits []int32) (all []*suspect, byPath map[string]*suspect) {
	byPath = make(map[string]*suspect)
	for k, u := range c.profile.paths {
		if k.program == program && !u.waits && u.calls > 0 {
			byPath[k.path] = &suspect{path: k.path, usage: u, time: float64(u.exclusive), mean: float64(u.calls)}
		}
	}
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		x := byPath[c.names.stable(a.Path)]
		l := x.of(a)
		if *l == nil {
			*l = new(lengths)
		}
		(*l).hits[lengthOf(a)]++
		x.time = max(1, x.time-float64(a.Lost))
	}
	all = slices.Collect(maps.Values(byPath))
	for _, x := range all {
		x.mean = x.time / x.mean
	}
	slices.SortFunc(all, func(a, b *suspect) int { return cmp.Or(cmp.Compare(a.mean, b.mean), cmp.Compare(a.path, b.path)) })
	return all, byPath
}

// delays are the delays of a path within a range of lengths.
type delays struct {
	*lengths
	from, to int
}

// like returns the range of delays of other paths that are like these: it is wider by a factor of two at both ends, because the
// border between two lengths may divide delays of one kind.
func (d delays) like() (from, to int) { return max(0, d.from-1), min(d.to+1, maxLengths-1) }

// candidates returns the delays for which a path may be to blame: those of its slow mode, all others, which chance compares
// with all delays and with those at least as long as the shortest, and those within any range of lengths. A function that
// sends is never to blame: it wakes other processes, which interrupt it more often than its time suggests. They may delay its
// caller for longer than others, so the caller has no ranges.
func (x *suspect) candidates() (all []delays) {
	if x.sends {
		return nil
	}
	if x.mode.between(0, maxLengths-1) > 0 {
		all = append(all, delays{x.mode, 0, maxLengths - 1})
	}
	if x.others.between(0, maxLengths-1) > 0 {
		all = append(all, delays{x.others, 0, maxLengths - 1})
		if from := x.others.shortest(); from > 0 && !x.wakes {
			all = append(all, delays{x.others, from, maxLengths - 1})
		}
	}
	for from := range maxLengths {
		for to := from; to < maxLengths && !x.wakes && x.others.between(from, from) > 0; to++ {
			if x.others.between(to, to) > 0 && x.others.between(from, to) >= leastHits {
				all = append(all, delays{x.others, from, to})
			}
		}
	}
	return all
}

// notToBlame removes the delays for which paths are to blame, one path after another. It compares a path with those in which
// delays like its own would be noticeable.
func (c *conclusion) notToBlame(program trace.Program, hits []int32) []int32 {
	all, byPath := c.suspects(program, hits)
	delayed := slices.DeleteFunc(slices.Clone(all), func(x *suspect) bool { return x.hits(0, maxLengths-1) == 0 })
	times := make([]float64, len(all)+1) // sums for the paths with the shortest calls
	for {
		for i, x := range all {
			times[i+1] = times[i] + x.exposed()
		}
		var worst delays
		least := blameChance
		for _, x := range delayed {
			candidates := x.candidates()
			for _, d := range candidates {
				// Such a delay could hide in longer calls.
				longest := max(x.mean, d.median(d.from, d.to)/visibleRatio)
				end := sort.Search(len(all), func(k int) bool { return all[k].mean > longest })
				if p := x.chance(d, delayed, longest, times[end]-x.exposed()) * float64(len(candidates)); p < least {
					worst, least = d, p
				}
			}
		}
		if worst.lengths == nil {
			break
		}
		for k := worst.from; k <= worst.to; k++ {
			worst.blamed |= 1 << k
		}
	}
	return slices.DeleteFunc(hits, func(i int32) bool {
		a := &c.run.Anomalies[i]
		return (*byPath[c.names.stable(a.Path)].of(a)).blamed>>lengthOf(a)&1 != 0
	})
}

// chance returns the probability of the delays of a path if they are as frequent in it as delays like them in other paths whose
// mean calls are not longer than longest; 1 if they are not far more frequent.
func (x *suspect) chance(d delays, others []*suspect, longest, time float64) float64 {
	var hits, all, most int64
	var mostTime float64 // time of the path that is delayed most often relative to its time
	from, to := d.like()
	for _, o := range others {
		if o == x || o.mean > longest {
			continue
		}
		n := o.hits(from, to)
		hits, all = hits+n, all+o.hits(0, maxLengths-1)
		if n >= leastHits && (most == 0 || float64(n)*mostTime > float64(most)*o.time) {
			most, mostTime = n, o.time
		}
	}
	n, own := d.between(d.from, d.to), d.between(0, maxLengths-1)
	p := x.chanceOf(n, blameRatio, hits, time)
	if most > 0 {
		p = min(p, x.chanceOf(n, eachRatio, most, mostTime))
	}
	if d.from > 0 && n < own { // their lengths must differ from those of other paths
		share := float64(hits+1) / float64(all+1)
		if float64(n) <= eachRatio*share*float64(own) {
			return 1
		}
		p = max(p, binomialTail(n, own, share))
	}
	return p
}

// chanceOf returns the probability of n delays of the path if they are as frequent as hits within time; 1 if they are at most
// ratio times as frequent.
func (x *suspect) chanceOf(n int64, ratio float64, hits int64, time float64) float64 {
	if float64(n)*time <= ratio*float64(hits)*x.time {
		return 1
	}
	return binomialTail(n, n+hits, x.time/(x.time+time))
}

// isInterference reports whether delays hit many functions several times, not counting functions that send. Collective calls in
// which ranks were held up count as one function if at least leastHits delays hit functions other than the one hit most.
func (c *conclusion) isInterference(hits []int32) bool {
	functions, n, most, several, heldUp := make(map[string]int), 0, 0, 0, 0
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		switch {
		case c.profile.paths[c.pathOf(a)].sends:
			continue
		case a.Wait != blame.Nothing:
			heldUp++
			continue
		}
		n++
		if functions[a.Func]++; functions[a.Func] == leastEach {
			several++
		}
		most = max(most, functions[a.Func])
	}
	others := n - most
	if heldUp > most {
		others = n
	}
	if heldUp >= leastEach && others >= leastHits {
		several++
	}
	return n >= leastHits && (several >= leastFunctions || len(functions) >= leastHits) ||
		n-most >= leastHits && len(functions) > leastFunctions
}

// addHidden adds an estimate of the delays hidden in long calls to those of interference: as many of each length per time of
// these calls as per time of the calls in which such delays are visible.
func (c *conclusion) addHidden(g *group) {
	var here [maxLengths]struct {
		hits, lost    float64
		visible, seen float64 // hits and time of paths in which such delays are visible
	}
	total := 0.0
	for k, u := range c.profile.paths {
		if k.program != g.PID || u.waits || u.calls == 0 {
			continue
		}
		total += float64(u.exclusive)
		for l := range here {
			if c.shows(l, u) {
				here[l].seen += float64(u.exclusive)
			}
		}
	}
	for _, i := range g.members {
		a := &g.all[i]
		h := &here[lengthOf(a)]
		h.hits++
		h.lost += float64(a.Lost)
		if u, ok := c.profile.paths[c.pathOf(a)]; ok && !u.waits && c.shows(lengthOf(a), u) {
			h.visible++
		}
	}
	calls, lost := float64(g.Calls), float64(g.LostOwn)
	for _, h := range here {
		if hidden := h.visible*total/max(1, h.seen) - h.hits; h.visible >= leastHits && hidden > 0 {
			calls, lost = calls+hidden, lost+hidden*h.lost/h.hits
		}
	}
	g.Calls, g.LostOwn = int64(calls), trace.Ticks(lost)
}

// shows reports whether delays of a length are visible in the calls of a path.
func (c *conclusion) shows(length int, u usage) bool {
	return visibleRatio*float64(u.exclusive) <= middle(length)*float64(u.calls)
}

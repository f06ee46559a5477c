package peers

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A unit is slow in an interval if its time is at least leastRatio times that of its peers in leastWindows of the windows,
// and in at least fewestWindows, and if its mean logarithm is at least leastZ times the spread of its peers: that of their
// means over the same interval or, if greater, over the shortest intervals, and at least leastSpread. Healthy GPUs of one
// kind differ by 8 %, at most by 22 %. Fewer than enoughPeers do not show how much units differ: then the unit must also be
// slower than in the rest of the run, by so much that noise explains it in at most weakChance of all runs. If the rest is
// shorter than fewestBatches of the shortest intervals, the unit must be slower by fewPeersRatio, and either slower than in
// the rest or by leastZ times the spread of its peers.
const (
	leastRatio       = 1.05
	leastDeviceRatio = 1.10
	leastZ           = 6
	leastSpread      = 0.01
	leastWindows     = 0.6
	fewestWindows    = 5
	fewestWide       = 3   // if windows are wide because there are many lanes
	manyLanes        = 512 // more lanes have wider windows
	enoughPeers      = 4
	fewPeersRatio    = 1.25
	weakChance       = 0.01
	fewestBatches    = 3
)

// edge is the share of the windows of a unit, at the beginning or the end of the run, that is too short to show whether the
// unit is slow there as well.
const edge = 0.05

// leastSaved is the least share of the run that uneven work, or a changing slow rank, must cost for a note.
const leastSaved = 0.05

// interval is when a unit is slow.
type interval struct {
	pattern     provenance.Pattern
	first, last int // windows
	from, to    trace.Ticks
	start, open bool    // it begins with the run, or lasts to its end
	level       float64 // mean logarithm of the ratio
	z           float64
	weak        bool    // there are too few peers
	chance      float64 // if weak, the probability that noise gives so much in any interval
	functions   map[uint32]functionTime
	lostOwn     float64
	// waits are the functions in which others wait, if only one function is slow.
	waits []uint32
	extra bool // the unit makes more calls, rather than slower ones
	peers int  // number of peers of a unit with extra work
}

func (v *interval) includes(w int) bool { return v.first <= w && w <= v.last }

func (v *interval) overlaps(o *interval) bool { return v.from < o.to && o.from < v.to }

// interval returns when a unit is slow, or nil.
func (c *comparison) interval(p *population, r *role, u *unit, g *group) *interval {
	windows, values := u.comparable()
	from, to := c.segment(values, p.least)
	if to == 0 {
		return nil
	}
	margin := max(1, int(edge*float64(len(windows))))
	v := &interval{
		first: windows[from], last: windows[to-1], start: from <= margin, open: len(windows)-to <= margin, weak: u.peers < enoughPeers,
		level: mean(values[from:to]),
	}
	switch {
	case v.start && v.open:
		v.pattern = provenance.Always
	case v.open:
		v.pattern = provenance.Since
	default:
		v.pattern = provenance.Phase
	}
	if spread := max(leastSpread, g.spread); v.level >= leastZ*spread {
		v.z = v.level / max(spread, g.spreadIn(r.units, v.first, v.last))
	}
	if v.weak && !c.standsOut(u, v, values, from, to) || !v.weak && v.z < leastZ {
		return nil
	}
	if u.function != nil && !v.weak {
		v.chance = g.chanceOf(r.units, u, v)
	}
	v.z = max(v.z, leastZ)
	c.refine(u, v, windows, values, from, to, max(p.least, edges*g.spread, edges*v.level/v.z))
	return v
}

// standsOut reports whether a unit with few peers is slow. If there is time before or after the interval, the unit is
// compared with itself at that time. If that time is short or missing, the unit must be much slower than its peers; if only
// that shows it, than several peers, because a single one may be fast.
func (c *comparison) standsOut(u *unit, v *interval, values []float64, from, to int) bool {
	if rest := len(values) - (to - from); rest < fewestBatches*c.fewest {
		apart := u.peers > 1 && v.z >= leastZ
		if v.chance = studentTail(v.z, float64(u.peers-1)); v.level < math.Log(fewPeersRatio) {
			return false
		}
		if apart || rest < c.fewest {
			return apart
		}
	}
	v.chance = min(1, c.ownChance(u, v, values, from, to)*float64(len(values)/c.fewest))
	return v.chance < weakChance
}

// ownChance returns the probability that noise makes a unit as slow as it is in an interval, relative to its peers and,
// relative to them and to itself, in comparison with the rest of the run. The means of the ratio over batches of windows in
// the rest, and in the interval as well if the rest is short, measure how much it varies; windows need not be independent.
// Few of them may be disturbed.
func (c *comparison) ownChance(u *unit, v *interval, values []float64, from, to int) float64 {
	rest := slices.Concat(values[:from], values[to:])
	least := min(v.level, v.level-mean(rest), math.Log(max(c.ownRatio(u, v.includes), 1e-9)))
	spread := max(leastSpread, deviation(appendMeans(nil, rest, c.fewest)))
	batches, inside := float64(len(rest))/float64(c.fewest), float64(to-from)/float64(c.fewest)
	degrees := batches - 1
	if batches < fewestBatches { // too few batches to measure the spread alone
		in := max(leastSpread, deviation(appendMeans(nil, values[from:to], c.fewest)))
		spread = math.Sqrt((batches*spread*spread + inside*in*in) / (batches + inside))
		degrees += inside - 1
	}
	return studentTail(least/(spread*math.Sqrt(1/inside+1/batches)), degrees)
}

// studentTail approximates the probability that a value with Student's distribution is greater (Wallace).
func studentTail(t, degrees float64) float64 {
	if !(t > 0) || degrees < 1 {
		return 1
	}
	z := (8*degrees + 1) / (8*degrees + 3) * math.Sqrt(degrees*math.Log1p(t*t/degrees))
	return math.Erfc(z/math.Sqrt2) / 2
}

// comparable returns the windows of a unit with enough comparable work, and the logarithms of the ratios.
func (u *unit) comparable() (windows []int, values []float64) {
	n := 0
	for _, e := range u.expected {
		if e > 0 {
			n++
		}
	}
	least := sum(u.expected) / float64(max(1, n)) / 10
	for w, x := range u.excess {
		if !math.IsNaN(x) && u.expected[w] >= least {
			windows, values = append(windows, w), append(values, x)
		}
	}
	return windows, values
}

// segment returns the interval of values that stands out most from 0, among those whose mean and most of whose values are at
// least least; 0, 0 if there is none. A few extreme values do not count more than others.
func (c *comparison) segment(values []float64, least float64) (from, to int) {
	limit := math.Inf(1)
	for range 2 {
		if from, to = c.densest(values, least, limit); to == 0 {
			return 0, 0
		}
		limit = 2 * median(slices.Clone(values[from:to]))
	}
	return from, to
}

// densest is like segment with a limit of values.
func (c *comparison) densest(values []float64, least, limit float64) (from, to int) {
	sums, above := make([]float64, len(values)+1), make([]int, len(values)+1)
	for i, x := range values {
		sums[i+1], above[i+1] = sums[i]+min(x, limit), above[i]
		if x >= least {
			above[i+1]++
		}
	}
	most := 0.0
	for i := range values {
		if above[len(values)]-above[i] < c.fewest {
			break
		}
		for k := i + c.fewest; k <= len(values); k++ {
			n, s := float64(k-i), sums[k]-sums[i]
			if slow := float64(above[k] - above[i]); slow >= max(float64(c.fewest), leastWindows*n) && s >= n*least && s*s/n > most {
				from, to, most = i, k, s*s/n
			}
		}
	}
	return from, to
}

// edges is the least multiple of the spread with which a window next to an interval belongs to it.
const edges = 3

// refine finds the times at which a unit became slow and recovered.
func (c *comparison) refine(u *unit, v *interval, windows []int, values []float64, from, to int, least float64) {
	for from > 0 && windows[from-1] == windows[from]-1 && values[from-1] >= least {
		from--
	}
	for to < len(windows) && windows[to] == windows[to-1]+1 && values[to] >= least {
		to++
	}
	v.first, v.last, v.from, v.to = 0, c.windows-1, u.First, u.Last
	if !v.start {
		v.first = windows[from]
		begin, end := c.bounds(v.first)
		v.from = end - trace.Ticks(slowPart(values[from], values[from+1], v.level)*float64(end-begin))
	}
	if !v.open {
		v.last = windows[to-1]
		begin, end := c.bounds(v.last)
		v.to = begin + trace.Ticks(slowPart(values[to-1], values[to-2], v.level)*float64(end-begin))
	}
	for w := v.first; w <= v.last; w++ {
		v.lostOwn += u.time[w] - u.expected[w]
	}
}

// slowPart returns the part of the first or last window of an interval for which a unit was slow. If the ratio is ρ while the
// unit is slow, as in the next window, and it is slow for a part f of the window, then the ratio of the window is
// 1/(1−f+f/ρ).
func slowPart(value, next, level float64) float64 {
	slow := min(next, level)
	if value >= slow {
		return 1
	}
	return max(0, (1-math.Exp(-value))/(1-math.Exp(-slow)))
}

// blameThreads decides whether slow threads or their rank are to blame: the threads, unless they do most of the work of the
// rank. It removes the others.
func blameThreads(ranks, threads *population) {
	byRank := make(map[trace.Rank]*unit)
	for _, u := range ranks.units {
		byRank[u.Rank] = u
	}
	work := make(map[trace.Rank]float64) // of slow threads
	for _, u := range threads.units {
		if u.slow != nil {
			work[u.Rank] += sum(u.expected)
		}
	}
	for _, u := range threads.units {
		if u.slow == nil {
			continue
		}
		r := byRank[u.Rank]
		if r.slow != nil && 2*work[u.Rank] > sum(r.expected) {
			u.slow = nil
		}
	}
	for _, u := range threads.units {
		if u.slow != nil {
			byRank[u.Rank].slow = nil
		}
	}
}

// blameDevices decides whether the GPU or the host of a rank does extra work: the one with more of it, because the host
// launches the work of the GPU.
func blameDevices(ranks, devices *population) {
	extra := func(u *unit) bool { return u.slow != nil && u.slow.extra }
	for _, r := range ranks.units {
		if !extra(r) {
			continue
		}
		for _, d := range devices.units {
			if d.Rank != r.Rank || !extra(d) || !d.slow.overlaps(r.slow) {
				continue
			}
			if d.slow.lostOwn >= r.slow.lostOwn {
				r.slow = nil
				break
			}
			d.slow = nil
		}
	}
}

// slowPeers returns the slow peers of a population.
func (c *comparison) slowPeers(p *population) []provenance.SlowPeer {
	var all []provenance.SlowPeer
	if p.ofRanks {
		if s := c.roaming(p); s != nil {
			all = append(all, *s)
		}
	}
	for _, some := range p.places() {
		all = append(all, c.slowPeer(p, some))
	}
	if p.ofRanks {
		if s := c.unevenRole(p); s != nil {
			all = append(all, *s)
		}
	}
	return all
}

// mostPlaces is the number of places to report separately. If more are slow, those with the same pattern are reported together.
const mostPlaces = 16

// places returns the slow units by place.
func (p *population) places() (all [][]*unit) {
	slow := slices.DeleteFunc(slices.Clone(p.units), func(u *unit) bool { return u.slow == nil })
	for len(slow) > 0 {
		some := make(map[*unit]bool)
		all = append(all, p.slowHost(slow))
		for _, u := range all[len(all)-1] {
			some[u] = true
		}
		slow = slices.DeleteFunc(slow, func(u *unit) bool { return some[u] })
	}
	if len(all) <= mostPlaces {
		return all
	}
	type kind struct {
		pattern provenance.Pattern
		extra   bool
	}
	at := make(map[kind]int)
	var together [][]*unit
	for _, some := range all {
		kind := kind{commonPattern(some), some[0].slow.extra}
		i, ok := at[kind]
		if !ok {
			i = len(together)
			at[kind] = i
			together = append(together, nil)
		}
		together[i] = append(together[i], some...)
	}
	return together
}

// slowHost returns the slow units that are slow because their host is, including the first one. A host is slow if most of its
// units are slow at the same time, and most units of other hosts are not. If it is not, slowHost returns only the first unit,
// or all streams of its GPU.
func (p *population) slowHost(slow []*unit) []*unit {
	first := slow[0]
	var some, same []*unit
	ranks := make(map[trace.Rank]bool)
	n, others := 0, 0
	for _, u := range slow {
		switch {
		case !u.slow.overlaps(first.slow) || u.slow.extra != first.slow.extra:
		case u.Host == first.Host:
			some = append(some, u)
			ranks[u.Rank] = true
			if u.Rank == first.Rank && (p.device || u == first) {
				same = append(same, u) // streams of the same GPU
			}
		default:
			others++
		}
	}
	for _, u := range p.units {
		if u.Host == first.Host {
			n++
		}
	}
	if !hasName(first.Host) || len(ranks) < 2 || 2*len(some) <= n || 2*others > len(p.units)-n || n == len(p.units) {
		return same
	}
	return some
}

// slowPeer returns the slow peer of some units: a single one, or several of a host.
func (c *comparison) slowPeer(p *population, some []*unit) provenance.SlowPeer {
	first := some[0]
	s := provenance.SlowPeer{
		PID: p.program, Pattern: commonPattern(some), TID: first.tid, Device: p.device, Role: first.role, Hosts: []string{},
		Peers: first.peers,
	}
	if first.slow.extra {
		s.Peers = first.slow.peers
	}
	var from, to, level, z []float64
	open := 0
	for _, u := range some {
		from, to = append(from, float64(u.slow.from)), append(to, float64(u.slow.to))
		level, z = append(level, sum(u.time[u.slow.first:u.slow.last+1])), append(z, u.slow.z)
		if u.slow.open {
			open++
		}
		s.Weak = s.Weak || u.slow.weak
		s.Ranks = append(s.Ranks, u.Rank)
		if hasName(u.Host) {
			s.Hosts = append(s.Hosts, u.Host)
		}
		if u.tid != first.tid {
			s.TID = provenance.AllThreads
		}
		s.LostOwn += ticks(max(0, u.slow.lostOwn))
		for _, n := range u.slow.waits {
			s.HiddenWaits = append(s.HiddenWaits, c.name(p.program, n))
		}
	}
	slices.Sort(s.Ranks)
	slices.Sort(s.Hosts)
	slices.Sort(s.HiddenWaits)
	s.Ranks, s.Hosts, s.HiddenWaits = slices.Compact(s.Ranks), slices.Compact(s.Hosts), slices.Compact(s.HiddenWaits)
	if len(s.Ranks) > 1 {
		s.Peers = max(0, s.Peers+1-len(some))
		if len(s.Hosts) == 1 {
			s.Host = first.Host
		}
	}
	time := sum(level)
	s.Ratio = time / max(1, time-float64(s.LostOwn))
	s.From = c.seconds(trace.Ticks(median(from)))
	if 2*open <= len(some) {
		s.To = new(c.seconds(trace.Ticks(median(to))))
	}
	saved, caused := c.whatIf(p, some, (*unit).fixed)
	s.Saved, s.LostCaused = ticks(saved), ticks(caused)
	s.Share = saved / max(1, float64(c.end-c.begin))
	if s.Confidence = confidence(median(z), len(p.units)*c.windows*c.windows/2); s.Weak {
		s.Confidence = 1 - first.slow.chance
	}
	c.addEvidence(p, some, &s)
	s.Counters = c.counters(p, some, s.Pattern)
	return s
}

// confidence returns the probability that chance does not give so great a deviation in any of several cases.
func confidence(z float64, cases int) float64 {
	return 1 - min(1, float64(cases)*math.Erfc(z/math.Sqrt2)/2)
}

// commonPattern returns the most frequent pattern of slow units.
func commonPattern(some []*unit) (pattern provenance.Pattern) {
	counts := make(map[provenance.Pattern]int)
	for _, u := range some {
		if counts[u.slow.pattern]++; counts[u.slow.pattern] > counts[pattern] {
			pattern = u.slow.pattern
		}
	}
	return pattern
}

// MaxFunctions is the greatest number of functions that are evidence of a slow peer.
const MaxFunctions = 5

// addEvidence adds the evidence for a slow peer.
func (c *comparison) addEvidence(p *population, some []*unit, s *provenance.SlowPeer) {
	all := make(map[uint32]functionTime)
	for _, u := range some {
		for n, f := range u.slow.functions {
			o := all[n]
			all[n] = functionTime{o.calls + f.calls, o.time + f.time, o.expected + f.expected, o.peerCalls + f.peerCalls}
		}
	}
	for n, f := range all {
		of := provenance.SlowFunction{
			Func: c.name(p.program, n), Calls: int64(f.calls), Mean: f.time / f.calls, Peers: f.expected / f.calls,
			Beyond: ticks(f.time - f.expected),
		}
		if some[0].slow.extra {
			of.PeerCalls = new(f.peerCalls)
		}
		s.Functions = append(s.Functions, of)
	}
	s.Functions = costliest(s.Functions)
	s.Windows = c.loadWindows(c.together(some), 0, c.windows)
	var near *unit
	var peerSync []float64
	distance := func(u *unit) float64 { return math.Abs(math.Log(sum(u.time) / sum(u.expected))) }
	for _, u := range p.units {
		if u.slow != nil || u.role != s.Role || sum(u.expected) <= 0 {
			continue
		}
		peerSync = append(peerSync, u.syncShare(some[0].slow))
		if near == nil || distance(u) < distance(near) {
			near = u
		}
	}
	if near != nil {
		s.Twin = &near.Rank
		s.PeerSync = median(peerSync)
	}
	for _, u := range some {
		s.SyncShare += u.syncShare(u.slow) / float64(len(some))
	}
}

// costliest returns the functions that lost most time.
func costliest(list []provenance.SlowFunction) []provenance.SlowFunction {
	slices.SortFunc(list, func(a, b provenance.SlowFunction) int {
		return cmp.Or(cmp.Compare(b.Beyond, a.Beyond), cmp.Compare(a.Func, b.Func))
	})
	return list[:min(MaxFunctions, len(list))]
}

// together returns the sum of units.
func (c *comparison) together(some []*unit) *unit {
	if len(some) == 1 {
		return some[0]
	}
	s := c.newUnit(&workload.Lane{}, provenance.AllThreads)
	for w := range c.windows {
		s.useful[w] = -1
		for _, u := range some {
			if u.useful[w] >= 0 {
				s.useful[w] = max(0, s.useful[w]) + u.useful[w]
			}
			s.wait[w] += u.wait[w]
			s.time[w] += u.time[w]
			s.expected[w] += u.expected[w]
		}
	}
	return s
}

// syncShare returns the share of the time of an interval that a unit spent in collective calls.
func (u *unit) syncShare(v *interval) float64 {
	var sync, all float64
	for w := v.first; w <= v.last; w++ {
		sync += u.sync[w]
		all += max(0, u.useful[w]) + u.wait[w]
	}
	return sync / max(1, all)
}

// compareSlow orders slow peers by cost.
func compareSlow(a, b provenance.SlowPeer) int {
	return cmp.Or(cmp.Compare(b.Saved, a.Saved), cmp.Compare(b.LostOwn, a.LostOwn), cmp.Compare(a.PID, b.PID),
		slices.Compare(a.Ranks, b.Ranks), cmp.Compare(a.TID, b.TID))
}

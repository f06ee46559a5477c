package findings

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// slots is the number of parts of the time of a program that are either hit or not. A rank or host must be hit in several of
// them to be slow for a while, so many calls within a moment count once.
const slots = 512

// slot returns the slot of a program that includes a time.
func (c *conclusion) slot(program trace.Program, at trace.Ticks) int {
	begin, end := c.spanOf(program)
	return partOf(at, begin, end, slots)
}

// place is a rank, or a host with several ranks, that was hit.
type place struct {
	host  string
	rank  trace.Rank // or allRanks
	ranks []trace.Rank
	hit   *sums // slots in which most of its ranks were hit
	cells *sums // slots of each of its ranks
	time  times // that its ranks computed, without delays; see computed
}

// sums has the number of hits in the slots before each slot.
type sums [slots + 1]int32

func (s *sums) of(from, to int) int { return int(s[to] - s[from]) }

// episode is an interval of slots in which a place was slow.
type episode struct {
	*place
	from, to int
	evidence float64
	key      *key
}

func (e *episode) includes(slot int) bool { return e.from <= slot && slot < e.to }

// slowPlaces sets the keys of the anomalies of ranks and hosts that were slow for a while: they were hit more often than in the
// rest of the run, and than other ranks at the same time, also compared by the time that all ranks computed then. This is the
// space-time scan of Kulldorff, with Chernoff's bound of the chance.
func (c *conclusion) slowPlaces(order []int32, keys map[int32]*key) {
	programs := make(map[trace.Program][]int32)
	for _, i := range order {
		if a := &c.run.Anomalies[i]; a.Lost > 0 && keys[i] == nil && a.Wait == blame.Nothing && c.delays(i) {
			programs[a.Program] = append(programs[a.Program], i)
		}
	}
	for program, hits := range programs {
		for episodes := c.episodes(program, hits); len(episodes) > 0; episodes = c.episodes(program, hits) {
			slow := make(map[trace.Rank]*episode)
			for _, e := range episodes {
				if slices.ContainsFunc(e.ranks, func(r trace.Rank) bool { return slow[r] != nil }) {
					continue // its host, or one of its ranks, stands out more
				}
				p := c.peerOf(program, e)
				if p == nil {
					p = c.newPlace(program, e, hits)
				}
				e.key = p.key
				for _, r := range e.ranks {
					slow[r] = e
				}
				c.waitsMeanwhile(order, e)
			}
			hits = slices.DeleteFunc(hits, func(i int32) bool {
				a := &c.run.Anomalies[i]
				e := slow[a.Rank]
				if e == nil || !e.includes(c.slot(a.Program, a.Entry)) {
					return false
				}
				keys[i] = e.key
				return true
			})
		}
	}
}

// waitsMeanwhile finds the waits of unknown cause that a slow place caused: waits for a late rank of the place during the
// episode, and waits of other ranks in the interval in which waits for the place and waits of unknown cause are most frequent,
// if it overlaps the episode. A place that slows down gradually makes others wait before its own calls are unusual.
func (c *conclusion) waitsMeanwhile(order []int32, e *episode) {
	var unknown []int32
	var hit sums
	for _, i := range order {
		a, l := &c.run.Anomalies[i], &c.links[i]
		if a.Program != e.key.program || a.Wait == blame.Nothing || l.Own || c.causes[i] != nil || slices.Contains(e.ranks, a.Rank) {
			continue
		}
		if l.Culprit < 0 {
			unknown = append(unknown, i)
			if l.Known && slices.Contains(e.ranks, l.Late) && e.includes(c.slot(a.Program, a.Entry)) {
				c.causes[i] = e.key // even if there are few such waits
			}
		} else if by := &c.run.Anomalies[l.Culprit]; !slices.Contains(e.ranks, by.Rank) || !e.includes(c.slot(by.Program, by.Entry)) {
			continue
		}
		hit[c.slot(a.Program, a.Entry)+1] = 1
	}
	hit.sum()
	waits := episode{place: e.place}
	waits.from, waits.to, _ = hit.densest(math.Log(slots*(slots+1)/2/blameChance), func(from, to int) bool {
		return from < e.to && e.from < to
	})
	for _, i := range unknown {
		if waits.includes(c.slot(e.key.program, c.run.Anomalies[i].Entry)) {
			c.causes[i] = e.key
		}
	}
}

// densest returns the interval of slots in which hits stand out most from the rest of the run, among those with at least the
// given evidence that ok accepts; 0 and 0 if there is none.
func (s *sums) densest(least float64, ok func(from, to int) bool) (from, to int, most float64) {
	n := int(s[slots])
	if evidence(n, n, float64(n)/slots) < least { // even a single interval with all hits is not enough
		return 0, 0, 0
	}
	for i := range slots {
		for j := i + 1; j <= slots && s.of(i, i+1) > 0; j++ {
			if s.of(j-1, j) == 0 {
				continue
			}
			if e := evidence(s.of(i, j), n, float64(j-i)/slots); e > max(most, least) && ok(i, j) {
				from, to, most = i, j, e
			}
		}
	}
	return from, to, most
}

// delays reports whether an anomaly is a delay of its own rank: it computes, and not more than usual, or others waited for it.
func (c *conclusion) delays(i int32) bool {
	a := &c.run.Anomalies[i]
	switch c.links[i].Role {
	case provenance.Victim:
		return false
	case provenance.Culprit:
		return a.Wait == blame.Nothing || a.Wait == blame.Ranks || a.Wait == blame.Group
	}
	return a.Wait == blame.Nothing && a.Kind != provenance.TooManyCalls
}

// episodes returns the places that stand out from others and from the rest of the run by more than chance, the strongest first,
// each with the interval that stands out most from the rest of the run.
func (c *conclusion) episodes(program trace.Program, hits []int32) (all []*episode) {
	places, anywhere, hit := c.places(hits)
	ranks := max(hit, c.profile.ranks[program])
	least := math.Log(float64(ranks+len(places)-hit) * slots * (slots + 1) / 2 / blameChance)
	computed := c.computed(program, places, hits)
	for _, p := range places {
		others := func(from, to int) float64 {
			share := float64(len(p.ranks)) / float64(ranks)
			if computed != nil {
				share = max(share, p.time.of(from, to)/computed.of(from, to))
			}
			return evidence(p.cells.of(from, to), anywhere.of(from, to), share)
		}
		e := &episode{place: p}
		e.from, e.to, e.evidence = p.hit.densest(least, func(from, to int) bool { return others(from, to) >= least })
		if e.to > 0 {
			e.evidence += others(e.from, e.to)
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b *episode) int { return cmp.Compare(b.evidence, a.evidence) })
	return all
}

// places returns the ranks that were hit and the hosts with several of them, the hits of all ranks by slot, and the number of
// ranks that were hit.
func (c *conclusion) places(hits []int32) (places []*place, all *sums, ranks int) {
	byRank, byHost := make(map[hostRank]*place), make(map[string]*place)
	all = new(sums)
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		k, slot := hostRank{a.Host, a.Rank}, c.slot(a.Program, a.Entry)
		p, host := byRank[k], byHost[k.host]
		if host == nil {
			host = &place{host: k.host, rank: allRanks, hit: new(sums), cells: new(sums)}
			byHost[k.host] = host
		}
		if p == nil {
			p = &place{host: k.host, rank: k.rank, ranks: []trace.Rank{k.rank}, hit: new(sums)}
			p.cells = p.hit
			byRank[k] = p
			places = append(places, p)
			host.ranks = append(host.ranks, k.rank)
		}
		if p.hit[slot+1] == 0 {
			p.hit[slot+1], host.cells[slot+1], all[slot+1] = 1, host.cells[slot+1]+1, all[slot+1]+1
		}
	}
	ranks = len(places)
	for _, h := range byHost {
		if len(h.ranks) > 1 {
			places = append(places, h)
		}
		for slot, n := range h.cells {
			if 2*int(n) > len(h.ranks) {
				h.hit[slot] = 1
			}
		}
		h.hit.sum()
		h.cells.sum()
	}
	for _, p := range places[:ranks] {
		p.hit.sum()
	}
	all.sum()
	slices.SortFunc(places, func(a, b *place) int { return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.rank, b.rank)) })
	return places, all, ranks
}

// times has the time before each slot.
type times []float64

func (t times) of(from, to int) float64 { return t[to] - t[from] }

// add spreads time evenly over the slots from one moment to another, in slots.
func (t times) add(from, to, time float64) {
	from = max(0, min(from, slots-1))
	to = min(slots, max(to, from+1e-6))
	for i := int(from); i < slots && float64(i) < to; i++ {
		t[i+1] += time * (min(to, float64(i+1)) - max(from, float64(i))) / (to - from)
	}
}

// computed returns the time that the ranks of a program computed, without delays, and sets that of places. It returns nil if it is
// unknown.
func (c *conclusion) computed(program trace.Program, places []*place, hits []int32) times {
	all, byRank := make(times, slots+1), make(map[trace.Rank][]times)
	for _, p := range places {
		p.time = make(times, slots+1)
		for _, r := range p.ranks {
			byRank[r] = append(byRank[r], p.time)
		}
	}
	begin, end := c.spanOf(program)
	slot := func(at trace.Ticks) float64 { return slots * float64(at-begin) / float64(max(1, end-begin)) }
	add := func(rank trace.Rank, from, to trace.Ticks, time float64) {
		all.add(slot(from), slot(to), time)
		for _, t := range byRank[rank] {
			t.add(slot(from), slot(to), time)
		}
	}
	known := false
	for i := range c.comparison.Loads {
		l := &c.comparison.Loads[i]
		if l.PID != program || l.TID != provenance.AllThreads || l.Device {
			continue
		}
		for _, w := range l.Windows {
			known = true
			add(l.RID, c.begin+c.run.Unit.FromSeconds(w.From), c.begin+c.run.Unit.FromSeconds(w.To), float64(w.Useful))
		}
	}
	if !known {
		return nil
	}
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		add(a.Rank, a.Entry, a.Exit, -float64(a.Lost))
	}
	for _, p := range places {
		p.time.sum()
	}
	all.sum()
	return all
}

// sum turns times in slots into times before them. Delays may take longer than calls that ended in a slot.
func (t times) sum() {
	for i := range slots {
		t[i+1] = t[i] + max(1, t[i+1])
	}
}

// sum turns counts into sums.
func (s *sums) sum() {
	for i := range slots {
		s[i+1] += s[i]
	}
}

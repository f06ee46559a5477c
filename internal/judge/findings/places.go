package findings

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// slots is the number of parts of the run that are hit or not. A rank or host must be hit in several
// of them to be slow for a while, so that many calls within a moment count once.
const slots = 512

// place is a rank, or a host with several ranks that were hit.
type place struct {
	host  string
	rank  trace.Rank // or allRanks
	ranks []trace.Rank
	hit   sums // slots in which most of its ranks were hit
	cells sums // slots of each of its ranks
}

// sums has the sums of counts of the slots before each slot.
type sums [slots + 1]int

func (s *sums) of(from, to int) int { return s[to] - s[from] }

// episode is an interval of slots in which a place was slow.
type episode struct {
	*place
	from, to int
}

func (e *episode) includes(slot int) bool { return e.from <= slot && slot < e.to }

// slowPlaces sets the keys of the anomalies of ranks and hosts that were slow for a while: they were
// hit more often than in the rest of the run, and than other ranks meanwhile. This is the space-time
// scan of Kulldorff, with Chernoff's bound of the chance.
func (c *conclusion) slowPlaces(order []int32, keys map[int32]*key) {
	programs := make(map[trace.Program][]int32)
	for _, i := range order {
		if a := &c.run.Anomalies[i]; a.Lost > 0 && c.delays(i) {
			programs[a.Program] = append(programs[a.Program], i)
		}
	}
	for program, hits := range programs {
		for e := c.slowest(program, hits); e != nil; e = c.slowest(program, hits) {
			k := &key{kind: provenance.LastingChange, program: program, host: e.host, rank: e.rank, since: e.from}
			c.waitsMeanwhile(order, e, k)
			hits = slices.DeleteFunc(hits, func(i int32) bool {
				a := &c.run.Anomalies[i]
				if !e.includes(c.partOf(a.Entry, slots)) || !slices.Contains(e.ranks, a.Rank) {
					return false
				}
				keys[i] = k
				return true
			})
		}
	}
}

// waitsMeanwhile finds the waits of unknown cause of other ranks while a place was slow. It is their
// cause if they are more frequent than in the rest of the run.
func (c *conclusion) waitsMeanwhile(order []int32, e *episode, k *key) {
	var meanwhile []int32
	hit, in := make(map[int]bool), make(map[int]bool)
	for _, i := range order {
		a, l := &c.run.Anomalies[i], &c.links[i]
		unknown := a.Wait != blame.Nothing && l.Role != provenance.Culprit && l.Culprit < 0 && c.causes[i] == nil
		if a.Program != k.program || !unknown || slices.Contains(e.ranks, a.Rank) {
			continue
		}
		slot := c.partOf(a.Entry, slots)
		if hit[slot] = true; e.includes(slot) {
			in[slot] = true
			meanwhile = append(meanwhile, i)
		}
	}
	if evidence(len(in), len(hit), float64(e.to-e.from)/slots) < -math.Log(blameChance) {
		return
	}
	for _, i := range meanwhile {
		c.causes[i] = k
	}
}

// delays reports whether an anomaly is a delay of its own rank: it computes, or others waited for it.
func (c *conclusion) delays(i int32) bool {
	a, role := &c.run.Anomalies[i], c.links[i].Role
	if a.Kind == provenance.TooManyCalls {
		return false // it did more
	}
	return role != provenance.Victim && (a.Wait == blame.Nothing || role == provenance.Culprit && (a.Wait == blame.Ranks || a.Wait == blame.Group))
}

// slowest returns the place that stands out most from others and from the rest of the run, in the
// interval that stands out most from the rest of the run. It returns nil if chance may be the reason.
func (c *conclusion) slowest(program trace.Program, hits []int32) (slow *episode) {
	places, all := c.places(hits)
	ranks := 0
	for _, p := range places {
		if p.rank != allRanks {
			ranks++
		}
	}
	hosts := len(places) - ranks
	ranks = max(ranks, c.profile.ranks[program])
	needed := math.Log(float64(ranks+hosts) * slots * (slots + 1) / 2 / blameChance)
	most := 0.0
	for _, p := range places {
		share := float64(len(p.ranks)) / float64(ranks)
		best, inTime, inAll := episode{place: p}, needed, 0.0
		for i := range slots {
			for j := i + 1; j <= slots && p.hit.of(i, i+1) > 0; j++ {
				before := 0.0
				if p.hit.of(j-1, j) > 0 {
					before = evidence(p.hit.of(i, j), p.hit[slots], float64(j-i)/slots)
				}
				if before <= inTime {
					continue
				}
				if others := evidence(p.cells.of(i, j), all.of(i, j), share); others >= needed {
					best.from, best.to, inTime, inAll = i, j, before, before+others
				}
			}
		}
		if inAll > most {
			slow, most = &best, inAll
		}
	}
	return slow
}

// places returns the ranks that were hit, and hosts with several of them, and how many ranks were hit
// in each slot.
func (c *conclusion) places(hits []int32) (places []*place, all sums) {
	type rankKey struct {
		host string
		rank trace.Rank
	}
	hit := make(map[rankKey]*[slots]bool)
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		k := rankKey{a.Host, a.Rank}
		if hit[k] == nil {
			hit[k] = new([slots]bool)
		}
		hit[k][c.partOf(a.Entry, slots)] = true
	}
	hosts := make(map[string]*place)
	keys := slices.SortedFunc(maps.Keys(hit), func(x, y rankKey) int {
		return cmp.Or(cmp.Compare(x.host, y.host), cmp.Compare(x.rank, y.rank))
	})
	for _, k := range keys {
		if hosts[k.host] == nil {
			hosts[k.host] = &place{host: k.host, rank: allRanks}
		}
		host, own := hosts[k.host], &place{host: k.host, rank: k.rank, ranks: []trace.Rank{k.rank}}
		host.ranks = append(host.ranks, k.rank)
		for s, is := range hit[k] {
			own.cells[s+1] = own.cells[s]
			if is {
				own.cells[s+1]++
				host.cells[s+1]++ // summed below
				all[s+1]++
			}
		}
		own.hit = own.cells
		places = append(places, own)
	}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		h := hosts[name]
		if len(h.ranks) < 2 {
			continue
		}
		for s := range slots {
			h.hit[s+1] = h.hit[s]
			if 2*h.cells[s+1] > len(h.ranks) {
				h.hit[s+1]++
			}
			h.cells[s+1] += h.cells[s]
		}
		places = append(places, h)
	}
	for s := range slots {
		all[s+1] += all[s]
	}
	return places, all
}

// describePlace describes the calls of a slow place by its costliest function.
func (c *conclusion) describePlace(g *group) {
	lost := make(map[string]trace.Micros)
	for _, i := range g.members {
		lost[g.all[i].Func] += g.all[i].Lost
	}
	g.functions, g.Form = len(lost), provenance.Shift
	names := slices.Sorted(maps.Keys(lost))
	g.Func = slices.MaxFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(lost[a], lost[b]), cmp.Compare(b, a)) })
	g.Expected, g.Actual, g.OfCalls = 0, 0, 0
	var actual, expected []float64
	for _, i := range g.members {
		if a := &g.all[i]; a.Func == g.Func {
			actual, expected = append(actual, float64(judged(a))), append(expected, float64(judged(a)-a.Lost))
		}
	}
	g.Expected, g.Actual = quantile(expected, 0.5), quantile(actual, 0.5)
	for _, name := range names {
		g.OfCalls += c.profile.calls(g.PID, "", name)
	}
}

// slowdown returns how many times as long as usual the calls of a group took.
func (g *group) slowdown() float64 {
	var actual, expected float64
	for _, i := range g.members { // whole numbers: their order does not matter
		a := &g.all[i]
		actual += float64(judged(a))
		expected += float64(judged(a) - a.Lost)
	}
	return actual / max(1, expected)
}

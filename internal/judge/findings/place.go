package findings

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// hostRank is a rank of a program on a host, or allRanks of them.
type hostRank struct {
	host string
	rank trace.Rank
}

// allRanks is the rank in keys of the interference of a host.
const allRanks = -2

// place sets the keys of delays of similar length by host, or by rank for ranks that lose much more. Delays that are far longer
// than others of the program, or that hit one place far more often than shorter ones do, are placed by themselves.
func (c *conclusion) place(program trace.Program, hits []int32, keys map[int32]*key) {
	hits, places := c.longAtPlaces(hits)
	for where, long := range places {
		if !c.isInterference(long) {
			c.placeOutliers(program, long, keys)
			continue
		}
		for _, i := range long {
			keys[i] = &key{kind: provenance.Interference, program: program, host: where.host, rank: where.rank, long: true}
		}
	}
	limit := c.limitOf(hits)
	hits, long := c.split(hits, func(i int32) bool { return c.run.Anomalies[i].Lost > limit })
	c.placeAlike(program, hits, false, keys)
	if c.isInterference(long) {
		c.placeAlike(program, long, true, keys)
	} else {
		c.placeOutliers(program, long, keys)
	}
}

// split moves the delays with a property to a slice of their own.
func (c *conclusion) split(hits []int32, is func(i int32) bool) (rest, some []int32) {
	rest = slices.DeleteFunc(hits, func(i int32) bool {
		if is(i) {
			some = append(some, i)
			return true
		}
		return false
	})
	return rest, some
}

// longAtPlaces removes the long delays of ranks and hosts that have far more of the long delays than of the shorter ones, compared
// with other places.
func (c *conclusion) longAtPlaces(hits []int32) (rest []int32, long map[hostRank][]int32) {
	type place struct {
		hostRank
		n, all int         // delays seen so far, and all
		least  trace.Ticks // of its long delays
		chance float64
	}
	places := make(map[hostRank]*place)
	of := func(i int32) (rank, host *place) {
		a := &c.run.Anomalies[i]
		return places[hostRank{a.Host, a.Rank}], places[hostRank{a.Host, allRanks}]
	}
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		for _, k := range []hostRank{{a.Host, a.Rank}, {a.Host, allRanks}} {
			if places[k] == nil {
				places[k] = &place{hostRank: k}
			}
			places[k].all++
		}
	}
	rare := blameChance / float64(len(hits)*len(places))
	order := slices.Clone(hits)
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(c.run.Anomalies[y].Lost, c.run.Anomalies[x].Lost) })
	for m, i := range order {
		lost := c.run.Anomalies[i].Lost
		if m > len(order)/2 || lost <= likeTimes*c.run.Anomalies[order[len(order)/2]].Lost {
			break // not longer than most
		}
		rank, host := of(i)
		for _, x := range []*place{rank, host} {
			x.n++
			others, short := m+1-x.n, x.all-x.n
			if float64(x.n)*float64(len(hits)-x.all-others) <= blameRatio*float64(others)*float64(short) {
				continue
			}
			if p := drawTail(x.n, m+1, x.all, len(hits)); p < rare && (x.least == 0 || p < x.chance) {
				x.chance, x.least = p, lost
			}
		}
	}
	found := slices.DeleteFunc(slices.Collect(maps.Values(places)), func(x *place) bool { return x.least == 0 })
	slices.SortFunc(found, func(a, b *place) int {
		return cmp.Or(cmp.Compare(a.chance, b.chance), cmp.Compare(a.host, b.host), cmp.Compare(a.rank, b.rank))
	})
	long = make(map[hostRank][]int32)
	for _, x := range found {
		hits, long[x.hostRank] = c.split(hits, func(i int32) bool {
			rank, host := of(i)
			return (rank == x || host == x) && c.run.Anomalies[i].Lost >= x.least
		})
	}
	return hits, long
}

// placeOutliers sets the keys of delays that are not like others: they are outliers of their rank, named after the longest.
func (c *conclusion) placeOutliers(program trace.Program, hits []int32, keys map[int32]*key) {
	longest := make(map[trace.Rank]*blame.Anomaly)
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		if x := longest[a.Rank]; x == nil || a.Lost > x.Lost {
			longest[a.Rank] = a
		}
	}
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		x := longest[a.Rank]
		keys[i] = &key{kind: provenance.Outlier, program: program, name: x.Func, path: c.names.stable(x.Path), host: a.Host, rank: a.Rank}
	}
}

// placeAlike sets the keys of delays of similar length; long is true for those that are longer than others.
func (c *conclusion) placeAlike(program trace.Program, hits []int32, long bool, keys map[int32]*key) {
	lost := make(map[hostRank]float64)
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		lost[hostRank{a.Host, a.Rank}] += float64(a.Lost)
	}
	hosts := make(map[string][]float64)
	for k, v := range lost {
		hosts[k.host] = append(hosts[k.host], v)
	}
	places, uneven := make(map[hostRank][]int32), make(map[string]bool)
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		where := hostRank{a.Host, a.Rank}
		if lost[where] <= rankRatio*lowerMedian(hosts[a.Host]) {
			where.rank = allRanks
		} else {
			uneven[a.Host] = true
		}
		places[where] = append(places[where], i)
	}
	for where, some := range places {
		if c.hitOne(some) { // the function is slow there
			continue
		}
		if where.rank == allRanks && uneven[where.host] && !c.isInterference(some) { // the interference of a rank does not explain them
			continue
		}
		for _, i := range some {
			keys[i] = &key{kind: provenance.Interference, program: program, host: where.host, rank: where.rank, long: long}
		}
	}
}

// hitOne reports whether several delays hit the same function.
func (c *conclusion) hitOne(hits []int32) bool {
	return len(hits) >= leastEach && !slices.ContainsFunc(hits, func(i int32) bool {
		return c.run.Anomalies[i].Func != c.run.Anomalies[hits[0]].Func
	})
}

// limitOf returns the longest lost time that is like those of the other delays.
func (c *conclusion) limitOf(hits []int32) trace.Ticks {
	if len(hits) == 0 {
		return 0
	}
	var lengths stats.Histogram
	for _, i := range hits {
		lengths.Add(int64(c.run.Anomalies[i].Lost))
	}
	return trace.Ticks(outlier.TailLimit(&lengths, -math.Log10(falseAlarms)))
}

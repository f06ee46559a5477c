package peers

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A counter differs if chance would not make any counter of the slow peer as different from those of its peers, with
// leastSure. Windows with readings, at least leastReadings, show how much they scatter.
const (
	leastSure     = 0.99
	leastReadings = 3
	mostCounters  = 5   // that are evidence of a slow peer
	mostCounted   = 256 // peers whose counters are compared; of more, evenly chosen ones
)

// readings has the readings of some units by counter: while the slow peer was slow, and in the rest of the run.
type readings struct {
	slow, rest         []workload.Reading
	slowTime, restTime float64 // seconds of all units
}

// counterSeries has the readings of the slow peer by window.
type counterSeries struct {
	slow, rest []workload.Reading
}

// counters returns the counters of slow units that differ from those of their peers, the most unusual first.
func (c *comparison) counters(p *population, some []*unit, pattern provenance.Pattern) []provenance.SlowCounter {
	all := []provenance.SlowCounter{}
	first, n := c.countersOf(p.program)
	if n == 0 {
		return all
	}
	in := commonInterval(some)
	own, series := c.read(p, some, in, first, n)
	var peers []readings
	for _, units := range p.countedPeers(some) {
		r, _ := c.read(p, units, in, first, n)
		peers = append(peers, r)
	}
	for i := range n {
		of := c.load.Counters()[first+i]
		q := counterQuestion{own: &own, series: &series[i], peers: peers, counter: i, cases: 2 * n}
		rate := !of.Decreases && q.increases()
		s, ok := q.differs(rate)
		if !ok && rate && pattern == provenance.Always {
			s, ok = q.differs(false) // more from the start
		}
		if s.Counter = c.load.CounterName(of.Counter); ok && s.Counter != "" {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b provenance.SlowCounter) int {
		return cmp.Or(cmp.Compare(b.Spreads, a.Spreads), cmp.Compare(a.Counter, b.Counter))
	})
	return all[:min(mostCounters, len(all))]
}

// countersOf returns the index of the first counter of a program and their number.
func (c *comparison) countersOf(program trace.Program) (first, n int) {
	for i, s := range c.load.Counters() {
		if s.Program < program {
			first = i + 1
		} else if s.Program == program {
			n++
		}
	}
	return first, n
}

// commonInterval returns the interval in which most of some units are slow.
func commonInterval(some []*unit) *interval {
	var first, last []float64
	for _, u := range some {
		first, last = append(first, float64(u.slow.first)), append(last, float64(u.slow.last))
	}
	return &interval{first: int(median(first)), last: int(median(last))}
}

// countedPeers returns the peers of slow units: hosts if these are several ranks of one, so that values that belong to a host count
// once, and otherwise units.
func (p *population) countedPeers(some []*unit) (all [][]*unit) {
	first := some[0]
	byHost := known(first.Host) && slices.ContainsFunc(some, func(u *unit) bool { return u.Rank != first.Rank }) &&
		!slices.ContainsFunc(some, func(u *unit) bool { return u.Host != first.Host })
	at := make(map[string]int)
	for _, u := range p.units {
		if u.slow != nil || u.role != first.role || byHost && u.Host == first.Host {
			continue
		}
		i, ok := at[u.Host]
		if !ok || !byHost {
			i = len(all)
			at[u.Host] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], u)
	}
	if n := len(all); n > mostCounted {
		for i := range mostCounted {
			all[i] = all[i*n/mostCounted]
		}
		all = all[:mostCounted]
	}
	return all
}

// countedLanes returns the lanes whose counters belong to a unit: of a GPU also those of its rank.
func (p *population) countedLanes(u *unit) []*workload.Lane {
	if p.device {
		if i := slices.IndexFunc(p.waiting, func(r *unit) bool { return r.Rank == u.Rank }); i >= 0 {
			return slices.Concat(u.lanes, p.waiting[i].lanes)
		}
	}
	return u.lanes
}

// read sums up the readings of n counters of units.
func (c *comparison) read(p *population, units []*unit, in *interval, first, n int) (readings, []counterSeries) {
	all := readings{slow: make([]workload.Reading, n), rest: make([]workload.Reading, n)}
	sums := make([]workload.Reading, n*c.windows)
	var some []workload.Reading
	for _, u := range units {
		for _, lane := range p.countedLanes(u) {
			for i := range lane.Counters {
				w := min(max(lane.Counters[i].Number-c.first, 0), int64(c.windows-1))
				some = lane.Counters[i].Readings(some[:0])
				for _, r := range some {
					sums[(int(r.Counter)-first)*c.windows+int(w)].Merge(&r)
				}
			}
		}
		for w := range c.windows {
			from, to := c.bounds(w)
			present := max(0, float64(min(to, u.Last)-max(from, u.First))) / 1e6
			if in.includes(w) {
				all.slowTime += present
			} else {
				all.restTime += present
			}
		}
	}
	series := make([]counterSeries, n)
	for i := range series {
		for w := range c.windows {
			r := &sums[i*c.windows+w]
			switch {
			case r.Count == 0:
			case in.includes(w):
				all.slow[i].Merge(r)
				series[i].slow = append(series[i].slow, *r)
			default:
				all.rest[i].Merge(r)
				series[i].rest = append(series[i].rest, *r)
			}
		}
	}
	return all, series
}

// counterQuestion is whether a counter of a slow peer differs.
type counterQuestion struct {
	own     *readings
	series  *counterSeries
	peers   []readings
	counter int
	cases   int // in which chance could have made a difference
}

// increases reports whether the counter increased.
func (q *counterQuestion) increases() bool {
	i := q.counter
	return q.own.slow[i].Increase+q.own.rest[i].Increase > 0 ||
		slices.ContainsFunc(q.peers, func(r readings) bool { return r.slow[i].Increase+r.rest[i].Increase > 0 })
}

// values returns the value of a counter of some units, while the slow peer was slow and in the rest of the run: the
// increase per second if rate is true, or the mean. They are not a number without readings.
func (r *readings) values(counter int, rate bool) (slow, rest float64) {
	value := func(r *workload.Reading, seconds float64) float64 {
		switch {
		case r.Count == 0 || r.Sum == math.MaxUint64 || r.Increase == math.MaxUint64 || rate && seconds <= 0:
			return math.NaN()
		case rate:
			return float64(r.Increase) / seconds
		}
		return float64(r.Sum) / float64(r.Count)
	}
	return value(&r.slow[counter], r.slowTime), value(&r.rest[counter], r.restTime)
}

// byWindow returns the value in each window with readings. Rates are such that their mean is that of all.
func byWindow(windows []workload.Reading, seconds float64, rate bool) (values []float64) {
	for i := range windows {
		r := &windows[i]
		if rate {
			values = append(values, float64(r.Increase)*float64(len(windows))/seconds)
		} else {
			values = append(values, float64(r.Sum)/float64(r.Count))
		}
	}
	return values
}

// differs compares the counter with that of peers.
func (q *counterQuestion) differs(rate bool) (s provenance.SlowCounter, ok bool) {
	value, past := q.own.values(q.counter, rate)
	if math.IsNaN(value) || len(q.series.slow) < leastReadings {
		return s, false
	}
	var peers, changes []float64
	for i := range q.peers {
		now, before := q.peers[i].values(q.counter, rate)
		if !math.IsNaN(now) {
			peers = append(peers, now)
		}
		if !math.IsNaN(now - before) {
			changes = append(changes, now-before)
		}
	}
	if len(peers) == 0 {
		return s, false
	}
	s = provenance.SlowCounter{Rate: rate, Value: value, Peers: median(peers)}
	if !math.IsNaN(past) {
		s.Past = &past
	}
	// Readings are integers, and numbers of events scatter at least as those of independent ones.
	floor := 1 / math.Sqrt(12)
	if rate {
		floor = math.Sqrt(max(1, s.Peers*q.own.slowTime)) / q.own.slowTime
	}
	own := byWindow(q.series.slow, q.own.slowTime, rate)
	sure := func(difference, spread float64, n int) bool {
		return confidence(normal(difference/spread, float64(n-1)), q.cases) >= leastSure
	}
	beyondScatter := func(difference float64) bool {
		return sure(difference, max(floor, standardDeviation(own))/math.Sqrt(float64(len(own)-1)), len(own))
	}
	spread := max(floor, leastSpread*math.Abs(s.Peers))
	if k := float64(len(peers)); len(peers) >= enoughPeers {
		spread = max(spread, standardDeviation(peers)*math.Sqrt((k+1)/(k-1)))
		difference := math.Abs(value - s.Peers)
		s.Spreads = difference / spread
		return s, sure(difference, spread, len(peers)) && beyondScatter(difference)
	}
	if len(changes) == 0 || s.Past == nil || len(q.series.rest) < leastReadings {
		return s, false
	}
	rest := byWindow(q.series.rest, q.own.restTime, rate)
	means := appendMeans(nil, rest, max(1, min(len(own), len(rest)/leastReadings)))
	spread = max(spread, standardDeviation(means))
	change, beyond := value-past, value-past-median(changes)
	if change*beyond <= 0 {
		return s, false
	}
	difference := min(math.Abs(change), math.Abs(beyond))
	s.Spreads = difference / spread
	return s, s.Spreads >= leastZ && beyondScatter(difference)
}

// normal returns the value of a normal distribution that is as improbable as t of Student's distribution, by the
// approximation of Wallace.
func normal(t, freedom float64) float64 {
	return (8*freedom + 1) / (8*freedom + 3) * math.Sqrt(freedom*math.Log1p(t*t/freedom))
}

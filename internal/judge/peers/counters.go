package peers

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A counter differs if, with probability leastSure, chance would not make any counter of the slow peer as different from those of
// its peers. Windows with readings, at least leastReadings, show how much they scatter.
const (
	leastSure     = 0.99
	leastReadings = 3
	mostCounters  = 5  // counters that are evidence of a slow peer
	mostCounted   = 64 // peers whose counters to compare; of more peers, evenly spaced ones
)

// readings has the readings of some units by counter: while the slow peer was slow, and in the rest of the run.
type readings struct {
	counters           []counterReadings
	slowTime, restTime float64 // seconds of all units
}

// counterReadings has the readings of a counter: their sums, and those of windows that have any.
type counterReadings struct {
	slow, rest           workload.Reading
	inWindows, elsewhere []workload.Reading
}

// counters returns the counters of slow units that differ from those of their peers, the most unusual first.
func (c *comparison) counters(p *population, some []*unit, pattern provenance.Pattern) []provenance.SlowCounter {
	all := []provenance.SlowCounter{}
	first, n := c.countersOf(p.program)
	if n == 0 {
		return all
	}
	in := commonInterval(some)
	own := c.read(p, some, in, first, n)
	var peers []readings
	for _, units := range p.countedPeers(some) {
		peers = append(peers, c.read(p, units, in, first, n))
	}
	for i := range n {
		of := c.load.Counters()[first+i].Counter
		q := counterQuestion{own: &own, peers: peers, counter: i, cases: 2 * n}
		rate := q.mostIncrease() > 0
		s, ok := q.differs(rate)
		if !ok && rate && pattern == provenance.Always {
			s, ok = q.differs(false) // more of it from the start
		}
		if s.Counter = c.load.CounterName(of); ok && s.Counter != "" {
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

// countedPeers returns the peers of slow units: hosts if the units are several ranks of a host, so that values that belong to
// a host count once, and units otherwise.
func (p *population) countedPeers(some []*unit) (all [][]*unit) {
	first := some[0]
	byHost := hasName(first.Host) && slices.ContainsFunc(some, func(u *unit) bool { return u.Rank != first.Rank }) &&
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

// countedLanes returns the lanes whose counters belong to a unit. A GPU includes the lanes of its rank.
func (p *population) countedLanes(u *unit) []*workload.Lane {
	if p.device {
		if i := slices.IndexFunc(p.waiting, func(r *unit) bool { return r.Rank == u.Rank }); i >= 0 {
			return slices.Concat(u.lanes, p.waiting[i].lanes)
		}
	}
	return u.lanes
}

// read sums up the readings of n counters of units.
func (c *comparison) read(p *population, units []*unit, in *interval, first, n int) readings {
	all := readings{counters: make([]counterReadings, n)}
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
			present := max(0, c.tick.Seconds(min(to, u.Last)-max(from, u.First)))
			if in.includes(w) {
				all.slowTime += present
			} else {
				all.restTime += present
			}
		}
	}
	for i := range all.counters {
		of := &all.counters[i]
		for w := range c.windows {
			r := &sums[i*c.windows+w]
			switch {
			case r.Count == 0:
			case in.includes(w):
				of.slow.Merge(r)
				of.inWindows = append(of.inWindows, *r)
			default:
				of.rest.Merge(r)
				of.elsewhere = append(of.elsewhere, *r)
			}
		}
	}
	return all
}

// counterQuestion asks whether a counter of a slow peer differs.
type counterQuestion struct {
	own     *readings
	peers   []readings
	counter int
	cases   int // number of cases in which chance could have made a difference
}

// mostIncrease returns the greatest increase of the counter in the run, or 0 if it ever decreases.
func (q *counterQuestion) mostIncrease() (most float64) {
	for _, r := range append(q.peers, *q.own) {
		of := &r.counters[q.counter]
		most = max(most, float64(of.slow.Increase)+float64(of.rest.Increase))
	}
	return most
}

// values returns the value of a counter of some units, while the slow peer was slow and in the rest of the run: the increase per
// second if rate is true, or else the mean. Values are NaN without readings.
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
	of := &r.counters[counter]
	return value(&of.slow, r.slowTime), value(&of.rest, r.restTime)
}

// byWindow returns the value of each window with readings. The mean of rates is the rate over all windows.
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
	of := &q.own.counters[q.counter]
	if math.IsNaN(value) || len(of.inWindows) < leastReadings {
		return s, false
	}
	own := byWindow(of.inWindows, q.own.slowTime, rate)
	scatter := standardDeviation(own)
	var peers, changes, scatters []float64
	for i := range q.peers {
		now, before := q.peers[i].values(q.counter, rate)
		if !math.IsNaN(now) {
			peers = append(peers, now)
			scatters = append(scatters, standardDeviation(byWindow(q.peers[i].counters[q.counter].inWindows, q.peers[i].slowTime, rate)))
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
	// Readings are integers, means of a counter that only increases differ by its increases, and numbers of events scatter at
	// least as much as those of independent events.
	floor := max(1/math.Sqrt(12), q.mostIncrease())
	if rate {
		floor = math.Sqrt(max(1, s.Peers*q.own.slowTime)) / q.own.slowTime
	}
	sure := func(difference, spread float64, n int) bool {
		return confidence(normal(difference/spread, float64(n-1)), q.cases) >= leastSure
	}
	beyondScatter := func(difference float64) bool {
		return sure(difference, max(floor, scatter, mean(scatters))/math.Sqrt(float64(len(own)-1)), len(own))
	}
	spread := max(floor, leastSpread*math.Abs(s.Peers))
	hasPast := len(changes) > 0 && len(of.elsewhere) >= leastReadings
	if k := float64(len(peers)); len(peers) >= enoughPeers || len(peers) > 1 && !hasPast {
		spread = max(spread, standardDeviation(peers)*math.Sqrt((k+1)/(k-1)))
		difference := math.Abs(value - s.Peers)
		s.Spreads = difference / spread
		return s, sure(difference, spread, len(peers)) && beyondScatter(difference)
	}
	if !hasPast {
		return s, false
	}
	rest := byWindow(of.elsewhere, q.own.restTime, rate)
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

// normal returns the value of a normal distribution that is as improbable as t of Student's distribution, by the approximation of
// Wallace.
func normal(t, freedom float64) float64 {
	return (8*freedom + 1) / (8*freedom + 3) * math.Sqrt(freedom*math.Log1p(t*t/freedom))
}

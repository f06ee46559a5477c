package outlier

import (
	"math"
	"math/bits"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Work is the number of calls that a call made directly, and their time in ticks.
type Work struct {
	Calls uint32
	Time  int64
}

// work judges how many calls the calls of a function make.
type work struct {
	most   uint32  // greatest normal number
	usual  uint32  // median
	least  int64   // least time to lose
	sample float64 // share of the calls that make more than most to keep
	tail   *tail   // nil if there is no limit
}

// UsualShare is the share of calls from which their behavior is usual. The program decides how many calls a function makes: if
// one call in twenty makes ten times as many, that is intended.
const UsualShare = 0.05

// newWork finds the greatest normal number of calls. At most one in 10^decades calls makes more, by the tail that the bulk of the
// numbers predicts.
func newWork(made *stats.Histogram, decades float64, least int64) work {
	w := work{most: math.MaxUint32, least: least}
	t := newTail(made, decades, 0)
	limit := t.modes[len(t.modes)-1].high
	above := callsAbove(made, limit)
	if above >= UsualShare*float64(made.Total()) {
		return w
	}
	w.tail, w.most, w.usual = t, uint32(limit/madeUnits), uint32(made.Quantile(0.5)/madeUnits)
	w.sample = min(1, maxExcess/max(1, above))
	return w
}

// callsAbove returns the number of calls beyond a limit.
func callsAbove(made *stats.Histogram, limit int64) (n float64) {
	for bin, count := range made.Bins() {
		if stats.BinLow(bin) > limit {
			n += float64(count)
		}
	}
	return n
}

// UsuallyMakesMore reports whether the calls of m, a part of those that j judges, usually make too many calls, as do the few
// outermost calls of a recursive function.
func (j *Judge) UsuallyMakesMore(m *Model) bool {
	if j.work.tail == nil || m.Made.Total() == 0 {
		return false
	}
	return callsAbove(&m.Made, int64(j.work.most)*madeUnits) >= UsualShare*float64(m.Made.Total())
}

// madeCounts returns ranges of numbers of calls, one for each power of two, with the number of calls that made so many.
func madeCounts(made *stats.Histogram) (all [][3]uint64) {
	for bin, calls := range made.Bins() {
		n, k := uint64(stats.BinLow(bin)/madeUnits), len(all)-1
		if k >= 0 && bits.Len64(all[k][0]) == bits.Len64(n) {
			all[k][1], all[k][2] = n, all[k][2]+calls
			continue
		}
		all = append(all, [3]uint64{n, n, calls})
	}
	return all
}

// MostCalls returns the greatest normal number of calls that a call makes.
func (j *Judge) MostCalls() uint32 { return j.work.most }

// Excess returns the time that a call lost because it made more calls than usual, and the usual number. The time is 0 if the
// number is normal or the call lost too little.
func (j *Judge) Excess(w Work) (lost int64, usual uint32) {
	if w.Calls <= j.work.most {
		return 0, 0
	}
	usual = j.work.usual
	if lost = int64(float64(w.Time) * float64(w.Calls-usual) / float64(w.Calls)); lost < max(j.work.least, 1) {
		return 0, 0
	}
	return lost, usual
}

// JudgeCall judges a call by the number of calls it made, or else by its time v.
func (j *Judge) JudgeCall(v int64, w Work) (float64, Verdict) {
	if lost, _ := j.Excess(w); lost > 0 {
		return j.work.tail.decades(int64(w.Calls) * madeUnits), Excess
	}
	return j.Judge(v)
}

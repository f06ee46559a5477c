package breakdown

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Comparison compares the collective operations of ranks.
type Comparison struct {
	Operations []OperationStats // in descending order of total latency
	Clocks     []Clock          // in order of rank
	Alone      int64            // operations of groups that only one rank recorded
	Unmatched  int64            // operations on which ranks disagree
	Omitted    int64            // operations beyond the limits, or without a position
}

// Clock is the correction of a rank's clock.
type Clock struct {
	Rank trace.Rank
	// Offset is the time by which the clock is ahead of that of the lowest rank to which collective operations connect it:
	// the median difference of their ends.
	Offset  trace.Ticks
	Matched int64 // number of ends compared; 0 for that lowest rank, and for ranks without any
}

// OperationStats summarizes the executions of an operation.
type OperationStats struct {
	Operation
	Count int64
	Ranks int // greatest number of ranks that recorded an execution
	// Latency is the shortest duration of an execution over its ranks: that of the last rank to arrive, which does not wait
	// for others.
	Latency Spread
	// Skew is the time from the first to the last arrival, by corrected clocks, of executions that several ranks recorded.
	Skew Spread
	Last []LastCount // how often each rank was last, in descending order
}

// Spread is a sum and a maximum.
type Spread struct {
	Count int64
	Sum   trace.Ticks
	Max   trace.Ticks
}

func (s *Spread) add(t trace.Ticks) {
	s.Count++
	s.Sum += t
	s.Max = max(s.Max, t)
}

// Mean returns the mean in ticks, or 0 if there are no values.
func (s Spread) Mean() float64 { return float64(s.Sum) / float64(max(s.Count, 1)) }

// LastCount is the number of executions for which a rank was the last to arrive.
type LastCount struct {
	Rank  trace.Rank
	Count int64
}

// BusBandwidth returns the bus bandwidth of the mean latency in bytes per second, or 0 if unknown.
func (o *OperationStats) BusBandwidth(unit trace.Unit) float64 {
	seconds := unit.Seconds(1) * o.Latency.Mean()
	if seconds <= 0 {
		return 0
	}
	return o.BusFactor() * float64(o.Bytes) / seconds
}

// RankLog is the log of a rank.
type RankLog struct {
	Rank trace.Rank
	*Log
	Corrected trace.Ticks // offset already subtracted from its times
	Untimed   bool        // it has only durations: all ranks end an operation at the same time
}

// Align returns the clocks of ranks that disagree: by their times at least one operation in ten would have ended on one rank
// before it began on another. Smaller differences may be differences of the operations themselves.
func Align(logs []RankLog) []Clock {
	c := newComparer(logs)
	c.align()
	var clocks []Clock
	for i, log := range c.logs {
		if c.offsets[i] != 0 && c.disagrees[i] {
			clocks = append(clocks, Clock{log.Rank, c.offsets[i], c.matched[i]})
		}
	}
	return clocks
}

// Compare compares the collective operations of the ranks of a program. Operations belong together if they have the same group
// and number, or, without numbers, the same group, step and position in it. Compare sorts the logs, which must not change
// afterwards.
func Compare(logs []RankLog) *Comparison {
	c := newComparer(logs)
	c.compare()
	return c.result()
}

func newComparer(logs []RankLog) *comparer {
	logs = slices.SortedFunc(slices.Values(logs), func(a, b RankLog) int { return cmp.Compare(a.Rank, b.Rank) })
	c := &comparer{logs: logs, members: make(map[string][]member), sums: newSums()}
	for i, log := range logs {
		for name, entries := range log.groups() {
			c.members[name] = append(c.members[name], member{i, entries})
		}
	}
	c.names = slices.Sorted(maps.Keys(c.members))
	return c
}

type comparer struct {
	logs    []RankLog
	members map[string][]member // of groups, in order of rank
	names   []string            // of groups, in order
	offsets []trace.Ticks       // by log
	matched []int64             // by log
	// disagrees is true, by log, if the clock contradicts that of the rank with which it was compared, or if the clock of
	// that rank contradicts another.
	disagrees []bool
	// isComplete, if not nil, reports whether an operation is complete. The comparer skips incomplete ones.
	isComplete func(parts []part) bool
	rest       [][]entry // entries of skipped operations by log, unless nil
	// clocks are the clocks by earlier operations, which apply until more operations than those have been compared.
	clocks map[trace.Rank]Clock
	sums
}

// member is a rank of a group.
type member struct {
	log     int
	entries []entry // in order of number
}

type operationSums struct {
	OperationStats
	last map[trace.Rank]int64
}

// compare aligns the clocks and adds all operations to the sums.
func (c *comparer) compare() {
	c.align()
	for i, log := range c.logs {
		if known, ok := c.clocks[log.Rank]; ok && c.matched[i] < known.Matched {
			c.offsets[i], c.matched[i] = known.Offset, known.Matched
		}
	}
	for _, name := range c.names {
		c.sumUp(c.members[name])
	}
}

// align sets the offsets of clocks. It begins at the lowest rank and passes from rank to rank through the groups that they
// share, starting with those with most operations.
func (c *comparer) align() {
	c.offsets, c.matched, c.disagrees = make([]trace.Ticks, len(c.logs)), make([]int64, len(c.logs)), make([]bool, len(c.logs))
	aligned := make([]bool, len(c.logs))
	for first := range c.logs {
		if aligned[first] {
			continue
		}
		aligned[first] = true
		for c.alignOne(aligned) {
		}
	}
}

// alignOne sets the offset of the rank that has most operations in common with an aligned one. It returns false if there is
// none.
func (c *comparer) alignOne(aligned []bool) bool {
	var from, to *member
	most := 0
	for _, name := range c.names {
		members := c.members[name]
		anchor := slices.IndexFunc(members, func(m member) bool { return aligned[m.log] })
		if anchor < 0 {
			continue
		}
		for i := range members {
			m := &members[i]
			if n := min(len(m.entries), len(members[anchor].entries)); !aligned[m.log] && n > most {
				from, to, most = &members[anchor], m, n
			}
		}
	}
	if to == nil {
		return false
	}
	aligned[to.log] = true
	differences, impossible := c.differences(from, to)
	c.matched[to.log] = int64(len(differences))
	c.disagrees[to.log] = c.disagrees[from.log] || 10*impossible >= max(1, len(differences))
	if n := len(differences); n > 0 {
		slices.Sort(differences)
		c.offsets[to.log] = c.offsets[from.log] + differences[n/2]
	}
	return true
}

// differences returns how much later operations ended on one rank than on another, and the number of operations that ended on
// one of them before they began on the other.
func (c *comparer) differences(from, to *member) (d []trace.Ticks, impossible int) {
	other := from.entries
	for _, e := range to.entries {
		for len(other) > 0 && other[0].seq < e.seq {
			other = other[1:]
		}
		if len(other) == 0 {
			break
		}
		op := c.operation(to, e)
		if other[0].seq == e.seq && op.Name == c.operation(from, other[0]).Name && op.endsTogether() {
			d = append(d, e.end-other[0].end)
			if e.end < other[0].start || other[0].end < e.start {
				impossible++
			}
		}
	}
	return d, impossible
}

func (c *comparer) operation(m *member, e entry) *Operation {
	return &c.logs[m.log].operations[e.operation]
}

// sumUp adds the operations of a group to the statistics.
func (c *comparer) sumUp(members []member) {
	parts := make([]part, 0, len(members))
	for {
		next, any := int64(0), false
		for i := range members {
			if e := members[i].entries; len(e) > 0 && (!any || e[0].seq < next) {
				next, any = e[0].seq, true
			}
		}
		if !any {
			return
		}
		parts = parts[:0]
		for i := range members {
			m := &members[i]
			if len(m.entries) > 0 && m.entries[0].seq == next {
				parts = append(parts, part{m.log, m.entries[0], c.operation(m, m.entries[0])})
				m.entries = m.entries[1:]
			}
		}
		if c.isComplete != nil && !c.isComplete(parts) {
			c.skip(parts)
			continue
		}
		c.add(parts)
	}
}

// skip keeps the entries of an incomplete operation.
func (c *comparer) skip(parts []part) {
	if c.rest == nil {
		return
	}
	for _, p := range parts {
		c.rest[p.log] = append(c.rest[p.log], p.entry)
	}
}

// part is an operation on one of its ranks.
type part struct {
	log int
	entry
	operation *Operation
}

// add adds an operation with all ranks that recorded it.
func (c *comparer) add(parts []part) {
	op := *parts[0].operation
	latency := parts[0].end - parts[0].start
	first, last := c.arrival(parts[0]), c.arrival(parts[0])
	late := parts[0].log
	for _, p := range parts[1:] {
		if p.operation.Name != op.Name {
			c.unmatched++
			return
		}
		op.Bytes, op.Size = max(op.Bytes, p.operation.Bytes), max(op.Size, p.operation.Size)
		latency = min(latency, p.end-p.start)
		at := c.arrival(p)
		first = min(first, at)
		if at > last {
			last, late = at, p.log
		}
	}
	s := c.stats[op]
	if s == nil {
		s = &operationSums{OperationStats: OperationStats{Operation: op}, last: make(map[trace.Rank]int64)}
		c.stats[op] = s
	}
	s.Count++
	s.Ranks = max(s.Ranks, len(parts))
	s.Latency.add(latency)
	if len(parts) == 1 {
		c.alone++
		return
	}
	s.Skew.add(last - first)
	s.last[c.logs[late].Rank]++
}

// arrival returns the time at which a rank arrived, by its corrected clock.
func (c *comparer) arrival(p part) trace.Ticks { return p.start - c.offsets[p.log] }

func (c *comparer) result() *Comparison {
	out := &Comparison{Alone: c.alone, Unmatched: c.unmatched}
	for i, log := range c.logs {
		out.Omitted += log.omitted
		if log.Untimed {
			continue
		}
		out.Clocks = append(out.Clocks, Clock{log.Rank, c.offsets[i] + log.Corrected, c.matched[i]})
	}
	for _, s := range c.stats {
		for rank, n := range s.last {
			s.Last = append(s.Last, LastCount{rank, n})
		}
		slices.SortFunc(s.Last, func(a, b LastCount) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rank, b.Rank))
		})
		out.Operations = append(out.Operations, s.OperationStats)
	}
	slices.SortFunc(out.Operations, func(a, b OperationStats) int {
		return cmp.Or(cmp.Compare(b.Latency.Sum, a.Latency.Sum), a.Compare(&b.Operation))
	})
	return out
}

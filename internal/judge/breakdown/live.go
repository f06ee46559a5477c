package breakdown

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Live compares the numbered collective operations of the ranks of a program while they are being recorded. Up to a limit it
// keeps all operations, and its result is that of Compare. Beyond the limit it keeps complete operations only as sums, with
// clocks corrected by the operations until then.
type Live struct {
	limit  int // number of operations of all ranks to keep
	logs   []RankLog
	sums   sums
	clocks map[trace.Rank]Clock // by operations that are only in sums, without earlier corrections
	summed int64                // number of log entries in sums
}

// NewLive returns a comparison without ranks that keeps about limit operations.
func NewLive(limit int) *Live {
	return &Live{limit: limit, sums: newSums(), clocks: make(map[trace.Rank]Clock)}
}

// Add adds the log of a rank. The log may grow, but not during calls of methods of Live.
func (l *Live) Add(log RankLog) { l.logs = append(l.logs, log) }

// Logged returns the number of operations in all logs so far.
func (l *Live) Logged() (n int64) {
	for _, log := range l.logs {
		n += int64(log.Len()) + log.omitted
	}
	return n + l.summed
}

// Comparison returns the comparison of complete operations: those that all ranks of their group have recorded, or all ranks
// that Add has added. If the logs have ended, it includes all operations.
func (l *Live) Comparison(ended bool) *Comparison {
	l.shrink()
	c := l.comparer(!ended)
	c.sums = l.sums.clone()
	c.compare()
	return c.result()
}

// comparer returns a comparer of the logs, of all operations or only of complete ones.
func (l *Live) comparer(complete bool) *comparer {
	c := newComparer(slices.DeleteFunc(slices.Clone(l.logs), func(log RankLog) bool { return len(log.operations) == 0 && log.omitted == 0 }))
	c.clocks = l.clocks
	if complete {
		c.isComplete = func(parts []part) bool { return len(parts) >= min(parts[0].operation.Size, len(l.logs)) }
	}
	return c
}

// shrink moves operations from the logs to the sums if there are too many: the complete ones, and then all if most are
// incomplete.
func (l *Live) shrink() {
	for _, complete := range []bool{true, false} {
		kept := 0
		for _, log := range l.logs {
			kept += log.Len()
		}
		if kept <= l.limit/2 || complete && kept <= l.limit {
			return
		}
		c := l.comparer(complete)
		c.sums, c.rest = l.sums, make([][]entry, len(c.logs))
		c.compare()
		l.sums = c.sums
		for i, log := range c.logs {
			l.summed += int64(log.Len() - len(c.rest[i]))
			log.entries = c.rest[i]
			l.clocks[log.Rank] = Clock{log.Rank, c.offsets[i], c.matched[i]}
		}
	}
}

// sums are sums over operations.
type sums struct {
	stats            map[Operation]*operationSums
	alone, unmatched int64
}

func newSums() sums { return sums{stats: make(map[Operation]*operationSums)} }

func (s *sums) clone() sums {
	c := sums{make(map[Operation]*operationSums, len(s.stats)), s.alone, s.unmatched}
	for op, of := range s.stats {
		c.stats[op] = &operationSums{of.OperationStats, maps.Clone(of.last)}
	}
	return c
}

// Collectives are the collective operations of the programs of an analyzer so far.
type Collectives struct {
	Version  int
	Logged   int64 // number of operations on ranks that were read; later comparisons have more
	Programs []ProgramComparison
}

// collectivesVersion is the version of encoded Collectives.
const collectivesVersion = 1

// Encode returns an encoding of the comparisons with at most limit bytes. To fit, it omits the ranks that were last least
// often, and then the operations with the least latency, which it counts as omitted.
func (c *Collectives) Encode(limit int) ([]byte, error) {
	part := Collectives{collectivesVersion, c.Logged, slices.Clone(c.Programs)}
	operations, lasts := 0, 4*maxLasts
	for i := range part.Programs {
		operations = max(operations, len(part.Programs[i].Operations))
	}
	for {
		text, err := json.Marshal(&part)
		if err != nil || len(text) <= limit || len(part.Programs) == 0 {
			return text, err
		}
		if lasts > 1 {
			lasts /= 4
		} else if operations /= 2; operations == 0 {
			part.Programs = nil
		}
		for i := range part.Programs {
			part.Programs[i].cut(operations, lasts)
		}
	}
}

// Encode first limits comparisons to these numbers of ranks that were last, and of clocks.
const (
	maxLasts  = 64
	maxClocks = 1024
)

// cut keeps the first operations, the first clocks, and the first ranks that were last in each operation.
func (p *ProgramComparison) cut(operations, lasts int) {
	n := min(operations, len(p.Operations))
	for i := range p.Operations[n:] {
		p.Omitted += p.Operations[n+i].Count
	}
	p.Operations, p.Clocks = slices.Clone(p.Operations[:n]), p.Clocks[:min(maxClocks, len(p.Clocks))]
	for i := range p.Operations {
		o := &p.Operations[i]
		o.Last = o.Last[:min(lasts, len(o.Last))]
	}
}

// DecodeCollectives decodes what Encode returned.
func DecodeCollectives(text []byte) (*Collectives, error) {
	c := new(Collectives)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("collective operations: %w", err)
	}
	if c.Version != collectivesVersion {
		return nil, fmt.Errorf("collective operations of version %d, want %d", c.Version, collectivesVersion)
	}
	return c, nil
}

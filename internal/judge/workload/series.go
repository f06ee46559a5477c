package workload

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Series is a counter of a rank.
type Series struct {
	ID        trace.CounterID
	Values    stats.Sums
	State     CounterState       // valid if named is true
	Sketched  activity.CounterID // valid if named is true
	Named     bool
	Unrelated bool             // values only identify calls, and are not related to the work
	threads   []threadReadings // by thread
}

// threadReadings contains the readings of a counter on a thread.
type threadReadings struct {
	last        uint64
	valid       bool    // last is valid
	sums        Reading // in the current bin of time, without counter
	least, most uint64  // extremes of the readings in sums, if there are any
}

// SeriesSums sums up the readings of a rank for its load. It needs no names, and allocates memory only if a step has more records
// than any earlier step.
type SeriesSums struct {
	Shift   uint8 // binary logarithm of the width of bins, which is at most that of the load and of its activities
	Records []SeriesRecord

	bin  trace.Ticks // bin of the sums: their times divided by its width
	at   trace.Ticks // latest time
	busy []*Series   // series with sums
}

// SeriesRecord contains readings of a counter on a thread in a bin of time.
type SeriesRecord struct {
	Of     *Series
	Thread trace.Thread
	At     trace.Ticks
	Reading
	Least, Most uint64
}

// Add adds a reading of a thread.
func (s *SeriesSums) Add(thread trace.Thread, c *Series, at trace.Ticks, value uint64) {
	if bin := at >> s.Shift; bin != s.bin {
		s.Flush(thread)
		s.bin = bin
	}
	for int(thread) >= len(c.threads) {
		c.threads = append(c.threads, threadReadings{})
	}
	t := &c.threads[thread]
	increase := uint64(0)
	switch {
	case !t.valid:
		t.valid = true
	case value < t.last:
		c.State.Decreases = true
	default:
		increase = value - t.last
	}
	if t.sums.Count == 0 {
		s.busy = append(s.busy, c)
		t.least, t.most = value, value
	}
	t.least, t.most = min(t.least, value), max(t.most, value)
	t.sums.Add(value, increase)
	t.last, s.at = value, at
}

// Flush turns the sums of a thread into records.
func (s *SeriesSums) Flush(thread trace.Thread) {
	for _, c := range s.busy {
		t := &c.threads[thread]
		s.Records = append(s.Records, SeriesRecord{c, thread, s.at, t.sums, t.least, t.most})
		t.sums = Reading{}
	}
	s.busy = s.busy[:0]
}

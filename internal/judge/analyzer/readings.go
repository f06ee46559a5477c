package analyzer

import (
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// localCounter is a counter of a rank.
type localCounter struct {
	id        trace.CounterID
	values    stats.Sums
	of        workload.CounterState // valid if named
	sketched  activity.CounterID    // likewise
	named     bool
	unrelated bool             // to the work: its values only identify calls
	threads   []threadReadings // by thread
}

// threadReadings has the readings of a counter on a thread.
type threadReadings struct {
	last        uint64
	valid       bool             // last is
	sums        workload.Reading // in the current bin of time, without their counter
	least, most uint64           // of the sums; valid if there are any
}

// readingSums sums up the readings of a rank for its load. It needs no names, and allocates only if a step has more
// records than any before it.
type readingSums struct {
	shift   uint8           // binary logarithm of the width of bins, which is at most that of the load and of its activities
	bin     trace.Ticks     // of the sums: their times divided by its width
	at      trace.Ticks     // the last of the times
	busy    []*localCounter // with sums
	named   int             // counters
	records []readingRecord
	cells   []workload.Reading        // scratch
	bins    []activity.CounterReading // scratch
}

// readingRecord has readings of a counter on a thread in a bin of time.
type readingRecord struct {
	of     *localCounter
	thread trace.Thread
	at     trace.Ticks
	workload.Reading
	least, most uint64
}

// addReadings adds the counters of a thread, to the load only if profile is true.
func (r *rank) addReadings(b *trace.Batch, profile bool) {
	for i := range b.Events {
		e := &b.Events[i]
		c := r.counter[e.Counter()]
		if c == nil {
			c = &localCounter{id: e.Counter()}
			r.counter[c.id] = c
		}
		c.values.Add(e.Value)
		if profile && !c.unrelated && b.Thread < workload.MaxThreads-1 { // further threads share a lane
			r.readings.add(b.Thread, c, min(max(e.Time, r.start), r.end), e.Value)
		}
	}
	r.readings.flush(b.Thread)
}

// add adds a reading of a thread.
func (s *readingSums) add(thread trace.Thread, c *localCounter, at trace.Ticks, value uint64) {
	if bin := at >> s.shift; bin != s.bin {
		s.flush(thread)
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
		c.of.Decreases = true
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

// flush makes records of the sums of a thread.
func (s *readingSums) flush(thread trace.Thread) {
	for _, c := range s.busy {
		t := &c.threads[thread]
		s.records = append(s.records, readingRecord{c, thread, s.at, t.sums, t.least, t.most})
		t.sums = workload.Reading{}
	}
	s.busy = s.busy[:0]
}

// mergeReadings moves the records of counters that have names to the load.
func (r *rank) mergeReadings() {
	s, load := &r.readings, r.load
	for i := range s.records { // first, because this may change the indices of counters
		if c := s.records[i].of; r.nameCounter(c) {
			load.AddCounter(c.of)
		}
	}
	left, cells, bins := s.records[:0], s.cells[:0], s.bins[:0]
	var lane *workload.Lane // nil if there are no readings to add
	var last readingRecord
	add := func() {
		if lane != nil {
			load.AddReadings(lane, last.at, cells)
			cells, lane = cells[:0], nil
		}
	}
	for _, rec := range s.records {
		switch {
		case !rec.of.named:
			left = append(left, rec)
			continue
		case rec.of.unrelated:
			continue
		}
		if lane == nil || rec.thread != last.thread || rec.at>>load.Shift() != last.at>>load.Shift() {
			add()
			lane = r.lane(rec.thread)
		}
		last = rec
		bins = append(bins, activity.CounterReading{
			Counter: rec.of.sketched, At: rec.at, Reading: activity.Reading{Count: rec.Count, Sum: rec.Sum, Min: rec.least, Max: rec.most},
		})
		if index, ok := load.CounterIndex(rec.of.of.Counter); ok {
			rec.Counter = index
			cells = append(cells, rec.Reading)
		}
	}
	add()
	load.Activities().AddReadings(r.key, bins)
	s.cells, s.bins, s.shift = cells, bins, min(load.Shift(), load.Activities().ReadingShift())
	s.records = left[max(len(left)-maxUnnamed, 0):]
}

// nameCounter reports whether a counter of the load has a name.
func (r *rank) nameCounter(c *localCounter) bool {
	if !c.named {
		name, ok := r.names.Counter(r.key.Rank, c.id)
		if !ok {
			return false
		}
		key := trace.FuncKey{Program: r.key.Program, Name: name}
		c.named, c.of.Counter, c.sketched = true, workload.CounterOf(key), activity.CounterOf(name)
		if c.unrelated = r.role(c.id) == callstack.Correlation; c.unrelated {
			return false
		}
		r.load.NameCounter(key)
		if r.readings.named++; r.readings.named > workload.MaxCounters {
			r.tally.Add(tally.CountersDropped, 1)
		}
	}
	return !c.unrelated
}

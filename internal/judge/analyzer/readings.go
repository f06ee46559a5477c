package analyzer

import (
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// addReadings adds the counters of a thread. It adds them to the load only if profile is true.
func (r *rank) addReadings(b *trace.Batch, profile bool) {
	for i := range b.Events {
		e := &b.Events[i]
		c := r.counter[e.Counter()]
		if c == nil {
			c = &workload.Series{ID: e.Counter()}
			r.counter[c.ID] = c
		}
		c.Values.Add(e.Value)
		if profile && !c.Unrelated && b.Thread < workload.MaxThreads-1 { // further threads share a lane
			r.readings.Add(b.Thread, c, min(max(e.Time, r.start), r.end), e.Value)
		}
	}
	r.readings.Flush(b.Thread)
}

// mergeReadings moves the records of counters with names to the load.
func (r *rank) mergeReadings() {
	s, load := &r.readings, r.load
	for i := range s.Records { // first, because it may change the indices of counters
		if c := s.Records[i].Of; r.nameCounter(c) {
			load.AddCounter(c.State)
		}
	}
	left, cells, bins := s.Records[:0], r.cells[:0], r.bins[:0]
	var lane *workload.Lane // nil if there are no readings to add
	var last workload.SeriesRecord
	add := func() {
		if lane != nil {
			load.AddReadings(lane, last.At, cells)
			cells, lane = cells[:0], nil
		}
	}
	for _, rec := range s.Records {
		switch {
		case !rec.Of.Named:
			left = append(left, rec)
			continue
		case rec.Of.Unrelated:
			continue
		}
		if lane == nil || rec.Thread != last.Thread || rec.At>>load.Shift() != last.At>>load.Shift() {
			add()
			lane = r.lane(rec.Thread)
		}
		last = rec
		bins = append(bins, activity.CounterReading{
			Counter: rec.Of.Sketched, At: rec.At, Reading: activity.Reading{Count: rec.Count, Sum: rec.Sum, Min: rec.Least, Max: rec.Most},
		})
		if index, ok := load.CounterIndex(rec.Of.State.Counter); ok {
			rec.Counter = index
			cells = append(cells, rec.Reading)
		}
	}
	add()
	load.Activities().AddReadings(r.key, bins)
	r.cells, r.bins, s.Shift = cells, bins, min(load.Shift(), load.Activities().ReadingShift())
	s.Records = left[max(len(left)-maxUnnamed, 0):]
}

// nameCounter reports whether a counter of the load has a name.
func (r *rank) nameCounter(c *workload.Series) bool {
	if !c.Named {
		name, ok := r.names.Counter(r.key.Rank, c.ID)
		if !ok {
			return false
		}
		key := trace.FuncKey{Program: r.key.Program, Name: name}
		c.Named, c.State.Counter, c.Sketched = true, workload.CounterOf(key), activity.CounterOf(name)
		if c.Unrelated = r.role(c.ID) == callstack.Correlation; c.Unrelated {
			return false
		}
		r.load.NameCounter(key)
		if r.counters++; r.counters > workload.MaxCounters {
			r.tally.Add(tally.CountersDropped, 1)
		}
	}
	return !c.Unrelated
}

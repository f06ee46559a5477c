package analyzer

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// nodeState follows the counters that tell the state of the node, so that it
// can be had for any time in the step at work.
type nodeState struct {
	time    trace.Micros // of the last update before the step
	fields  []provenance.Field
	updates []trace.Event // of the step, in order of time
}

// begin takes in the updates of a step.
func (s *nodeState) begin(updates []trace.Event) {
	s.updates = append(s.updates[:0], updates...)
	slices.SortStableFunc(s.updates, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
}

// at appends the state at a time to dst, and returns when it was last updated.
func (s *nodeState) at(time trace.Micros, dst []provenance.Field) (trace.Micros, []provenance.Field) {
	dst = append(dst, s.fields...)
	updated := s.time
	for i := range s.updates {
		u := &s.updates[i]
		if u.Time > time {
			break
		}
		dst, updated = set(dst, u), u.Time
	}
	return updated, dst
}

// commit makes the updates of the step part of the state.
func (s *nodeState) commit() {
	if n := len(s.updates); n > 0 {
		for i := range s.updates {
			s.fields = set(s.fields, &s.updates[i])
		}
		s.time = s.updates[n-1].Time
		s.updates = s.updates[:0]
	}
}

// set keeps the fields in order of their counters.
func set(fields []provenance.Field, u *trace.Event) []provenance.Field {
	i, ok := slices.BinarySearchFunc(fields, u.Counter(), func(f provenance.Field, id trace.CounterID) int { return cmp.Compare(f.Counter, id) })
	if !ok {
		return slices.Insert(fields, i, provenance.Field{Counter: u.Counter(), Value: u.Value})
	}
	fields[i].Value = u.Value
	return fields
}

// Package nodestate follows the state of a node, which counters describe.
package nodestate

import (
	"cmp"
	"slices"
	"sort"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// History has the recent updates of the state of a node. It returns the state at any recent time, because GPU events arrive
// late. The zero value is an empty history.
type History struct {
	log      []trace.Event // updates in order of time
	seen     map[trace.CounterID]bool
	base     []provenance.Field // the state before the log, by counter
	baseTime trace.Ticks

	cache   []provenance.Field // the state after the first cacheAt of the log
	cacheAt int                // -1 if the cache is invalid
}

// maxLog is the number of updates to keep with their times.
const maxLog = 1 << 9

// Add appends the updates of a step.
func (s *History) Add(updates []trace.Event) {
	if len(updates) == 0 {
		return
	}
	if s.seen == nil {
		s.seen = make(map[trace.CounterID]bool)
	}
	for i := range updates {
		s.seen[updates[i].Counter()] = true
	}
	s.cacheAt = -1
	s.log = append(s.log, updates...)
	slices.SortStableFunc(s.log, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	if over := len(s.log) - maxLog; over > 0 {
		over += maxLog / 2
		for i := range over {
			u := &s.log[i]
			f := provenance.Field{Counter: u.Counter(), Value: u.Value}
			if at, ok := find(s.base, f.Counter); ok {
				s.base[at] = f
			} else {
				s.base = slices.Insert(s.base, at, f)
			}
			s.baseTime = u.Time
		}
		s.log = s.log[:copy(s.log, s.log[over:])]
	}
}

// At appends the state at a time to dst, ordered by counter, and returns the time of
// its last update. It appends nothing for times before the log and its base.
func (s *History) At(time trace.Ticks, dst []provenance.Field) (trace.Ticks, []provenance.Field) {
	n := sort.Search(len(s.log), func(i int) bool { return s.log[i].Time > time })
	if n == 0 && s.baseTime > time {
		return 0, dst
	}
	updated := s.baseTime
	if n > 0 {
		updated = s.log[n-1].Time
	}
	if n != s.cacheAt {
		s.fillCache(n)
	}
	return updated, append(dst, s.cache...)
}

// fillCache computes the state after the first n updates of the log. Anomalies are more
// frequent than updates, so that caching it pays.
func (s *History) fillCache(n int) {
	s.cache, s.cacheAt = s.cache[:0], n
	for i := n - 1; i >= 0 && len(s.cache) < len(s.seen); i-- {
		u := &s.log[i]
		if at, ok := find(s.cache, u.Counter()); !ok {
			s.cache = slices.Insert(s.cache, at, provenance.Field{Counter: u.Counter(), Value: u.Value})
		}
	}
	for _, f := range s.base {
		if at, ok := find(s.cache, f.Counter); !ok {
			s.cache = slices.Insert(s.cache, at, f)
		}
	}
}

// find returns the index at which the field of a counter is or belongs.
func find(fields []provenance.Field, id trace.CounterID) (int, bool) {
	return slices.BinarySearchFunc(fields, id, func(f provenance.Field, id trace.CounterID) int { return cmp.Compare(f.Counter, id) })
}

package timeline

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// CounterParams select a counter and some ranks.
type CounterParams struct {
	Program *trace.Program // nil: any
	Counter string         // "": the first
	// Selects reports whether a rank is to be compared with all ranks; nil selects none.
	Selects func(trace.RankKey) bool
}

// Counters returns the readings of a counter over time, of all ranks and of the selected ones, in a run that began at begin. If
// the run does not have the counter, it returns only the list of counters.
func Counters(s *activity.Sketch, unit trace.Unit, begin trace.Ticks, p CounterParams) *api.CounterTimeline {
	t := &api.CounterTimeline{Counters: []api.CounterOfTimeline{}, Group: 1}
	var programs []trace.Program
	for _, key := range s.Ranks() {
		if n := len(programs); (n == 0 || programs[n-1] != key.Program) && (p.Program == nil || *p.Program == key.Program) {
			programs = append(programs, key.Program)
		}
	}
	for _, program := range programs {
		names, more := s.Counters(program)
		t.More = t.More || more
		for index, name := range names {
			if name != "" {
				t.Counters = append(t.Counters, api.CounterOfTimeline{Program: int64(program), Name: name, Index: index})
			}
		}
	}
	slices.SortFunc(t.Counters, func(a, b api.CounterOfTimeline) int {
		kind := func(c api.CounterOfTimeline) int { return int(activity.CounterOf(c.Name) >> 63) } // of resources first
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(kind(a), kind(b)), cmp.Compare(a.Name, b.Name))
	})
	i := slices.IndexFunc(t.Counters, func(c api.CounterOfTimeline) bool { return p.Counter == "" || c.Name == p.Counter })
	if i >= 0 {
		t.Program, t.Counter = t.Counters[i].Program, t.Counters[i].Name
		addReadings(t, s, unit, begin, t.Counters[i].Index, p.Selects)
	}
	return t
}

func addReadings(
	t *api.CounterTimeline, s *activity.Sketch, unit trace.Unit, begin trace.Ticks, index int, selects func(trace.RankKey) bool,
) {
	from, to := s.Span()
	first, last := int64(from)>>s.ReadingShift(), int64(to)>>s.ReadingShift()
	t.Columns = int(last - first + 1)
	t.From = unit.Seconds(trace.Ticks(first<<s.ReadingShift()) - begin)
	t.To = unit.Seconds(trace.Ticks((last+1)<<s.ReadingShift()) - begin)
	all, some := make([]activity.Reading, t.Columns), make([]activity.Reading, t.Columns)
	ranks, group := s.ReadingRanks(trace.Program(t.Program))
	t.Group = int64(group)
	var cells []activity.ReadingCell
	ok := false
	for _, rank := range ranks {
		key := trace.RankKey{Program: trace.Program(t.Program), Rank: rank}
		selected := selects != nil && selectsAny(selects, key, group)
		ok = ok || selected
		cells = s.Readings(cells[:0], key)
		for i := range cells {
			if c := &cells[i]; c.Counter == index {
				all[c.Bin-first].Merge(c.Reading)
				if selected {
					some[c.Bin-first].Merge(c.Reading)
				}
			}
		}
	}
	t.All = seriesOf(all)
	if ok {
		t.Selected = new(seriesOf(some))
	}
}

// selectsAny reports whether any rank of a group is selected.
func selectsAny(selects func(trace.RankKey) bool, first trace.RankKey, group int) bool {
	for range group {
		if selects(first) {
			return true
		}
		first.Rank++
	}
	return false
}

func seriesOf(readings []activity.Reading) api.CounterSeries {
	s := api.CounterSeries{Min: make([]*float64, len(readings)), Mean: make([]*float64, len(readings)), Max: make([]*float64, len(readings))}
	for i := range readings {
		if r := &readings[i]; r.Count > 0 {
			s.Min[i], s.Mean[i], s.Max[i] = new(float64(r.Min)), new(r.Mean()), new(float64(r.Max))
		}
	}
	return s
}

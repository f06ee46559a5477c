package timeline_test

import (
	"fmt"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/timeline"
)

// withCounters returns ranks that use 10 MB of memory more than the one before, with peaks of the last one.
func withCounters(ranks int) *activity.Sketch {
	s := sketch(ranks)
	for r := range ranks {
		var all []activity.CounterReading
		for i := range 4 {
			mb := activity.CounterReading{Counter: activity.CounterOf("memory (MB)"), At: start + trace.Ticks(i*512)}
			mb.Add(uint64(10 * r))
			if r == ranks-1 && i == 2 {
				mb.Add(1000)
			}
			size := activity.CounterReading{Counter: activity.CounterOf("bytes sent"), At: mb.At}
			size.Add(8)
			all = append(all, mb, size)
		}
		s.AddReadings(trace.RankKey{Rank: trace.Rank(r)}, all)
	}
	s.NameCounters(func(_ trace.Program, id activity.CounterID) string {
		for _, name := range []string{"memory (MB)", "bytes sent"} {
			if activity.CounterOf(name) == id {
				return name
			}
		}
		return ""
	})
	return s
}

// values formats a series, "-" for columns without readings.
func values(all []*float64) (text string) {
	for _, v := range all {
		if v == nil {
			text += " -"
		} else {
			text += fmt.Sprintf(" %g", *v)
		}
	}
	return text[1:]
}

func TestCountersOverTime(t *testing.T) {
	s := withCounters(3)
	c := timeline.Counters(s, trace.Microsecond, start, timeline.CounterParams{Selects: func(k trace.RankKey) bool { return k.Rank == 1 }})
	if len(c.Counters) != 2 || c.Counters[1].Name != "bytes sent" || c.Counter != "memory (MB)" || c.Group != 1 || c.More || c.From != 0 {
		t.Errorf("%+v", c)
	}
	for got, want := range map[string]string{
		values(c.All.Min[:6]):       "0 - 0 - 0 -",
		values(c.All.Mean[:6]):      "10 - 10 - 257.5 -",
		values(c.All.Max[:6]):       "20 - 20 - 1000 -",
		values(c.Selected.Mean[:6]): "10 - 10 - 10 -",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if c := timeline.Counters(s, trace.Microsecond, start, timeline.CounterParams{Counter: "bytes sent"}); c.Selected != nil || *c.All.Max[0] != 8 {
		t.Errorf("%+v", c)
	}
	if c := timeline.Counters(s, trace.Microsecond, start, timeline.CounterParams{Counter: "missing"}); c.Counter != "" || len(c.Counters) != 2 {
		t.Errorf("%+v", c)
	}
}

func TestCountersOfManyRanksFormGroups(t *testing.T) {
	selects := func(k trace.RankKey) bool { return k.Rank == 999 }
	c := timeline.Counters(withCounters(1000), trace.Microsecond, start, timeline.CounterParams{Selects: selects})
	var of api.CounterSeries
	if c.Selected != nil {
		of = *c.Selected
	}
	if c.Group != 2 || len(of.Min) == 0 || of.Min[0] == nil || *of.Min[0] != 9980 || *of.Max[0] != 9990 {
		t.Errorf("%d ranks in a group: %+v", c.Group, of)
	}
}

package analyzer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// readingsOf returns the sums of the readings of all lanes of a load by counter.
func readingsOf(load *workload.Load) map[workload.Counter]workload.Reading {
	all := make(map[workload.Counter]workload.Reading)
	for _, lane := range load.Lanes() {
		for i := range lane.Counters {
			for _, r := range lane.Counters[i].Readings(nil) {
				sum := all[load.Counters()[r.Counter].Counter]
				sum.Merge(&r)
				all[load.Counters()[r.Counter].Counter] = sum
			}
		}
	}
	return all
}

func TestLoadHasAllReadings(t *testing.T) {
	for _, run := range []string{"gpu-BP5", "ring-BP4"} {
		a := analyze(t, tracetest.Recorded(t, run), nil)
		got := readingsOf(a.Load)
		for _, c := range a.Counters {
			key := workload.CounterOf(c.FuncKey)
			r, ok := got[key]
			if c.Name == "Correlation ID" {
				if ok {
					t.Errorf("%s: the load has the counter %q, which identifies calls", run, c.Name)
				}
				continue
			}
			want := c.Values.Summary()
			if r.Count != c.Values.Count() || float64(r.Sum) != want.Accumulate || a.Load.CounterName(key) != c.Name {
				t.Errorf("%s: %s: got %+v, want %+v", run, c.Name, r, want)
			}
			delete(got, key)
		}
		if len(got) > 0 {
			t.Errorf("%s: other counters %v", run, got)
		}
	}
}

// count adds a reading of a counter.
func (p *program) count(counter, value uint64) {
	p.at().Counters = append(p.at().Counters, [6]uint64{0, 0, 0, counter, value, p.now})
}

func TestLoadMarksCountersThatDecrease(t *testing.T) {
	p := newProgram()
	p.at().Attrs = append(p.at().Attrs, [2]string{"counter 11", "faults"}, [2]string{"counter 12", "memory"})
	p.enter(1)
	for i, memory := range []uint64{5, 9, 7, 12} {
		p.call(1, 100)
		p.count(11, 1000+uint64(i)*10)
		p.count(12, memory)
		p.step()
	}
	p.call(1, 100)
	load := analyze(t, p.write(t), nil).Load
	got := make(map[string]string)
	for key, r := range readingsOf(load) {
		i, _ := load.CounterIndex(key)
		got[load.CounterName(key)] = fmt.Sprint(r.Count, r.Sum, r.Increase, load.Counters()[i].Decreases)
	}
	want := map[string]string{"faults": "4 4060 30 false", "memory": "4 33 0 true"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestManyCountersAreReported(t *testing.T) {
	p := newProgram()
	p.enter(1)
	for i := range uint64(workload.MaxCounters + 5) {
		p.at().Attrs = append(p.at().Attrs, [2]string{fmt.Sprint("counter ", 100+i), fmt.Sprint("number ", i)})
		p.call(1, 10)
		p.count(100+i, 7)
	}
	a := analyze(t, p.write(t), nil)
	if n, kept := a.Tally.Count(tally.CountersDropped), len(readingsOf(a.Load)); n != 5 || kept != workload.MaxCounters {
		t.Errorf("%d counters, %d reported as dropped", kept, n)
	}
}

func TestSketchHasAllReadings(t *testing.T) {
	a := analyze(t, tracetest.Recorded(t, "ring-monitoring-BP4"), nil)
	a.Load.NameActivities()
	s := a.Load.Activities()
	names, more := s.Counters(0)
	if more || len(names) != len(a.Counters) {
		t.Errorf("%d counters of %d, more: %t", len(names), len(a.Counters), more)
	}
	sums := make([]activity.Reading, len(names))
	ranks, _ := s.ReadingRanks(0)
	for _, rank := range ranks {
		for _, c := range s.Readings(nil, trace.RankKey{Rank: rank}) {
			sums[c.Counter].Merge(c.Reading)
		}
	}
	for _, c := range a.Counters {
		want := c.Values.Summary()
		r := sums[slices.Index(names, c.Name)]
		if r.Count != c.Values.Count() || float64(r.Sum) != want.Accumulate || float64(r.Min) != want.Minimum || float64(r.Max) != want.Maximum {
			t.Errorf("%s: got %+v, want %+v", c.Name, r, want)
		}
	}
}

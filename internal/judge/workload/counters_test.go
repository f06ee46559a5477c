package workload_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// read adds a reading of a counter to the first lane.
func read(l *workload.Load, name string, at trace.Ticks, value, increase uint64, decreases bool) {
	c := workload.CounterState{Counter: workload.CounterOf(trace.FuncKey{Name: name}), Decreases: decreases}
	l.AddCounter(c)
	var all []workload.Reading
	if i, ok := l.CounterIndex(c.Counter); ok {
		all = []workload.Reading{{Counter: i}}
		all[0].Add(value, increase)
	}
	l.AddReadings(l.Lane(workload.LaneKey{}), at, all)
}

// readings returns the sum of all windows of the first lane.
func readings(l *workload.Load, name string) (sum workload.Reading, windows int) {
	i, _ := l.CounterIndex(workload.CounterOf(trace.FuncKey{Name: name}))
	lane := l.Lane(workload.LaneKey{})
	for w := range lane.Counters {
		for _, r := range lane.Counters[w].Readings(nil) {
			if r.Counter == i {
				windows++
				sum.Merge(&r)
			}
		}
	}
	return sum, windows
}

func TestReadingsAreSummedByWindow(t *testing.T) {
	l := workload.New()
	for i := range uint64(20) {
		read(l, "a", trace.Ticks(i)*l.Width()/2, i, 1, false)
		read(l, "b", 0, 5, 0, false)
	}
	if r, windows := readings(l, "a"); r.Count != 20 || r.Sum != 190 || r.Increase != 20 || windows != 10 {
		t.Errorf("got %+v in %d windows", r, windows)
	}
	if r, windows := readings(l, "b"); r.Count != 20 || r.Sum != 100 || r.Increase != 0 || windows != 1 {
		t.Errorf("got %+v in %d windows", r, windows)
	}
}

func TestDecreasingCountersHaveNoIncrease(t *testing.T) {
	before, after := workload.New(), workload.New()
	read(before, "a", 1, 9, 4, false)
	read(after, "a", 2, 3, 0, true)
	read(after, "a", 2, 7, 4, false)
	for _, l := range []*workload.Load{before.Clone(), after.Clone()} {
		l.Merge(before, nil)
		l.Merge(after, nil)
		if r, _ := readings(l, "a"); r.Increase != 0 {
			t.Errorf("got %+v", r)
		}
	}
}

func TestCountersAreBounded(t *testing.T) {
	l := workload.New()
	for i := range 5 * workload.MaxCounters {
		read(l, fmt.Sprint(i), trace.Ticks(1+i), 1, 0, false)
	}
	if n := len(l.Counters()); n != workload.MaxCounters {
		t.Fatalf("%d counters", n)
	}
	for i := range 5 * workload.MaxCounters { // again: each has one reading more
		read(l, fmt.Sprint(i), trace.Ticks(1+i), 1, 0, false)
	}
	for _, r := range l.Lane(workload.LaneKey{}).Counters[0].Readings(nil) {
		if r.Count != 2 {
			t.Errorf("got %+v", r)
		}
	}
}

func TestSumsOfReadingsDoNotOverflow(t *testing.T) {
	l := workload.New()
	for range 3 {
		read(l, "a", 1, math.MaxUint64-5, math.MaxUint64, false)
	}
	if r, _ := readings(l, "a"); r.Count != 3 || r.Sum != math.MaxUint64 || r.Increase != math.MaxUint64 {
		t.Errorf("got %+v", r)
	}
}

func TestDecodeRejectsDamagedCounters(t *testing.T) {
	l := workload.New()
	read(l, "a", 100, 3, 1, false)
	read(l, "b", 100, 4, 0, true)
	valid := l.AppendBinary(nil)
	// The last bytes: a lane with one window of 5 bytes, and two counters in it.
	tail := len(valid) - 8
	if want := []byte{1, 0, 5}; !bytes.Equal(valid[tail:tail+3], want) {
		t.Fatalf("got %v at the end, want %v", valid[tail:], want)
	}
	for name, change := range map[string]map[int]byte{
		"no window":              {0: 0},
		"window after the end":   {1: 1},
		"window too long":        {2: 6},
		"window too short":       {2: 2},
		"unknown counter":        {3: 3 << 4},
		"duplicate counter":      {6: 1},
		"counter without values": {3: 0},
	} {
		b := bytes.Clone(valid)
		for i, v := range change {
			b[tail+i] = v
		}
		if _, err := workload.Decode(b, math.MaxUint64); !errors.Is(err, stats.ErrEncoding) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

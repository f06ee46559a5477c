package callstack_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// loadRecorded returns the steps of a recorded run of one rank, and the number of
// its counter of correlation ids.
func loadRecorded(tb testing.TB, run string) (steps [][]trace.Batch, events int64, correlation trace.CounterID) {
	tb.Helper()
	r, err := bp.Open(tracetest.Recorded(tb, run)[0], bp.Default())
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	reader := tau.NewReader(r, tau.Config{}, nil)
	for {
		s, err := reader.Next(tb.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		var step []trace.Batch
		for _, b := range s.Batches {
			b.Events = slices.Clone(b.Events)
			events += int64(len(b.Events))
			step = append(step, b)
		}
		steps = append(steps, step)
	}
	for id, name := range reader.Names.Counters() {
		if name == "Correlation ID" {
			return steps, events, id
		}
	}
	tb.Fatalf("%s has no correlation ids", run)
	return nil, 0, 0
}

// buildAll builds the calls of all steps and returns how many ended and how
// many pairs were joined.
func buildAll(steps [][]trace.Batch, correlation trace.CounterID, counts *tally.Tally) (calls, pairs int64) {
	cfg := callstack.Default(trace.Microsecond)
	cfg.Role = func(id trace.CounterID) callstack.CounterRole {
		if id == correlation {
			return callstack.Correlation
		}
		return callstack.OfCall
	}
	b := callstack.NewBuilder(cfg, counts)
	for i, step := range steps {
		b.Begin(i)
		before := links(b)
		for _, batch := range step {
			b.Add(batch.Thread, batch.Events)
		}
		pairs += (links(b) - before) / 2
		for _, t := range b.Threads() {
			calls += int64(len(t.Done))
		}
		b.Trim()
	}
	return calls, pairs
}

func links(b *callstack.Builder) (n int64) {
	for _, t := range b.Threads() {
		n += int64(len(t.Links))
	}
	return n
}

// TestRecordedRunIsComplete compares a run with its documented counts: 65950 function
// events, 1801 correlation ids that appear twice, and 105 counters of a thread that
// monitors the node and calls nothing.
func TestRecordedRunIsComplete(t *testing.T) {
	var counts tally.Tally
	steps, _, correlation := loadRecorded(t, "gpu-BP5")
	calls, pairs := buildAll(steps, correlation, &counts)
	if calls != 65950/2 || pairs != 1801 || totals(&counts) != "outside-any-call 105" {
		t.Errorf("got %d calls, %d pairs, counted %s; want %d, 1801, outside-any-call 105", calls, pairs, totals(&counts), 65950/2)
	}
}

// BenchmarkBuild builds the calls of a recorded run from events in memory, on
// one core.
func BenchmarkBuild(b *testing.B) {
	b.Run("gpu-BP5", func(b *testing.B) {
		steps, events, correlation := loadRecorded(b, "gpu-BP5")
		b.ReportAllocs()
		for b.Loop() {
			buildAll(steps, correlation, nil)
		}
		b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	})
}

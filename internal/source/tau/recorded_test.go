package tau_test

import (
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// eachStep reads a dataset to its end and returns the reader with all names. Any count
// that is not allowed is an error.
func eachStep(tb testing.TB, dataset string, visit func(*trace.Step), allowed ...tally.Kind) *tau.Reader {
	tb.Helper()
	var counts tally.Tally
	opt := bp.Default()
	opt.Tally = &counts
	r, err := bp.Open(dataset, opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	steps := tau.NewReader(r, tau.Config{}, &counts)
	for {
		s, err := steps.Next(tb.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		visit(s)
	}
	for kind, n := range counts.All() {
		if !slices.Contains(allowed, kind) {
			tb.Errorf("%s: counted %d %s", dataset, n, kind.Sentence())
		}
	}
	return steps
}

func TestRecordedTracesHaveDocumentedCounts(t *testing.T) {
	f := func(run string, datasets func(testing.TB, string) []string, steps, funcs, comms, counters int, allowed ...tally.Kind) {
		t.Run(run, func(t *testing.T) {
			var got struct{ steps, funcs, comms, counters int }
			paths := datasets(t, run)
			for _, dataset := range paths {
				eachStep(t, dataset, func(s *trace.Step) {
					got.steps++
					got.funcs += s.Funcs
					got.comms += s.Comms
					got.counters += s.Counters
				}, allowed...)
			}
			if got.steps != steps || got.funcs != funcs || got.comms != comms || got.counters != counters {
				t.Errorf("got %+v, want %d steps and %d, %d, %d events", got, steps, funcs, comms, counters)
			}
		})
	}
	f("ring-BP4", tracetest.Recorded, 4, 2*184, 80, 0)
	f("ring-BP5", tracetest.Recorded, 4, 2*184, 80, 0)
	f("ring-default", tracetest.Recorded, 2, 2*184, 80, 0)
	f("ring-monitoring-BP4", tracetest.Recorded, 4, 2*186, 120, 268)
	f("ring-onefile-BP4", tracetest.Recorded, 5, 2*190, 80, 0, tally.NamesAmbiguous)
	f("ring-onefile-BP5", tracetest.Recorded, 5, 2*190, 80, 0, tally.NamesAmbiguous)
	f("burst", tracetest.Recorded, 16, 254, 0, 0)
	f("gpu-BP5", tracetest.Recorded, 15, 65950, 0, 4909)
	f("gpu-late-BP4", tracetest.Large, 15, 65902, 0, 4905)
	f("heat2d-BP4", tracetest.Large, 27+28+27+27, 1008696, 24000, 733)
	f("heat2d-BP5", tracetest.Large, 4*42, 1008696, 24000, 888)
	f("heat2d-large-BP4", tracetest.Large, 4*23, 6928536, 48000, 1968)
	f("heat2d-large-BP5", tracetest.Large, 4*42, 6928536, 48000, 2744)
}

// TestCallsNestOnEveryThread walks over all events of the recordings: entries
// and exits match, and messages and counters lie inside the functions that
// begin or end at the same time.
func TestCallsNestOnEveryThread(t *testing.T) {
	for _, run := range []string{"ring-BP4", "ring-BP5", "ring-monitoring-BP4", "ring-onefile-BP4", "ring-onefile-BP5", "burst", "gpu-BP5"} {
		t.Run(run, func(t *testing.T) {
			for _, dataset := range tracetest.Recorded(t, run) {
				type thread struct {
					rank   trace.Rank
					thread trace.Thread
				}
				stacks := make(map[thread][]trace.FuncID)
				last := make(map[thread]trace.Ticks)
				eachStep(t, dataset, func(s *trace.Step) {
					for _, b := range s.Batches {
						id := thread{b.Rank, b.Thread}
						for i, e := range b.Events {
							stack := stacks[id]
							if e.Time < last[id] {
								t.Errorf("%s step %d %v: event %d is older than its predecessor", dataset, s.Index, id, i)
							}
							last[id] = e.Time
							switch {
							case e.Kind == trace.Enter:
								stacks[id] = append(stack, e.Func())
							case e.Kind != trace.Exit:
							case len(stack) == 0 || stack[len(stack)-1] != e.Func():
								t.Fatalf("%s step %d %v: exit of %d with stack %v", dataset, s.Index, id, e.Func(), stack)
							default:
								stacks[id] = stack[:len(stack)-1]
							}
						}
					}
				}, tally.NamesAmbiguous)
			}
		})
	}
}

func TestNamesMetadataAndGPUThreads(t *testing.T) {
	var hosts []string
	streams := make(map[trace.Thread]string)
	correlations := make(map[uint64]int)
	var counter []trace.Event
	steps := eachStep(t, tracetest.Recorded(t, "gpu-BP5")[0], func(s *trace.Step) {
		for _, m := range s.Metadata {
			if m.Key == "Hostname" {
				hosts = append(hosts, m.Value)
			}
			if m.Key == "CUDA Stream" {
				streams[m.Thread] = m.Value
			}
		}
		for _, b := range s.Batches {
			for _, e := range b.Events {
				if e.Kind == trace.Count {
					counter = append(counter, e)
				}
			}
		}
	})
	for _, e := range counter {
		if name, ok := steps.Names.Counter(0, e.Counter()); !ok {
			t.Errorf("counter %d has no name", e.Counter())
		} else if name == "Correlation ID" {
			correlations[e.Value]++
		}
	}
	if len(hosts) != 1 {
		t.Errorf("got hosts %q, want one", hosts)
	}
	if want := (map[trace.Thread]string{5: "14", 6: "20", 7: "21", 8: "0"}); !maps.Equal(streams, want) {
		t.Errorf("got streams %v, want %v", streams, want)
	}
	for thread, stream := range streams {
		if gpu, ok := steps.Names.GPU(0, thread); !ok || gpu.Stream != stream || gpu.Device == "" {
			t.Errorf("thread %d is %+v, want stream %s of some device", thread, gpu, stream)
		}
	}
	if _, ok := steps.Names.GPU(0, 0); ok {
		t.Error("thread 0 counts as a GPU's")
	}
	pairs := 0
	for _, n := range correlations {
		if n == 2 {
			pairs++
		}
	}
	if pairs != 1801 {
		t.Errorf("got %d correlation ids that appear twice, want 1801", pairs)
	}
}

package tau_test

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// encode writes steps of a rank and returns the dataset.
func encode(t *testing.T, e tau.Encoder, rank trace.Rank, steps []trace.Step) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "encoded.bp")
	w, err := bpwriter.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bpwriter.Step
	for i := range steps {
		w.Begin(&out, 1_700_000_000)
		e.Encode(&out, &steps[i], rank)
		if err := w.Write(&out); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// allSteps reads a dataset to its end. Any count in the tally is an error.
func allSteps(t *testing.T, dataset string, cfg tau.Config) (steps []trace.Step, r *tau.Reader) {
	t.Helper()
	var counts tally.Tally
	opt := bp.Default()
	opt.Tally = &counts
	src, err := bp.Open(dataset, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	r = tau.NewReader(src, cfg, &counts)
	for {
		s, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, trace.Step{
			Index: s.Index, Batches: cloneBatches(s.Batches), Metadata: slices.Clone(s.Metadata),
			Readings: cloneBatches(s.Readings), Funcs: s.Funcs, Comms: s.Comms, Counters: s.Counters,
		})
	}
	if all := maps.Collect(counts.All()); len(all) > 0 {
		t.Errorf("%s: tallied %v", dataset, all)
	}
	return steps, r
}

func cloneBatches(list []trace.Batch) []trace.Batch {
	list = slices.Clone(list)
	for i := range list {
		list[i].Events = slices.Clone(list[i].Events)
	}
	return list
}

// sameNames reports whether all names and GPU threads are the same.
func sameNames(a, b *trace.Names, rank trace.Rank) bool {
	for thread := range trace.Thread(64) {
		x, ok1 := a.GPU(rank, thread)
		y, ok2 := b.GPU(rank, thread)
		if ok1 != ok2 || x != y {
			return false
		}
	}
	return a.Program() == b.Program() && maps.Equal(maps.Collect(a.Funcs()), maps.Collect(b.Funcs())) &&
		maps.Equal(maps.Collect(a.Counters()), maps.Collect(b.Counters()))
}

// TestEncodeRecordedTrace decodes a trace of TAU, encodes it and decodes the result, which
// has all names in the first step.
func TestEncodeRecordedTrace(t *testing.T) {
	for _, run := range []string{"ring-BP4", "ring-BP5", "ring-monitoring-BP4", "burst", "gpu-BP5"} {
		t.Run(run, func(t *testing.T) {
			for _, dataset := range tracetest.Recorded(t, run) {
				want, names := allSteps(t, dataset, tau.Config{Program: 2})
				rank := want[0].Batches[0].Rank
				again, got := allSteps(t, encode(t, tau.Encoder{Names: &names.Names, Ranks: 2}, rank, want), tau.Config{Program: 2})
				if len(again) != len(want) {
					t.Fatalf("%d steps, want %d", len(again), len(want))
				}
				for i := range want {
					compareTexts(t, "metadata", metadataTexts(again[i].Metadata), metadataTexts(want[i].Metadata))
					again[i].Metadata, want[i].Metadata = nil, nil
					if !reflect.DeepEqual(again[i], want[i]) {
						t.Errorf("%s step %d differs", dataset, i)
					}
				}
				if !sameNames(&got.Names, &names.Names, rank) {
					t.Errorf("%s: names differ", dataset)
				}
			}
		})
	}
}

// TestEncodeUnusualValues has wildcards of MPI, large values, times from
// the smallest to the largest, keys and names with all kinds of characters, a
// step without events and a thread with nothing but a counter.
func TestEncodeUnusualValues(t *testing.T) {
	const rank, last = 70_000, 1 << 53
	names := trace.NewNames("a program", []string{"main()", "f(int) [{x.cpp} {1,2}]", "", "käse \"\n"}, []string{"timer 1", "c"},
		map[trace.Rank]map[trace.Thread]trace.GPU{
			rank: {9: {Device: "0", Context: "1", Stream: "7"}},
		})
	steps := []trace.Step{
		{
			Index: 0, Funcs: 4, Comms: 3, Counters: 2,
			Batches: []trace.Batch{
				{Program: 5, Rank: rank, Thread: 0, Events: []trace.Event{
					{Time: 1, Kind: trace.Enter, Row: 0, ID: 0},
					{Time: 1, Kind: trace.Send, Row: 0, ID: uint32(1<<32 - 1), Tag: -1, Value: trace.MaxSize},
					{Time: 2, Kind: trace.Recv, Row: 1, ID: uint32(1<<32 - 2), Tag: -1 << 31, Value: 0},
					{Time: 3, Kind: trace.Recv, Row: 2, ID: 1<<31 - 1, Tag: 1<<31 - 1, Value: 8},
					{Time: 4, Kind: trace.Enter, Row: 1, ID: 3},
					{Time: last, Kind: trace.Exit, Row: 2, ID: 3},
					{Time: last, Kind: trace.Exit, Row: 3, ID: 0},
				}},
				{Program: 5, Rank: rank, Thread: 9, Events: []trace.Event{
					{Time: 5, Kind: trace.Count, Row: 0, ID: 1, Value: 1<<64 - 1},
					{Time: 6, Kind: trace.Count, Row: 1, ID: 0, Value: 0},
				}},
			},
			Metadata: []trace.Metadata{
				{Program: 5, Rank: rank, Key: "Hostname", Value: "node:7"},
				{Program: 5, Rank: rank, Thread: 9, Key: "a: b:c", Value: ""},
				{Program: 5, Rank: rank, Thread: 9, Key: "CUDA Device", Value: "0"},
				{Program: 5, Rank: rank, Thread: 9, Key: "CUDA Context", Value: "1"},
				{Program: 5, Rank: rank, Thread: 9, Key: "CUDA Stream", Value: "7"},
			},
		},
		{Index: 1},
		{Index: 2, Funcs: 1, Batches: []trace.Batch{{
			Program: 5, Rank: rank, Thread: 999_999,
			Events: []trace.Event{{Time: 7, Kind: trace.Enter, ID: 1}},
		}}},
	}
	steps[0].Readings = steps[0].Batches[1:]
	got, r := allSteps(t, encode(t, tau.Encoder{Names: &names, Ranks: 100_000}, rank, steps), tau.Config{Program: 5})
	if len(got) != len(steps) {
		t.Fatalf("%d steps, want %d", len(got), len(steps))
	}
	for i := range steps {
		compareTexts(t, "metadata", metadataTexts(got[i].Metadata), metadataTexts(steps[i].Metadata))
		if !slices.EqualFunc(got[i].Batches, steps[i].Batches, equalBatches) ||
			!slices.EqualFunc(got[i].Readings, steps[i].Readings, equalBatches) ||
			got[i].Funcs != steps[i].Funcs || got[i].Comms != steps[i].Comms || got[i].Counters != steps[i].Counters {
			t.Errorf("step %d: got %+v, want %+v", i, got[i], steps[i])
		}
	}
	if !sameNames(&r.Names, &names, rank) {
		t.Errorf("names are %v, want %v", maps.Collect(r.Names.Funcs()), maps.Collect(names.Funcs()))
	}
}

func equalBatches(a, b trace.Batch) bool {
	return a.Program == b.Program && a.Rank == b.Rank && a.Thread == b.Thread && slices.Equal(a.Events, b.Events)
}

// TestNewNames looks up each kind of name.
func TestNewNames(t *testing.T) {
	n := trace.NewNames("prog", []string{"f", "g"}, []string{"c"}, map[trace.Rank]map[trace.Thread]trace.GPU{1: {4: {Stream: "s"}}})
	for rank := range trace.Rank(3) {
		f, ok1 := n.Func(rank, 1)
		c, ok2 := n.Counter(rank, 0)
		if f != "g" || c != "c" || !ok1 || !ok2 {
			t.Errorf("rank %d has the function %q and the counter %q", rank, f, c)
		}
		_, ok3 := n.Func(rank, 2)
		_, ok4 := n.Counter(rank, 1)
		if gpu, ok := n.GPU(rank, 4); ok3 || ok4 || ok != (rank == 1) || ok && gpu.Stream != "s" {
			t.Errorf("rank %d has a function 2: %v, a counter 1: %v, a GPU: %v %+v", rank, ok3, ok4, ok, gpu)
		}
	}
	if n.Program() != "prog" {
		t.Errorf("the program is %q", n.Program())
	}
	empty := trace.NewNames("", nil, nil, nil)
	if _, ok := empty.Func(0, 0); ok || empty.Program() != "" {
		t.Error("names of nothing have a function")
	}
}

// TestEncodingDoesNotAllocate uses the memory of the step before.
func TestEncodingDoesNotAllocate(t *testing.T) {
	events := make([]trace.Event, 0, 4000)
	for i := range uint32(1000) {
		at := trace.Ticks(10 * (i + 1))
		events = append(events, trace.Event{Time: at, Kind: trace.Enter, Row: 2 * i}, trace.Event{Time: at, Kind: trace.Send, Row: i},
			trace.Event{Time: at, Kind: trace.Count, Row: i}, trace.Event{Time: at + 5, Kind: trace.Exit, Row: 2*i + 1})
	}
	step := trace.Step{Index: 1, Funcs: 2000, Comms: 1000, Counters: 1000, Batches: []trace.Batch{{Events: events}}}
	names := trace.NewNames("p", []string{"f"}, []string{"c"}, nil)
	e := tau.Encoder{Names: &names, Ranks: 1}
	w, err := bpwriter.Create(filepath.Join(t.TempDir(), "x.bp"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Release()
	var out bpwriter.Step
	n := testing.AllocsPerRun(10, func() {
		w.Begin(&out, 0)
		e.Encode(&out, &step, 0)
	})
	if n > 30 {
		t.Errorf("a step of 4000 events allocates %v times", n)
	}
}

package tau_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// decoded is the result of decoding a trace.
type decoded struct {
	text   string // "rank/thread: event event …; rank/thread: …", steps parted by " | "
	counts tally.Tally
	steps  *tau.Reader
	meta   []trace.Metadata
}

// decode writes the steps, reads them back and returns them in short form: e7@5 is the
// entry of function 7 at time 5; x an exit, s and r messages by their row, c a counter by
// its value.
func decode(t *testing.T, cfg tau.Config, steps ...tracetest.Step) *decoded {
	t.Helper()
	steps[0].Attrs = append(slices.Clone(tracetest.EventTypes), steps[0].Attrs...)
	d := &decoded{}
	opt := bp.Default()
	opt.Tally = &d.counts
	r, err := bp.Open(tracetest.WriteBP4(t, t.TempDir(), steps), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	d.steps = tau.NewReader(r, cfg, &d.counts)
	var all []string
	for {
		s, err := d.steps.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		d.meta = append(d.meta, s.Metadata...)
		var batches []string
		for _, b := range s.Batches {
			if b.Program != cfg.Program {
				t.Errorf("program is %d, want %d", b.Program, cfg.Program)
			}
			batches = append(batches, fmt.Sprintf("%d/%d: %s", b.Rank, b.Thread, eventsText(b.Events)))
		}
		all = append(all, strings.Join(batches, "; "))
	}
	d.text = strings.Join(all, " | ")
	return d
}

func eventsText(events []trace.Event) string {
	words := make([]string, 0, len(events))
	for _, e := range events {
		switch e.Kind {
		case trace.Enter:
			words = append(words, fmt.Sprintf("e%d@%d", e.ID, e.Time))
		case trace.Exit:
			words = append(words, fmt.Sprintf("x%d@%d", e.ID, e.Time))
		case trace.Send, trace.Recv:
			words = append(words, fmt.Sprintf("%c%d@%d", e.Kind.String()[0], e.Row, e.Time))
		case trace.Count:
			words = append(words, fmt.Sprintf("c%d@%d", e.Value, e.Time))
		}
	}
	return strings.Join(words, " ")
}

// Rows of rank 0.
func enterRow(thread, fn, time uint64) [6]uint64 { return [6]uint64{0, 0, thread, 0, fn, time} }
func exitRow(thread, fn, time uint64) [6]uint64  { return [6]uint64{0, 0, thread, 1, fn, time} }
func sent(thread, time uint64) [8]uint64         { return [8]uint64{0, 0, thread, 2, 5, 1, 800, time} }

func received(thread, time uint64) [8]uint64 { return [8]uint64{0, 0, thread, 3, 5, 1, 800, time} }

func reading(thread, value, time uint64) [6]uint64 {
	return [6]uint64{0, 0, thread, 9, value, time}
}

func TestSidesLieInsideFunctionsAtSameTime(t *testing.T) {
	f := func(want string, funcs [][6]uint64, comms [][8]uint64, counters [][6]uint64) {
		t.Helper()
		got := decode(t, tau.Config{}, tracetest.Step{Tables: tracetest.Tables{Funcs: funcs, Comms: comms, Counters: counters}})
		if got.text != want {
			t.Errorf("got  %s\nwant %s", got.text, want)
		}
		for kind, n := range got.counts.All() {
			t.Errorf("%s: counted %d %s", want, n, kind.Name())
		}
	}
	// The example of the original's own test: everything at the time of an
	// entry comes after it, everything at that of an exit before it.
	f("0/0: c1@100 e7@110 s0@110 c2@130 c3@140 s1@150 r2@160 s3@180 x7@180",
		[][6]uint64{enterRow(0, 7, 110), exitRow(0, 7, 180)},
		[][8]uint64{sent(0, 110), sent(0, 150), received(0, 160), sent(0, 180)},
		[][6]uint64{reading(0, 1, 100), reading(0, 2, 130), reading(0, 3, 140)})
	f("0/0: e7@5 e8@5 s0@5 c1@5 x8@5 x7@5", // entries first, then messages, counters, exits
		[][6]uint64{enterRow(0, 7, 5), enterRow(0, 8, 5), exitRow(0, 8, 5), exitRow(0, 7, 5)},
		[][8]uint64{sent(0, 5)}, [][6]uint64{reading(0, 1, 5)})
	f("0/0: e7@1 s0@5 c1@5 x7@5 e8@5 x8@9", // one function ends as the next begins
		[][6]uint64{enterRow(0, 7, 1), exitRow(0, 7, 5), enterRow(0, 8, 5), exitRow(0, 8, 9)},
		[][8]uint64{sent(0, 5)}, [][6]uint64{reading(0, 1, 5)})
	f("0/0: e7@1 x7@2 s0@3 c1@4", // after the last function
		[][6]uint64{enterRow(0, 7, 1), exitRow(0, 7, 2)}, [][8]uint64{sent(0, 3)}, [][6]uint64{reading(0, 1, 4)})
	f("0/0: e7@1 x7@2; 0/3: c1@1; 0/4: s0@1", // threads without functions
		[][6]uint64{enterRow(0, 7, 1), exitRow(0, 7, 2)}, [][8]uint64{sent(4, 1)}, [][6]uint64{reading(3, 1, 1)})
}

func TestImpossibleSizesAreUnknownAndCounted(t *testing.T) {
	f := func(size, want uint64, counted int64) {
		t.Helper()
		in := tracetest.Step{Tables: tracetest.Tables{Comms: [][8]uint64{{0, 0, 0, 3, 5, 1, size, 7}}}, Attrs: tracetest.EventTypes}
		var counts tally.Tally
		src, err := bp.Open(tracetest.WriteBP4(t, t.TempDir(), []tracetest.Step{in}), bp.Default())
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		s, err := tau.NewReader(src, tau.Config{}, &counts).Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Batches[0].Events[0].Value; got != want || counts.Count(tally.SizeImplausible) != counted {
			t.Errorf("size %#x: got %#x, counted %d", size, got, counts.Count(tally.SizeImplausible))
		}
	}
	f(0, 0, 0)
	f(1<<48, 1<<48, 0)
	f(1<<48+1, trace.UnknownSize, 1)
	f(0xffffffffec9d609d, trace.UnknownSize, 1) // a negative C int
	f(1<<64-1, trace.UnknownSize, 1)
}

func TestOrderIsRestoredAndCounted(t *testing.T) {
	f := func(want string, counted map[tally.Kind]int64, in tracetest.Tables) {
		t.Helper()
		got := decode(t, tau.Config{}, tracetest.Step{Tables: in})
		if got.text != want {
			t.Errorf("got  %s\nwant %s", got.text, want)
		}
		for kind, n := range got.counts.All() {
			if counted[kind] != n {
				t.Errorf("%s: counted %d %s, want %d", want, n, kind.Name(), counted[kind])
			}
			delete(counted, kind)
		}
		for kind, n := range counted {
			t.Errorf("%s: counted no %s, want %d", want, kind.Name(), n)
		}
	}
	f("0/0: e7@1 x7@4; 0/1: e8@2 x8@3", map[tally.Kind]int64{tally.ThreadsInterleaved: 1},
		tracetest.Tables{Funcs: [][6]uint64{enterRow(0, 7, 1), enterRow(1, 8, 2), exitRow(1, 8, 3), exitRow(0, 7, 4)}})
	f("0/0: e7@1 c9@2 x7@4; 0/1: e8@2 c8@3 x8@3", map[tally.Kind]int64{tally.ThreadsInterleaved: 1}, // with counters, too
		tracetest.Tables{
			Funcs:    [][6]uint64{enterRow(0, 7, 1), enterRow(1, 8, 2), exitRow(1, 8, 3), exitRow(0, 7, 4)},
			Counters: [][6]uint64{reading(0, 9, 2), reading(1, 8, 3)},
		})
	f("0/0: e7@1 e8@2 x8@3 x7@4", map[tally.Kind]int64{tally.OutOfOrder: 1},
		tracetest.Tables{Funcs: [][6]uint64{enterRow(0, 7, 1), exitRow(0, 8, 3), enterRow(0, 8, 2), exitRow(0, 7, 4)}})
	f("0/0: e7@1 s1@2 s0@3 c5@3 x7@4", map[tally.Kind]int64{tally.OutOfOrder: 1}, // messages, which stopped the original
		tracetest.Tables{
			Funcs: [][6]uint64{enterRow(0, 7, 1), exitRow(0, 7, 4)}, Comms: [][8]uint64{sent(0, 3), sent(0, 2)},
			Counters: [][6]uint64{reading(0, 5, 3)},
		})
	f("0/0: e7@1 c2@2 c1@3 x7@4", map[tally.Kind]int64{tally.OutOfOrder: 1}, // counters, too
		tracetest.Tables{Funcs: [][6]uint64{enterRow(0, 7, 1), exitRow(0, 7, 4)}, Counters: [][6]uint64{reading(0, 1, 3), reading(0, 2, 2)}})
	f("0/2: e7@1 x7@4; 0/5: e8@2 x8@3", nil, // threads in any order, each together
		tracetest.Tables{Funcs: [][6]uint64{enterRow(5, 8, 2), exitRow(5, 8, 3), enterRow(2, 7, 1), exitRow(2, 7, 4)}})
}

func TestImpossibleRowsAreDropped(t *testing.T) {
	good := []([6]uint64){enterRow(0, 7, 1), exitRow(0, 7, 9)}
	f := func(kind tally.Kind, bad [6]uint64) {
		t.Helper()
		got := decode(t, tau.Config{}, tracetest.Step{Tables: tracetest.Tables{Funcs: [][6]uint64{good[0], bad, good[1]}}})
		if got.text != "0/0: e7@1 x7@9" || got.counts.Count(kind) != 1 {
			t.Errorf("%v: got %s, counted %d %s, want the other rows and 1", bad, got.text, got.counts.Count(kind), kind.Name())
		}
	}
	const huge = 1 << 63
	f(tally.ProgramImplausible, [6]uint64{huge, 0, 0, 0, 7, 5})
	f(tally.RankMismatch, [6]uint64{0, 3, 0, 0, 7, 5})
	f(tally.ThreadImplausible, [6]uint64{0, 0, 1_000_000, 0, 7, 5})
	f(tally.TypeUnknown, [6]uint64{0, 0, 0, 4, 7, 5})
	f(tally.TypeUnknown, [6]uint64{0, 0, 0, 2, 7, 5}) // a message among functions
	f(tally.TypeUnknown, [6]uint64{0, 0, 0, 256, 7, 5})
	f(tally.IDImplausible, [6]uint64{0, 0, 0, 0, 1 << 32, 5})
	f(tally.TimeImplausible, [6]uint64{0, 0, 0, 0, 7, 0})
	f(tally.TimeImplausible, [6]uint64{0, 0, 0, 0, 7, huge + 1})
	f(tally.TimeImplausible, [6]uint64{0, 0, 0, 0, 7, 1<<53 + 1})
}

func TestFirstRowsDecideRank(t *testing.T) {
	row := func(rank, typ, time uint64) [6]uint64 { return [6]uint64{0, rank, 0, typ, 7, time} }
	f := func(cfg tau.Config, want string, dropped int64, rows ...[6]uint64) {
		t.Helper()
		got := decode(t, cfg, tracetest.Step{Tables: tracetest.Tables{Funcs: rows}})
		if got.text != want || got.counts.Count(tally.RankMismatch) != dropped {
			t.Errorf("%+v: got %q, dropped %d, want %q, %d", cfg, got.text, got.counts.Count(tally.RankMismatch), want, dropped)
		}
	}
	mixed := [][6]uint64{row(4, 0, 1), row(4, 0, 2), row(9, 1, 3), row(4, 1, 4)}
	f(tau.Config{}, "4/0: e7@1 e7@2 x7@4", 1, mixed...)
	f(tau.Config{}, "4/0: e7@2 x7@4", 1, row(9, 0, 1), row(4, 0, 2), row(4, 1, 4)) // a damaged first row
	f(tau.Config{Ranks: tau.VerifyRank, Rank: 9, Program: 3}, "9/0: x7@3", 3, mixed...)
	f(tau.Config{Ranks: tau.OverrideRank, Rank: 11, Program: 5}, "11/0: e7@1 e7@2 x7@3 x7@4", 0, mixed...)
}

func TestEventTypesByName(t *testing.T) {
	dir := t.TempDir()
	step := tracetest.Step{
		Tables: tracetest.Tables{Funcs: [][6]uint64{{0, 0, 0, 3, 7, 1}, {0, 0, 0, 2, 7, 2}}, Comms: [][8]uint64{{0, 0, 0, 0, 5, 1, 8, 1}}},
		Attrs:  [][2]string{{"event_type 3", "ENTRY"}, {"event_type 2", "EXIT"}, {"event_type 0", "RECV"}, {"event_type 1", "SEND"}},
	}
	r, err := bp.Open(tracetest.WriteBP4(t, dir, []tracetest.Step{step}), bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := tau.NewReader(r, tau.Config{}, nil).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := eventsText(s.Batches[0].Events); got != "e7@1 r0@1 x7@2" {
		t.Errorf("got %s, want e7@1 r0@1 x7@2", got)
	}
}

func TestLateNames(t *testing.T) {
	got := decode(t, tau.Config{},
		tracetest.Step{Tables: tracetest.Tables{Funcs: [][6]uint64{enterRow(0, 7, 1)}, Counters: [][6]uint64{reading(0, 1, 1)}}},
		tracetest.Step{
			Tables: tracetest.Tables{Funcs: [][6]uint64{exitRow(0, 7, 2)}},
			Attrs:  [][2]string{{"timer 7", "late()"}, {"counter 9", "later"}},
		})
	fn, ok1 := got.steps.Names.Func(0, 7)
	counter, ok2 := got.steps.Names.Counter(0, 9)
	if !ok1 || !ok2 || fn != "late()" || counter != "later" {
		t.Errorf("got %q %v, %q %v", fn, ok1, counter, ok2)
	}
}

func TestMetadataWithMisleadingNames(t *testing.T) {
	got := decode(t, tau.Config{Program: 2}, tracetest.Step{
		Tables: tracetest.Tables{Funcs: [][6]uint64{enterRow(0, 7, 1)}},
		Attrs: [][2]string{
			{"timer 7", "f"},
			{"MetaData:0:0:my timer resolution", "1 us"},
			{"MetaData:0:0:event_type 7", "x"},
			{"MetaData:0:1:counter 7", "y"},
			{"MetaData:0:0:a:b: c", "colons"},
			{"MetaData:0:5:ROCM_QUEUE_IDMetaData:0:5:CUDA Stream", "3"},
			{"timer", "no number"},
			{"counter x", "no number"},
			{"MetaData:here", "no rank"},
			{"something else", "ignored"},
		},
	})
	want := []trace.Metadata{
		{Program: 2, Key: "my timer resolution", Value: "1 us"},
		{Program: 2, Key: "event_type 7", Value: "x"},
		{Program: 2, Thread: 1, Key: "counter 7", Value: "y"},
		{Program: 2, Key: "a:b: c", Value: "colons"},
		{Program: 2, Thread: 5, Key: "CUDA Stream", Value: "3"},
	}
	if !slices.Equal(got.meta, want) {
		t.Errorf("got %+v\nwant %+v", got.meta, want)
	}
	if n := got.counts.Count(tally.AttributeMalformed); n != 3 {
		t.Errorf("counted %d malformed attributes, want 3", n)
	}
	if name, _ := got.steps.Names.Func(0, 7); name != "f" {
		t.Errorf("function 7 is %q", name)
	}
	if gpu, ok := got.steps.Names.GPU(0, 5); !ok || gpu.Stream != "3" {
		t.Errorf("thread 5 is %+v, %v", gpu, ok)
	}
}

func TestOneFileOfSeveralRanks(t *testing.T) {
	other := func(row [6]uint64) [6]uint64 { row[1] = 1; return row }
	got := decode(t, tau.Config{}, tracetest.Step{
		Tables: tracetest.Tables{Funcs: [][6]uint64{enterRow(0, 7, 1), exitRow(0, 7, 5)}, Counters: [][6]uint64{reading(0, 3, 2)}},
		More:   []tracetest.Tables{{Funcs: [][6]uint64{other(enterRow(0, 8, 2)), other(exitRow(0, 8, 3))}}},
		Attrs:  [][2]string{{"timer 7", "f"}, {"timer 8", "g"}},
	})
	if want := "0/0: e7@1 c3@2 x7@5; 1/0: e8@2 x8@3"; got.text != want {
		t.Errorf("got %s, want %s", got.text, want)
	}
	if n := got.counts.Count(tally.NamesAmbiguous); n != 2 || !got.steps.OneFile() {
		t.Errorf("warned of %d ranks, want 2", n)
	}
	if name, ok := got.steps.Names.Func(1, 8); !ok || name != "g" {
		t.Errorf("function 8 of rank 1 is %q", name)
	}
}

package tau_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// FuzzStep decodes steps with rows from bytes; see parseRows. The rule is that for ranks;
// the attribute is an unexpected one.
func FuzzStep(f *testing.F) {
	f.Add([]byte("f\x00\x00\x01\x05f\x00\x01\x01\x09c\x00\x02\x01\x07m\x00\x02\x03\x06"), byte(tau.TraceRank), "timer 1", "main()")
	f.Add([]byte("f000f111f000c000c001m222f0b1f011"), byte(tau.VerifyRank), "MetaData:1:0:CUDA Device", "0")
	f.Add([]byte("m022m021c022c021f025f024f023|f025b+f136m000b+f001"), byte(tau.OverrideRank), "event_type 4", "ENTRY")
	f.Add([]byte("f\x00\x00\x05f\x01\x00\x06f\x00\x01\x09c\x00\x02\x07c\x00\x02\x08m\x00\x02\x03"), byte(tau.TraceRank), "timer 5",
		"threads in turns")
	f.Add([]byte("c\x00\x02\x00c\x00\x02\x09m\x00\x02\x00m\x00\x09\x08m\x00\x03\x08f\x00\x00\x00f\x01\x04\x07f\x01\x01\x07"),
		byte(tau.TraceRank), "timer", "no time, no type")
	f.Add(recordedRows(f, "ring-BP5"), byte(tau.TraceRank), "counter x", "")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, rows []byte, rule byte, name, value string) {
		if len(rows) > 10_000 || len(name) > 1000 || len(value) > 1000 {
			return
		}
		steps := parseRows(rows)
		steps[0].Attrs = append(slices.Clone(tracetest.EventTypes), [2]string{name, value})
		cfg := tau.Config{Program: 3, Rank: 1, Ranks: tau.RankRule(rule % 3)}
		checkDecoding(t, tracetest.WriteBP4(t, dir, steps), cfg, steps)
	})
}

// TestCompressedTableIsRefused makes a recorded trace look as if
// an operator had been applied to its arrays.
func TestCompressedTableIsRefused(t *testing.T) {
	dataset := tracetest.Copy(t, tracetest.Recorded(t, "ring-BP5")[0])
	replaceInFile(t, filepath.Join(dataset, "mmd.0"), []byte("MetaArrayMM8"), []byte("MetaArrayOpM"))
	wantRefusal(t, dataset)
}

// A table that cannot be read may announce any number of rows.
func TestRefusedTableTakesNoMemory(t *testing.T) {
	dataset := tracetest.WriteBP4(t, t.TempDir(), []tracetest.Step{{
		Tables: tracetest.Tables{Funcs: [][6]uint64{{0, 0, 0, 0, 1, 5}}},
		Attrs:  tracetest.EventTypes,
	}})
	const dimensions, operator, uint64s = 4, 11, 54 // codes of BP4
	describe := func(rows uint64) []byte {
		b := []byte{dimensions, 2, 48, 0}
		for _, n := range []uint64{rows, rows, 0, 6, 6, 0} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	}
	md := filepath.Join(dataset, "md.0")
	b, err := os.ReadFile(md)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, describe(1))
	if at < 0 {
		t.Fatal("md.0 does not describe a table of one row")
	}
	copy(b[at:], describe(1<<26))
	// bytes of the least and the greatest value, which come next
	const limits = 19
	copy(b[at+len(describe(1))+limits:], []byte{operator, 1, 'z', uint64s, 0, 0, 0, 0, 0}) // as long as the place of the array's head
	if err := os.WriteFile(md, b, 0o644); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	wantRefusal(t, dataset)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes of memory to refuse an array", used)
	}
}

// wantRefusal fails unless the first step is refused because of an operator.
func wantRefusal(t *testing.T, dataset string) {
	t.Helper()
	src, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	_, err = tau.NewReader(src, tau.Config{}, nil).Next(t.Context())
	if _, ok := errors.AsType[*bp.UnsupportedError](err); !ok || !strings.Contains(err.Error(), "operator") {
		t.Errorf("got %v, want an UnsupportedError that speaks of the operator", err)
	}
}

// replaceInFile replaces bytes by others of the same number.
func replaceInFile(t *testing.T, path string, old, with []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, old) || len(old) != len(with) {
		t.Fatalf("%s does not hold %q, or %q is not as long", path, old, with)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(b, old, with), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rejections are the counts under which a row can be dropped.
var rejections = []tally.Kind{
	tally.ProgramImplausible, tally.RankMismatch, tally.ThreadImplausible,
	tally.TypeUnknown, tally.IDImplausible, tally.TimeImplausible,
}

// checkDecoding reads a trace with known rows to its end and checks the invariants of all
// traces.
func checkDecoding(t *testing.T, dataset string, cfg tau.Config, steps []tracetest.Step) {
	t.Helper()
	src, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var counts tally.Tally
	r := tau.NewReader(src, cfg, &counts)
	rejected := int64(0)
	for i := range steps {
		s, err := r.Next(t.Context())
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		checkBatches(t, s, cfg)
		checkRows(t, s, &steps[i])
		before := rejected
		rejected = 0
		for _, k := range rejections {
			rejected += counts.Count(k)
		}
		events := s.Funcs + s.Comms + s.Counters
		if rows := countRows(&steps[i]); events+int(rejected-before) != rows {
			t.Fatalf("step %d: %d rows in, %d events and %d rejected rows out", i, rows, events, rejected-before)
		}
		useNames(&r.Names, s)
	}
	if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last step: %v", err)
	}
	for _, k := range []tally.Kind{tally.CountMismatch, tally.TableMisshapen, tally.StepReread} {
		if n := counts.Count(k); n != 0 {
			t.Fatalf("%s: %d", k.Name(), n)
		}
	}
}

func countRows(s *tracetest.Step) (n int) {
	for _, b := range append([]tracetest.Tables{s.Tables}, s.More...) {
		n += len(b.Funcs) + len(b.Comms) + len(b.Counters)
	}
	return n
}

// sort of an event: functions, messages and counters have separate tables.
func sortOf(k trace.Kind) trace.Kind {
	switch k {
	case trace.Exit:
		return trace.Enter
	case trace.Recv:
		return trace.Send
	}
	return k
}

// checkBatches checks the order of batches and of the events in them.
func checkBatches(t *testing.T, s *trace.Step, cfg tau.Config) {
	t.Helper()
	events := make(map[trace.Kind]int)
	for i := range s.Batches {
		b := &s.Batches[i]
		if i > 0 {
			p := &s.Batches[i-1]
			if cmp.Or(cmp.Compare(p.Rank, b.Rank), cmp.Compare(p.Thread, b.Thread)) >= 0 {
				t.Fatalf("rank %d thread %d comes after rank %d thread %d", b.Rank, b.Thread, p.Rank, p.Thread)
			}
		}
		if b.Program != cfg.Program || cfg.Ranks != tau.TraceRank && b.Rank != cfg.Rank || len(b.Events) == 0 {
			t.Fatalf("a batch of program %d rank %d with %d events", b.Program, b.Rank, len(b.Events))
		}
		last := make(map[trace.Kind]trace.Event)
		for j, e := range b.Events {
			if j > 0 && e.Time < b.Events[j-1].Time {
				t.Fatalf("rank %d thread %d: time %d comes after %d", b.Rank, b.Thread, e.Time, b.Events[j-1].Time)
			}
			sort := sortOf(e.Kind)
			if p, ok := last[sort]; ok && p.Time == e.Time && p.Row >= e.Row {
				t.Fatalf("rank %d thread %d: at time %d row %d comes after row %d", b.Rank, b.Thread, e.Time, e.Row, p.Row)
			}
			last[sort] = e
			events[sort]++
		}
	}
	if s.Funcs != events[trace.Enter] || s.Comms != events[trace.Send] || s.Counters != events[trace.Count] || len(events) > 3 {
		t.Fatalf("the step counts %d functions, %d messages, %d counters, its batches hold %v", s.Funcs, s.Comms, s.Counters, events)
	}
}

// checkRows checks each event against the row that it names, where there is
// but one block.
func checkRows(t *testing.T, s *trace.Step, spec *tracetest.Step) {
	t.Helper()
	if len(spec.More) > 0 {
		return
	}
	for i := range s.Batches {
		b := &s.Batches[i]
		for _, e := range b.Events {
			var got, want []uint64
			switch sortOf(e.Kind) {
			case trace.Enter:
				row := spec.Funcs[e.Row]
				want = []uint64{row[2], row[4], row[5]}
				got = []uint64{uint64(b.Thread), uint64(e.Func()), uint64(e.Time)}
			case trace.Send:
				row := spec.Comms[e.Row]
				if row[6] > trace.MaxSize {
					row[6] = trace.UnknownSize
				}
				want = []uint64{row[2], uint64(uint32(row[4])), uint64(uint32(row[5])), row[6], row[7]}
				got = []uint64{uint64(b.Thread), uint64(uint32(e.Tag)), uint64(uint32(e.Partner())), e.Value, uint64(e.Time)}
			case trace.Count:
				row := spec.Counters[e.Row]
				want = []uint64{row[2], row[3], row[4], row[5]}
				got = []uint64{uint64(b.Thread), uint64(e.Counter()), e.Value, uint64(e.Time)}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v event of row %d: got %d, want %d", e.Kind, e.Row, got, want)
			}
		}
	}
}

// useNames looks up all names.
func useNames(n *trace.Names, s *trace.Step) {
	_ = n.Program()
	for id, name := range n.Funcs() {
		_ = fmt.Sprint(id, name)
	}
	for id, name := range n.Counters() {
		_ = fmt.Sprint(id, name)
	}
	for i := range s.Batches {
		b := &s.Batches[i]
		n.GPU(b.Rank, b.Thread)
		for _, e := range b.Events {
			n.Func(b.Rank, e.Func())
			n.Counter(b.Rank, e.Counter())
			_ = e.Kind.String()
		}
	}
	for _, m := range s.Metadata {
		_ = m.Key + m.Value
	}
}

// parseRows turns bytes into rows. A letter announces the next item: f a function event,
// m a message, c a counter, each with one byte for its thread, its type or number and its
// time; w one of them with 8 arbitrary bytes per column; b a new block, | a new step.
// Other letters are ignored.
func parseRows(b []byte) []tracetest.Step {
	steps := []tracetest.Step{{}}
	block := &steps[0].Tables
	take := func() uint64 {
		if len(b) == 0 {
			return 0
		}
		v := b[0]
		b = b[1:]
		return uint64(v)
	}
	for rank := uint64(1); len(b) > 0; {
		what := take()
		switch what {
		case 'f', 'm', 'c':
			thread, typ, time := take()%4, take()%6, take()
			switch what {
			case 'f':
				block.Funcs = append(block.Funcs, [6]uint64{0, rank, thread, typ, time % 7, time})
			case 'm':
				block.Comms = append(block.Comms, [8]uint64{0, rank, thread, typ, 5, time % 3, 8 * time, time})
			default:
				block.Counters = append(block.Counters, [6]uint64{0, rank, thread, typ, time, time})
			}
		case 'w':
			var row [8]uint64
			kind := take() % 3
			for i := range row {
				if len(b) >= 8 {
					row[i] = binary.LittleEndian.Uint64(b)
					b = b[8:]
				}
			}
			switch kind {
			case 0:
				block.Funcs = append(block.Funcs, [6]uint64(row[:6]))
			case 1:
				block.Comms = append(block.Comms, row)
			default:
				block.Counters = append(block.Counters, [6]uint64(row[:6]))
			}
		case 'b':
			rank = take() % 3
			s := &steps[len(steps)-1]
			s.More = append(s.More, tracetest.Tables{})
			block = &s.More[len(s.More)-1]
		case '|':
			steps = append(steps, tracetest.Step{})
			block = &steps[len(steps)-1].Tables
		}
	}
	return steps
}

// recordedRows returns the first function events of a recorded run in the form
// that parseRows reads.
func recordedRows(tb testing.TB, run string) (b []byte) {
	tb.Helper()
	r, err := bp.Open(tracetest.Recorded(tb, run)[0], bp.Default())
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	s, err := r.Next(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	v := s.Variable("event_timestamps")
	rows := make([]byte, 20*48)
	if err := s.ReadAt(v, &v.Blocks[0], rows, 0); err != nil {
		tb.Fatal(err)
	}
	for ; len(rows) > 0; rows = rows[48:] {
		b = append(append(b, 'w', 0), append(slices.Clone(rows[:48]), make([]byte, 16)...)...)
	}
	return b
}

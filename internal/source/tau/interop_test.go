package tau_test

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestEventsEqualADIOS2Tables decodes a trace that ADIOS2 wrote and compares it with the
// events that the rules give for its raw tables.
func TestEventsEqualADIOS2Tables(t *testing.T) {
	f := func(engine string) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dataset, truth := tracetest.WriteADIOS2(t, "tau", engine)
			attributes := writtenAttributes(t, truth)
			tables := openDataset(t, dataset)
			counts := new(tally.Tally)
			r := tau.NewReader(openDataset(t, dataset), tau.Config{Program: 3}, counts)
			var ties tieCount
			for i, written := range attributes {
				raw, err := tables.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got, err := r.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want := mergeByRules(t, raw, &ties)
				compareTexts(t, fmt.Sprintf("events of step %d", i), eventTexts(got.Batches), want)
				compareTexts(t, fmt.Sprintf("metadata of step %d", i), metadataTexts(got.Metadata), written.metadata())
			}
			if s, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("after %d steps: got step %v and error %v, want io.EOF", len(attributes), s, err)
			}
			compareNames(t, &r.Names, attributes)
			if _, ok := attributes[1]["MetaData:0:0:timer 1"]; !ok {
				t.Error("no metadata has the key \"timer 1\", as names have: this proves nothing about it")
			}
			if ties.entry == 0 || ties.exit == 0 {
				t.Errorf("messages and counters at the time of %d entries and %d exits; want some of each, or this proves nothing", ties.entry,
					ties.exit)
			}
			if all := maps.Collect(counts.All()); len(all) != 0 {
				t.Errorf("something was dropped or repaired: %v", all)
			}
		})
	}
	f("BP3")
	f("BP4")
	f("BP5")
}

func openDataset(t *testing.T, dataset string) *bp.Reader {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// attributes are those of one step of the truth, all of them strings.
type attributes map[string]string

func writtenAttributes(t *testing.T, truth string) (steps []attributes) {
	t.Helper()
	b, err := os.ReadFile(truth)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var s struct {
			Attrs []struct {
				Name   string
				Values []string
			}
			End bool
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%s: %v", truth, err)
		}
		if s.End {
			return steps
		}
		step := make(attributes)
		for _, a := range s.Attrs {
			step[a.Name] = a.Values[0]
		}
		steps = append(steps, step)
	}
	t.Fatalf("%s has no end", truth)
	return nil
}

// metadata returns all metadata of rank 0 and its threads in the step.
func (a attributes) metadata() (texts []string) {
	for name, value := range a {
		if rest, ok := strings.CutPrefix(name, "MetaData:0:"); ok {
			thread, key, _ := strings.Cut(rest, ":")
			texts = append(texts, fmt.Sprintf("program 3 rank 0 thread %s: %q = %q", thread, key, value))
		}
	}
	slices.Sort(texts)
	return texts
}

func metadataTexts(all []trace.Metadata) (texts []string) {
	for _, m := range all {
		texts = append(texts, fmt.Sprintf("program %d rank %d thread %d: %q = %q", m.Program, m.Rank, m.Thread, m.Key, m.Value))
	}
	slices.Sort(texts)
	return texts
}

// compareNames compares all names with the attributes called "timer N" and so
// on.
func compareNames(t *testing.T, names *trace.Names, steps []attributes) {
	t.Helper()
	var got, want []string
	add := func(word string, id any, listed, resolved string) {
		if resolved != listed {
			t.Errorf("%s %v resolves to %q but is listed as %q", word, id, resolved, listed)
		}
		got = append(got, fmt.Sprintf("%s %v = %q", word, id, listed))
	}
	for id, name := range names.Funcs() {
		resolved, _ := names.Func(0, id)
		add("timer", id, name, resolved)
	}
	for id, name := range names.Counters() {
		resolved, _ := names.Counter(0, id)
		add("counter", id, name, resolved)
	}
	add("program_name", 0, names.Program(), names.Program())
	for _, s := range steps {
		for name, value := range s {
			switch word, _, _ := strings.Cut(name, " "); word {
			case "timer", "counter", "program_name":
				want = append(want, fmt.Sprintf("%s = %q", name, value))
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	compareTexts(t, "names", got, want)
}

// row is one row of a table, with its number.
type row struct {
	number int
	column []uint64
}

func (r row) time() uint64 { return r.column[len(r.column)-1] }

// rowsOf returns the rows of one thread in order of time, those at the same
// time in the order of the table.
func rowsOf(t *testing.T, s *bp.Step, table string, thread uint64) (rows []row) {
	t.Helper()
	v := s.Variable(table)
	if v == nil {
		return nil
	}
	b := &v.Blocks[0]
	data := make([]byte, b.Size())
	if err := s.ReadAt(v, b, data, 0); err != nil {
		t.Fatal(err)
	}
	values := make([]uint64, len(data)/8)
	if _, err := binary.Decode(data, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	number := 0
	for column := range slices.Chunk(values, int(b.Count[1])) {
		if column[2] == thread {
			rows = append(rows, row{number, column})
		}
		number++
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.time(), b.time()) })
	return rows
}

// Event types as the trace numbers them.
const entry, exit, send, recv = 0, 1, 2, 3

// tieCount counts the messages and counters at the time of a function event.
type tieCount struct{ entry, exit int }

// mergeByRules returns which events a step has: threads in ascending order,
// each in order of time. At equal times an entry comes first, then messages,
// then counters, then an exit.
func mergeByRules(t *testing.T, s *bp.Step, ties *tieCount) (texts []string) {
	t.Helper()
	for thread := range uint64(2) {
		funcs := rowsOf(t, s, "event_timestamps", thread)
		messages := rowsOf(t, s, "comm_timestamps", thread)
		counters := rowsOf(t, s, "counter_values", thread)
		take := func(from *[]row) row {
			first := (*from)[0]
			*from = (*from)[1:]
			return first
		}
		for len(funcs)+len(messages)+len(counters) > 0 {
			now := ^uint64(0)
			for _, rows := range [][]row{funcs, messages, counters} {
				if len(rows) > 0 {
					now = min(now, rows[0].time())
				}
			}
			due := func(rows []row) bool { return len(rows) > 0 && rows[0].time() == now }
			tie := due(funcs) && (due(messages) || due(counters))
			switch {
			case due(funcs) && funcs[0].column[3] == entry:
				if tie {
					ties.entry++
				}
				texts = append(texts, funcText(thread, take(&funcs)))
			case due(messages):
				if tie {
					ties.exit++
				}
				texts = append(texts, messageText(thread, take(&messages)))
			case due(counters):
				if tie {
					ties.exit++
				}
				texts = append(texts, counterText(thread, take(&counters)))
			default:
				texts = append(texts, funcText(thread, take(&funcs)))
			}
		}
	}
	return texts
}

func funcText(thread uint64, r row) string {
	kind := map[uint64]string{entry: "enter", exit: "exit"}[r.column[3]]
	return fmt.Sprintf("thread %d at %d: %s function %d, row %d", thread, r.time(), kind, r.column[4], r.number)
}

func messageText(thread uint64, r row) string {
	kind := map[uint64]string{send: "send", recv: "recv"}[r.column[3]]
	return fmt.Sprintf("thread %d at %d: %s %d bytes, partner %d, tag %d, row %d", thread, r.time(), kind, r.column[6], r.column[5],
		r.column[4], r.number)
}

func counterText(thread uint64, r row) string {
	return fmt.Sprintf("thread %d at %d: counter %d is %d, row %d", thread, r.time(), r.column[3], r.column[4], r.number)
}

// eventTexts returns the decoded events in the same form.
func eventTexts(batches []trace.Batch) (texts []string) {
	for _, b := range batches {
		if b.Program != 3 || b.Rank != 0 {
			texts = append(texts, fmt.Sprintf("a batch of program %d rank %d", b.Program, b.Rank))
		}
		for _, e := range b.Events {
			text := fmt.Sprintf("thread %d at %d: ", b.Thread, e.Time)
			switch e.Kind {
			case trace.Enter, trace.Exit:
				text += fmt.Sprintf("%v function %d", e.Kind, e.Func())
			case trace.Send, trace.Recv:
				text += fmt.Sprintf("%v %d bytes, partner %d, tag %d", e.Kind, e.Value, e.Partner(), e.Tag)
			default:
				text += fmt.Sprintf("%v %d is %d", e.Kind, e.Counter(), e.Value)
			}
			texts = append(texts, fmt.Sprintf("%s, row %d", text, e.Row))
		}
	}
	return texts
}

// compareTexts reports the first difference with its context.
func compareTexts(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	around := func(all []string) string { return strings.Join(all[max(0, i-2):min(len(all), i+3)], "\n  ") }
	t.Errorf("%s: %d, want %d; they differ from number %d on; got\n  %s\nwant\n  %s", what, len(got), len(want), i, around(got), around(want))
}

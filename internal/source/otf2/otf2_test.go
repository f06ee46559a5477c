package otf2_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/otf2"
)

// calls is an archive that the reference library wrote: two ranks with messages, collective calls, metrics and attributes, and a
// GPU stream of rank 0.
const calls = "testdata/calls"

// records is an archive that has every event of the reference library, with a call of "work" after each.
const records = "testdata/records"

// eztrace is an archive of EZTrace, of a program of three ranks.
var eztrace = filepath.Join("..", "..", "..", "testdata", "otf2", "eztrace")

// event is an event with its names.
type event struct {
	rank   trace.Rank
	thread trace.Thread
	time   trace.Ticks
	kind   trace.Kind
	what   string
}

func (e event) String() string {
	return fmt.Sprintf("%d %d %d %s %s", e.rank, e.thread, e.time, e.kind, e.what)
}

// read passes the events of all ranks to yield.
func read(tb testing.TB, path string, yield func(event)) (*otf2.Archive, *tally.Tally, error) {
	tb.Helper()
	return readEvents(tb, path, func(n *trace.Names, b *trace.Batch, e *trace.Event) {
		yield(event{b.Rank, b.Thread, e.Time, e.Kind, describe(n, b.Rank, e)})
	})
}

// readEvents is read without the cost of describing events.
func readEvents(
	tb testing.TB, path string, yield func(n *trace.Names, b *trace.Batch, e *trace.Event),
) (*otf2.Archive, *tally.Tally, error) {
	tb.Helper()
	count := new(tally.Tally)
	anchor, ok := otf2.AnchorOf(path)
	if !ok {
		return nil, count, fmt.Errorf("%s is no archive", path)
	}
	a, err := otf2.Open(anchor)
	if err != nil {
		return nil, count, err
	}
	for _, rank := range a.Ranks {
		r, err := a.Steps(rank, count)
		if err != nil {
			return a, count, err
		}
		for {
			step, err := r.Next(tb.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return a, count, err
			}
			for i := range step.Batches {
				b := &step.Batches[i]
				for j := range b.Events {
					yield(r.Names(), b, &b.Events[j])
				}
			}
			r.Release()
		}
	}
	return a, count, nil
}

func describe(n *trace.Names, rank trace.Rank, e *trace.Event) string {
	switch e.Kind {
	case trace.Send, trace.Recv:
		return fmt.Sprintf("rank %d, tag %d, %d bytes", e.Partner(), e.Tag, e.Value)
	case trace.Count:
		name, _ := n.Counter(rank, e.Counter())
		return fmt.Sprintf("%s: %d", name, e.Value)
	}
	name, _ := n.Func(rank, e.Func())
	return name
}

func TestEvents(t *testing.T) {
	var got []string
	a, count, err := read(t, calls, func(e event) { got = append(got, e.String()) })
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, "\n")+"\n" != string(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if n := count.Count(tally.RecordsSkipped); n != 10 {
		t.Errorf("%d records skipped, want 10", n)
	}
	if a.Unit != trace.Nanosecond || a.Events() != 36 {
		t.Errorf("unit %d, %d events", a.Unit, a.Events())
	}
}

// TestAllRecords checks that records that are not read do not hide those after them.
func TestAllRecords(t *testing.T) {
	calls, others := 0, make(map[string]int)
	_, count, err := read(t, records, func(e event) {
		switch name, _, _ := strings.Cut(e.what, " ["); {
		case name != "work":
			others[e.kind.String()]++
		case e.kind == trace.Enter:
			calls++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls != 84 {
		t.Errorf("%d calls of work, want 84", calls)
	}
	if got, want := fmt.Sprint(others), "map[counter:10 enter:1 exit:1 recv:2 send:2]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := count.Count(tally.RecordsSkipped); n != 68 {
		t.Errorf("%d records skipped, want 68", n)
	}
}

// archive copies the archive calls and returns its directory.
func archive(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.CopyFS(dir, os.DirFS(calls)); err != nil {
		tb.Fatal(err)
	}
	return dir
}

func TestCutEventsAreReadUntilTheEnd(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(calls, "traces", "0.evt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := archive(t)
	last := 0
	for n := 18; n < len(whole); n++ {
		if err := os.WriteFile(filepath.Join(dir, "traces", "0.evt"), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		events := 0
		_, _, err := read(t, dir, func(e event) {
			if e.rank == 0 && e.thread == 0 {
				events++
			}
		})
		if err != nil && !strings.Contains(err.Error(), "0.evt: byte ") {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		if events < last {
			t.Fatalf("cut after %d bytes: %d events, before %d", n, events, last)
		}
		last = events
	}
	if last != 13 {
		t.Errorf("%d events in all, want 13", last)
	}
}

func TestDamagedArchivesAreErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		dir := archive(t)
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		more, err := filepath.Glob(filepath.Join(dir, "traces", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(files, more...) {
			data, err := os.ReadFile(file)
			if err != nil {
				continue // a directory
			}
			for range rng.IntN(3) {
				data[rng.IntN(len(data))] = byte(rng.Uint32())
			}
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		_, _, _ = read(t, dir, func(event) { n++ }) // it must neither panic nor hang
		if n > 1000 {
			t.Fatalf("%d events", n)
		}
	}
}

func TestContainersAreRefused(t *testing.T) {
	dir := archive(t)
	file := filepath.Join(dir, "traces.otf2")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[28] = 2
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := otf2.Open(file); err == nil || !strings.Contains(err.Error(), "SION") {
		t.Errorf("got %v", err)
	}
}

func TestNoArchive(t *testing.T) {
	if _, ok := otf2.AnchorOf(t.TempDir()); ok {
		t.Error("an empty directory is an archive")
	}
	if _, ok := otf2.AnchorOf("otf2_test.go"); ok {
		t.Error("a text is an archive")
	}
}

// local returns a file of local definitions.
func local(records ...[]byte) []byte {
	b := append([]byte{3, 'B'}, make([]byte, 16)...)
	for _, r := range records {
		b = append(b, r...)
	}
	return append(b, 2, 1)
}

// clock returns a record of an offset of less than 128 ticks at a time.
func clock(time uint64, ticks byte) []byte {
	b := append([]byte{6, 18}, binary.LittleEndian.AppendUint64(nil, time)...)
	b = append(b, 1, ticks)
	return append(b, make([]byte, 8)...)
}

// TestSparseRegionsGetDenseNumbers reads an archive whose ranks have regions of their own, with numbers all over the range.
func TestSparseRegionsGetDenseNumbers(t *testing.T) {
	names := make(map[trace.Rank]map[string]bool)
	_, _, err := readEvents(t, eztrace, func(n *trace.Names, b *trace.Batch, e *trace.Event) {
		if e.Kind != trace.Enter {
			return
		}
		if e.ID > 100 {
			t.Errorf("a region of rank %d has the number %d", b.Rank, e.ID)
		}
		if names[b.Rank] == nil {
			names[b.Rank] = make(map[string]bool)
		}
		name, _ := n.Func(b.Rank, e.Func())
		names[b.Rank][name] = true
	})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range trace.Rank(3) {
		if got, want := len(names[rank]), 4; got != want || !names[rank]["MPI_Allreduce"] {
			t.Errorf("rank %d calls %v, want %d functions", rank, names[rank], want)
		}
	}
}

func TestLocalDefinitions(t *testing.T) {
	f := func(what, want string, records ...[]byte) {
		t.Helper()
		dir := archive(t)
		if err := os.WriteFile(filepath.Join(dir, "traces", "2.def"), local(records...), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		start := trace.Ticks(0)
		if _, _, err := read(t, dir, func(e event) {
			if start == 0 {
				start = e.time - 1000
			}
			if e.rank == 0 && e.thread == 1 {
				name, _, _ := strings.Cut(e.what, " [")
				got = append(got, fmt.Sprintf("%d %s", e.time-start, name))
			}
		}); err != nil {
			t.Fatal(err)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: got %s, want %s", what, s, want)
		}
	}
	f("nothing", "1500 solve, 1600 solve")
	f("all numbers", "1500 MPI_Allreduce, 1600 MPI_Allreduce", []byte{5, 6, 3, 1, 1, 0, 1, 2})
	f("pairs", "1500 MPI_Send, 1600 MPI_Send", []byte{5, 7, 3, 1, 1, 1, 0, 1, 1})
	f("one offset", "1540 solve, 1640 solve", clock(2000, 40))
	f("two offsets", "1550 solve, 1660 solve", clock(2000, 0), clock(3000, 100))
	f("before both", "1496 solve, 1597 solve", clock(2900, 0), clock(3900, 10))
}

// FuzzArchive reads an archive of one rank with any content. A thread and two GPU streams have the same events.
func FuzzArchive(f *testing.F) {
	content := func(dir, name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add(content(calls, "traces.otf2"), content(calls, "traces.def"), content(calls, "traces/0.def"), content(calls, "traces/0.evt"))
	f.Add(content(calls, "traces.otf2"), content(calls, "traces.def"),
		local([]byte{5, 7, 3, 1, 1, 1, 0, 1, 1}, clock(5, 6), clock(9, 7)), content(calls, "traces/2.evt"))
	for _, name := range []string{"hip", "cuda", "references", "apex"} {
		dir := filepath.Join("testdata/launches", name)
		for _, events := range []string{"traces/0.evt", "traces/2.evt"} {
			f.Add(content(dir, "traces.otf2"), content(dir, "traces.def"), content(dir, "traces/0.def"), content(dir, events))
		}
	}
	f.Fuzz(func(t *testing.T, anchor, global, local, events []byte) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "traces"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{
			"traces.otf2": anchor, "traces.def": global, "traces/0.def": local,
			"traces/0.evt": events, "traces/2.evt": events, "traces/3.evt": events,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n, halves := 0, make(map[string]int)
		_, _, _ = read(t, dir, func(e event) {
			n++
			if e.kind == trace.Count && strings.HasPrefix(e.what, "Correlation ID: ") {
				halves[fmt.Sprint(e.rank, ":", e.thread, " ", e.what)]++
			}
		})
		if n > 3*256*len(events) { // a metric has at most so many values, each of a byte at least
			t.Errorf("%d events in %d bytes", n, len(events))
		}
		if bytes.Contains(global, []byte("GUID")) || bytes.Contains(global, []byte("Correlation ID")) {
			return // the archive has its own numbers
		}
		for what, n := range halves {
			if n > 1 {
				t.Errorf("%s: %d times", what, n)
			}
		}
	})
}

// FuzzNumbers compares the two ways to read compressed numbers.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte{0, 1, 7, 2, 1, 2, 8, 1, 2, 3, 4, 5, 6, 7, 8, 255, 3, 1}, 8, false)
	f.Add([]byte{4, 1, 2, 3, 4, 9, 1}, 0, true)
	f.Fuzz(func(t *testing.T, data []byte, spare int, big bool) {
		if fast, general := otf2.Numbers(data, spare&15, big); fast != general {
			t.Errorf("got %s, want %s", fast, general)
		}
	})
}

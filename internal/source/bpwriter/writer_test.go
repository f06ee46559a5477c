package bpwriter_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
)

func create(t testing.TB) (*bpwriter.Writer, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "written.bp")
	w, err := bpwriter.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Release)
	return w, dir
}

// state returns how many steps can be read and whether the dataset is active.
func state(t *testing.T, dataset string) string {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	for n := 0; ; n++ {
		if _, err := r.Next(t.Context()); errors.Is(err, io.EOF) {
			return fmt.Sprintf("%d steps, active %v", n, r.Active())
		} else if err != nil {
			return err.Error()
		}
	}
}

// TestStepExistsWithIndexRecord looks at a
// dataset after each write.
func TestStepExistsWithIndexRecord(t *testing.T) {
	w, dir := create(t)
	want := func(after, want string) {
		t.Helper()
		if got := state(t, dir); got != want {
			t.Errorf("after %s: got %s, want %s", after, got, want)
		}
	}
	want("Create", "0 steps, active true")
	var s bpwriter.Step
	for i := range 3 {
		w.Begin(&s, 17)
		s.Table("rows", 2, []uint64{1, 2, 3, 4})
		s.Attribute(fmt.Sprint("name ", i), "value")
		for _, stage := range []struct {
			name  string
			write func(*bpwriter.Step) (int, error)
			steps int
		}{{"WriteData", w.WriteData, i}, {"WriteMetadata", w.WriteMetadata, i}, {"WriteIndex", w.WriteIndex, i + 1}} {
			if n, err := stage.write(&s); err != nil || n == 0 {
				t.Fatalf("%s: %d bytes, %v", stage.name, n, err)
			}
			want(stage.name, fmt.Sprintf("%d steps, active true", stage.steps))
			w.Release() // nothing is buffered
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	want("Close", "3 steps, active false")
	if err := w.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

func TestCloseWithoutSteps(t *testing.T) {
	w, dir := create(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := state(t, dir); got != "1 steps, active false" {
		t.Errorf("got %s, want one empty step", got)
	}
	compareLines(t, adios2Reads(t, dir), weRead(t, dir))
}

// TestSeveralWriters writes one file for all ranks, as TAU does.
func TestSeveralWriters(t *testing.T) {
	w, dir := create(t)
	var s bpwriter.Step
	w.Begin(&s, 0)
	for rank := range uint64(3) {
		if rank > 0 {
			s.Group()
		}
		s.Uint64("count", rank)
		s.Table("rows", 2, make([]uint64, 2*rank)) // the first has none
		s.Attribute("name", fmt.Sprint("of rank ", rank))
		s.Attribute(fmt.Sprint("own ", rank), "x")
	}
	if err := errors.Join(w.Write(&s), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := bp.Open(dir, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	step, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range step.Variables {
		for j, b := range step.Variables[i].Blocks {
			text, _ := step.Variables[i].Text(j)
			got = append(got, fmt.Sprint(step.Variables[i].Name, text, b.Count))
		}
	}
	for _, a := range step.Attributes {
		got = append(got, a.Name+"="+a.Text())
	}
	want := []string{"count0[]", "count1[]", "count2[]", "rows[1 2]", "rows[2 2]", "name=of rank 0", "own 0=x", "own 1=x", "own 2=x"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriteReportsErrors(t *testing.T) {
	f := func(want string, put func(s *bpwriter.Step)) {
		t.Helper()
		w, dir := create(t)
		var s bpwriter.Step
		w.Begin(&s, 0)
		put(&s)
		if err := w.Write(&s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		if err := w.Close(); err == nil {
			t.Error("the dataset could be closed as if nothing had happened")
		}
		if got := state(t, dir); got != "0 steps, active true" {
			t.Errorf("the dataset has %s, want none", got)
		}
	}
	long := strings.Repeat("x", 65536)
	f("65536 bytes", func(s *bpwriter.Step) { s.Attribute("a", long) })
	f("65536 bytes", func(s *bpwriter.Step) { s.Attribute(long, "a") })
	f("65536 bytes", func(s *bpwriter.Step) { s.Uint64(long, 1) })
	f("65536 bytes", func(s *bpwriter.Step) { s.Value("v", bpwriter.String, []byte(long)) })
	f("do not form rows of 6", func(s *bpwriter.Step) { s.Table("v", 6, make([]uint64, 7)) })
	f("do not fit type", func(s *bpwriter.Step) { s.Value("v", bpwriter.Int32, make([]byte, 8)) })
	f("do not fit type", func(s *bpwriter.Step) { s.Value("v", 99, nil) })
	f("of type 54 and of type 2", func(s *bpwriter.Step) { s.Uint64("v", 1); s.Int32("v", 1) })
	f("impossible extent", func(s *bpwriter.Step) { s.Array("v", bpwriter.Uint64, bpwriter.Dims{}) })
	f("impossible extent", func(s *bpwriter.Step) {
		s.Array("v", bpwriter.Uint64, bpwriter.Dims{Count: []uint64{1 << 40, 1 << 40}})
	})
	f("impossible extent", func(s *bpwriter.Step) {
		s.Array("v", bpwriter.Uint64, bpwriter.Dims{Shape: []uint64{1}, Count: []uint64{1}})
	})
	f("once each", func(s *bpwriter.Step) {
		other, _ := create(t)
		other.Begin(s, 0)
	})
}

// tauStep puts a step as TAU writes it.
func tauStep(s *bpwriter.Step, rows []uint64) {
	for _, name := range []string{"program_count", "comm_rank_count", "thread_count", "event_type_count", "timer_count", "counter_count"} {
		s.Int32(name, 4)
	}
	s.Uint64("timer_event_count", uint64(len(rows)/6))
	s.Uint64("counter_event_count", 0)
	s.Uint64("comm_count", 0)
	s.Table("event_timestamps", 6, rows)
}

func TestAllocationsDoNotDependOnStepSize(t *testing.T) {
	w, _ := create(t)
	var s bpwriter.Step
	allocs := func(rows []uint64) float64 {
		return testing.AllocsPerRun(5, func() {
			w.Begin(&s, 0)
			tauStep(&s, rows)
			if err := w.Write(&s); err != nil {
				t.Fatal(err)
			}
		})
	}
	large := make([]uint64, 6*50_000)
	_ = allocs(large) // makes the memory for the largest step
	if small, large := allocs(large[:6]), allocs(large); large > small || large > 10 {
		t.Errorf("a step of 50,000 events makes %v allocations, one of 1 makes %v; want at most 10", large, small)
	}
}

// BenchmarkWriter writes steps of 10,000 events.
func BenchmarkWriter(b *testing.B) {
	w, dir := create(b)
	const events = 10_000
	rows := make([]uint64, 6*events)
	for i := range rows {
		rows[i] = uint64(i)
	}
	var s bpwriter.Step
	b.ReportAllocs()
	b.SetBytes(events * 48)
	for n := 1; b.Loop(); n++ {
		if n%100 == 0 { // limit the size on disk
			w.Release()
			var err error
			if w, err = bpwriter.Create(dir); err != nil {
				b.Fatal(err)
			}
		}
		w.Begin(&s, 0)
		tauStep(&s, rows)
		if err := w.Write(&s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

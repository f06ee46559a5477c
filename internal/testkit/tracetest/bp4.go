package tracetest

import (
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
)

// Tables are rows of TAU's three arrays of one writer; docs/formats/tau.md describes their
// columns.
type Tables struct {
	Funcs    [][6]uint64 // event_timestamps
	Comms    [][8]uint64 // comm_timestamps
	Counters [][6]uint64 // counter_values
}

// Step is a step to write. Its arrays have one block, and another for each of More, like
// ranks that share a file. Like TAU, it leaves out arrays without rows.
type Step struct {
	Tables
	More  []Tables
	Attrs [][2]string // name and value
}

// EventTypes are the attributes that give the event types TAU's own numbers.
var EventTypes = [][2]string{{"event_type 0", "ENTRY"}, {"event_type 1", "EXIT"}, {"event_type 2", "SEND"}, {"event_type 3", "RECV"}}

// WriteBP4 writes a closed BP4 dataset into dir, which it creates if necessary, and returns
// its path.
func WriteBP4(tb testing.TB, dir string, steps []Step) string {
	tb.Helper()
	path := filepath.Join(dir, "written.bp")
	w, err := bpwriter.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	var out bpwriter.Step
	for _, s := range steps {
		w.Begin(&out, 1_700_000_000)
		s.put(&out)
		for _, t := range s.More {
			out.Group()
			t.put(&out)
		}
		for _, a := range s.Attrs {
			out.Attribute(a[0], a[1])
		}
		if err := w.Write(&out); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// put writes the tables of one writer.
func (t *Tables) put(s *bpwriter.Step) {
	s.Uint64("timer_event_count", uint64(len(t.Funcs)))
	s.Uint64("counter_event_count", uint64(len(t.Counters)))
	s.Uint64("comm_count", uint64(len(t.Comms)))
	s.Table("event_timestamps", 6, flat(t.Funcs, func(r *[6]uint64) []uint64 { return r[:] }))
	s.Table("counter_values", 6, flat(t.Counters, func(r *[6]uint64) []uint64 { return r[:] }))
	s.Table("comm_timestamps", 8, flat(t.Comms, func(r *[8]uint64) []uint64 { return r[:] }))
}

// flat concatenates rows.
func flat[R any](rows []R, columns func(*R) []uint64) (all []uint64) {
	for i := range rows {
		all = append(all, columns(&rows[i])...)
	}
	return all
}

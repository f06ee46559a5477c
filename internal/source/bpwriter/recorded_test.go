package bpwriter_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// tauOrder is the order in which TAU puts its variables.
var tauOrder = []string{
	"program_count", "comm_rank_count", "thread_count", "event_type_count", "timer_count", "timer_event_count",
	"counter_count", "counter_event_count", "comm_count", "comm_timestamps", "counter_values", "event_timestamps",
}

// typeOf are the types of package bp as they are written.
var typeOf = map[bp.Type]bpwriter.Type{
	bp.Int8: bpwriter.Int8, bp.Int16: bpwriter.Int16, bp.Int32: bpwriter.Int32, bp.Int64: bpwriter.Int64,
	bp.Uint8: bpwriter.Uint8, bp.Uint16: bpwriter.Uint16, bp.Uint32: bpwriter.Uint32, bp.Uint64: bpwriter.Uint64,
	bp.Float: bpwriter.Float, bp.Double: bpwriter.Double, bp.String: bpwriter.String,
}

// TestRewrittenTraceIsIdentical reads a trace that TAU wrote with ADIOS2 and writes it
// again. Except for the order of the descriptions in a step all bytes must be equal.
func TestRewrittenTraceIsIdentical(t *testing.T) {
	for _, run := range []string{"ring-BP4", "ring-monitoring-BP4"} {
		for _, dataset := range tracetest.Recorded(t, run) {
			t.Run(run+"/"+filepath.Base(dataset), func(t *testing.T) {
				again := rewrite(t, dataset)
				for _, name := range []string{"md.idx", "data.0"} {
					if got, want := content(t, again, name), content(t, dataset, name); !bytes.Equal(got, want) {
						t.Errorf("%s differs from byte %d on; it has %d bytes, want %d", name, common(got, want), len(got), len(want))
					}
				}
				idx := content(t, dataset, "md.idx")
				if got, want := parts(content(t, again, "md.0"), idx), parts(content(t, dataset, "md.0"), idx); !slices.EqualFunc(got, want,
					bytes.Equal) {
					t.Errorf("md.0 has other elements: %d, want %d", len(got), len(want))
				}
			})
		}
	}
}

// parts returns the elements of all steps of an md.0, sorted within their step, and the
// remaining bytes.
func parts(md, idx []byte) (all [][]byte) {
	at := func(b []byte, i int) int { return int(binary.LittleEndian.Uint64(b[i:])) }
	all = append(all, md[:64])
	for rec := idx[64:]; len(rec) >= 64; rec = rec[64:] {
		all = append(all, md[at(rec, 16):at(rec, 24)])
		for _, section := range [][]byte{md[at(rec, 24):at(rec, 32)], md[at(rec, 32):at(rec, 40)]} {
			all = append(all, section[:12])
			var elements [][]byte
			for b := section[12:]; len(b) > 0; {
				n := 4 + int(binary.LittleEndian.Uint32(b))
				elements = append(elements, b[:n])
				b = b[n:]
			}
			slices.SortFunc(elements, bytes.Compare)
			all = append(all, elements...)
		}
	}
	return all
}

func content(t *testing.T, dataset, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dataset, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// common returns the length of the common prefix.
func common(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// rewrite reads a dataset of one writer and writes all of it.
func rewrite(t *testing.T, dataset string) string {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	to := filepath.Join(t.TempDir(), filepath.Base(dataset))
	w, err := bpwriter.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	var s bpwriter.Step
	for {
		from, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Begin(&s, from.Time)
		put(t, &s, from)
		if err := w.Write(&s); err != nil {
			t.Fatal(err)
		}
		if from.Index%2 == 0 {
			w.Release()
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

// put puts everything in a step, in TAU's order.
func put(t *testing.T, s *bpwriter.Step, from *bp.Step) {
	t.Helper()
	slices.SortStableFunc(from.Attributes, func(a, b bp.Attribute) int { return cmp.Compare(a.Name, b.Name) })
	for _, a := range from.Attributes {
		s.Attribute(a.Name, a.Text())
	}
	slices.SortStableFunc(from.Variables, func(a, b bp.Variable) int {
		return cmp.Compare(slices.Index(tauOrder, a.Name), slices.Index(tauOrder, b.Name))
	})
	for i := range from.Variables {
		v := &from.Variables[i]
		for j := range v.Blocks {
			b := &v.Blocks[j]
			if b.Count == nil {
				s.Value(v.Name, typeOf[v.Type], b.Value)
				continue
			}
			p := s.Array(v.Name, typeOf[v.Type], bpwriter.Dims{Shape: b.Shape, Start: b.Start, Count: b.Count})
			if err := from.ReadAt(v, b, p, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

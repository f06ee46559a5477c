package tau_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestDamagedDatasets reads mutations of recorded datasets. Each event is read, or counted
// as lost, or an error names the place at which reading ended.
func TestDamagedDatasets(t *testing.T) {
	f := func(name string, files damage.Files, others ...damage.Files) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trace.bp")
			if err := files.Write(path); err != nil {
				t.Fatal(err)
			}
			at := path
			if _, ok := files["made-up.bp"]; ok {
				at = filepath.Join(path, "made-up.bp")
			}
			present := readTrace(t, at)
			if present.err != nil || present.events == 0 || present.loss() != "" {
				t.Fatalf("the undamaged dataset: %+v", present)
			}
			totals := []uint64{present.events} // of others, too: their index and metadata may replace ours
			for _, o := range others {
				if err := o.Write(path); err != nil {
					t.Fatal(err)
				}
				other := readTrace(t, at)
				totals = append(totals, other.events)
			}
			damage.Run(t, damage.Format{Files: files, Others: others, Read: func(bad damage.Files) error {
				if err := bad.Write(path); err != nil {
					return err
				}
				got := readTrace(t, at)
				return got.check(totals, path)
			}})
		})
	}
	read := func(run string, i int) damage.Files {
		files, err := damage.ReadDir(tracetest.Recorded(t, run)[i])
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	bp3 := func(i int) damage.Files {
		dataset := tracetest.Recorded(t, "ring-BP4")[i]
		return damage.Files{
			"made-up.bp":                  tracetest.AsBP3(t, dataset),
			"made-up.bp.dir/made-up.bp.0": read("ring-BP4", i)["data.0"],
		}
	}
	f("BP3", bp3(0), bp3(1))
	f("BP4", read("ring-BP4", 0), read("ring-BP4", 1), read("ring-monitoring-BP4", 0), read("ring-BP5", 0))
	f("BP4 of several ranks", read("ring-onefile-BP4", 0), read("ring-BP4", 0))
	f("BP5", read("ring-BP5", 0), read("ring-BP5", 1), read("burst", 0), read("ring-BP4", 0))
	f("BP5 of several ranks", read("ring-onefile-BP5", 0), read("ring-BP5", 0))
	f("BP5 of many steps", read("burst", 0), read("ring-BP5", 0))
}

// Mutations that once lost events silently.
func TestDamageIsReportedWithItsPlace(t *testing.T) {
	f := func(name, run, file string, change func(b []byte) []byte, want ...tally.Kind) {
		t.Run(name, func(t *testing.T) {
			dataset := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
			path := filepath.Join(dataset, file)
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			got := readTrace(t, dataset)
			if len(want) == 0 {
				if got.err == nil || checkPlace(got.err, dataset) != nil {
					t.Errorf("%d events, error %v; want one with its place", got.events, got.err)
				}
			}
			for _, kind := range want {
				if got.tally.Count(kind) == 0 {
					t.Errorf("%d events, error %v, losses %q; want %s", got.events, got.err, got.loss(), kind.Name())
				}
			}
		})
	}
	zero := func(from, to int) func([]byte) []byte {
		return func(b []byte) []byte { clear(b[from:to]); return b }
	}
	f("variables of the first step are masked", "ring-BP5", "md.0", zero(249, 384), tally.RowsUnannounced)
	f("variables of one rank are masked", "ring-onefile-BP5", "md.0", zero(19318, 19350), tally.RowsUnannounced)
	f("index record has an unknown type", "ring-BP5", "md.idx", func(b []byte) []byte { b[105] ^= 8; return b })
	f("index record is missing", "ring-onefile-BP4", "md.idx", func(b []byte) []byte {
		return slices.Concat(b[:128], b[192:])
	}, tally.MetadataUnindexed)
}

// traceResult is the result of reading a trace.
type traceResult struct {
	steps    int
	rows     uint64 // in the tables that the metadata describe
	events   uint64
	rejected uint64
	skipped  uint64 // rows of tables that were counted as misshapen
	tally    tally.Tally
	err      error // nil at the proper end
}

// readTrace reads a dataset to its end.
func readTrace(t *testing.T, path string) (got traceResult) {
	opt := bp.Default()
	opt.Tally = &got.tally
	src, err := bp.Open(path, opt)
	if err != nil {
		got.err = err
		return got
	}
	defer src.Close()
	d := tau.NewDecoder(tau.Config{}, &got.tally)
	for {
		s, err := src.Next(t.Context())
		if err == nil {
			var step *trace.Step
			misshapen := got.tally.Count(tally.TableMisshapen)
			if step, err = d.Decode(s); err == nil {
				rows, odd := tableRows(s)
				if got.tally.Count(tally.TableMisshapen) == misshapen {
					odd = 0
				}
				got.rows += rows
				got.skipped += odd
				got.steps++
				got.events += uint64(step.Funcs + step.Comms + step.Counters)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				got.err = err
			}
			break
		}
	}
	for _, k := range rejections {
		got.rejected += uint64(got.tally.Count(k))
	}
	return got
}

// tableRows returns the number of rows of the three tables in a step, and how many of them
// are in tables of another shape.
func tableRows(s *bp.Step) (rows, odd uint64) {
	for name, columns := range map[string]uint64{"event_timestamps": 6, "counter_values": 6, "comm_timestamps": 8} {
		v := s.Variable(name)
		if v == nil {
			continue
		}
		n, ok := uint64(0), v.Type == bp.Uint64
		for _, b := range v.Blocks {
			ok = ok && len(b.Count) == 2 && b.Count[1] == columns
			if len(b.Count) > 0 {
				n += b.Count[0]
			}
		}
		if rows += n; !ok {
			odd += n
		}
	}
	return rows, odd
}

// loss returns the names of the counts of losses.
func (r *traceResult) loss() string {
	var names []string
	for kind := range r.tally.All() {
		if kind.Severity() == tally.DataLoss {
			names = append(names, kind.Name())
		}
	}
	return strings.Join(names, " ")
}

// lostRows returns the number of lost rows, and whether the counts of losses are numbers of
// rows only.
func (r *traceResult) lostRows() (n uint64, exact bool) {
	exact = true
	for kind, count := range r.tally.All() {
		switch {
		case kind == tally.RowsMissing || slices.Contains(rejections, kind):
			n += uint64(count)
		case kind == tally.CountMismatch, kind.Severity() == tally.DataLoss:
			exact = false
		}
	}
	return n, exact
}

// check returns an error if events disappeared or appeared without notice, or if the error
// of reading names no place.
func (r *traceResult) check(totals []uint64, dir string) error {
	if r.err != nil {
		if err := checkPlace(r.err, dir); err != nil {
			return err
		}
	}
	if r.events+r.rejected+r.skipped != r.rows {
		return fmt.Errorf("%d events, %d rejected and %d skipped rows of %d in the tables", r.events, r.rejected, r.skipped, r.rows)
	}
	if r.err != nil {
		return nil
	}
	if r.events < slices.Min(totals) && r.loss() == "" {
		return fmt.Errorf("%d of %d events in %d steps, without a reported loss", r.events, totals[0], r.steps)
	}
	lost, exact := r.lostRows()
	if exact && !slices.Contains(totals, r.events+lost) {
		return fmt.Errorf("%d events in %d steps and %d reported losses (%s), want a sum of %d", r.events, r.steps, lost, r.loss(), totals[0])
	}
	return nil
}

// checkPlace returns an error unless err names a file and a place in it.
func checkPlace(err error, dir string) error {
	if refused, ok := errors.AsType[*bp.UnsupportedError](err); ok && refused.Path != "" && refused.What != "" {
		return nil
	}
	if errors.Is(err, bp.ErrNotReady) && strings.Contains(err.Error(), dir) {
		return nil
	}
	bad, ok := errors.AsType[*bp.CorruptError](err)
	if !ok || bad.Reason == "" || !strings.HasPrefix(bad.File, dir) {
		return fmt.Errorf("the error %w names no file", err)
	}
	size := int64(0)
	if info, err := os.Stat(bad.File); err == nil {
		size = info.Size()
	}
	if bad.Offset < 0 || bad.Offset > size {
		return fmt.Errorf("the error points outside its file of %d bytes: %w", size, err)
	}
	return nil
}

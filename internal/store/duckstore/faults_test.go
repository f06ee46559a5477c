package duckstore_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"

	queries "github.com/chimbuko/chimbuko/internal/store/query"
)

// faultBatches are the batches of the run on a failing disk. Every second one replaces records of
// the one before.
func faultBatches() (all [][]*provenance.Record) {
	records := storetest.Records(120, 5)
	for at := 0; at+30 <= len(records); at += 15 {
		all = append(all, records[at:at+30])
	}
	return all
}

// storeBatches stores the run in a new or existing file, closes it in the middle, and prints the
// number of batches that are durable after each.
func storeBatches(t *testing.T, path string, logf func(format string, args ...any)) error {
	t.Helper()
	batches := faultBatches()
	for from, to := 0, len(batches)/2; from < len(batches); from, to = to, len(batches) {
		s, err := duckstore.Open(t.Context(), path, duckstore.Options{})
		if err != nil {
			return err
		}
		defer s.Close() //nolint:errcheck // closed below unless another error is the cause
		id, err := s.CreateRun(t.Context(), provdb.Run{Name: "faults", State: provdb.Running})
		if err != nil {
			a, findErr := queries.New(t.Context(), s, "faults")
			if findErr != nil {
				return err
			}
			id = a.Run.ID
		}
		for i, batch := range batches[from:to] {
			if err := s.Write(t.Context(), id, &provdb.Batch{Anomalies: batch}); err != nil {
				return err
			}
			logf("durable %d\n", from+i+1)
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

func TestStoreSurvivesFailingDisk(t *testing.T) {
	faultdisk.Long(t)
	tracetest.SkipShort(t, "starts processes")
	if dir := faultdisk.Dir(); dir != "" {
		if err := storeBatches(t, filepath.Join(dir, "x.duckdb"), func(format string, args ...any) { fmt.Printf(format, args...) }); err != nil {
			t.Error(err)
		}
		return
	}
	quiet := func(string, ...any) {}
	calm := filepath.Join(t.TempDir(), "calm.duckdb")
	if err := storeBatches(t, calm, quiet); err != nil {
		t.Fatal(err)
	}
	s := open(t, calm, true)
	want := documents(t, s)
	closeStore(t, s)
	slices.Sort(want)
	faultdisk.Torture(t, 5, faultdisk.Ordered, func(t *testing.T, after faultdisk.Aftermath) {
		path := filepath.Join(after.Dir, "x.duckdb")
		if durable := strings.Count(after.Output, "durable "); durable > 0 {
			s := open(t, path, true)
			stored := strings.Join(documents(t, s), "\n")
			closeStore(t, s)
			for _, r := range slices.Concat(faultBatches()[:durable]...) {
				if !strings.Contains(stored, `"event_id":"`+r.EventID+`"`) {
					t.Errorf("record %s is lost", r.EventID)
				}
			}
		}
		if err := storeBatches(t, path, quiet); err != nil {
			t.Fatal(err)
		}
		s := open(t, path, true)
		got := documents(t, s)
		closeStore(t, s)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("got %d documents, want %d, or they differ", len(got), len(want))
		}
	})
}

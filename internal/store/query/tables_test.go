package query_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// countingStore counts the documents in answers.
type countingStore struct {
	provdb.Store
	answers []int
}

func (s *countingStore) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	rows, err := s.Store.Query(ctx, sql, args...)
	if err != nil || !strings.Contains(sql, "anomalies_json") {
		return rows, err
	}
	s.answers = append(s.answers, 0)
	n, all := &s.answers[len(s.answers)-1], rows.All
	rows.All = func(yield func([]any, error) bool) {
		for row, err := range all {
			if *n++; !yield(row, err) {
				return
			}
		}
	}
	return rows, nil
}

func TestDocumentsOfOneRankAreReadInParts(t *testing.T) {
	tracetest.SkipShort(t, "stores many records")
	if tracetest.WithoutRace(t) {
		return
	}
	const most = 4000
	// Rank 1 has many records, the others have few.
	var want []*provenance.Record
	for i, n := range []int{10, 9001, 20} {
		for r := range storetest.StreamOf(n, 1, uint64(i)) {
			_, rest, _ := strings.Cut(r.EventID, ":")
			r.RID, r.EventID = trace.Rank(i), fmt.Sprint(i, ":", rest)
			want = append(want, r)
		}
	}
	duck, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer duck.Close() //nolint:errcheck // only read
	id, err := duck.CreateRun(t.Context(), provdb.Run{Name: "run", State: provdb.Running})
	if err != nil {
		t.Fatal(err)
	}
	for batch := range slices.Chunk(want, 2000) {
		if err := duck.Write(t.Context(), id, &provdb.Batch{Anomalies: batch}); err != nil {
			t.Fatal(err)
		}
	}
	store := &countingStore{Store: duck}
	a, err := query.New(t.Context(), store, "run")
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for doc, err := range a.Documents(t.Context(), "anomalies") {
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			ID string `json:"event_id"`
		}
		if err := json.Unmarshal(doc, &got); err != nil {
			t.Fatal(err)
		}
		if i >= len(want) || got.ID != want[i].EventID {
			t.Fatalf("document %d of %d has id %s, want %s", i, len(want), got.ID, want[min(i, len(want)-1)].EventID)
		}
		i++
	}
	if i != len(want) || len(store.answers) != 5 || slices.Max(store.answers) > most {
		t.Errorf("%d documents in parts of %v, want %d in 5 parts of at most %d", i, store.answers, len(want), most)
	}
}

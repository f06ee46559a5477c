package service

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// dying is a store whose process dies again and again: each time it answers some rows
// more.
type dying struct {
	rundir.Reader
	rows *int
}

func (d dying) Query(ctx context.Context, sql string, args ...any) (*provdb.Rows, error) {
	rows, err := d.Reader.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	cut := *rows
	cut.All = func(yield func([]any, error) bool) {
		read := 0
		for row, err := range rows.All {
			if read++; read > *d.rows {
				*d.rows += 70
				yield(nil, errors.New("the answer was cut"))
				return
			}
			if !yield(row, err) {
				return
			}
		}
	}
	return &cut, nil
}

func TestSalvagerReviewsOnceThoughStoreFails(t *testing.T) {
	t.Parallel()
	store, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), "store.duckdb"), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // nothing is kept
	id, err := store.CreateRun(t.Context(), provdb.Run{Name: "run", State: provdb.Running, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	const lost, others = 3, 250
	records := storetest.Records(others+10, 1)
	for i, r := range records {
		if r.Status = provenance.Provisional; i >= others {
			r.Status = provenance.Confirmed
		}
	}
	records[others].RID = lost
	if err := store.Write(t.Context(), id, &provdb.Batch{Anomalies: records}); err != nil {
		t.Fatal(err)
	}
	rows := 1
	s := &server{run: "run", log: slog.New(slog.DiscardHandler)}
	s.elsewhere.Find = func(context.Context) (rundir.Reader, error) {
		return dying{store, &rows}, nil
	}

	sent := make(map[string]int)
	batches := 0
	review := analyzer.NewModels(outlier.NewRules(outlier.Default())).Salvage(false)
	v := newSalvager(review, []trace.RankKey{{Rank: lost}}, func(n int, batch []*provenance.Record) error {
		if batches++; n != batches {
			t.Errorf("batch %d has the number %d", batches, n)
		}
		for _, r := range batch {
			sent[r.EventID]++
		}
		return nil
	})
	if err := v.run(t.Context(), s.query); err != nil {
		t.Fatal(err)
	}
	if len(sent) != others+1 || batches != 3 {
		t.Errorf("%d records in %d batches, want %d in 3", len(sent), batches, others+1)
	}
	for id, n := range sent {
		if n != 1 {
			t.Errorf("%s is sent %d times", id, n)
		}
	}
	var judged uint64
	for _, o := range review.Outcomes() {
		judged += uint64(o.Review.NotJudged)
	}
	if judged != others+1 {
		t.Errorf("%d are counted", judged)
	}
}

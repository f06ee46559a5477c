package query_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

// million is the number of anomalies in the store of the query benchmarks.
const million = 1_000_000

// largeStore is a store with a million anomalies of a thousand ranks, created once for all runs of
// a benchmark.
type largeStore struct {
	once  sync.Once
	store provdb.Store
	rate  float64 // records stored per second
	err   error
}

func (l *largeStore) open(b *testing.B, open func() (provdb.Store, error)) *query.Queries {
	b.Helper()
	ctx := context.WithoutCancel(b.Context()) // the store outlives this benchmark
	l.once.Do(func() { l.err = l.fill(ctx, open) })
	if l.err != nil {
		b.Fatal(l.err)
	}
	a, err := query.New(ctx, l.store, "large")
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func (l *largeStore) fill(ctx context.Context, open func() (provdb.Store, error)) (err error) {
	if l.store, err = open(); err != nil {
		return err
	}
	run := provdb.Run{Name: "large", State: provdb.Running, Started: time.Now()}
	if run.ID, err = l.store.CreateRun(ctx, run); err != nil {
		return err
	}
	var storing time.Duration
	var batch []*provenance.Record
	store := func() error {
		begin := time.Now()
		err := l.store.Write(ctx, run.ID, &provdb.Batch{Anomalies: batch})
		storing += time.Since(begin)
		batch = batch[:0]
		return err
	}
	for r := range storetest.Stream(million, 1) {
		if batch = append(batch, r); len(batch) == provdb.DefaultSize {
			if err := store(); err != nil {
				return err
			}
		}
	}
	if err := store(); err != nil {
		return err
	}
	l.rate = million / storing.Seconds()
	run.State = provdb.Finished
	return l.store.UpdateRun(ctx, run)
}

var (
	largeDuck, largePostgres largeStore
	dir                      string // for files that outlive a test or benchmark
)

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "chimbuko-question-*"); err != nil {
		panic(err)
	}
	code := pgtest.Main(m)
	_ = os.RemoveAll(dir) // temporary
	os.Exit(code)
}

func BenchmarkQueriesDuckDB(b *testing.B) {
	a := largeDuck.open(b, func() (provdb.Store, error) {
		return duckstore.Open(context.WithoutCancel(b.Context()), filepath.Join(dir, duckstore.FileName), duckstore.Options{})
	})
	benchmarkQueries(b, a, largeDuck.rate)
}

func BenchmarkQueriesPostgreSQL(b *testing.B) {
	a := largePostgres.open(b, func() (provdb.Store, error) {
		return pgstore.Open(context.WithoutCancel(b.Context()), pgtest.Shared(b).URL("postgres"), pgstore.Options{})
	})
	benchmarkQueries(b, a, largePostgres.rate)
}

// benchmarkQueries runs each kind of query several times and reports the median.
func benchmarkQueries(b *testing.B, a *query.Queries, rate float64) {
	ctx := b.Context()
	f, err := a.Function(ctx, "*relax_22*", nil)
	if err != nil {
		b.Fatal(err)
	}
	rows := func(r *provdb.Rows, err error) error {
		if err != nil {
			return err
		}
		_, err = r.Collect()
		return err
	}
	filter := func(change func(f *executions.Filter)) func() error {
		return func() error {
			f := executions.Filter{Order: "severity", Limit: 20}
			change(&f)
			return rows(a.Executions(ctx, f))
		}
	}
	top := func(by string) func() error {
		return func() error { return rows(a.Top(ctx, query.Top{By: by, Order: "lost", Limit: 10})) }
	}
	since := 300 * time.Second
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"top/function", top("function")},
		{"top/rank", top("rank")},
		{"top/host", top("host")},
		{"top/path", top("path")},
		{"anomalies/all", filter(func(*executions.Filter) {})},
		{"anomalies/by-lost", filter(func(f *executions.Filter) { f.Order = "lost" })},
		{"anomalies/by-score", filter(func(f *executions.Filter) { f.Order = "score" })},
		{"anomalies/by-time", filter(func(f *executions.Filter) { f.Order = "time" })},
		{"anomalies/func", filter(func(f *executions.Filter) { f.Function = "MPI_*" })},
		{"anomalies/rank", filter(func(f *executions.Filter) { f.Ranks = []trace.Range{{First: 7, Last: 7}, {First: 100, Last: 120}} })},
		{"anomalies/host", filter(func(f *executions.Filter) { f.Host = "node001*" })},
		{"anomalies/step", filter(func(f *executions.Filter) { f.Steps = &trace.Range{First: 500, Last: 600} })},
		{"anomalies/since", filter(func(f *executions.Filter) { f.Since = &since })},
		{"anomalies/severity", filter(func(f *executions.Filter) { f.Severity = 500 * time.Millisecond; f.Order = "time" })},
		{"anomalies/one-host", filter(func(f *executions.Filter) { f.Host = "node0123" })},
		{"anomalies/one-rank", filter(func(f *executions.Filter) { f.Ranks = []trace.Range{{First: 7, Last: 7}}; f.Order = "time" })},
		{"anomalies/one-step", filter(func(f *executions.Filter) { f.Steps = &trace.Range{First: 5, Last: 5} })},
		{"anomalies/score", filter(func(f *executions.Filter) { f.Score = 19.9; f.Order = "time" })},
		{"anomalies/lost", filter(func(f *executions.Filter) { f.Lost = 90 * time.Millisecond; f.Order = "score" })},
		{"anomalies/withdrawn", filter(func(f *executions.Filter) { f.Withdrawn = true })},
		{"anomalies/normal", filter(func(f *executions.Filter) { f.Normal = true })},
		{"event", func() error { _, err := a.Event(ctx, someEvent(b, a), nil); return err }}, //nolint:contextcheck // context of b
		{"func/profile", func() error { return rows(a.Profile(ctx, f)) }},
		{"func/ranks", func() error { return rows(a.OverRanks(ctx, f, 20)) }},
		{"func/times", func() error { return rows(a.OverTime(ctx, f, 20)) }},
		{"func/paths", func() error { return rows(a.Paths(ctx, f, 20)) }},
	} {
		b.Run(q.name, func(b *testing.B) {
			var took []float64
			for b.Loop() {
				begin := time.Now()
				if err := q.ask(); err != nil {
					b.Fatal(err)
				}
				took = append(took, float64(time.Since(begin).Microseconds())/1000)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "ms-median")
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("write", func(b *testing.B) {
		b.ReportMetric(rate, "records/s")
		b.ReportMetric(0, "ns/op")
	})
}

var eventIDs sync.Map // by *query.Queries

// someEvent returns an id of a stored event.
func someEvent(b *testing.B, a *query.Queries) string {
	b.Helper()
	if id, ok := eventIDs.Load(a); ok {
		return id.(string)
	}
	rows, err := a.Executions(b.Context(), executions.Filter{Order: "time", Limit: 1, Offset: million / 2})
	if err != nil {
		b.Fatal(err)
	}
	all, err := rows.Collect()
	if err != nil || len(all) != 1 {
		b.Fatal(fmt.Errorf("%d rows: %w", len(all), err))
	}
	eventIDs.Store(a, all[0][0])
	return all[0][0].(string)
}

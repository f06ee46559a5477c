package storetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestDuckDB(t *testing.T) {
	testStore(t, func(t *testing.T) (provdb.Store, error) {
		return duckstore.Open(t.Context(), filepath.Join(t.TempDir(), "it's 名前.duckdb"), duckstore.Options{})
	})
}

func TestPostgreSQL(t *testing.T) {
	testStore(t, func(t *testing.T) (provdb.Store, error) {
		return pgstore.Open(t.Context(), pgtest.Shared(t).Database(t), pgstore.Options{})
	})
}

// opener opens an empty store.
type opener func(t *testing.T) (provdb.Store, error)

// testStore runs all tests, each with a new store.
func testStore(t *testing.T, open opener) {
	for _, part := range []struct {
		name  string
		tests []test
	}{
		{"documents", documentTests},
		{"replacing", replaceTests},
		{"sharing", sharingTests},
		{"runs", runTests},
		{"views", viewTests},
		{"findings", findingTests},
		{"call paths", pathTests},
		{"peers", peerTests},
		{"breakdown", breakdownTests},
		{"queries", queryTests},
		{"closing", closeTests},
		{"buffer", bufferTests},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, test := range tracetest.Sample(part.tests, 6) {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(start(t, open))
				})
			}
		})
	}
}

type test struct {
	name string
	run  func(f *fixture)
}

// fixture is an open store with one run.
type fixture struct {
	*testing.T
	store provdb.Store
	run   provdb.RunID
}

var started = time.Date(2026, 3, 4, 5, 6, 7, 891_000, time.UTC)

func start(t *testing.T, open opener) *fixture {
	t.Helper()
	store, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, store: store}
	t.Cleanup(func() { _ = f.store.Close() }) // also after tests that close it
	f.run = f.createRun("run")
	return f
}

func (f *fixture) createRun(name string) provdb.RunID {
	f.Helper()
	id, err := f.store.CreateRun(f.Context(), provdb.Run{Name: name, State: provdb.Running, Started: started})
	if err != nil {
		f.Fatal(err)
	}
	return id
}

func (f *fixture) write(batch *provdb.Batch) {
	f.Helper()
	f.writeTo(f.run, batch)
}

func (f *fixture) writeTo(run provdb.RunID, batch *provdb.Batch) {
	f.Helper()
	if err := f.store.Write(f.Context(), run, batch); err != nil {
		f.Fatal(err)
	}
}

// query returns all rows of a query.
func (f *fixture) query(sql string, args ...any) [][]any {
	f.Helper()
	rows, err := f.store.Query(f.Context(), sql, args...)
	if err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	all, err := rows.Collect()
	if err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	return all
}

// want compares all rows of a query.
func (f *fixture) want(want [][]any, sql string, args ...any) {
	f.Helper()
	got := f.query(sql, args...)
	if len(got) != len(want) {
		f.Errorf("%s %v: got %d rows, want %d", sql, args, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if g, w := fmt.Sprintf("%#v", got[i]), fmt.Sprintf("%#v", want[i]); g != w {
			f.Errorf("%s %v: row %d:\n got %s\nwant %s", sql, args, i, g, w)
		}
	}
}

// tables are the tables with rows of runs.
var tables = []string{
	"runs", "functions", "paths", "models", "final_models", "samples", "executions", "metadata", "profiles", "counter_stats",
	"path_profiles", "findings", "links", "rank_loads", "load_windows", "efficiency", "slow_peers",
	"gpu_times", "collectives", "clocks", "activity",
}

// counts returns the number of rows of a run in each table.
func (f *fixture) counts(run provdb.RunID) map[string]int64 {
	f.Helper()
	selects := make([]string, len(tables))
	for i, table := range tables {
		selects[i] = fmt.Sprintf("SELECT '%s' AS name, count(*) AS n FROM %[1]s WHERE run = $1", table)
	}
	counts := make(map[string]int64)
	for _, row := range f.query(strings.Join(selects, " UNION ALL "), int64(run)) {
		counts[row[0].(string)] = row[1].(int64)
	}
	return counts
}

// full returns a batch of n anomalies with all other kinds of documents.
func full(n int, seed uint64) *provdb.Batch {
	records := Records(n+n/4, seed)
	b := &provdb.Batch{
		Anomalies: records[:n:n], Typical: records[n:], Functions: funcStats(), Counters: counterStats(), Models: adModels(),
		Paths: pathStats(), Findings: findings(), Peers: peers(),
	}
	b.Links = links(b.Anomalies)
	for _, r := range b.Typical {
		r.Status, r.LostTime, r.Kind, r.Why = "", 0, "", ""
	}
	for rank := range 3 {
		b.Metadata = append(b.Metadata, stepMetadata(rank, 0, "Hostname", "CPU Type"), stepMetadata(rank, 2, "CUDA Device"))
	}
	return b
}

// documents returns the documents of a batch by collection.
func documents(b *provdb.Batch) map[string][]any {
	docs := make(map[string][]any)
	add := func(collection string, doc any) { docs[collection] = append(docs[collection], doc) }
	for _, r := range b.Anomalies {
		add("anomalies", r)
	}
	for _, r := range b.Typical {
		add("normalexecs", r)
	}
	for _, m := range b.Metadata {
		for _, fact := range m.Facts {
			add("metadata", fact)
		}
	}
	for _, x := range b.Functions {
		add("func_stats", x)
	}
	for _, x := range b.Counters {
		add("counter_stats", x)
	}
	for _, x := range b.Models {
		add("ad_model", x)
	}
	return docs
}

// wantBatch fails unless a run has exactly the documents of the batch.
func (f *fixture) wantBatch(run provdb.RunID, b *provdb.Batch) {
	f.Helper()
	docs := documents(b)
	for _, c := range collections {
		f.wantDocs(run, c.name, docs[c.name]...)
	}
}

func records(b ...*provenance.Record) *provdb.Batch { return &provdb.Batch{Anomalies: b} }

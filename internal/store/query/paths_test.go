package query_test

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

func TestCallPathsHaveTimes(t *testing.T) {
	duck, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("DuckDB", func(t *testing.T) { checkCallPaths(t, duck) })
	t.Run("PostgreSQL", func(t *testing.T) {
		pg, err := pgstore.Open(t.Context(), pgtest.Shared(t).Database(t), pgstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkCallPaths(t, pg)
	})
}

func checkCallPaths(t *testing.T, store provdb.Store) {
	t.Helper()
	defer store.Close() //nolint:errcheck // all writes are done
	run := provdb.Run{Name: "run", State: provdb.Running, Started: time.Unix(1, 0)}
	var err error
	if run.ID, err = store.CreateRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	a, err := query.New(t.Context(), store, "run")
	if err != nil {
		t.Fatal(err)
	}
	f := func(program *trace.Program, want ...comparison.Path) {
		t.Helper()
		got, err := a.CallPaths(t.Context(), program, false)
		if err != nil || !reflect.DeepEqual(got.Paths, want) {
			t.Errorf("%v\n got %+v\nwant %+v", err, got.Paths, want)
		}
	}
	f(nil)
	err = store.Write(t.Context(), run.ID, &provdb.Batch{Paths: []provenance.PathStats{
		{Node: 1, FID: -1, Func: "main"},
		{Node: 2, Parent: 1, FID: 1, Func: "a > b", Calls: 2, Exclusive: 20},
		{Node: 3, Parent: 2, FID: 2, Func: "c", Calls: 3, Exclusive: 300},
		{Node: 4, Parent: 1, FID: 2, Func: "c", Calls: 4, Exclusive: 4000},
		{Node: 5, PID: 1, FID: 7, Func: "main", Calls: 1, Exclusive: 5},
	}})
	if err != nil {
		t.Fatal(err)
	}
	zero, one := trace.Program(0), trace.Program(1)
	first := []comparison.Path{
		{Parent: -1, Function: "main"},
		{Parent: 0, Function: "a > b", Calls: 2, Exclusive: 20},
		{Parent: 0, Function: "c", Calls: 4, Exclusive: 4000},
		{Parent: 1, Function: "c", Calls: 3, Exclusive: 300},
	}
	second := comparison.Path{Program: 1, Parent: -1, Function: "main", Calls: 1, Exclusive: 5}
	f(nil, append(first, second)...)
	f(&zero, first...)
	f(&one, second)
}

package pgstore

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// open opens a store that ends with the test.
func open(tb testing.TB, url string, o Options) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), url, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// newStore opens a store in a new database.
func newStore(tb testing.TB) *Store {
	tb.Helper()
	return open(tb, pgtest.Shared(tb).Database(tb), Options{})
}

func newRun(tb testing.TB, s *Store, name string) provdb.RunID {
	tb.Helper()
	id, err := s.CreateRun(tb.Context(), provdb.Run{Name: name, State: provdb.Running, Started: time.Unix(1_700_000_000, 0)})
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

func write(tb testing.TB, s *Store, id provdb.RunID, b *provdb.Batch) {
	tb.Helper()
	if err := s.Write(tb.Context(), id, b); err != nil {
		tb.Fatal(err)
	}
}

// query returns all rows of a query.
func query(tb testing.TB, s *Store, sql string, args ...any) [][]any {
	tb.Helper()
	rows, err := s.Query(tb.Context(), sql, args...)
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	all, err := rows.Collect()
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return all
}

// expect compares an answer.
func expect(tb testing.TB, s *Store, want [][]any, sql string, args ...any) {
	tb.Helper()
	if got := query(tb, s, sql, args...); !reflect.DeepEqual(got, want) {
		tb.Errorf("%s %v:\n got %v\nwant %v", sql, args, got, want)
	}
}

// sameJSON reports whether two texts are the same document.
func sameJSON(tb testing.TB, a, b []byte) bool {
	tb.Helper()
	var v [2]any
	for i, text := range [][]byte{a, b} {
		if err := json.Unmarshal(text, &v[i]); err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
	}
	return reflect.DeepEqual(v[0], v[1])
}

package remotestore

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// openDuck returns a store and a client of its owner. Each query sends to ended at its end.
func openDuck(t *testing.T) (store *duckstore.Store, c *Client, ended <-chan struct{}) {
	t.Helper()
	store, c, _, ended = openObservedDuck(t)
	return store, c, ended
}

// openObservedDuck is openDuck that also reports when a query begins.
func openObservedDuck(t *testing.T) (store *duckstore.Store, c *Client, began, ended <-chan struct{}) {
	t.Helper()
	noLeaks(t)
	store, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	begin, over := make(chan struct{}, 1000), make(chan struct{}, 1000)
	_, c = open(t, readerFunc(func(ctx context.Context, sql string, args []any) (*provdb.Rows, error) {
		begin <- struct{}{}
		rows, err := store.Query(ctx, sql, args...)
		if err != nil {
			over <- struct{}{}
			return nil, err
		}
		all := rows.All
		rows.All = func(yield func([]any, error) bool) { all(yield); over <- struct{}{} }
		return rows, nil
	}), defaultLimits)
	return store, c, begin, over
}

func TestStoreAnswersTheSameThroughOwner(t *testing.T) {
	store, c, _ := openDuck(t)
	ctx := t.Context()
	if _, err := store.CreateRun(ctx, provdb.Run{
		Name: "one", State: provdb.Running, Started: time.Now(),
		Info: []byte(`{"a": 9007199254740993}`),
	}); err != nil {
		t.Fatal(err)
	}
	f := func(sql string, args ...any) {
		t.Helper()
		want, err := store.Query(ctx, sql, args...)
		if err != nil {
			t.Fatal(sql, err)
		}
		got, err := c.Query(ctx, sql, args...)
		if err != nil {
			t.Fatal(sql, err)
		}
		if !slices.Equal(got.Columns, want.Columns) {
			t.Errorf("%s:\n got columns %v\nwant %v", sql, got.Columns, want.Columns)
		}
		wantRows, err := want.Collect()
		if err != nil {
			t.Fatal(sql, err)
		}
		gotRows, err := got.Collect()
		if err != nil || len(gotRows) != len(wantRows) {
			t.Fatalf("%s: got %d rows, %v, want %d", sql, len(gotRows), err, len(wantRows))
		}
		for i, row := range wantRows {
			for j, v := range row {
				if !same(gotRows[i][j], v) {
					t.Errorf("%s: %s: got %T %#v, want %T %#v", sql, want.Columns[j].Name, gotRows[i][j], gotRows[i][j], v, v)
				}
			}
		}
	}
	f("SELECT * FROM runs")
	f("SELECT * FROM runs WHERE false")
	f("SELECT name FROM runs WHERE run = $1 AND state = $2", provdb.RunID(1), provdb.Running)
	f("SELECT $1, $2, $3, $4, $5", int64(1<<53+1), 0.1, "text", true, nil)
	f("SELECT $1::TIMESTAMP, $1::TIMESTAMPTZ", time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC))
	f("SELECT true, 1::TINYINT, 9223372036854775807, -9223372036854775808, 18446744073709551615::UBIGINT, " +
		"170141183460469231731687303715884105727::HUGEINT")
	f("SELECT 0.1::DOUBLE, 0.1::FLOAT, 12.34::DECIMAL(9, 2), 'nan'::DOUBLE, 'inf'::DOUBLE, '-inf'::DOUBLE, -0.0::DOUBLE, 1e300")
	f("SELECT DATE '1969-12-31', TIMESTAMP '0001-01-01', TIMESTAMP '20000-02-03 04:05:06.789', TIMESTAMP_NS '2024-01-02 " +
		"03:04:05.123456789', TIME '01:02:03'")
	f(`SELECT '{"a": 1.0,  "b": 9007199254740993}'::JSON AS j, [1, 2] AS l, {'x': 1, 'y': 'z'} AS s, MAP {'k': 1} AS m, NULL::JSON AS n, INTERVAL 1 DAY AS i, 'ü<>&' AS t`)
	f("SELECT i, i / 7, 'row ' || i, i % 2 = 0 FROM range(10000) t(i)")
}

func TestStoreErrorsAreTheSameThroughOwner(t *testing.T) {
	store, c, _ := openDuck(t)
	for _, sql := range []string{"DELETE FROM runs", "SELECT nonsense", "", "SELECT 1; SELECT 2", "SELECT * FROM read_csv('/etc/passwd')"} {
		_, want := querySQL(t, store, sql)
		_, got := querySQL(t, c, sql)
		if want == nil || got == nil || got.Error() != want.Error() || errors.Is(got, provdb.ErrReadOnly) != errors.Is(want, provdb.ErrReadOnly) {
			t.Errorf("%q:\n got %v\nwant %v", sql, got, want)
		}
	}
}

func querySQL(t *testing.T, r provdb.Reader, sql string) ([][]any, error) {
	t.Helper()
	rows, err := r.Query(t.Context(), sql)
	if err != nil {
		return nil, err
	}
	return rows.Collect()
}

func TestManyRows(t *testing.T) {
	_, c, ended := openDuck(t)
	const n = 200_000
	rows, err := c.Query(t.Context(), "SELECT i FROM range($1) t(i) ORDER BY i", n)
	if err != nil {
		t.Fatal(err)
	}
	next := int64(0)
	for row, err := range rows.All {
		if err != nil || row[0] != next {
			t.Fatalf("row %d: %v, %v", next, row, err)
		}
		next++
	}
	if next != n {
		t.Errorf("got %d rows", next)
	}
	wait(t, ended, "the query ends")

	rows, err = c.Query(t.Context(), "SELECT i, repeat('x', 50) FROM range($1) t(i)", 5*n)
	if err != nil {
		t.Fatal(err)
	}
	for range rows.All {
		break
	}
	wait(t, ended, "an abandoned query ends")
}

func TestCancelEndsLongQuery(t *testing.T) {
	const long = "SELECT count(*) FROM range(1000000) a(i), range(1000000) b(j) WHERE (i * j) % 7 = 3"
	_, c, began, ended := openObservedDuck(t)
	query := func(ctx context.Context) error {
		rows, err := c.Query(ctx, long)
		if err == nil {
			_, err = rows.Collect()
		}
		return err
	}
	canceled, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { answered <- query(canceled) }()
	wait(t, began, "the owner's query begins")
	cancel()
	if err := wait(t, answered, "the query ends"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	wait(t, ended, "the owner's query ends")

	expired, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // it may not reach the owner in time
	defer cancel()
	if err := query(expired); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
}

// TestOtherProcessQueriesWhileOwnerWrites shows the purpose of this package.
func TestOtherProcessQueriesWhileOwnerWrites(t *testing.T) {
	if announce := os.Getenv("REMOTESTORE_ANNOUNCE"); announce != "" {
		queryFromProcess(t, announce)
		return
	}
	tracetest.SkipShort(t, "starts a process")
	store, c, _ := openDuck(t)
	run, err := store.CreateRun(t.Context(), provdb.Run{Name: "seen from outside", State: provdb.Running, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOtherProcessQueriesWhileOwnerWrites$", "-test.v")
	other.Env = append(os.Environ(), "REMOTESTORE_ANNOUNCE="+c.announce)
	done := make(chan error, 1)
	var out []byte
	go func() {
		var err error
		out, err = other.CombinedOutput()
		done <- err
	}()
	batch := &provdb.Batch{Functions: []provenance.FuncStats{{Name: "f"}}}
	for {
		if err := store.Write(t.Context(), run, batch); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the other process: %v\n%s", err, out)
			}
			return
		default:
		}
	}
}

func queryFromProcess(t *testing.T, announce string) {
	c, err := Open(t.Context(), announce)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		got, err := querySQL(t, c, "SELECT name FROM runs")
		if err != nil || len(got) != 1 || got[0][0] != "seen from outside" {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

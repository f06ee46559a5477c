package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func TestValuesHaveContractTypes(t *testing.T) {
	s := newStore(t)
	f := func(expr string, kind provdb.Type, want any) {
		t.Helper()
		rows, err := s.Query(t.Context(), "SELECT "+expr+" AS x")
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			return
		}
		all, err := rows.Collect()
		if err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], []any{want}) || rows.Columns[0] != (provdb.Column{Name: "x", Type: kind}) {
			t.Errorf("%s: got %#v %v %v, want %#v of type %s", expr, all, rows.Columns, err, want, kind)
		}
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 5000, time.UTC)
	f("true", provdb.Bool, true)
	f("NULL::boolean", provdb.Bool, nil)
	f("1::smallint", provdb.Int, int64(1))
	f("-2::integer", provdb.Int, int64(-2))
	f("9223372036854775807", provdb.Int, int64(9223372036854775807))
	f("18446744073709551615::numeric(20,0)", provdb.Int, json.Number("18446744073709551615"))
	f("(SELECT sum(n) FROM (VALUES (1::bigint), (2)) v(n))", provdb.Int, int64(3))
	f("(SELECT avg(n) FROM (VALUES (1::bigint), (3)) v(n))", provdb.Float, 2.0)
	f("NULL::numeric", provdb.Int, nil)
	f("1.25", provdb.Float, 1.25)
	f("2::numeric(10,2)", provdb.Float, 2.0)
	f("5e-324::double precision", provdb.Float, 5e-324)
	f("0.1::real", provdb.Float, 0.1)
	f("'x'", provdb.Text, "x")
	f("'x'::name", provdb.Text, "x")
	f("'1 day'::interval", provdb.Text, "1 day")
	f("'\\x00ff'::bytea", provdb.Text, "\\x00ff")
	f("'{\"a\": 18446744073709551615}'::json", provdb.JSON, json.RawMessage(`{"a": 18446744073709551615}`))
	f("'{\"a\":1}'::jsonb", provdb.JSON, json.RawMessage(`{"a": 1}`))
	f("ARRAY[1, NULL, 3]", provdb.JSON, json.RawMessage("[1,null,3]"))
	f("ARRAY['a', 'b\"']", provdb.JSON, json.RawMessage(`["a","b\""]`))
	f("ROW(1, 'a')", provdb.JSON, json.RawMessage(`{"f1":1,"f2":"a"}`))
	f("(SELECT r FROM (VALUES (1)) r(n))", provdb.JSON, json.RawMessage(`{"n":1}`))
	f("'2026-01-02 12:00:00.000005'::timestamp", provdb.Time, noon)
	f("'2026-01-02 14:00:00.000005+02'::timestamptz", provdb.Time, noon)
	f("'2026-01-02'::date", provdb.Time, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	f("'infinity'::timestamp", provdb.Time, nil)
}

func TestTableColumnsHaveContractTypes(t *testing.T) {
	s := newStore(t)
	newRun(t, s, "run")
	rows, err := s.Query(t.Context(), "SELECT r, run, sum(run) OVER () AS run, state::text FROM runs r WHERE run = $1;", provdb.RunID(1))
	if err != nil {
		t.Fatal(err)
	}
	want := []provdb.Column{
		{Name: "r", Type: provdb.JSON},
		{Name: "run", Type: provdb.Int},
		{Name: "run", Type: provdb.Int},
		{Name: "state", Type: provdb.Text},
	}
	all, err := rows.Collect()
	if err != nil || len(all) != 1 || !reflect.DeepEqual(rows.Columns, want) {
		t.Fatalf("got %v %v %v, want %v", rows.Columns, all, err, want)
	}
	if text := string(all[0][0].(json.RawMessage)); !strings.Contains(text, `"name":"run"`) {
		t.Errorf("a row is %s", text)
	}
}

func TestNumericTypeFollowsFirstValue(t *testing.T) {
	s := newStore(t)
	f := func(values string, kind provdb.Type, want ...any) {
		t.Helper()
		rows, err := s.Query(t.Context(), "SELECT column1::numeric FROM (VALUES "+values+") v")
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		for row, err := range rows.All {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row[0])
		}
		if rows.Columns[0].Type != kind || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s %#v, want %s %#v", values, rows.Columns[0].Type, got, kind, want)
		}
	}
	f("(NULL), (NULL), (7)", provdb.Int, nil, nil, int64(7))
	f("(NULL), (0.5), (7)", provdb.Float, nil, 0.5, 7.0)
	f("(1), (0.5)", provdb.Int, int64(1), 0.5)
}

func TestArgumentsBindToAnyType(t *testing.T) {
	s := newStore(t)
	expect(t, s, [][]any{{int64(5), int64(7), 2.5, 3.0, "8", "x", nil, true, json.RawMessage("[1,2]"), 1e300}},
		"SELECT $1::int, $2::bigint, $3::float8, $4::float8, $5::text, $6, $7::int, $8::boolean, $9::int[], $10::float8",
		5, trace.Rank(7), 2.5, json.Number("3"), 8, "x", nil, true, []int32{1, 2}, 1e300)
	for _, args := range [][]any{{}, {1, 2}, {"one"}} {
		if rows, err := s.Query(t.Context(), "SELECT $1::int", args...); err == nil {
			_ = rows.Close()
			t.Errorf("query with arguments %v succeeded", args)
		}
	}
}

func TestQueriesEndWithContext(t *testing.T) {
	s := newStore(t)
	f := func(ctx context.Context, want error) {
		t.Helper()
		start := time.Now()
		rows, err := s.Query(ctx, "SELECT pg_sleep(1000)")
		if err == nil {
			_, err = rows.Collect()
		}
		if took := time.Since(start); !errors.Is(err, want) || took > 2*time.Minute {
			t.Errorf("got %v after %v, want %v", err, took, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	f(ctx, context.DeadlineExceeded)
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	f(ctx, context.Canceled)
	f(ctx, context.Canceled) // before the query starts

	// While rows are read.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	rows, err := s.Query(ctx, "SELECT n, repeat('x', 1000) FROM generate_series(1, 1000000) n")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, err = range rows.All {
		if seen++; seen == 10 {
			cancel()
		}
	}
	if !errors.Is(err, context.Canceled) || seen > 900_000 {
		t.Errorf("got %v after %d rows, want %v", err, seen, context.Canceled)
	}
	expect(t, s, [][]any{{int64(1)}}, "SELECT 1")
}

func TestUnreadRowsFreeTheirConnection(t *testing.T) {
	s := newStore(t)
	for i := range 3 * int(s.pool.Config().MaxConns) { // otherwise it would wait forever
		rows, err := s.Query(t.Context(), "SELECT a, b FROM generate_series(1, 10000) a CROSS JOIN generate_series(1, 10000) b")
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			for range rows.All {
				break
			}
		}
		if err := errors.Join(rows.Close(), rows.Close()); err != nil {
			t.Error(err)
		}
		if all, err := rows.Collect(); len(all) > 0 || err != nil {
			t.Errorf("after Close: got %d rows and %v", len(all), err)
		}
	}
}

func TestQueryErrorsComeFromQueryOrRows(t *testing.T) {
	s := newStore(t)
	f := func(sql, want string) {
		t.Helper()
		if rows, err := s.Query(t.Context(), sql); err == nil {
			_ = rows.Close()
			t.Errorf("%s succeeded", sql)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", sql, err, want)
		}
	}
	f("SELECT nothing FROM runs", `column "nothing" does not exist`)
	f("SELECT FROM WHERE", "syntax error")
	f("SELECT 1 / 0", "division by zero")
	rows, err := s.Query(t.Context(), "SELECT 1 / (1000 - n) FROM generate_series(1, 2000) n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Collect(); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("got %v, want a division by zero", err)
	}
	expect(t, s, [][]any{{int64(1)}}, "SELECT 1")
}

func TestLimitedStatements(t *testing.T) {
	s := newStore(t)
	run := func(ctx context.Context, sql string) ([][]any, error) {
		rows, err := s.Query(provdb.WithLimits(ctx, provdb.Limits{}), sql)
		if err != nil {
			return nil, err
		}
		return rows.Collect()
	}
	got, err := run(t.Context(), "SELECT current_setting('work_mem'), current_setting('temp_file_limit')")
	if err != nil || got[0][0] != "64MB" {
		t.Errorf("got %v, %v, want 64MB of work_mem", got, err)
	}
	for _, sql := range []string{"SELECT repeat('x', 100000000)", "SELECT length(repeat('x', 2000000000))"} {
		if _, err := run(t.Context(), sql); !errors.Is(err, provdb.ErrLimit) {
			t.Errorf("%s: got %v, want ErrLimit", sql, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, cap(s.slots))
	for range cap(s.slots) {
		go func() {
			_, err := run(ctx, "SELECT pg_sleep(600)")
			ended <- err
		}()
	}
	for len(s.slots) < cap(s.slots) {
		if err := wait.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run(t.Context(), "SELECT 1"); !errors.Is(err, provdb.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	cancel()
	for range cap(s.slots) {
		<-ended
	}
	if _, err := run(t.Context(), "SELECT 1"); err != nil {
		t.Error(err)
	}
	if rows := query(t, s, "SELECT length(x) FROM (SELECT repeat('x', 100000000) x) y"); rows[0][0] != int64(100000000) {
		t.Errorf("a statement without limits: got %v", rows)
	}
}

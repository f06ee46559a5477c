package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// endless is a query that takes hours in every dialect.
const endless = `SELECT sum((a.n * b.n * c.n) % 7) FROM generate_series(1, 100000) AS a(n),
	generate_series(1, 100000) AS b(n), generate_series(1, 1000) AS c(n)`

// queryTimeout is the longest time for the end of a query, also on a busy machine.
const queryTimeout = 2 * time.Minute

var queryTests = []test{
	{"arguments are bound, not inserted", func(f *fixture) {
		for _, text := range []string{`it's`, `" OR 1=1; --`, `\'; DROP TABLE runs; --`, "$1", "%s", "", "😀\n\t"} {
			f.want([][]any{{text}}, "SELECT CAST($1 AS VARCHAR) AS x", text)
			f.want([][]any{{int64(0)}}, "SELECT count(*) FROM runs WHERE name = $1", text)
		}
		f.want([][]any{{"b", "a", "b"}}, "SELECT CAST($2 AS VARCHAR), CAST($1 AS VARCHAR), CAST($2 AS VARCHAR)", "a", "b")
		f.want([][]any{{int64(math.MaxInt64), 0.1, true}}, "SELECT CAST($1 AS BIGINT), CAST($2 AS DOUBLE PRECISION), CAST($3 AS BOOLEAN)",
			int64(math.MaxInt64), 0.1, true)
		f.want([][]any{{nil}}, "SELECT CAST($1 AS VARCHAR)", nil)
		f.want([][]any{{int64(1)}}, "SELECT count(*) FROM runs WHERE name = $1", "run")
	}},
	{"columns have contract types", columnTypes},
	{"JSON is unchanged", func(f *fixture) {
		r := Records(1, 1)[0]
		r.CounterEvents[0].Value = math.MaxUint64
		r.AlgoParams = json.RawMessage(`{"large": 123456789012345678901234567890, "exact": 0.1000000000000000055511151231257827}`)
		f.write(records(r))
		doc := f.query("SELECT doc FROM anomalies_json")[0][0].(json.RawMessage)
		if d := difference("", decode(f, doc), decode(f, encode(f, r))); d != "" {
			f.Error(d)
		}
		params := f.query("SELECT params FROM models")[0][0].(json.RawMessage)
		if !strings.Contains(string(params), "123456789012345678901234567890") {
			f.Errorf("got %s, want %s", params, r.AlgoParams)
		}
	}},
	{"rows have the order of the query", func(f *fixture) {
		all := Records(200, 1)
		for i, r := range all { // small records
			r.CallStack, r.EventWindow.Execs, r.EventWindow.Comms, r.AlgoParams = r.CallStack[:1], r.EventWindow.Execs[:0],
				r.EventWindow.Comms[:0], nil
			r.RID, r.IOStep, r.EventID = 0, 0, id(0, 0, uint32((i*7919)%1000))
		}
		f.write(records(all...))
		last := int64(math.MaxInt64)
		for _, row := range f.query("SELECT ev_row, doc FROM anomalies_json ORDER BY ev_row DESC") {
			doc, _ := decode(f, row[1].(json.RawMessage)).(map[string]any)
			if n := row[0].(int64); n >= last || doc["event_id"] != fmt.Sprintf("0:0:%d", n) {
				f.Fatalf("%v after row %d: document %v", row[0], last, doc["event_id"])
			} else {
				last = n
			}
		}
	}},
	{"semicolons and comments may end a query", func(f *fixture) {
		for _, end := range []string{";", "; ", " -- done", ";\n-- done; really", "; /* done */", ";\n\n"} {
			f.want([][]any{{"run"}}, "SELECT name FROM runs"+end)
			f.want([][]any{{nil, "a;--b"}}, "SELECT info, 'a;--b' AS text FROM runs"+end)
		}
		f.want([][]any{{int64(3)}}, "-- first\nWITH t AS (SELECT 3 AS x) /* then */ SELECT x FROM t")
	}},
	{"a break frees the connection", func(f *fixture) {
		f.write(full(20, 1))
		ctx, cancel := context.WithTimeout(f.Context(), queryTimeout)
		defer cancel()
		for i := range 100 {
			rows, err := f.store.Query(ctx, "SELECT event_id FROM anomalies WHERE run = $1", int64(f.run))
			if err != nil {
				f.Fatalf("query %d: %v", i, err)
			}
			for _, err := range rows.All {
				if err != nil {
					f.Fatal(err)
				}
				break
			}
			if err := rows.Close(); err != nil { // a second time
				f.Fatal(err)
			}
		}
	}},
	{"closing unread rows frees the connection", func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.Context(), queryTimeout)
		defer cancel()
		for i := range 100 {
			rows, err := f.store.Query(ctx, "SELECT * FROM runs")
			if err != nil {
				f.Fatalf("query %d: %v", i, err)
			}
			if err := errors.Join(rows.Close(), rows.Close()); err != nil {
				f.Fatal(err)
			}
		}
	}},
	{"rows are a snapshot", func(f *fixture) {
		f.write(full(4, 1))
		rows, err := f.store.Query(f.Context(), "SELECT event_id FROM anomalies WHERE run = $1", int64(f.run))
		if err != nil {
			f.Fatal(err)
		}
		f.write(full(8, 2))
		if all, err := rows.Collect(); err != nil || len(all) != 4 {
			f.Errorf("got %d rows and error %v, want 4 rows", len(all), err)
		}
		f.want([][]any{{int64(12)}}, "SELECT count(*) FROM anomalies")
	}},
	{"rejects statements that write", rejectsWrites},
	{"queries end with their context", endsWithContext},
	{"errors have the words of the database", func(f *fixture) {
		for sql, word := range map[string]string{
			"SELECT no_such_column FROM runs": "no_such_column", "SELECT * FROM no_such_table": "no_such_table", "SELEC 1": "SELEC",
			"SELECT no_such_function(1)": "no_such_function", "SELECT 1 FROM": "", "": "", ";": "", "-- nothing": "",
			"SELECT $1":                      "", // without an argument
			"SELECT CAST('word' AS INTEGER)": "word", "SELECT corrupt FROM runs": "corrupt",
		} {
			err := f.failure(sql)
			if err == nil || !strings.Contains(err.Error(), word) || errors.Is(err, provdb.ErrReadOnly) || strings.Contains(err.Error(), "damaged") {
				f.Errorf("%q: got error %v, want one about %q", sql, err, word)
			}
		}
		f.want([][]any{{"run"}}, "SELECT name FROM runs")
	}},
}

// failure runs a query, reads its rows and returns the first error.
func (f *fixture) failure(sql string, args ...any) error {
	rows, err := f.store.Query(f.Context(), sql, args...)
	if err != nil {
		return err
	}
	_, err = rows.Collect()
	return err
}

func columnTypes(f *fixture) {
	r := Records(1, 1)[0]
	r.CounterEvents[0].Value = math.MaxUint64
	f.write(records(r))
	check := func(sql string, columns []provdb.Column, want ...any) {
		f.Helper()
		rows, err := f.store.Query(f.Context(), sql)
		if err != nil {
			f.Fatalf("%s: %v", sql, err)
		}
		if fmt.Sprint(rows.Columns) != fmt.Sprint(columns) {
			f.Errorf("%s: got columns %v, want %v", sql, rows.Columns, columns)
		}
		all, err := rows.Collect()
		if err != nil || len(all) != 1 || fmt.Sprintf("%#v", all[0]) != fmt.Sprintf("%#v", want) {
			f.Errorf("%s:\n got %#v, error %v\nwant %#v", sql, all, err, want)
		}
	}
	check(`SELECT anomalous AS "a b", ev_row AS "Row" FROM executions`,
		[]provdb.Column{{Name: "a b", Type: provdb.Bool}, {Name: "Row", Type: provdb.Int}},
		true, int64(58503))
	check("SELECT counter_value, 1 AS one, count(*) AS n FROM counter_events GROUP BY counter_value",
		[]provdb.Column{{Name: "counter_value", Type: provdb.Int}, {Name: "one", Type: provdb.Int}, {Name: "n", Type: provdb.Int}},
		json.Number("18446744073709551615"), int64(1), int64(1))
	check("SELECT outlier_severity, func, status FROM anomalies",
		[]provdb.Column{{Name: "outlier_severity", Type: provdb.Float}, {Name: "func", Type: provdb.Text}, {Name: "status", Type: provdb.Text}},
		r.OutlierSeverity, r.Func, string(r.Status))
	check("SELECT started, finished, info FROM runs",
		[]provdb.Column{{Name: "started", Type: provdb.Time}, {Name: "finished", Type: provdb.Time}, {Name: "info", Type: provdb.JSON}},
		started, nil, nil)
	list := json.RawMessage(strings.ReplaceAll(string(f.query("SELECT fns FROM paths")[0][0].(json.RawMessage)), " ", ""))
	if numbers, ok := decode(f, list).([]any); !ok || len(numbers) != stackDepth {
		f.Errorf("got list %s", list)
	}
	check("SELECT fns AS x, fns AS x FROM paths", []provdb.Column{{Name: "x", Type: provdb.JSON}, {Name: "x", Type: provdb.JSON}}, list, list)
	check("SELECT CAST(NULL AS BOOLEAN) AS b, CAST(NULL AS BIGINT) AS i, CAST(NULL AS DOUBLE PRECISION) AS f, CAST(NULL AS VARCHAR) AS "+
		"t, CAST(NULL AS JSON) AS j",
		[]provdb.Column{
			{Name: "b", Type: provdb.Bool},
			{Name: "i", Type: provdb.Int},
			{Name: "f", Type: provdb.Float},
			{Name: "t", Type: provdb.Text},
			{Name: "j", Type: provdb.JSON},
		},
		nil, nil, nil, nil, nil)
	check("SELECT CAST(7 AS SMALLINT) AS s, CAST(0.5 AS REAL) AS r, DATE '2026-02-01' AS d, TIMESTAMP WITH TIME ZONE '2026-02-01 "+
		"00:30:00+01' AS z",
		[]provdb.Column{
			{Name: "s", Type: provdb.Int},
			{Name: "r", Type: provdb.Float},
			{Name: "d", Type: provdb.Time},
			{Name: "z", Type: provdb.Time},
		},
		int64(7), 0.5, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 31, 23, 30, 0, 0, time.UTC))
}

func rejectsWrites(f *fixture) {
	b := full(4, 1)
	f.write(b)
	for _, sql := range []string{
		"INSERT INTO runs SELECT run + 1, 'new', state, started, finished, info FROM runs", "UPDATE runs SET name = 'new'", "DELETE FROM runs",
		"CREATE TABLE t (i INTEGER)", "CREATE TABLE t AS SELECT 1 AS x", "CREATE TEMP TABLE t (i INTEGER)", "CREATE VIEW v AS SELECT 1 AS x",
		"DROP TABLE runs", "DROP VIEW anomalies", "ALTER TABLE runs ADD COLUMN x INTEGER", "TRUNCATE runs",
		"COPY runs TO 'must-not-be-there.csv'", "SET TimeZone = 'UTC'", "BEGIN", "COMMIT", "ROLLBACK", "CHECKPOINT",
		"SELECT 1; DELETE FROM runs", "DELETE FROM runs; SELECT 1", "SELECT 1; SELECT 2", "EXPLAIN ANALYZE DELETE FROM runs",
		"/* SELECT */ DELETE FROM runs", "COMMIT; DELETE FROM runs", "SELECT 1; COMMIT; DELETE FROM runs",
		"PREPARE p AS DELETE FROM runs",
	} {
		f.wantError(provdb.ErrReadOnly, f.failure(sql))
	}
	for _, sql := range []string{ // rejected or unknown
		"WITH d AS (DELETE FROM runs RETURNING *) SELECT * FROM d", "SELECT * INTO new FROM runs", "EXECUTE p",
		"MERGE INTO runs USING runs AS r ON true WHEN MATCHED THEN DELETE",
		"SELECT 1) LIMIT 0; DELETE FROM runs; SELECT * FROM (SELECT 1", "SELECT nextval('runs_run_seq')", "VACUUM", "LOAD 'x'", "ATTACH 'x'",
		"CALL p()", "PRAGMA x",
	} {
		if err := f.failure(sql); err == nil {
			f.Errorf("%s was not rejected", sql)
		}
	}
	f.wantBatch(f.run, b)
	f.want([][]any{{"run"}}, "SELECT name FROM runs")
	f.write(full(4, 2)) // the store still works
}

func endsWithContext(f *fixture) {
	canceled, cancel := context.WithCancel(f.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	expired, stop := context.WithTimeout(f.Context(), 100*time.Millisecond)
	defer stop()
	already, end := context.WithCancel(f.Context())
	end()
	for _, c := range []struct {
		ctx  context.Context //nolint:containedctx // a table
		want error
	}{{canceled, context.Canceled}, {expired, context.DeadlineExceeded}, {already, context.Canceled}} {
		began := time.Now()
		rows, err := f.store.Query(c.ctx, endless)
		if err == nil {
			_, err = rows.Collect()
		}
		f.wantError(c.want, err)
		if took := time.Since(began); took > queryTimeout {
			f.Errorf("it took %v", took)
		}
	}
	f.want([][]any{{"run"}}, "SELECT name FROM runs")
	f.write(full(4, 1))
}

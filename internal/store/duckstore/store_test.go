package duckstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// file returns the path of a new database.
func file(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "it's 名前.duckdb")
}

func open(t testing.TB, path string, readOnly bool) *duckstore.Store {
	t.Helper()
	s, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func createRun(t testing.TB, s *duckstore.Store, name string) provdb.RunID {
	t.Helper()
	id, err := s.CreateRun(t.Context(), provdb.Run{Name: name, State: provdb.Running, Started: time.Unix(1_700_000_000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func write(t testing.TB, s *duckstore.Store, id provdb.RunID, records ...*provenance.Record) {
	t.Helper()
	if err := s.Write(t.Context(), id, &provdb.Batch{Anomalies: records}); err != nil {
		t.Fatal(err)
	}
}

func closeStore(t testing.TB, s *duckstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func query(s *duckstore.Store, t testing.TB, sql string, args ...any) ([][]any, error) {
	rows, err := s.Query(t.Context(), sql, args...)
	if err != nil {
		return nil, err
	}
	return rows.Collect()
}

// documents returns the documents of all anomalies, in order.
func documents(t testing.TB, s *duckstore.Store) (docs []string) {
	t.Helper()
	rows, err := query(s, t, "SELECT doc FROM anomalies_json ORDER BY run, ev_step, rid, ev_row")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		docs = append(docs, string(row[0].(json.RawMessage)))
	}
	return docs
}

func TestReopenedFileIsComplete(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := open(t, path, false)
	id := createRun(t, s, "run")
	all := storetest.Records(60, 1)
	write(t, s, id, all[:30]...)
	closeStore(t, s)

	s = open(t, path, false)
	write(t, s, id, all[20:]...) // refers to earlier functions and models
	want := documents(t, s)
	if len(want) != len(all) {
		t.Errorf("got %d documents, want %d", len(want), len(all))
	}
	rows, err := query(s, t, "SELECT (SELECT count(*) FROM functions) = (SELECT count(DISTINCT name) FROM functions), (SELECT max(model) "+
		"FROM models), (SELECT count(*) FROM samples)")
	if err != nil || fmt.Sprint(rows) != "[[true 1 8]]" {
		t.Errorf("functions, models or states were numbered again: %v %v", rows, err)
	}
	closeStore(t, s)
	if info, err := os.Stat(path + ".wal"); err == nil {
		t.Errorf("a log of %d bytes is left", info.Size())
	}

	s = open(t, path, true)
	if got := documents(t, s); !slices.Equal(got, want) {
		t.Errorf("read-only: got %d documents, want the same %d", len(got), len(want))
	}
}

func TestReadOnlyStoreRejectsWrites(t *testing.T) {
	t.Parallel()
	path := file(t)
	if _, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v", err)
	}
	s := open(t, path, false)
	id := createRun(t, s, "run")
	closeStore(t, s)
	s = open(t, path, true)
	_, err := s.CreateRun(t.Context(), provdb.Run{Name: "new"})
	for _, err := range []error{
		err, s.UpdateRun(t.Context(), provdb.Run{ID: id}), s.DeleteRun(t.Context(), id),
		s.Write(t.Context(), id, &provdb.Batch{}),
	} {
		if !errors.Is(err, provdb.ErrReadOnly) || !strings.Contains(err.Error(), path) {
			t.Errorf("got error %v", err)
		}
	}
}

func TestProcessOpensFileOnce(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := open(t, path, false)
	link := filepath.Join(filepath.Dir(path), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, link} {
		for _, readOnly := range []bool{true, false} {
			_, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: readOnly})
			if !errors.Is(err, provdb.ErrInUse) || !strings.Contains(err.Error(), path) {
				t.Errorf("got error %v, want that %s is in use", err, path)
			}
		}
	}
	createRun(t, s, "run") // it still works
	closeStore(t, s)
	open(t, link, true)
}

func TestQueriesReachOnlyTheStore(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := open(t, path, false)
	id := createRun(t, s, "run")
	secret := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secret, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, sql := range []string{
		"FROM read_csv('%s')", "FROM read_text('%s')", "FROM read_blob('%s')", "FROM read_json('%s')", "FROM read_parquet('%s')", "FROM '%s'",
		"FROM \"%s\"",
		"FROM sniff_csv('%s')", "FROM parquet_metadata('%s')", "FROM glob('*')", "FROM glob('%s')", "FROM query('FROM read_text(''%s'')')",
		"COPY runs TO '%s/x.csv'", "COPY runs FROM '%s'", "EXPLAIN ANALYZE COPY runs TO '%s/x.csv'", "EXPORT DATABASE '%s'",
		"IMPORT DATABASE '%s'",
		"ATTACH '%s/x.duckdb'", "ATTACH '%s/x.duckdb' AS x; SELECT 1", "DETACH prov", "INSTALL httpfs", "LOAD httpfs", "LOAD '%s'",
		"FROM read_csv('https://localhost/x.csv')",
		"PRAGMA database_size", "PRAGMA enable_profiling", "PRAGMA import_database('%s')", "SET enable_external_access = true",
		"RESET enable_external_access", "SET temp_directory = '%s'",
		"CALL enable_logging()", "FROM enable_logging()", "FROM enable_logging(storage = 'file', storage_path = '%s/log')",
		"SELECT * FROM Enable_Logging ()",
		`FROM "enable_logging"()`, "FROM system.main.enable_logging()", "FROM query('FROM enable' || '_logging()')",
		"EXPLAIN ANALYZE FROM enable_logging()",
		"WITH x AS MATERIALIZED (FROM enable_logging()) SELECT (SELECT count(*) FROM x)", "FROM force_checkpoint('prov')",
		"FROM checkpoint('prov')", "FROM truncate_duckdb_logs()",
		"FROM enable_profiling(save_location = '%s/profile')", "FROM disable_profiling()", "FROM enable_peg_parser()", "SELECT getenv('HOME')",
		"FROM json_execute_serialized_sql(json_serialize_sql('FROM enable_logging()'))", "USE memory",
		"FROM duckdb_settings() WHERE current_setting('home_directory') = ''; SET threads = 1",
	} {
		name := secret
		if strings.Contains(sql, "%s/") {
			name = dir
		}
		sql = strings.ReplaceAll(sql, "%s", name)
		if rows, err := query(s, t, sql); err == nil {
			t.Errorf("%s succeeded: %v", sql, rows)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not name the store", sql, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a query wrote files: %v %v", left, err)
	}
	write(t, s, id, storetest.Records(5, 1)...) // the store still works
	if n := len(documents(t, s)); n != 5 {
		t.Errorf("got %d documents, want 5", n)
	}
}

func TestFunctionsWithSideEffectsMayBeNamed(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), false)
	id := createRun(t, s, "run")
	r := storetest.Records(1, 1)[0]
	r.Func = "checkpoint(query)"
	write(t, s, id, r)
	for _, sql := range []string{
		"SELECT func FROM anomalies WHERE func LIKE '%checkpoint%'", "SELECT func FROM anomalies WHERE func = 'checkpoint(query)'",
		"SELECT func AS force_checkpoint FROM anomalies; -- no enable_logging() at all",
	} {
		if rows, err := query(s, t, sql); err != nil || len(rows) != 1 || rows[0][0] != "checkpoint(query)" {
			t.Errorf("%s: got %v, error %v", sql, rows, err)
		}
	}
	if rows, err := query(s, t, "SELECT func FROM anomalies WHERE func = $1 AND func LIKE '%checkpoint%'", r.Func); err != nil ||
		len(rows) != 1 {
		t.Errorf("with a parameter: got %v, error %v", rows, err)
	}
}

func TestDuckDBTypesMapToContract(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), false)
	f := func(sql string, kind provdb.Type, want any) {
		t.Helper()
		rows, err := s.Query(t.Context(), "SELECT "+sql+" AS x")
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			return
		}
		all, err := rows.Collect()
		if err != nil || rows.Columns[0].Type != kind || fmt.Sprintf("%#v", all[0][0]) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: got %s %#v, error %v\nwant %s %#v", sql, rows.Columns[0].Type, all, err, kind, want)
		}
	}
	f("1::TINYINT", provdb.Int, int64(1))
	f("255::UTINYINT", provdb.Int, int64(255))
	f("65535::USMALLINT", provdb.Int, int64(65535))
	f("4294967295::UINTEGER", provdb.Int, int64(4294967295))
	f("sum(18446744073709551615::UBIGINT)", provdb.Int, json.Number("18446744073709551615"))
	f("(-170141183460469231731687303715884105727)::HUGEINT", provdb.Int, json.Number("-170141183460469231731687303715884105727"))
	f("1.25::DECIMAL(10,2)", provdb.Float, 1.25)
	f("'a'::ENUM('a', 'b')", provdb.Text, "a")
	f("'00000000-0000-0000-0000-000000000001'::UUID", provdb.Text, "00000000-0000-0000-0000-000000000001")
	f(`'a\xff'::BLOB`, provdb.Text, `a\xFF`)
	f("INTERVAL 90 MINUTE", provdb.Text, "01:30:00")
	f("TIME '01:02:03'", provdb.Text, "01:02:03")
	f("'101'::BIT", provdb.Text, "101")
	f("TIMESTAMP_NS '2026-01-02 03:04:05.123456789'", provdb.Time, time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC))
	f("{'a': [18446744073709551615::UBIGINT], 'b': NULL}", provdb.JSON, json.RawMessage(`{"a":[18446744073709551615],"b":null}`))
	f("MAP {'k': 1}", provdb.JSON, json.RawMessage(`{"k":1}`))
	f("[1, 2]::INTEGER[2]", provdb.JSON, json.RawMessage(`[1,2]`))
	f("union_value(k := 'x')", provdb.JSON, json.RawMessage(`{"k":"x"}`))
	f(`'{"a" : 1e5}'::JSON`, provdb.JSON, json.RawMessage(`{"a" : 1e5}`))
	f("[]::JSON[]", provdb.JSON, json.RawMessage("[]"))
}

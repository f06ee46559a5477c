package pgstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

func TestGuardRecognizesQueries(t *testing.T) {
	f := func(sql, want string) {
		t.Helper()
		if got, isQuery, err := inspect(sql); err != nil || !isQuery || got != want {
			t.Errorf("%s: got %q %t %v, want %q", sql, got, isQuery, err, want)
		}
	}
	same := func(sql string) { t.Helper(); f(sql, sql) }
	same("SELECT 1")
	same("-- a comment\n/* and /* another */ one */ (((sElEcT 1)))")
	same("WITH a AS (SELECT 1) TABLE a")
	same("values (1)")
	same("EXPLAIN SELECT 1")
	f("SELECT 1;", "SELECT 1")
	f("SELECT 1 ; ; -- the end\n", "SELECT 1 ")
	same("SELECT ';', \";\", $$;$$, $a$ ; $b$ ; $a$, E'\\';', '\\' /* ; */ -- ;")
	same("SELECT 'pg_read_file(', lo_time FROM x WHERE name = 'set_config' AND low(1) -- dblink(")
	same("SELECT $1, pg_sleep(1), a$1$b FROM x")
	same(`SELECT * FROM functions WHERE name LIKE $1 ESCAPE '\'`)

	for _, sql := range []string{
		"DELETE FROM runs", "'SELECT'", "COPY runs TO PROGRAM 'cat'", "(DELETE FROM runs)", "/* SELECT */ DO $$ $$", "SELEC 1",
		"; DELETE FROM runs",
	} {
		if _, isQuery, err := inspect(sql); isQuery || err != nil {
			t.Errorf("%s: got %t %v, want that it is not a query", sql, isQuery, err)
		}
	}
	for _, sql := range []string{"", "-- nothing", ";", "; ;", "/*", "SELECT 1\x00"} {
		if _, _, err := inspect(sql); err == nil {
			t.Errorf("%q is a statement", sql)
		}
	}

	g := func(sql, words string) {
		t.Helper()
		if _, _, err := inspect(sql); !errors.Is(err, provdb.ErrReadOnly) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want a rejection with %q", sql, err, words)
		}
	}
	g("SELECT 1; DELETE FROM runs", "one statement")
	g("SELECT '\\'; DELETE FROM runs -- '", "one statement")
	g("SELECT E'\\''; DELETE FROM runs -- '", "one statement")
	g("SELECT 1 /* /* */ ; */; SELECT 2", "one statement")
	g("SELECT $a$ $a$; DELETE FROM runs -- $a$", "one statement")
	g("SELECT PG_Read_File('/etc/passwd')", "PG_Read_File")
	g("SELECT pg_catalog . \"pg_read_file\" /* x */ ('/etc/passwd')", "pg_read_file")
	g("SELECT 1E'\\'', pg_read_file('/etc/passwd') -- '", "pg_read_file")
	g("SELECT set_config('role', 'none', false)", "set_config")
	g("SELECT * FROM dblink_connect('x')", "dblink_connect")
	g("SELECT query_to_xml_and_xmlschema('DELETE FROM runs', true, true, '')", "query_to_xml")
	g("SELECT lo_export(1, '/tmp/x')", "lo_export")
	g("SELECT pg_terminate_backend(1)", "pg_terminate_backend")
	g(`SELECT U&"pg_re\0061d_file"('/etc/passwd')`, `U&"…"`)
	g(`SELECT u&"pg_re!0061d_file" UESCAPE '!' ('/etc/passwd')`, `U&"…"`)
}

func FuzzGuard(f *testing.F) {
	f.Add("SELECT $a$ E'\\'' /* -- \" U&\"")
	f.Fuzz(func(t *testing.T, sql string) {
		got, _, err := inspect(sql)
		if err == nil && !strings.HasPrefix(sql, got) {
			t.Errorf("%q became %q", sql, got)
		}
	})
}

// refusals are statements that a store rejects, each with a part of the error.
var refusals = []string{
	"SELECT pg_read_file('/etc/passwd')",
	"SELECT pg_ls_dir('/')",
	"COPY runs TO PROGRAM 'cat > /tmp/x'",
	"COPY (SELECT 1) TO '/tmp/x'",
	"INSERT INTO runs (name, state, started) VALUES ('x', 'running', now())",
	"CREATE TABLE x (y int)",
	"SELECT 1; DELETE FROM runs",
	"DELETE FROM runs",
	"WITH gone AS (DELETE FROM runs RETURNING run) SELECT count(*) FROM gone",
	"SELECT * INTO x FROM runs",
	"EXPLAIN ANALYZE DELETE FROM runs",
	"SELECT * FROM runs FOR UPDATE",
	"SELECT nextval('runs_run_seq')",
	"SELECT set_config('transaction_read_only', 'off', true)",
	"SET ROLE postgres",
	"RESET ALL",
	"COMMIT",
	"DO $$ BEGIN DELETE FROM runs; END $$",
	"TRUNCATE runs",
	"VACUUM",
	"LISTEN x",
	"PREPARE x AS SELECT 1",
}

func TestOnlyQueriesAreAllowed(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	s := open(t, url, Options{})
	write(t, s, newRun(t, s, "run"), &provdb.Batch{Anomalies: storetest.Records(5, 1)})
	for _, reader := range []bool{true, false} {
		s.reader = reader
		for _, sql := range refusals {
			rows, err := s.Query(t.Context(), sql)
			if err == nil {
				_, err = rows.Collect()
			}
			if !errors.Is(err, provdb.ErrReadOnly) && !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("as reader %t: %s: got %v, want a rejection", reader, sql, err)
			}
		}
		expect(t, s, [][]any{{int64(1), int64(5)}}, "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM executions)")
	}
	s.reader = true
	expect(t, s, [][]any{{"chimbuko_reader", "on"}}, "SELECT current_user, current_setting('transaction_read_only')")
}

// The role alone keeps queries from files, too.
func TestReaderRoleReachesOnlyTheStore(t *testing.T) {
	s := newStore(t)
	if !s.reader {
		t.Fatal("no reader role")
	}
	for _, sql := range []string{
		"SELECT pg_read_file('/etc/passwd')", "SELECT pg_ls_dir('/')", "SELECT * FROM pg_catalog.pg_authid", "SELECT lo_import('/etc/passwd')",
		"COPY runs TO PROGRAM 'cat'", "INSERT INTO schema_version VALUES (2)",
	} {
		err := s.transaction(t.Context(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+readerRole); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
		if state(err) != insufficientRights {
			t.Errorf("%s: got %v, want permission denied", sql, err)
		}
	}
}

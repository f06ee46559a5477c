package pgstore

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

func TestSeveralProcessesCreateTablesAtOnce(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	var starts sync.WaitGroup
	for range 8 {
		starts.Go(func() {
			s, err := Open(t.Context(), url, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	if got := server.Query(t, url, "SELECT version FROM chimbuko.schema_version"); got != strconv.Itoa(Schema.Number) {
		t.Errorf("schema_version has %q, want one row with %d", got, Schema.Number)
	}
}

func TestOpenRejectsOtherSchemas(t *testing.T) {
	server := pgtest.Shared(t)
	f := func(statements string, o Options, want error, words string) {
		t.Helper()
		url := server.Database(t)
		server.Query(t, url, statements)
		s, err := Open(t.Context(), url, o)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s, %+v: got %v, want %v with %q", statements, o, err, want, words)
		}
	}
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.cats (name text)", Options{}, provdb.ErrForeign, "rename that schema")
	f("CREATE SCHEMA chimbuko; CREATE VIEW chimbuko.one AS SELECT 1", Options{ReadOnly: true}, provdb.ErrForeign, "rename that schema")
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.schema_version (v int)", Options{}, provdb.ErrForeign, "rename that schema")
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.schema_version (version int)", Options{}, provdb.ErrForeign, "rename that schema")
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.schema_version AS SELECT 99 AS version", Options{}, fileformat.ErrNewer, "format 99")
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.schema_version AS SELECT 1 AS version", Options{}, fileformat.ErrOlder, "analyze the traces again")
	f("SELECT 1", Options{ReadOnly: true}, provdb.ErrForeign, "check the name of the database")
}

func TestOpenUsesExistingSchema(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	server.Query(t, url, "CREATE SCHEMA chimbuko; CREATE TABLE public.executions (x int)") // of another program
	s := open(t, url, Options{})
	write(t, s, newRun(t, s, "run"), &provdb.Batch{Anomalies: storetest.Records(3, 1)})
	again := open(t, url, Options{})
	expect(t, again, [][]any{{int64(3)}}, "SELECT count(*) FROM executions")
}

func TestOpenExplainsErrors(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	const at = "postgres://"
	f := func(url, want string) {
		t.Helper()
		s, err := Open(t.Context(), url, Options{})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: opened, want an error with %q", url, want)
		} else if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "secret") || !strings.HasPrefix(text, at) {
			t.Errorf("%s:\n got %v\nwant %q, the address, and no password", url, err, want)
		}
	}
	f(strings.Replace(server.URL("nowhere"), "@", ":secret@", 1), "create it with createdb")
	f("postgres://me:secret@127.0.0.1:1/db", "check that it runs")
	f("postgres://me:secret@127.0.0.1:port/db", "want postgres://USER@HOST:PORT/DATABASE")
	f(strings.Replace(url, "postgres@", "nobody:secret@", 1), "the server rejects the user")
	server.Query(t, url, "CREATE ROLE poor LOGIN")
	t.Cleanup(func() { server.Query(t, server.URL("postgres"), "DROP ROLE poor") })
	f(strings.Replace(url, "postgres@", "poor:secret@", 1), "docs/postgresql.md")
	server.Query(t, server.URL("postgres"), "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
	t.Cleanup(func() { server.Query(t, server.URL("postgres"), "DROP DATABASE latin WITH (FORCE)") })
	f(server.URL("latin"), "create one with UTF8")
}

func TestStoreWorksWithoutRightToCreateRoles(t *testing.T) {
	server := pgtest.Shared(t)
	open(t, server.Database(t), Options{}) // as superuser: creates the role
	url := server.Database(t)
	server.Query(t, url, "CREATE ROLE owner LOGIN; CREATE SCHEMA chimbuko AUTHORIZATION owner")
	t.Cleanup(func() { // before the database is dropped
		server.Query(t, url, "DROP OWNED BY owner CASCADE; DROP ROLE owner")
	})
	s := open(t, strings.Replace(url, "postgres@", "owner@", 1), Options{})
	if s.reader {
		t.Error("queries run as a role that the owner cannot take")
	}
	write(t, s, newRun(t, s, "run"), &provdb.Batch{Anomalies: storetest.Records(3, 1)})
	expect(t, s, [][]any{{"owner", int64(3)}}, "SELECT current_user, count(*) FROM anomalies")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestReaderRoleCanOpenReadOnly(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	s := open(t, url, Options{})
	write(t, s, newRun(t, s, "run"), &provdb.Batch{Anomalies: storetest.Records(3, 1)})
	server.Query(t, url, "CREATE ROLE analyst LOGIN IN ROLE chimbuko_reader; CREATE TABLE public.others (x int)")
	t.Cleanup(func() { server.Query(t, server.URL("postgres"), "DROP ROLE analyst") })
	r := open(t, strings.Replace(url, "postgres@", "analyst@", 1), Options{ReadOnly: true})
	expect(t, r, [][]any{{int64(3)}}, "SELECT count(*) FROM anomalies_json")
	if rows, err := r.Query(t.Context(), "SELECT * FROM public.others"); err == nil {
		_ = rows.Close()
		t.Error("a table of another program can be read")
	}
	if err := r.Write(t.Context(), 1, &provdb.Batch{}); !errors.Is(err, provdb.ErrReadOnly) {
		t.Errorf("writing: got %v, want %v", err, provdb.ErrReadOnly)
	}
	if _, err := r.CreateRun(t.Context(), provdb.Run{Name: "x"}); !errors.Is(err, provdb.ErrReadOnly) {
		t.Errorf("creating a run: got %v, want %v", err, provdb.ErrReadOnly)
	}
}

func TestStandbyServerIsReported(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	first := open(t, url, Options{})
	id := newRun(t, first, "run")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	name := url[strings.LastIndex(url, "/")+1 : strings.Index(url, "?")]
	server.Query(t, server.URL("postgres"), "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	s := open(t, url, Options{})
	expect(t, s, [][]any{{int64(1)}}, "SELECT count(*) FROM runs")
	for what, err := range map[string]error{
		"write":  s.Write(t.Context(), id, &provdb.Batch{Anomalies: storetest.Records(1, 1)}),
		"update": s.UpdateRun(t.Context(), provdb.Run{ID: id, Started: time.Unix(1, 0)}),
		"delete": s.DeleteRun(t.Context(), id),
	} {
		if !errors.Is(err, provdb.ErrReadOnly) || !strings.Contains(err.Error(), "use the address of the primary server") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

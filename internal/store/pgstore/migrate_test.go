package pgstore

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

func TestSeveralProcessesCanStartAtOnce(t *testing.T) {
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
	if got := server.Query(t, url, "SELECT version FROM chimbuko.schema_version"); got != strconv.Itoa(provdb.Schema) {
		t.Errorf("schema_version holds %q, want one %d", got, provdb.Schema)
	}
}

func TestOpenRefusesOtherSchemas(t *testing.T) {
	server := pgtest.Shared(t)
	f := func(statements string, o Options, want error, words string) {
		t.Helper()
		url := server.Database(t)
		server.Query(t, url, statements)
		s, err := Open(t.Context(), url, o)
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, want) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s, %+v: got %v, want %v with %q", statements, o, err, want, words)
		}
	}
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.cats (name text)", Options{}, provdb.ErrForeign, "rename that schema")
	f("CREATE SCHEMA chimbuko; CREATE VIEW chimbuko.one AS SELECT 1", Options{ReadOnly: true}, provdb.ErrForeign, "rename that schema")
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.schema_version (v int)", Options{}, provdb.ErrForeign, "rename that schema")
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.schema_version (version int)", Options{}, provdb.ErrForeign, "rename that schema")
	f("CREATE SCHEMA chimbuko; CREATE TABLE chimbuko.schema_version AS SELECT 99 AS version", Options{}, provdb.ErrNewer, "its schema is 99")
	f("SELECT 1", Options{ReadOnly: true}, provdb.ErrForeign, "check the name of the database")
}

func TestOpenTakesASchemaThatIsThereAlready(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	server.Query(t, url, "CREATE SCHEMA chimbuko; CREATE TABLE public.executions (x int)") // of others
	s := open(t, url, Options{})
	write(t, s, newRun(t, s, "run"), &provdb.Batch{Anomalies: storetest.Records(3, 1)})
	again := open(t, url, Options{})
	expect(t, again, [][]any{{int64(3)}}, "SELECT count(*) FROM executions")
}

// schemaOne are the tables of the first schema with a record, as that program left
// them, and a view of someone else.
func schemaOne(t *testing.T) string {
	t.Helper()
	text := "CREATE SCHEMA chimbuko; SET search_path = chimbuko;\n"
	for _, name := range []string{"sql/001_schema.sql", "sql/001_views.sql"} {
		sql, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(sql)
	}
	return text + `
		CREATE TABLE schema_version AS SELECT 1 AS version;
		INSERT INTO runs (name, state, started) VALUES ('old', 'finished', '2026-01-01');
		INSERT INTO numbering VALUES (1, 1);
		INSERT INTO functions VALUES (1, 0, 1, 7, 'main');
		INSERT INTO paths VALUES (1, 0, 1, '{1}');
		INSERT INTO executions (run, pid, rid, fn, path, io_step, ev_step, anomalous, is_gpu_event, lost_time, outlier_severity, outlier_score,
			entry, "exit", runtime_exclusive, status, hostname, runtime_total, io_step_tstart, io_step_tend, ev_row, tid, version, detail)
		VALUES (1, 0, 3, 1, 1, 5, 4, true, false, 40, 90, 9.5, 1000, 1090, 90, 'confirmed', 'node', 90, 900, 1100, 8, 0, 2,
			'{"call_stack": [], "counter_events": [], "event_window": {"comm_window": [], "exec_window": []}, "gpu_location": null, "gpu_parent": null}');
		INSERT INTO rollups SELECT * FROM live_rollups;
		CREATE VIEW public.mine AS SELECT event_id, lost_time FROM anomalies`
}

func TestAnOlderSchemaIsBroughtUpToDate(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	server.Query(t, url, schemaOne(t))
	if s, err := Open(t.Context(), url, Options{ReadOnly: true}); err == nil {
		_ = s.Close()
		t.Error("it was opened for questions")
	} else if !strings.Contains(err.Error(), "open it once for writing with this program") {
		t.Errorf("for questions: got %v, want what to do", err)
	}
	for range 2 { // the second time there is nothing to do
		s := open(t, url, Options{})
		expect(t, s, [][]any{{"3:4:8", "main", int64(40), nil, nil}}, "SELECT event_id, func, lost_time, kind, why FROM anomalies WHERE run = 1")
		expect(t, s, [][]any{{"", int64(1), int64(40)}}, "SELECT kind, anomalies, lost_us FROM rollups WHERE run = 1")
		expect(t, s, [][]any{{int64(0), int64(0)}}, "SELECT (SELECT count(issue) FROM issues), (SELECT count(event_id) FROM links)")
		expect(t, s, [][]any{{int64(0)}}, "SELECT count(call_path) FROM path_stats")
		var doc map[string]any
		if err := json.Unmarshal(ask(t, s, "SELECT doc FROM anomalies_json WHERE run = 1")[0][0].(json.RawMessage), &doc); err != nil {
			t.Fatal(err)
		}
		if doc["func"] != "main" || doc["status"] != "confirmed" || doc["kind"] != nil || doc["why"] != nil {
			t.Errorf("the old record is %v", doc)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, url, Options{})
	want := storetest.Records(1, 1)[0]
	write(t, s, 1, &provdb.Batch{Anomalies: []*provenance.Record{want}})
	expect(t, s, [][]any{{string(want.Kind), want.Why}}, "SELECT kind, why FROM anomalies WHERE event_id = $1", want.EventID)
	if err := s.UpdateRun(t.Context(), provdb.Run{ID: 1, State: provdb.Finished, Started: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	expect(t, s, [][]any{{int64(2)}}, "SELECT count(DISTINCT kind) FROM rollups WHERE run = 1")
	if got := server.Query(t, url, "SELECT event_id FROM public.mine WHERE lost_time = 40"); got != "3:4:8" {
		t.Errorf("somebody's view of anomalies answers %q", got)
	}
	if s.reader != open(t, url, Options{ReadOnly: true}).reader {
		t.Error("the role of questions got lost")
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
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
	f(strings.Replace(server.URL("nowhere"), "@", ":secret@", 1), "make it with createdb")
	f("postgres://me:secret@127.0.0.1:1/db", "see that it runs")
	f("postgres://me:secret@127.0.0.1:port/db", "write postgres://USER@HOST:PORT/DATABASE")
	f(strings.Replace(url, "postgres@", "nobody:secret@", 1), "the server refuses the user")
	server.Query(t, url, "CREATE ROLE poor LOGIN")
	t.Cleanup(func() { server.Query(t, server.URL("postgres"), "DROP ROLE poor") })
	f(strings.Replace(url, "postgres@", "poor:secret@", 1), "docs/postgresql.md")
	server.Query(t, server.URL("postgres"), "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
	t.Cleanup(func() { server.Query(t, server.URL("postgres"), "DROP DATABASE latin WITH (FORCE)") })
	f(server.URL("latin"), "make one with encoding UTF8")
}

func TestWithoutTheRightToMakeRolesTheStoreWorks(t *testing.T) {
	server := pgtest.Shared(t)
	open(t, server.Database(t), Options{}) // as one who may: the role is there
	url := server.Database(t)
	server.Query(t, url, "CREATE ROLE owner LOGIN; CREATE SCHEMA chimbuko AUTHORIZATION owner")
	t.Cleanup(func() { // before the database goes
		server.Query(t, url, "DROP OWNED BY owner CASCADE; DROP ROLE owner")
	})
	s := open(t, strings.Replace(url, "postgres@", "owner@", 1), Options{})
	if s.reader {
		t.Error("questions are asked as a role that owner may not take")
	}
	write(t, s, newRun(t, s, "run"), &provdb.Batch{Anomalies: storetest.Records(3, 1)})
	expect(t, s, [][]any{{"owner", int64(3)}}, "SELECT current_user, count(*) FROM anomalies")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAReaderCanOpenForQuestions(t *testing.T) {
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
		t.Error("a table of others can be read")
	}
	if err := r.Write(t.Context(), 1, &provdb.Batch{}); !errors.Is(err, provdb.ErrReadOnly) {
		t.Errorf("writing: got %v, want %v", err, provdb.ErrReadOnly)
	}
	if _, err := r.CreateRun(t.Context(), provdb.Run{Name: "x"}); !errors.Is(err, provdb.ErrReadOnly) {
		t.Errorf("making a run: got %v, want %v", err, provdb.ErrReadOnly)
	}
}

func TestAServerThatOnlyReadsIsNamed(t *testing.T) {
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
		if !errors.Is(err, provdb.ErrReadOnly) || !strings.Contains(err.Error(), "give the address of the primary server") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

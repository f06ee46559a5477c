package pgstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

func TestStepsLeadToSchema(t *testing.T) {
	if n := Schema.Number - Schema.Oldest; len(steps) != n {
		t.Errorf("there are %d steps from schema %d to %d", len(steps), Schema.Oldest, Schema.Number)
	}
}

// disconnected waits until the server has ended all sessions of stores, shortly after they were closed.
func disconnected(t *testing.T, server *pgtest.Server, url string) {
	t.Helper()
	const sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'chimbuko'"
	for server.Query(t, url, sessions) != "0" {
		if err := wait.Sleep(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUpgradeTakesAllStepsOrNone(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	now := Schema.Number
	to := fileformat.Format{Number: now + 2, Oldest: now}
	good := []string{"ALTER TABLE runs ADD COLUMN step_one INTEGER DEFAULT 1; CREATE TABLE extra (n INTEGER)", "UPDATE runs SET step_one = 2"}
	f := func(dryRun bool, to fileformat.Format, steps []string, want error, words string, after int) {
		t.Helper()
		_, err := upgrade(t.Context(), url, dryRun, to, steps)
		if (err == nil) != (words == "") || want != nil && !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("to %d: got %v, want %v with %q", to.Number, err, want, words)
		}
		if got := server.Query(t, url, "SELECT version FROM chimbuko.schema_version"); got != strconv.Itoa(after) {
			t.Errorf("to %d: schema %s, want %d", to.Number, got, after)
		}
		if got := server.Query(t, url, "SELECT to_regclass('chimbuko.extra') IS NULL"); (got == "t") != (after == now) {
			t.Errorf("schema %d: no table extra is %s", after, got)
		}
	}
	if _, err := Upgrade(t.Context(), url, false); !errors.Is(err, provdb.ErrForeign) {
		t.Errorf("an empty database: %v", err)
	}
	s := open(t, url, Options{})
	newRun(t, s, "run")
	if from, err := Upgrade(t.Context(), url, false); err != nil || from != now { // nothing to do
		t.Errorf("got %d, %v", from, err)
	}
	f(false, to, good, ErrConnected, "end live runs", now)
	f(true, to, good, nil, "", now)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	disconnected(t, server, url)
	f(false, to, []string{good[0], "SELECT * FROM nothing"}, nil, "nothing", now)
	f(false, fileformat.Format{Number: now - 1, Oldest: now - 1}, nil, fileformat.ErrNewer, "it has format", now)
	disconnected(t, server, url)
	f(false, to, good, nil, "", to.Number)
	f(false, to, good, nil, "", to.Number)
	if got := server.Query(t, url, "SELECT step_one FROM chimbuko.runs"); got != "2" {
		t.Errorf("step_one is %s", got)
	}
	if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, fileformat.ErrNewer) {
		t.Errorf("schema %d: %v", to.Number, err)
	}
}

// contextViews are the views whose rows come from blocks or, for records of 1.0, from JSON.
var contextViews = []string{"frames", "window_calls", "messages", "counter_events", "all_executions", "execution_documents"}

// TestUpgradeKeepsAnswers converts a database that 1.0.0 wrote (testdata/1.0.sql), which has the records of contextRecords.
func TestUpgradeKeepsAnswers(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	dump, err := os.ReadFile(filepath.Join("testdata", "1.0.sql"))
	if err != nil {
		t.Fatal(err)
	}
	server.Query(t, url, string(dump))
	if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, fileformat.ErrOlder) {
		t.Fatalf("before the upgrade: %v", err)
	}
	before := make(map[string]string)
	answer := func(view string, run provdb.RunID) string {
		return server.Query(t, url, fmt.Sprintf(
			"SELECT to_jsonb(v) - 'run' FROM chimbuko.%s v WHERE run = %d ORDER BY 1", view, run))
	}
	for _, view := range contextViews {
		if before[view] = answer(view, 1); before[view] == "" {
			t.Errorf("%s is empty", view)
		}
	}
	disconnected(t, server, url)
	if from, err := Upgrade(t.Context(), url, false); err != nil || from != 12 {
		t.Fatalf("from %d: %v", from, err)
	}
	s := open(t, url, Options{})
	run := newRun(t, s, "new")
	anomalies, typical := contextRecords()
	write(t, s, run, &provdb.Batch{Anomalies: anomalies, Typical: typical})
	if got := server.Query(t, url, "SELECT run, count(*) FROM chimbuko.executions WHERE block IS NOT NULL GROUP BY run"); got != "2|4" {
		t.Errorf("executions in blocks: %q", got)
	}
	check := func(run provdb.RunID) {
		t.Helper()
		for _, view := range contextViews {
			if got := answer(view, run); got != before[view] {
				t.Errorf("%s of run %d:\n got %s\nwant %s", view, run, got, before[view])
			}
		}
	}
	check(1)
	check(run)
	write(t, s, 1, &provdb.Batch{Anomalies: anomalies, Typical: typical}) // replaces the records as JSON
	check(1)
}

// contextRecords returns records of all kinds of context.
func contextRecords() (anomalies, typical []*provenance.Record) {
	all := storetest.Records(4, 1)
	all[2].GPULocation = &provenance.GPULocation{Context: 1, Device: 2, Stream: 3, Thread: 4}
	all[2].GPUParent = provenance.GPUParent{TID: 1, EventID: all[2].CallStack[1].EventID, CallStack: all[2].CallStack[1:]}
	return all[:3], all[3:]
}

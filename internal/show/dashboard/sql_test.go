package dashboard_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

// queryJSON returns a query as JSON.
func queryJSON(t testing.TB, q api.SQLQuestion) string {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSQLErrorsHavePositions(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	s, err := pgstore.Open(ctx, pgtest.Shared(t).Database(t), pgstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := fill(ctx, s, "monday", 10); err != nil {
		t.Fatal(err)
	}
	duck, _ := serve(t, nil)
	postgres, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = s })
	for _, at := range []string{duck, postgres} {
		f := func(sql string, line, column int) {
			t.Helper()
			got := want[api.SQLProblem](t, do(t, at+monday+"/sql", queryJSON(t, api.SQLQuestion{SQL: sql})), 400)
			if got.Line != line || got.Column != column {
				t.Errorf("%.60q: %d:%d, want %d:%d (%s)", sql, got.Line, got.Column, line, column, got.Message)
			}
		}
		f("SELECT nosuch FROM anomalies", 1, 8)
		f("SELECT func,\n  nosuch\nFROM anomalies", 2, 3)
		f("SELECT *\nFROM nosuch", 2, 6)
		f("SELECT 'é', nosuch FROM anomalies", 1, 13)
		f("SELECT "+strings.Repeat("func, ", 50)+"nosuch FROM anomalies", 1, 308)
	}
}

func TestSQLReturnsValuesOfAllTypes(t *testing.T) {
	at, _ := serve(t, nil)
	got := want[api.SQLAnswer](t, do(t, at+monday+"/sql", queryJSON(t, api.SQLQuestion{SQL: "SELECT * FROM test_all_types()"})), 200)
	if len(got.Rows) != 3 || len(got.Columns) < 50 {
		t.Errorf("%d rows of %d columns", len(got.Rows), len(got.Columns))
	}
}

func TestExportIsAFileWithAllRows(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Parquet = duckstore.WriteParquet })
	const sql = "SELECT event_id, func, rid, runtime_exclusive FROM anomalies WHERE run = 1 ORDER BY event_id"
	a := do(t, at+monday+"/sql/export", queryJSON(t, api.SQLQuestion{SQL: sql, Format: "csv"}))
	if a.code != 200 || a.header.Get("Content-Type") != "text/csv; charset=utf-8" || a.header.Get("Chimbuko-Cut") != "false" {
		t.Fatalf("%d %v %.200s", a.code, a.header, a.body)
	}
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != numRecords+1 || strings.Join(rows[0], " ") != "event_id func rid runtime_exclusive" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if got := a.header.Get("Chimbuko-Rows"); got != strconv.Itoa(numRecords) {
		t.Errorf("header has %s rows", got)
	}
	few := int64(7)
	a = do(t, at+monday+"/sql/export", queryJSON(t, api.SQLQuestion{
		SQL:  "SELECT event_id, rid FROM anomalies WHERE rid >= $1 ORDER BY event_id",
		Args: []any{0}, Format: "parquet", Limit: &few,
	}))
	if a.code != 200 || a.header.Get("Chimbuko-Cut") != "true" || a.header.Get("Chimbuko-Rows") != "7" ||
		!strings.HasPrefix(a.body, "PAR1") || !strings.HasSuffix(a.body, "PAR1") {
		t.Errorf("%d %v %.40q", a.code, a.header, a.body)
	}
	if got := a.header.Get("Content-Disposition"); got != "attachment; filename=answer.parquet" {
		t.Errorf("the file is %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "chimbuko-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestInvalidExportsAreRejected(t *testing.T) {
	at, _ := serve(t, nil)
	f := func(q api.SQLQuestion, code int, part string) {
		t.Helper()
		fails(t, do(t, at+monday+"/sql/export", queryJSON(t, q)), code, part)
	}
	f(api.SQLQuestion{SQL: "SELECT 1"}, 400, "want csv or parquet")
	f(api.SQLQuestion{SQL: "SELECT 1", Format: "parquet"}, 501, "cannot write parquet")
	f(api.SQLQuestion{SQL: "SELECT nosuch", Format: "csv"}, 400, "nosuch")
	f(api.SQLQuestion{SQL: "DROP TABLE runs", Format: "csv"}, 403, "only read-only queries")
	tooMany := int64(1_000_001)
	f(api.SQLQuestion{SQL: "SELECT 1", Format: "csv", Limit: &tooMany}, 400, "0 to 1000000")
	fails(t, do(t, at+monday+"/sql", queryJSON(t, api.SQLQuestion{SQL: "SELECT 1", Format: "csv"})), 400, "sql/export writes")
	fails(t, do(t, at+monday+"/sql/export", ""), 405, "use POST")
}

func TestRateLimitHasRetryAfter(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) {
		c.Queries, c.Exports = dashboard.Rate{PerMinute: 1, Burst: 3}, dashboard.Rate{PerMinute: 1, Burst: 2}
	})
	for path, n := range map[string]int{"/sql": 3, "/sql/export": 2} {
		q := api.SQLQuestion{SQL: "SELECT 1"}
		if path == "/sql/export" {
			q.Format = "csv"
		}
		for range n {
			if a := do(t, at+monday+path, queryJSON(t, q)); a.code != 200 {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		a := do(t, at+monday+path, queryJSON(t, q))
		fails(t, a, 429, "at most 1 per minute); try again in ")
		if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
			t.Errorf("%s: Retry-After is %q", path, a.header.Get("Retry-After"))
		}
	}
	// Other requests do not count.
	if a := do(t, at+monday+"/top", ""); a.code != 200 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// Statements of users run apart from the queries of the page, two at a time.
func TestSlowSQLDelaysOnlySQL(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.MaxQueries, c.Timeout = 1, 10*time.Minute })
	const endless = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE hash(a.range, b.range) = 0"
	ctx, cancel := context.WithCancel(t.Context())
	var slow sync.WaitGroup
	for range 2 {
		body := strings.NewReader(queryJSON(t, api.SQLQuestion{SQL: endless}))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+monday+"/sql", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		slow.Go(func() {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
				t.Errorf("an endless query: got %s", resp.Status)
			}
		})
	}
	defer slow.Wait()
	defer cancel()
	ask := func() answer { return do(t, at+monday+"/sql", queryJSON(t, api.SQLQuestion{SQL: "SELECT 1"})) }
	for { // until both run
		a := ask()
		if a.code == 200 {
			continue
		}
		if a.code != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(string(a.body), "2 at a time") {
			t.Errorf("got %d %v %s, want 503 with Retry-After", a.code, a.header, a.body)
		}
		break
	}
	if a := do(t, at+monday+"/top?by=host", ""); a.code != 200 {
		t.Errorf("got %d %s", a.code, a.body)
	}
	if a := ask(); a.code != 503 {
		t.Errorf("the endless queries ended before the answer: got %d %s", a.code, a.body)
	}
}

func TestSQLAboveItsMemoryLimitFails(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.SQLMemory = 200e6 })
	const large = "SELECT max(len(l)) FROM (SELECT list(range) l FROM range(4000000000))"
	got := want[api.SQLProblem](t, do(t, at+monday+"/sql", queryJSON(t, api.SQLQuestion{SQL: large})), 413)
	if !strings.Contains(got.Message, "more than 200.0 MB of memory") || !strings.Contains(got.Message, "--sql-memory") {
		t.Errorf("got %q", got.Message)
	}
}

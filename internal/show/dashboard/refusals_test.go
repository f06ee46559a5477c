package dashboard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestInvalidRequestsAreExplained(t *testing.T) {
	at, _ := serve(t, nil)
	f := func(path string, code int, part string) {
		t.Helper()
		fails(t, do(t, at+path, ""), code, part)
	}
	f("/", 404, "nothing is at /")
	f("/api/v2/runs", 404, "docs/api.md lists the paths")
	f("/api/v1/runs/sunday", 404, `run "sunday": not found; the store holds monday, tuesday/two`)
	f("/api/v1/runs/sunday/top", 404, "sunday")
	f("/api/v1/runs/sunday/snapshot", 404, "sunday")
	f("/api/v1/runs/sunday/stream", 404, "sunday")
	f("/api/v1/runs/sunday/top?limit=-1", 404, "sunday") // before the parameters
	f(monday+"/top?by=color", 400, `unknown by "color" (want function, host, kind, path, rank`)
	f(monday+"/top?limit=-1", 400, `limit: "-1" is not a number from 0 to 5000`)
	f(monday+"/top?limit=5001", 400, "from 0 to 5000")
	f(monday+"/top?limti=5", 400, `unknown parameter "limti" (want by, limit, order, program)`)
	f(monday+"/top?limit=1&limit=2", 400, "more than once")
	f(monday+"/top?%zz", 400, "invalid URL escape")
	f(monday+"/events?order=color", 400, `unknown order "color" (want lost, score, severity, time`)
	f(monday+"/events?kind=slow,red", 400, `unknown kind "red" (want comm-wait, excess-work, fast, gpu, rare, recurring, slow`)
	f(monday+"/events?rank=7-4&step=x&since=soon&min_lost=1e300&min_score=NaN&normal=maybe", 400,
		`parameter normal: "maybe" is neither true nor false; parameter rank: "7-4" is not a rank`)
	f(monday+"/events?limit=0", 400, "must be ≥ 1")
	f(monday+"/events?cursor=x", 400, "cursor: not a value of next")
	f(monday+"/events?cursor="+strings.Repeat("x", 9000), 400, "too long")
	f(monday+"/counters?offset=3", 400, "unknown parameter")
	f(monday+"/pipeline?verbose=1", 400, "unknown parameter")
	f("/api/v1/runs?x=1", 400, "unknown parameter")
	f(monday+"/sql", 405, "use POST")
	for _, path := range []string{"/healthz", "/metrics", "/api/v1/runs", monday + "/events", monday + "/stream"} {
		a := do(t, at+path, "{}")
		if fails(t, a, 405, "method POST is not allowed; use GET"); a.header.Get("Allow") != "GET" {
			t.Errorf("%s allows %s", path, a.header.Get("Allow"))
		}
	}
}

func TestPipelineWithoutStore(t *testing.T) {
	at, p := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = nil })
	for _, path := range []string{
		"", "/top", "/events", "/events/0:0:1", "/functions", "/functions/0:1", "/counters", "/metadata",
		"/heatmap", "/findings", "/findings/x/plot", "/events/0:0:1/evidence", "/events/0:0:1/window", "/flame", "/search?q=x", "/labels/ignore",
	} {
		fails(t, do(t, at+monday+path, ""), 503, "this process has no store")
	}
	fails(t, do(t, at+monday+"/sql", `{"sql": "SELECT 1"}`), 503, "this process has no store")
	snap := want[object](t, do(t, at+monday+"/snapshot", ""), 200)
	if snap["status"] == nil || snap["top"] != nil || !strings.Contains(snap["problem"].(object)["error"].(string), "no store") {
		t.Errorf("got %v", snap)
	}
	if got := want[object](t, do(t, at+"/api/v1/runs", ""), 200); got["watched"] != "monday" || len(got["rows"].([]any)) != 0 {
		t.Errorf("got %v", got)
	}
	p.set(func(p *pipeline) { p.err = errors.New("timeout") })
	for _, path := range []string{"/snapshot", "/pipeline"} {
		fails(t, do(t, at+monday+path, ""), 500, "timeout")
	}
}

func TestRunBeforeFirstRecord(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Run = "new" })
	fails(t, do(t, at+"/api/v1/runs/new/top", ""), 404, `nothing of run "new" is stored yet`)
	if got := want[object](t, do(t, at+"/api/v1/runs/new/snapshot", ""), 200); got["status"] == nil || got["problem"] == nil {
		t.Errorf("got %v", got)
	}
}

func TestSQLAnswersWithColumnsAndRows(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	at, _ := serve(t, nil)
	a := do(t, at+monday+"/sql", `{"sql": "SELECT $1 AS t, $2::BIGINT AS n, $3::DOUBLE AS x, $4 AS none, $5 AS yes, 'nan'::DOUBLE AS odd", "args": ["<é", 9007199254740993, 1.5, null, true]}`)
	if a.code != 200 || !strings.HasPrefix(a.body, `{"columns":[{"name":"t","type":"string"},{"name":"n","type":"int"},{"name":"x","type":"float"},`) ||
		!strings.Contains(a.body, `"rows":[["<é",9007199254740993,1.5,null,true,null]],"cut":false,"seconds":`) {
		t.Errorf("got %d %s", a.code, a.body)
	}
	type result struct {
		Rows [][]any
		Cut  bool
	}
	ask := func(body string) result { t.Helper(); return want[result](t, do(t, at+monday+"/sql", body), 200) }
	if got := ask(`{"sql": "SELECT rid FROM anomalies"}`); len(got.Rows) != 1000 || !got.Cut {
		t.Errorf("%d rows, cut %v", len(got.Rows), got.Cut)
	}
	if got := ask(`{"sql": "SELECT rid FROM anomalies WHERE run = 1", "limit": 2500}`); len(got.Rows) != numRecords || got.Cut {
		t.Errorf("%d rows, cut %v", len(got.Rows), got.Cut)
	}
	if got := ask(`{"sql": "SELECT 1 WHERE 1 = 2", "limit": 0}`); got.Rows == nil || got.Cut {
		t.Errorf("%+v", got)
	}
	if got := ask(`{"sql": "SELECT repeat('x', 1000000) FROM range(100)"}`); len(got.Rows) != 33 || !got.Cut {
		t.Errorf("%d rows of a megabyte, cut %v", len(got.Rows), got.Cut)
	}
}

func TestInvalidSQLRequestsAreRejected(t *testing.T) {
	at, _ := serve(t, nil)
	f := func(body string, code int, part string, headers ...string) {
		t.Helper()
		fails(t, do(t, at+monday+"/sql", body, headers...), code, part)
	}
	f(`{"sql": "DELETE FROM executions"}`, 403, "only read-only queries are allowed")
	f(`{"sql": "CREATE TABLE t (x INTEGER)"}`, 403, "only read-only queries are allowed")
	f(`{"sql": "SELECT * FROM read_csv('/etc/passwd')"}`, 403, "without access to files")
	f(`{"sql": "SELEKT 1"}`, 400, "docs/sql.md lists tables")
	f(`{"sql": "SELECT * FROM nosuch"}`, 400, "nosuch")
	f(`{"sql": "SELECT 1; SELECT 2"}`, 403, "one at a time")
	f(`{"sql": "SELECT $1"}`, 400, "")
	f(`{"sql": ""}`, 400, "sql is missing")
	f(`{"query": "SELECT 1"}`, 400, "unknown field")
	f(`{"sql": "SELECT 1"} {}`, 400, "more than one value")
	f(`{"sql": "SELECT 1", "limit": 100001}`, 400, "limit 100001 is not a number from 0 to 100000")
	f(`{"sql": "SELECT $1", "args": [[1]]}`, 400, "args must be null")
	f(`{"sql": "SELECT $1", "args": [1e999]}`, 400, "invalid query")
	f(`nonsense`, 400, "invalid body")
	f(`{"sql": "SELECT '`+strings.Repeat("x", 1<<20)+`'"}`, 413, "1048576 bytes")
	f(`{"sql": "SELECT 1"}`, 415, "application/json", "Content-Type: text/plain")
	f(`{"sql": "SELECT 1"}`, 403, "another site", "Sec-Fetch-Site: cross-site")
	f(`{"sql": "SELECT 1"}`, 403, "another site", "Origin: http://elsewhere.example")
	at, _ = serve(t, func(c *dashboard.Config, _ *pipeline) { c.Timeout = 500 * time.Millisecond })
	f(`{"sql": "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"}`, 504, "no answer within 500ms")
}

func TestQueriesWaitForSlots(t *testing.T) {
	at, _ := serve(t, func(c *dashboard.Config, _ *pipeline) { c.MaxQueries, c.Timeout = 1, 2*time.Second })
	slow := make(chan answer)
	go func() {
		slow <- do(t, at+monday+"/sql", `{"sql": "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"}`)
	}()
	refused := 0
	for ended := false; !ended; {
		select {
		case a := <-slow:
			fails(t, a, 504, "no answer within 2s")
			ended = true
		default:
			if a := do(t, at+monday+"/counters", ""); a.code == 503 {
				fails(t, a, 503, "1 other queries are running; try again in a moment")
				refused++
			}
		}
	}
	after := do(t, at+monday+"/counters", "")
	for range 10 {
		if after.code != 503 && after.code != 504 { // in time, on a busy machine
			break
		}
		after = do(t, at+monday+"/counters", "")
	}
	if got := want[page](t, after, 200); len(got.Rows) != 3 {
		t.Errorf("afterwards: %v", got)
	}
	t.Logf("%d were refused", refused)
}

func TestInvalidConfigurations(t *testing.T) {
	err := dashboard.Config{Tick: -1}.Validate()
	for _, part := range []string{"no source", "name of the run", "must be ≥ 0"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not contain %q", err, part)
		}
	}
}

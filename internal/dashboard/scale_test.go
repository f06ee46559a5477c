//go:build unix

package dashboard_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/dashboard"
	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provdb/duckstore"
	"github.com/chimbuko/chimbuko/internal/provdb/storetest"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/stats"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// The run of BenchmarkInteractions.
const (
	scaleAnomalies = 1_000_000
	scaleBase      = 20_000 // anomalies that it begins with
	scaleRanks     = 10_000
	scaleTypical   = 4 // anomalies for each typical execution
	scaleTarget    = 100 * time.Millisecond
)

// openScale makes a store with a run of 10 000 ranks that has ended with a million
// anomalies. CHIMBUKO_BENCH_STORE names a directory in which it is kept for the next time.
func openScale(b *testing.B) provdb.Store {
	b.Helper()
	ctx := b.Context()
	dir, keep := os.Getenv("CHIMBUKO_BENCH_STORE"), true
	if dir == "" {
		dir, keep = b.TempDir(), false
	}
	file := filepath.Join(dir, "scale.duckdb")
	if _, err := os.Stat(file); err != nil {
		begin := time.Now()
		if err := errors.Join(makeBase(ctx, file), multiply(ctx, file)); err != nil {
			if keep {
				_ = os.Remove(file) // half of it is of no use
			}
			b.Fatal(err)
		}
		size, _ := os.Stat(file)
		fmt.Printf("made a run of %d ranks with %d anomalies in %.0f s, %d MB\n", scaleRanks, scaleAnomalies, time.Since(begin).Seconds(), size.Size()>>20)
	}
	s, err := duckstore.Open(context.WithoutCancel(ctx), file, duckstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// makeBase stores the begin of the run, as chimbuko does, and ends it.
func makeBase(ctx context.Context, file string) (err error) {
	s, err := duckstore.Open(ctx, file, duckstore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	id, err := s.CreateRun(ctx, provdb.Run{Name: "scale", State: provdb.Running, Started: time.Unix(1_700_000_000, 0)})
	if err != nil {
		return err
	}
	if err := s.Write(ctx, id, scaleSurroundings()); err != nil {
		return err
	}
	b, n := new(provdb.Batch), 0
	for r := range storetest.StreamOf(scaleBase+scaleBase/scaleTypical, scaleRanks, 1) {
		if n++; n%(scaleTypical+1) == 0 {
			r.Status, r.LostTime, r.Kind, r.Why = "", 0, "", ""
			b.Typical = append(b.Typical, r)
		} else {
			b.Anomalies = append(b.Anomalies, r)
		}
	}
	if err := s.Write(ctx, id, b); err != nil {
		return err
	}
	return finish(ctx, s, id, "scale")
}

// multiply lets the run go on by repeating what it begins with, later and on other ranks,
// and adds a run "before" to compare it with. It is done within the database: to make a
// million records and write them takes as long as all else.
func multiply(ctx context.Context, file string) (err error) {
	db, err := sql.Open("duckdb", file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const moved = "(rid + 1237 * $1::INTEGER) % 10000"
	const copies = scaleAnomalies / scaleBase
	do := func(statement string, args ...any) {
		if err != nil {
			return
		}
		if _, err = db.ExecContext(ctx, statement, args...); err != nil {
			err = fmt.Errorf("%s: %w", statement, err)
		}
	}
	entangle(do)
	do("CREATE TEMP TABLE base AS SELECT * FROM executions")
	do("CREATE TEMP TABLE base_links AS SELECT * FROM links")
	for n := int64(1); n < copies; n++ {
		do(`INSERT INTO executions SELECT * REPLACE (`+moved+` AS rid, 'node' || lpad((`+moved+` // 8)::VARCHAR, 4, '0') AS hostname,
			ev_step + 3 * $1::INTEGER AS ev_step, io_step + 3 * $1::INTEGER AS io_step, entry + 3000000 * $1::INTEGER AS entry, "exit" + 3000000 * $1::INTEGER AS "exit",
			io_step_tstart + 3000000 * $1::INTEGER AS io_step_tstart, io_step_tend + 3000000 * $1::INTEGER AS io_step_tend) FROM base`, n)
		do(`INSERT INTO links SELECT * REPLACE (`+moved+` AS rid, (late_rid + 1237 * $1::INTEGER) % 10000 AS late_rid,
			`+movedEvent("event_id")+` AS event_id, `+movedEvent("culprit_event_id")+` AS culprit_event_id) FROM base_links`, n)
	}
	do("DELETE FROM rollups")
	do("INSERT INTO rollups SELECT * FROM live_rollups")
	do(`UPDATE issues SET anomalies = anomalies * $1::BIGINT, lost_us = lost_us * $1::BIGINT, waits = waits * $1::BIGINT, waits_lost_us = waits_lost_us * $1::BIGINT,
		last_us = last_us + 3000000 * $1::BIGINT,
		rank_list = (SELECT to_json(list(DISTINCT rid ORDER BY rid)) FROM links l WHERE l.issue = issues.issue),
		host_list = (SELECT to_json(list(DISTINCT 'node' || lpad((rid // 8)::VARCHAR, 4, '0'))) FROM links l WHERE l.issue = issues.issue)`, int64(copies))
	for _, table := range []string{"functions", "paths", "models", "final_models", "metadata", "profiles", "counter_stats", "path_profiles"} {
		do("INSERT INTO " + table + " SELECT * REPLACE (2 AS run) FROM " + table + " WHERE run = 1")
	}
	do("INSERT INTO runs SELECT * REPLACE (2 AS run, 'before' AS name, started - INTERVAL 1 DAY AS started, finished - INTERVAL 1 DAY AS finished) FROM runs")
	do("INSERT INTO executions SELECT * REPLACE (2 AS run) FROM base")
	do("INSERT INTO rollups SELECT * REPLACE (2 AS run, lost_us * (50 + rid % 100) // 100 AS lost_us) FROM rollups")
	do("CHECKPOINT")
	return err
}

// entangle has anomalies wait for others: in half of them one of twenty is the culprit of
// the other nineteen, and there is one for which a quarter of all waited.
func entangle(do func(statement string, args ...any)) {
	do(`CREATE TEMP TABLE chained AS SELECT pid, rid, event_id, CASE WHEN n < $1::INTEGER THEN 0 ELSE n // 20 END AS chain
		FROM (SELECT pid, rid, event_id, row_number() OVER (ORDER BY rid, event_id) - 1 AS n FROM links) l`, int64(scaleBase/4))
	do(`CREATE TEMP TABLE chains AS SELECT chain, min_by(pid, rid) AS pid, min_by(event_id, rid) AS event_id, min(rid) AS rid, count(*) AS n
		FROM chained WHERE chain % 2 = 0 GROUP BY chain`)
	do(`UPDATE links SET "role" = CASE WHEN links.event_id = h.event_id THEN 'culprit' ELSE 'victim' END, hops = CASE WHEN links.event_id = h.event_id THEN 0 ELSE 1 END,
		culprit_pid = CASE WHEN links.event_id = h.event_id THEN NULL ELSE h.pid END, culprit_event_id = CASE WHEN links.event_id = h.event_id THEN NULL ELSE h.event_id END,
		late_rid = CASE WHEN links.event_id = h.event_id THEN NULL ELSE h.rid END, waits = CASE WHEN links.event_id = h.event_id THEN h.n - 1 ELSE 0 END,
		wait_ranks = CASE WHEN links.event_id = h.event_id THEN h.n - 1 ELSE 0 END, waits_lost_us = CASE WHEN links.event_id = h.event_id THEN h.n * 1000 ELSE 0 END
		FROM chained c JOIN chains h ON h.chain = c.chain WHERE c.pid = links.pid AND c.rid = links.rid AND c.event_id = links.event_id`)
}

// movedEvent is the id of an event in a copy.
func movedEvent(column string) string {
	part := func(n int) string { return fmt.Sprintf("split_part(%s, ':', %d)::INTEGER", column, n) }
	return "((" + part(1) + " + 1237 * $1::INTEGER) % 10000) || ':' || (" + part(2) + " + 3 * $1::INTEGER) || ':' || " + part(3)
}

// scaleSurroundings is what is stored besides executions: of each rank where it ran, of
// each function its calls and model, counters, and all calls by call path.
func scaleSurroundings() *provdb.Batch {
	b := new(provdb.Batch)
	for rank := range trace.Rank(scaleRanks) {
		facts := []provenance.Metadata{{RID: rank, Descr: "Hostname", Value: fmt.Sprintf("node%04d", rank/8)}}
		for i := range 20 {
			facts = append(facts, provenance.Metadata{RID: rank, Descr: fmt.Sprintf("fact %d", i), Value: fmt.Sprintf("value %d", rank)})
		}
		b.Metadata = append(b.Metadata, provdb.StepMetadata{Rank: rank, Facts: facts})
	}
	summary := stats.Summary{Accumulate: 5000, Count: 100_000, Mean: 50, Minimum: 1, Maximum: 99}
	seen := make(map[int]bool)
	for r := range storetest.Stream(2000, 1) {
		if !seen[r.FID] {
			seen[r.FID] = true
			b.Functions = append(b.Functions, provenance.FuncStats{FID: r.FID, Name: r.Func, RuntimeProfile: provenance.RuntimeProfile{Exclusive: summary, Inclusive: summary}})
			b.Models = append(b.Models, provenance.ADModel{FID: r.FID, Name: r.Func, Model: r.AlgoParams})
		}
	}
	call := func(f *provenance.FuncStats, parent int) {
		b.Paths = append(b.Paths, provenance.PathStats{Node: len(b.Paths) + 1, Parent: parent, FID: f.FID, Func: f.Name, Calls: 1000, Exclusive: trace.Micros(1000 * (1 + f.FID%97))})
	}
	for i := range b.Functions {
		call(&b.Functions[i], min(i, 1))
	}
	odd := len(b.Functions)
	for i := range 2000 { // functions that are never odd
		b.Functions = append(b.Functions, provenance.FuncStats{FID: 1000 + i, Name: fmt.Sprintf("void app::Quiet<%d>::run(int)", i), RuntimeProfile: provenance.RuntimeProfile{Exclusive: summary, Inclusive: summary}})
	}
	for i := range 3 * 2000 {
		call(&b.Functions[odd+i%2000], 1+i%odd)
	}
	for i := range 200 {
		b.Counters = append(b.Counters, provenance.CounterStats{Name: fmt.Sprintf("counter %d", i), Stats: summary})
	}
	return b
}

// interaction is what somebody does on the page, and what is asked for it: path is made
// anew for each try, so that others than the same executions are asked for. One
// that begins with // is of the server, others are of the run.
type interaction struct {
	name string
	path func(try int) string
	put  func(try int) string // what is sent; nil: nothing
}

// interactions lists all that the page asks the server. It looks up what there is to be
// asked for.
func interactions(b *testing.B, store provdb.Reader, ask func(path string) []byte) []interaction {
	b.Helper()
	read := func(path string, into any) {
		if err := json.Unmarshal(ask(path), into); err != nil {
			b.Fatal(err)
		}
	}
	var issues dashboard.IssueList
	read("/issues", &issues)
	var events struct {
		Rows []struct {
			ID string `json:"event_id"`
		}
	}
	read("/events?order=time&since=30s&limit=1000", &events)
	var functions struct {
		Rows []struct {
			ID   string `json:"id"`
			Name string `json:"function"`
		}
	}
	read("/functions", &functions)
	if len(issues.Rows) < 10 || len(events.Rows) < 1000 || len(functions.Rows) < 30 {
		b.Fatalf("%d issues, %d events, %d functions", len(issues.Rows), len(events.Rows), len(functions.Rows))
	}
	fixed := func(path string) func(int) string { return func(int) string { return path } }
	event := func(try int) string { return url.PathEscape(events.Rows[try*23%len(events.Rows)].ID) }
	issue := func(try int) string { return issues.Rows[try%len(issues.Rows)].Key }
	culprit, victim := linked(b, store, "culprit"), linked(b, store, "victim")
	box := func(try int) string { // 31 ranks and 5 s
		return fmt.Sprintf("rank=%d-%d&from=%d&to=%d", try*240, try*240+31, try*3, try*3+5)
	}
	const compared = "//api/v1/compare%s?a=0:before&b=0:scale%s"
	var pages []string
	for cursor := ""; len(pages) < 5; {
		path := "/events?order=lost&limit=200&cursor=" + url.QueryEscape(cursor)
		pages = append(pages, path)
		var page struct{ Next string }
		read(path, &page)
		cursor = page.Next
	}
	window := func(length float64) func(try int) string {
		return func(try int) string {
			from := float64(try%50) * 2
			return fmt.Sprintf("/heatmap?columns=240&rows=300&metric=own&from=%g&to=%g", from, from+length)
		}
	}
	return []interaction{
		{name: "overview", path: fixed("/overview")},
		{name: "overview, wide strip", path: func(try int) string { return fmt.Sprintf("/overview?columns=%d", 600+try) }},
		{name: "heatmap, whole run, without waits", path: fixed("/heatmap?columns=240&rows=300&metric=own")},
		{name: "heatmap, whole run, lost", path: fixed("/heatmap?columns=240&rows=300&metric=lost")},
		{name: "heatmap, whole run, largest", path: fixed("/heatmap?columns=2000&rows=300&metric=lost")},
		{name: "heatmap, 60 s", path: window(60)},
		{name: "heatmap, 10 s", path: window(10)},
		{name: "heatmap, 1 s", path: window(1)},
		{name: "heatmap, one host", path: func(try int) string { return fmt.Sprintf("/heatmap?columns=240&rows=300&host=node%04d", try*29) }},
		{name: "heatmap, functions", path: fixed("/heatmap?columns=240&rows=300&func=MPI_*")},
		{name: "issues", path: fixed("/issues")},
		{name: "issue, executions over time", path: func(try int) string { return fmt.Sprintf("/issues/%s/plot?limit=%d", issue(try), 1500-try) }},
		{name: "label an issue", path: func(try int) string { return "/labels/" + issue(try) }, put: func(try int) string {
			return fmt.Sprintf(`{"state": "muted", "note": "seen %d times"}`, try)
		}},
		{name: "evidence", path: func(try int) string { return "/events/" + event(try) + "/evidence" }},
		{name: "evidence of a culprit", path: func(try int) string { return "/events/" + culprit[try%len(culprit)] + "/evidence" }},
		{name: "evidence of a victim", path: func(try int) string { return "/events/" + victim[try%len(victim)] + "/evidence" }},
		{name: "record", path: func(try int) string { return "/events/" + event(try) }},
		{name: "window for Perfetto", path: func(try int) string { return "/events/" + event(try) + "/window" }},
		{name: "explain an issue", path: func(try int) string { return fmt.Sprintf("/explain?issue=%s&from=%d", issue(try), try%7) }},
		{name: "explain a box", path: func(try int) string { return "/explain?" + box(try) }},
		{name: "explain a function", path: func(try int) string { return fmt.Sprintf("/explain?func=*_%d*&from=%d", 10+try%38, try%7) }},
		{name: "explain a host", path: func(try int) string { return fmt.Sprintf("/explain?host=node%04d", try*29) }},
		{name: "explain half of the run", path: func(try int) string { return fmt.Sprintf("/explain?from=%d&to=%d", try, try+75) }},
		{name: "explain a box without ranks", path: func(try int) string {
			return fmt.Sprintf("/explain?%s&without=rank=%d..%d", box(try), try*100, try*100+50)
		}},
		{name: "explain large messages only", path: func(try int) string { return fmt.Sprintf("/explain?from=0&to=%d&only=bytes=%d..", 200+try, 1000+try) }},
		{name: "explain large messages of a rank", path: func(try int) string { return fmt.Sprintf("/explain?rank=%d&only=bytes=%d..", 37*try, 1000+try) }},
		{name: "group a rank by bytes", path: func(try int) string { return fmt.Sprintf("/explain/groups?by=bytes&rank=%d", 41*try) }},
		{name: "explain a rank", path: func(try int) string { return fmt.Sprintf("/explain?rank=%d", 43*try) }},
		{name: "explain a lasso", path: func(try int) string { return fmt.Sprintf("/explain?lasso=%d:1,%d:1,%d:10000000", try, try+60, try+30) }},
		{name: "group a box by host", path: func(try int) string { return "/explain/groups?by=host&" + box(try) }},
		{name: "group the run by call path", path: func(try int) string { return fmt.Sprintf("/explain/groups?by=call-path&from=0&to=%d", 200+try) }},
		{name: "group the run by bytes", path: func(try int) string { return fmt.Sprintf("/explain/groups?by=bytes&from=0&to=%d", 200+try) }},
		{name: "explain the whole run", path: func(try int) string { return fmt.Sprintf("/explain?from=0&to=%d", 200+try) }},
		{name: "compare", path: fixed(fmt.Sprintf(compared, "", ""))},
		{name: "compare, flame", path: fixed(fmt.Sprintf(compared, "/flame", ""))},
		{name: "compare, histograms", path: func(try int) string {
			return fmt.Sprintf(compared, "/histograms", "&function="+url.QueryEscape(functions.Rows[try%30].Name))
		}},
		{name: "compare, over all runs", path: fixed("//api/v1/compare/trend")},
		{name: "functions", path: func(try int) string { return fmt.Sprintf("/functions?limit=%d", 100+try) }},
		{name: "functions, by calls", path: func(try int) string { return fmt.Sprintf("/functions?order=calls&limit=%d", 500+try) }},
		{name: "functions, search", path: func(try int) string { return fmt.Sprintf("/functions?name=*relax_%d*", try) }},
		{name: "function", path: func(try int) string { return fmt.Sprintf("/functions/%s?limit=%d", functions.Rows[try%30].ID, 100+try) }},
		{name: "flame, time", path: fixed("/flame")},
		{name: "flame, lost", path: fixed("/flame?metric=lost")},
		{name: "search, name", path: func(try int) string { return "/search?q=" + []string{"mpi", "relax", "node00", "quiet"}[try%4] }},
		{name: "search, rank", path: func(try int) string { return fmt.Sprintf("/search?q=rank:%d", try*251) }},
		{name: "search, event", path: func(try int) string { return "/search?q=" + event(try) }},
		{name: "events, by severity", path: func(try int) string { return fmt.Sprintf("/events?limit=%d", 100+try) }},
		{name: "events, pages by lost", path: func(try int) string {
			return strings.Replace(pages[try%len(pages)], "=200", fmt.Sprintf("=%d", 200+try), 1)
		}},
		{name: "events, of a rank and time", path: func(try int) string {
			return fmt.Sprintf("/events?rank=%d&since=%ds&until=%ds&order=lost&limit=100", try*250, try, try+20)
		}},
		{name: "events, of a function", path: func(try int) string {
			return fmt.Sprintf("/events?func=*_%d*&order=lost&limit=%d", 10+try%38, 100+try)
		}},
		{name: "top, ranks", path: func(try int) string { return fmt.Sprintf("/top?by=rank&limit=%d", 10+try) }},
		{name: "top, hosts", path: func(try int) string { return fmt.Sprintf("/top?by=host&limit=%d", 10+try) }},
		{name: "counters", path: func(try int) string { return fmt.Sprintf("/counters?limit=%d", 100+try) }},
		{name: "metadata of a rank", path: func(try int) string { return fmt.Sprintf("/metadata?rank=%d", try*250) }},
		{name: "snapshot", path: fixed("/snapshot")},
		{name: "pipeline", path: fixed("/pipeline")},
		{name: "stream, until the overview is there", path: fixed("/stream")},
		{name: "run", path: fixed("")},
	}
}

// linked are events with a role, of all times.
func linked(b *testing.B, store provdb.Reader, role string) (ids []string) {
	b.Helper()
	rows, err := store.Query(b.Context(), `SELECT event_id FROM links WHERE run = 1 AND "role" = $1 ORDER BY md5(event_id) LIMIT 1000`, role)
	if err != nil {
		b.Fatal(err)
	}
	all, err := rows.Collect()
	if err != nil || len(all) < 100 {
		b.Fatalf("%d of role %s: %v", len(all), role, err)
	}
	for _, row := range all {
		ids = append(ids, url.PathEscape(row[0].(string)))
	}
	return ids
}

// watching is a pipeline with all ranks of a run.
func watching(store provdb.Store) *pipeline {
	status := someStatus()
	status.Run.Name, status.Run.State = "scale", dashboard.Finished
	status.Nodes, status.Ranks = nil, nil
	for host := range scaleRanks / 8 {
		name := fmt.Sprintf("node%04d", host)
		status.Nodes = append(status.Nodes, dashboard.Node{Name: name, Host: name, State: dashboard.NodeDone, Ranks: 8})
		for i := range 8 {
			status.Ranks = append(status.Ranks, dashboard.Rank{Rank: int64(8*host + i), Host: name, Node: name, Step: 99, Ended: true})
		}
	}
	return &pipeline{status: status, reader: store}
}

// processTime is the processor time that this process has used, that of the store included.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// answered is an answer. A stream ends when the overview was sent.
type answered struct {
	*httptest.ResponseRecorder
	end func()
}

func (a *answered) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("event: overview\n")) {
		a.end()
	}
	return a.ResponseRecorder.Write(text)
}

// resident is the memory of this process; 0 where that is not known.
func resident() int64 {
	text, _ := os.ReadFile("/proc/self/statm") // only Linux has it
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64) // 0 is said to be unknown
	return pages * int64(os.Getpagesize())
}

// load is how busy the machine is.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:1], "")
}

// BenchmarkInteractions asks a server all that the page asks it, of a run of 10 000 ranks
// with a million anomalies, and prints how long the answers take. It is a table rather
// than a benchmark of each, since the run takes long to make.
func BenchmarkInteractions(b *testing.B) {
	store := openScale(b)
	h := dashboard.New(dashboard.Config{Source: watching(store), Run: "scale", Labels: new(memory)})
	send := func(method, path, encoding string, body io.Reader) []byte {
		address, ofServer := strings.CutPrefix(path, "//")
		if !ofServer {
			address = "api/v1/runs/scale" + path
		}
		ctx, end := context.WithCancel(b.Context())
		defer end()
		w := &answered{ResponseRecorder: httptest.NewRecorder(), end: end}
		r := httptest.NewRequestWithContext(ctx, method, "http://localhost/"+address, body)
		r.Header.Set("Accept-Encoding", encoding)
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("%s: %d %.300s", path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	ask := func(x *interaction, try int) []byte {
		if x.put != nil {
			return send(http.MethodPut, x.path(try), "gzip", strings.NewReader(x.put(try)))
		}
		return send(http.MethodGet, x.path(try), "gzip", nil)
	}
	fmt.Printf("resident before anything is asked %d MB\n", resident()>>20)
	begin := time.Now()
	send(http.MethodGet, "/overview", "gzip", nil)
	fmt.Printf("first overview %.0f ms\n", time.Since(begin).Seconds()*1000)
	list := interactions(b, store, func(path string) []byte { return send(http.MethodGet, path, "identity", nil) })
	tries := 40
	if n, err := strconv.Atoi(os.Getenv("CHIMBUKO_BENCH_TRIES")); err == nil {
		tries = n
	}
	b.ResetTimer()
	fmt.Printf("%8s %8s %8s %8s %6s  %s\n", "p50 ms", "p95 ms", "most ms", "cpu ms", "kB", "interaction")
	over := 0
	for b.Loop() {
		for _, x := range list {
			if only := os.Getenv("CHIMBUKO_BENCH_ONLY"); only != "" && !strings.Contains(x.name, only) {
				continue
			}
			var took []time.Duration
			size := 0
			for try := range 3 {
				ask(&x, tries+try) // warm-up
			}
			used := processTime()
			for try := range tries {
				begin := time.Now()
				size = max(size, len(ask(&x, try)))
				took = append(took, time.Since(begin))
			}
			used = (processTime() - used) / time.Duration(tries)
			slices.Sort(took)
			p95 := took[len(took)*95/100-1]
			if p95 > scaleTarget {
				over++
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			fmt.Printf("%8.1f %8.1f %8.1f %8.1f %6d  %s\n", ms(took[len(took)/2]), ms(p95), ms(took[len(took)-1]), ms(used), (size+512)>>10, x.name)
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	runtime.KeepAlive(h)
	fmt.Printf("%d interactions with p95 above %v; heap of Go %d MB, resident %d MB with the store's cache; load %s\n", over, scaleTarget, m.HeapAlloc>>20, resident()>>20, load())
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(over), "too-slow")
}

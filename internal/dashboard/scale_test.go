//go:build unix

package dashboard_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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

// multiply lets the run go on by repeating what it begins with, later and on other ranks.
// It is done within the database: to make a million records and write them takes as long
// as all else.
func multiply(ctx context.Context, file string) (err error) {
	db, err := sql.Open("duckdb", file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const moved = "(rid + 1237 * $1::INTEGER) % 10000"
	all := []string{"CREATE TEMP TABLE base AS SELECT * FROM executions", "CREATE TEMP TABLE base_links AS SELECT * FROM links"}
	const copies = scaleAnomalies / scaleBase
	for range copies - 1 {
		all = append(all, `INSERT INTO executions SELECT * REPLACE (`+moved+` AS rid, 'node' || lpad((`+moved+` // 8)::VARCHAR, 4, '0') AS hostname,
			ev_step + 3 * $1::INTEGER AS ev_step, io_step + 3 * $1::INTEGER AS io_step, entry + 3000000 * $1::INTEGER AS entry, "exit" + 3000000 * $1::INTEGER AS "exit",
			io_step_tstart + 3000000 * $1::INTEGER AS io_step_tstart, io_step_tend + 3000000 * $1::INTEGER AS io_step_tend) FROM base`,
			`INSERT INTO links SELECT * REPLACE (`+moved+` AS rid, `+movedEvent("event_id")+` AS event_id, `+movedEvent("culprit_event_id")+` AS culprit_event_id) FROM base_links`)
	}
	all = append(all,
		"DELETE FROM rollups", "INSERT INTO rollups SELECT * FROM live_rollups",
		`UPDATE issues SET anomalies = anomalies * $1::BIGINT, lost_us = lost_us * $1::BIGINT, waits = waits * $1::BIGINT, waits_lost_us = waits_lost_us * $1::BIGINT,
			last_us = last_us + 3000000 * $1::BIGINT,
			rank_list = (SELECT to_json(list(DISTINCT rid ORDER BY rid)) FROM links l WHERE l.issue = issues.issue),
			host_list = (SELECT to_json(list(DISTINCT 'node' || lpad((rid // 8)::VARCHAR, 4, '0'))) FROM links l WHERE l.issue = issues.issue)`,
		"CHECKPOINT")
	for i, statement := range all {
		var args []any
		if strings.Contains(statement, "$1") {
			args = append(args, int64(min(i/2, copies)))
		}
		if _, err := db.ExecContext(ctx, statement, args...); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
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
	for i := range 2000 { // functions that are never odd
		b.Functions = append(b.Functions, provenance.FuncStats{FID: 1000 + i, Name: fmt.Sprintf("void app::Quiet<%d>::run(int)", i), RuntimeProfile: provenance.RuntimeProfile{Exclusive: summary, Inclusive: summary}})
	}
	for i := range 200 {
		b.Counters = append(b.Counters, provenance.CounterStats{Name: fmt.Sprintf("counter %d", i), Stats: summary})
	}
	return b
}

// interaction is what somebody does on the page, and what is asked for it: path is made
// anew for each try, so that others than the same executions are asked for.
type interaction struct {
	name string
	path func(try int) string
}

// interactions lists all that the page asks the server. It looks up what there is to be
// asked for.
func interactions(b *testing.B, ask func(path string) []byte) []interaction {
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
			ID string `json:"id"`
		}
	}
	read("/functions", &functions)
	if len(issues.Rows) < 10 || len(events.Rows) < 1000 || len(functions.Rows) < 30 {
		b.Fatalf("%d issues, %d events, %d functions", len(issues.Rows), len(events.Rows), len(functions.Rows))
	}
	fixed := func(path string) func(int) string { return func(int) string { return path } }
	event := func(try int) string { return url.PathEscape(events.Rows[try*23%len(events.Rows)].ID) }
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
		{"overview", fixed("/overview")},
		{"overview, wide strip", func(try int) string { return fmt.Sprintf("/overview?columns=%d", 600+try) }},
		{"heatmap, whole run, without waits", fixed("/heatmap?columns=240&rows=300&metric=own")},
		{"heatmap, whole run, lost", fixed("/heatmap?columns=240&rows=300&metric=lost")},
		{"heatmap, whole run, largest", fixed("/heatmap?columns=2000&rows=300&metric=lost")},
		{"heatmap, 60 s", window(60)},
		{"heatmap, 10 s", window(10)},
		{"heatmap, 1 s", window(1)},
		{"heatmap, one host", func(try int) string { return fmt.Sprintf("/heatmap?columns=240&rows=300&host=node%04d", try*29) }},
		{"heatmap, functions", fixed("/heatmap?columns=240&rows=300&func=MPI_*")},
		{"issues", fixed("/issues")},
		{"issue, executions over time", func(try int) string { return "/issues/" + issues.Rows[try%len(issues.Rows)].Key + "/plot" }},
		{"evidence", func(try int) string { return "/events/" + event(try) + "/evidence" }},
		{"evidence, next and previous", func(try int) string { return "/events/" + event(try/2) + "/evidence" }},
		{"record", func(try int) string { return "/events/" + event(try) }},
		{"window for Perfetto", func(try int) string { return "/events/" + event(try) + "/window" }},
		{"functions", fixed("/functions")},
		{"functions, by calls", fixed("/functions?order=calls&limit=500")},
		{"functions, search", func(try int) string { return fmt.Sprintf("/functions?name=*relax_%d*", try) }},
		{"function", func(try int) string { return "/functions/" + functions.Rows[try%30].ID }},
		{"flame, time", fixed("/flame")},
		{"flame, lost", fixed("/flame?metric=lost")},
		{"search, name", func(try int) string { return "/search?q=" + []string{"mpi", "relax", "node00", "quiet"}[try%4] }},
		{"search, rank", func(try int) string { return fmt.Sprintf("/search?q=rank:%d", try*251) }},
		{"search, event", func(try int) string { return "/search?q=" + event(try) }},
		{"events, by severity", fixed("/events?limit=100")},
		{"events, pages by lost", func(try int) string { return pages[try%len(pages)] }},
		{"events, of a rank and time", func(try int) string {
			return fmt.Sprintf("/events?rank=%d&since=%ds&until=%ds&order=lost&limit=100", try*250, try, try+20)
		}},
		{"events, of a function", func(try int) string { return fmt.Sprintf("/events?func=*relax_%d*&order=lost&limit=100", 10+try%20) }},
		{"top, ranks", fixed("/top?by=rank")},
		{"top, hosts", fixed("/top?by=host")},
		{"counters", fixed("/counters")},
		{"metadata of a rank", func(try int) string { return fmt.Sprintf("/metadata?rank=%d", try*250) }},
		{"snapshot", fixed("/snapshot")},
		{"pipeline", fixed("/pipeline")},
		{"run", fixed("")},
	}
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

// BenchmarkInteractions asks a server all that the page asks it, of a run of 10 000 ranks
// with a million anomalies, and prints how long the answers take. It is a table rather
// than a benchmark of each, since the run takes long to make.
func BenchmarkInteractions(b *testing.B) {
	store := openScale(b)
	h := dashboard.New(dashboard.Config{Source: watching(store), Run: "scale"})
	ask := func(path, encoding string) []byte {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost/api/v1/runs/scale"+path, nil)
		r.Header.Set("Accept-Encoding", encoding)
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("%s: %d %.300s", path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	begin := time.Now()
	ask("/overview", "gzip")
	fmt.Printf("first overview %.0f ms\n", time.Since(begin).Seconds()*1000)
	list := interactions(b, func(path string) []byte { return ask(path, "identity") })
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
				ask(x.path(tries+try), "gzip") // warm-up
			}
			used := processTime()
			for try := range tries {
				begin := time.Now()
				size = max(size, len(ask(x.path(try), "gzip")))
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
	fmt.Printf("%d interactions with p95 above %v; heap of Go %d MB\n", over, scaleTarget, m.HeapAlloc>>20)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(over), "too-slow")
}

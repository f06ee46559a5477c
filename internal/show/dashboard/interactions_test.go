//go:build unix

package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
)

// interaction is a request of the page. path differs between tries, to request other executions. A
// path that begins with // is one of the server, others are of the run.
type interaction struct {
	name string
	path func(try int) string
	put  func(try int) string // body; nil: none
}

// interactions returns all requests of the page.
func (s *scale) interactions(b *testing.B, get func(path string) []byte) []interaction {
	b.Helper()
	read := func(path string, into any) {
		if err := json.Unmarshal(get(path), into); err != nil {
			b.Fatal(err)
		}
	}
	var findings api.FindingList
	read("/findings", &findings)
	var events struct {
		Rows []struct {
			ID string `json:"event_id"`
		}
	}
	read(fmt.Sprintf("/events?order=time&since=%gs&limit=1000", s.length/5), &events)
	var functions struct {
		Rows []struct {
			ID   string `json:"id"`
			Name string `json:"function"`
		}
	}
	read("/functions", &functions)
	if len(findings.Rows) < 10 || len(events.Rows) < 1000 || len(functions.Rows) < 30 {
		b.Fatalf("%d findings, %d events, %d functions", len(findings.Rows), len(events.Rows), len(functions.Rows))
	}
	fixed := func(path string) func(int) string { return func(int) string { return path } }
	event := func(try int) string { return url.PathEscape(events.Rows[try*23%len(events.Rows)].ID) }
	finding := func(try int) string { return findings.Rows[try%len(findings.Rows)].Key }
	culprit, victim := s.linked(b, "culprit"), s.linked(b, "victim")
	rank := func(try int) int { return try * 257 % len(s.ranks) }
	host := func(try int) string { return url.QueryEscape(s.hosts[try*29%len(s.hosts)]) }
	function := func(try int) string { return url.QueryEscape(functions.Rows[try%len(functions.Rows)].Name) }
	part := func(try int, width float64) (from, to float64) { // of the run
		from = float64(try%47) / 50 * (1 - width) * s.length
		return from, from + width*s.length
	}
	span := func(try int, width float64) string {
		from, to := part(try, width)
		return fmt.Sprintf("from=%.3f&to=%.3f", from, to)
	}
	box := func(try int) string { return fmt.Sprintf("rank=%d-%d&%s", rank(try), rank(try)+31, span(try, 0.03)) }
	whole := func(try int) string { return fmt.Sprintf("from=0&to=%.3f", s.length*1.5+float64(try)) }
	compared := "//api/v1/compare%s?a=0:" + url.QueryEscape(s.before) + "&b=0:" + url.QueryEscape(s.name) + "%s"
	var pages []string
	for cursor := ""; len(pages) < 5; {
		path := "/events?order=lost&limit=200&cursor=" + url.QueryEscape(cursor)
		pages = append(pages, path)
		var page struct{ Next string }
		read(path, &page)
		cursor = page.Next
	}
	window := func(width float64) func(try int) string {
		return func(try int) string { return "/heatmap?columns=240&rows=300&metric=own&" + span(try, width) }
	}
	return []interaction{
		{name: "overview", path: fixed("/overview")},
		{name: "overview, wide strip", path: func(try int) string { return fmt.Sprintf("/overview?columns=%d", 600+try) }},
		{name: "heatmap, whole run, without waits", path: fixed("/heatmap?columns=240&rows=300&metric=own")},
		{name: "heatmap, whole run, lost", path: fixed("/heatmap?columns=240&rows=300&metric=lost")},
		{name: "heatmap, whole run, largest", path: fixed("/heatmap?columns=2000&rows=300&metric=lost")},
		{name: "heatmap, 40 % of the time", path: window(0.4)},
		{name: "heatmap, 6 % of the time", path: window(0.06)},
		{name: "heatmap, 0.6 % of the time", path: window(0.006)},
		{name: "heatmap, one host", path: func(try int) string { return "/heatmap?columns=240&rows=300&host=" + host(try) }},
		{name: "heatmap, functions", path: fixed("/heatmap?columns=240&rows=300&func=MPI_*")},
		{name: "timeline, all ranks", path: func(try int) string { return fmt.Sprintf("/timeline?rows=%d", 420+try) }},
		{name: "timeline, 64 ranks", path: func(try int) string { return fmt.Sprintf("/timeline?rows=420&rank=%d-%d", rank(try), rank(try)+63) }},
		{name: "ranks, hosts", path: fixed("/ranks?by=host")},
		{name: "ranks", path: fixed("/ranks?by=rank")},
		{name: "ranks of a host", path: func(try int) string { return "/ranks?by=rank&host=" + host(try) }},
		{name: "functions of a rank", path: func(try int) string { return fmt.Sprintf("/ranks/functions?rank=%d", rank(try)) }},
		{name: "findings", path: fixed("/findings")},
		{name: "finding, executions over time", path: func(try int) string {
			return fmt.Sprintf("/findings/%s/plot?limit=%d", finding(try),
				1500-try)
		}},
		{name: "label a finding", path: func(try int) string { return "/labels/" + finding(try) }, put: func(try int) string {
			return fmt.Sprintf(`{"state": "muted", "note": "seen %d times"}`, try)
		}},
		{name: "evidence", path: func(try int) string { return "/events/" + event(try) + "/evidence" }},
		{name: "evidence of a culprit", path: func(try int) string { return "/events/" + culprit[try%len(culprit)] + "/evidence" }},
		{name: "evidence of a victim", path: func(try int) string { return "/events/" + victim[try%len(victim)] + "/evidence" }},
		{name: "record", path: func(try int) string { return "/events/" + event(try) }},
		{name: "window for Perfetto", path: func(try int) string { return "/events/" + event(try) + "/window" }},
		{name: "explain a finding", path: func(try int) string { return "/explain?finding=" + finding(try) + "&" + span(try, 0.9) }},
		{name: "explain a box", path: func(try int) string { return "/explain?" + box(try) }},
		{name: "explain a function", path: func(try int) string { return "/explain?func=" + function(try) + "&" + span(try, 0.9) }},
		{name: "explain a host", path: func(try int) string { return "/explain?host=" + host(try) }},
		{name: "explain half of the run", path: func(try int) string { return "/explain?" + span(try, 0.5) }},
		{name: "explain a box without ranks", path: func(try int) string {
			return fmt.Sprintf("/explain?%s&without=rank=%d..%d", box(try), rank(try)+4, rank(try)+9)
		}},
		{name: "explain large messages only", path: func(try int) string {
			return fmt.Sprintf("/explain?%s&only=bytes=%d..", whole(try),
				1000+try)
		}},
		{name: "explain large messages of a rank", path: func(try int) string {
			return fmt.Sprintf("/explain?rank=%d&only=bytes=%d..",
				rank(try), 1000+try)
		}},
		{name: "group a rank by bytes", path: func(try int) string { return fmt.Sprintf("/explain/groups?by=bytes&rank=%d", rank(try)) }},
		{name: "explain a rank", path: func(try int) string { return fmt.Sprintf("/explain?rank=%d", rank(try)) }},
		{name: "explain a lasso", path: func(try int) string {
			from, to := part(try, 0.4)
			return fmt.Sprintf("/explain?lasso=%.3f:1,%.3f:1,%.3f:10000000", from, to, (from+to)/2)
		}},
		{name: "group a box by host", path: func(try int) string { return "/explain/groups?by=host&" + box(try) }},
		{name: "group the run by call path", path: func(try int) string { return "/explain/groups?by=call-path&" + whole(try) }},
		{name: "group the run by bytes", path: func(try int) string { return "/explain/groups?by=bytes&" + whole(try) }},
		{name: "explain the whole run", path: func(try int) string { return "/explain?" + whole(try) }},
		{name: "compare", path: fixed(fmt.Sprintf(compared, "", ""))},
		{name: "compare, flame", path: fixed(fmt.Sprintf(compared, "/flame", ""))},
		{name: "compare, histograms", path: func(try int) string {
			return fmt.Sprintf(compared, "/histograms", "&function="+function(try%30))
		}},
		{name: "compare, over all runs", path: fixed("//api/v1/compare/trend")},
		{name: "functions", path: func(try int) string { return fmt.Sprintf("/functions?limit=%d", 100+try) }},
		{name: "functions, by calls", path: func(try int) string { return fmt.Sprintf("/functions?order=calls&limit=%d", 500+try) }},
		{name: "functions, search", path: func(try int) string { return "/functions?name=*" + function(try)[:4] + "*" }},
		{name: "function", path: func(try int) string { return fmt.Sprintf("/functions/%s?limit=%d", functions.Rows[try%30].ID, 100+try) }},
		{name: "flame, time", path: fixed("/flame")},
		{name: "flame, lost", path: fixed("/flame?metric=lost")},
		{name: "search, name", path: func(try int) string {
			return "/search?q=" + []string{"mpi", function(try)[:4], host(try)[:3], "quiet"}[try%4]
		}},
		{name: "search, rank", path: func(try int) string { return fmt.Sprintf("/search?q=rank:%d", rank(try)) }},
		{name: "search, event", path: func(try int) string { return "/search?q=" + event(try) }},
		{name: "events, by severity", path: func(try int) string { return fmt.Sprintf("/events?limit=%d", 100+try) }},
		{name: "events, pages by lost", path: func(try int) string {
			return strings.Replace(pages[try%len(pages)], "=200", fmt.Sprintf("=%d", 200+try), 1)
		}},
		{name: "events, of a rank and time", path: func(try int) string {
			from, to := part(try, 0.1)
			return fmt.Sprintf("/events?rank=%d&since=%.3fs&until=%.3fs&order=lost&limit=100", rank(try), from, to)
		}},
		{name: "events, of a function", path: func(try int) string {
			return fmt.Sprintf("/events?func=%s&order=lost&limit=%d", function(try), 100+try)
		}},
		{name: "top, ranks", path: func(try int) string { return fmt.Sprintf("/top?by=rank&limit=%d", 10+try) }},
		{name: "top, hosts", path: func(try int) string { return fmt.Sprintf("/top?by=host&limit=%d", 10+try) }},
		{name: "counters", path: func(try int) string { return fmt.Sprintf("/counters?limit=%d", 100+try) }},
		{name: "metadata of a rank", path: func(try int) string { return fmt.Sprintf("/metadata?rank=%d", rank(try)) }},
		{name: "snapshot", path: fixed("/snapshot")},
		{name: "pipeline", path: fixed("/pipeline")},
		{name: "stream, until the overview is there", path: fixed("/stream")},
		{name: "run", path: fixed("")},
	}
}

// linked returns events with a role at all times.
func (s *scale) linked(b *testing.B, role string) (ids []string) {
	b.Helper()
	if s.roles != nil {
		return s.roles[role]
	}
	rows, err := s.store.Query(b.Context(), `SELECT event_id FROM links WHERE run = 1 AND "role" = $1 ORDER BY md5(event_id) LIMIT 1000`, role)
	if err != nil {
		b.Fatal(err)
	}
	all, err := rows.Collect()
	if err != nil || len(all) == 0 {
		b.Fatalf("%d of role %s: %v", len(all), role, err)
	}
	for _, row := range all {
		ids = append(ids, url.PathEscape(row[0].(string)))
	}
	return ids
}

// watching returns a pipeline with all ranks of the run.
func (s *scale) watching(live bool) *pipeline {
	status := someStatus()
	state, node := api.Finished, api.NodeDone
	if live {
		state, node = api.Running, api.NodeReading
	}
	status.Run.Name, status.Run.State = s.name, state
	status.Nodes, status.Ranks = nil, nil
	for _, host := range s.hosts {
		status.Nodes = append(status.Nodes, api.Node{Name: host, Host: host, State: node})
	}
	for i := range s.ranks {
		r := &s.ranks[i]
		status.Ranks = append(status.Ranks, api.Rank{Rank: int64(r.Rank), Host: r.Host, Node: r.Host, Step: 99, Ended: !live})
	}
	return &pipeline{status: status, reader: s.store}
}

// answered is a response. A stream ends after the overview.
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

// resident returns the memory of this process, or 0.
func resident() int64 {
	text, _ := os.ReadFile("/proc/self/statm") // only Linux has it
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64) // 0 if unknown
	return pages * int64(os.Getpagesize())
}

// load returns the load average of the machine.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:1], "")
}

// BenchmarkInteractions measures all requests of the page to a run of 10,000 ranks with a million
// anomalies, and prints a table, since the run takes long to create. With CHIMBUKO_BENCH_LIVE the run is not finished,
// and its store gets records meanwhile.
func BenchmarkInteractions(b *testing.B) {
	s := openScale(b)
	live := os.Getenv("CHIMBUKO_BENCH_LIVE") != ""
	if live {
		s = s.resume(b)
	}
	h := dashboard.New(dashboard.Config{Config: insight.Config{Source: s.watching(live), Run: s.name, Labels: new(memory)}})
	send := func(method, path, encoding string, body io.Reader) []byte {
		address, ofServer := strings.CutPrefix(path, "//")
		if !ofServer {
			address = "api/v1/runs/" + url.PathEscape(s.name) + path
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
	request := func(x *interaction, try int) []byte {
		if x.put != nil {
			return send(http.MethodPut, x.path(try), "gzip", strings.NewReader(x.put(try)))
		}
		return send(http.MethodGet, x.path(try), "gzip", nil)
	}
	fmt.Printf("resident before the first request %d MB\n", resident()>>20)
	begin := time.Now()
	send(http.MethodGet, "/overview", "gzip", nil)
	fmt.Printf("first overview %.0f ms\n", time.Since(begin).Seconds()*1000)
	begin = time.Now()
	send(http.MethodGet, "/explain", "gzip", nil) // waits for the copy in memory
	fmt.Printf("first explanation %.0f ms later\n", time.Since(begin).Seconds()*1000)
	list := s.interactions(b, func(path string) []byte { return send(http.MethodGet, path, "identity", nil) })
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
				request(&x, tries+try) // warm-up
			}
			used := cputime.OfProcess()
			for try := range tries {
				begin := time.Now()
				size = max(size, len(request(&x, try)))
				took = append(took, time.Since(begin))
			}
			used = (cputime.OfProcess() - used) / time.Duration(tries)
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
	fmt.Printf("%d interactions with p95 above %v; heap of Go %d MB, resident %d MB with the store's cache; load %s\n", over, scaleTarget,
		m.HeapAlloc>>20, resident()>>20, load())
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(over), "too-slow")
}

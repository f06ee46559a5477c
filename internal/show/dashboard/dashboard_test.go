package dashboard_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

var sharedDir string // of the store that tests share

func TestMain(m *testing.M) {
	var err error
	if sharedDir, err = os.MkdirTemp("", "chimbuko-dashboard-*"); err != nil {
		panic(err)
	}
	code := pgtest.Main(m)
	if shared.store != nil {
		_ = shared.store.Close() // of tests
	}
	_ = os.RemoveAll(sharedDir)
	os.Exit(code)
}

const monday = "/api/v1/runs/monday"

func TestHealthNamesFailingPartsWithoutToken(t *testing.T) {
	at, p := serve(t, func(c *dashboard.Config, _ *pipeline) { c.Token = "secret" })
	if a := do(t, at+"/healthz", ""); a.code != 200 || a.body != `{"status":"ok"}` {
		t.Errorf("got %d %s", a.code, a.body)
	}
	p.set(func(p *pipeline) {
		p.status.Health = append(p.status.Health,
			api.Health{Part: "sender", Severity: api.SeverityWarning, Sentence: "slow"},
			api.Health{Part: "store", Severity: api.SeverityError, Sentence: "/home/user is full: make room"})
	})
	type health struct {
		Status string
		Wrong  []api.Health
	}
	got := want[health](t, do(t, at+"/healthz", ""), 503)
	if len(got.Wrong) != 1 || got.Wrong[0].Part != "store" || strings.Contains(got.Wrong[0].Sentence, "/home") || got.Status != "failing" {
		t.Errorf("got %+v", got)
	}
	p.set(func(p *pipeline) { p.err = errors.New("timeout") })
	if got := want[health](t, do(t, at+"/healthz", ""), 503); len(got.Wrong) != 1 || got.Wrong[0].Part != "status" {
		t.Errorf("got %+v", got)
	}
}

func TestStatusIsTheSameEverywhere(t *testing.T) {
	at, p := serve(t, nil)
	type snapshot struct {
		Status      api.Status
		Top, Newest []object
		Problem     object
	}
	snap := want[snapshot](t, do(t, at+monday+"/snapshot", ""), 200)
	fetched, err := dashboard.Fetch(t.Context(), new(http.Client), at+"/", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]api.Status{
		"status": want[api.Status](t, do(t, at+"/api/v1/status", ""), 200), "fetched": *fetched,
		"pipeline": want[api.Status](t, do(t, at+monday+"/pipeline", ""), 200), "snapshot": snap.Status,
	} {
		if !reflect.DeepEqual(got, p.status) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, p.status)
		}
	}
	if len(snap.Top) != 10 || len(snap.Newest) != 20 || snap.Problem != nil {
		t.Errorf("the snapshot has %d functions and %d anomalies, %v", len(snap.Top), len(snap.Newest), snap.Problem)
	}
	last := snap.Newest[0]["at_s"].(float64)
	for _, e := range snap.Newest {
		if e["at_s"].(float64) > last || e["status"] == "withdrawn" {
			t.Errorf("not the newest first: %v", e)
		}
		last = e["at_s"].(float64)
	}
	newer := want[page](t, do(t, at+monday+fmt.Sprintf("/events?since=%.6f&order=time", last), ""), 200)
	for i, e := range snap.Newest { // after those that began earlier and had not ended
		if n := len(newer.Rows); n < 20 || newer.Rows[n-1-i]["event_id"] != e["event_id"] {
			t.Fatalf("%d events since %v s do not end with the newest", n, last)
		}
	}
	if got := want[snapshot](t, do(t, at+monday+"/snapshot?top=2&newest=0", ""), 200); len(got.Top) != 2 || got.Newest == nil ||
		len(got.Newest) != 0 {
		t.Errorf("got %d, %d", len(got.Top), len(got.Newest))
	}
	fails(t, do(t, at+"/api/v1/runs/tuesday%2Ftwo/pipeline", ""), 404,
		`is not the one that this process watches; only runs/monday`)
	if got := want[object](t, do(t, at+"/api/v1/runs/tuesday%2Ftwo/snapshot", ""), 200); got["status"] != nil ||
		len(got["top"].([]any)) != 10 {
		t.Errorf("the snapshot of another run: %v", got)
	}
}

func TestRunsAreListed(t *testing.T) {
	at, _ := serve(t, nil)
	got := want[struct {
		Rows    []object
		Watched string
	}](t, do(t, at+"/api/v1/runs", ""), 200)
	if len(got.Rows) != 2 || got.Rows[0]["name"] != "monday" || got.Rows[1]["name"] != "tuesday/two" || got.Watched != "monday" ||
		got.Rows[1]["anomalies"].(float64) < 20 {
		t.Errorf("got %v", got)
	}
	one := want[object](t, do(t, at+"/api/v1/runs/tuesday%2Ftwo", ""), 200)
	if one["name"] != "tuesday/two" || fmt.Sprint(one["info"]) != "map[settings:map[workers:2]]" ||
		one["anomalies"] != got.Rows[1]["anomalies"] {
		t.Errorf("got %v", one)
	}
}

// The API returns the results of the queries.
func TestListsEqualQueries(t *testing.T) {
	at, _ := serve(t, nil)
	a, err := query.New(t.Context(), filled(t), "monday")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	f := func(path string, rows int, columns string) []object {
		t.Helper()
		got := want[page](t, do(t, at+monday+path, ""), 200)
		if len(got.Rows) != rows {
			t.Errorf("%s: %d rows, want %d", path, len(got.Rows), rows)
			return nil
		}
		for c := range strings.FieldsSeq(columns) {
			if _, ok := got.Rows[0][c]; !ok {
				t.Errorf("%s: no column %s in %v", path, c, got.Rows[0])
			}
		}
		return got.Rows
	}
	top := f("/top?by=rank&order=anomalies&limit=3&program=0", 3, "lost_us anomalies rank host worst_function")
	rows, err := a.Top(ctx, query.Top{By: "rank", Order: "anomalies", Limit: 3, Waits: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rows.Collect()
	if err != nil || top[0]["lost_us"] != float64(all[0][0].(int64)) {
		t.Errorf("got %v, want %v, %v", top[0], all[0], err)
	}
	f("/top", 10, "function calls anomalous_time_percent")
	if kinds := f("/top?by=kind&order=anomalies", 4, "lost_us anomalies functions ranks kind worst_function"); kinds != nil &&
		kinds[0]["kind"] == nil {
		t.Errorf("got %v", kinds)
	}
	f("/events?kind=fast&limit=2", 2, "event_id kind status")
	f("/counters", 3, "counter mean values")
	f("/counters?name=*2", 1, "counter")
	f("/metadata?rank=1", 2, "program rank thread io_step name value")
	if got := f("/metadata?name=CPU_*&limit=2", 2, "value"); got[1]["value"] != `a "fast" one` {
		t.Errorf("got %v", got)
	}
	f("/functions?name=MPI_*&order=name&limit=5000", 10, "id program fid function group anomalies lost_us")
	f("/functions?name=*compute_8(*", 1, "calls exclusive_us exclusive_mean_us exclusive_max_us inclusive_us inclusive_mean_us "+
		"anomalous_calls_percent anomalous_time_percent")
	fails(t, do(t, at+monday+"/functions?order=color", ""), 400, `unknown order "color" (want anomalies`)
}

func TestListsContinue(t *testing.T) {
	at, _ := serve(t, nil)
	for list, most := range map[string]int{"functions": storetest.Functions, "metadata": 6} {
		seen, cursor := make(map[string]bool), ""
		for pages := 0; ; pages++ {
			got := want[page](t, do(t, at+monday+"/"+list+"?limit=4&cursor="+cursor, ""), 200)
			for _, row := range got.Rows {
				seen[fmt.Sprint(row)] = true
			}
			if cursor = got.Next; cursor == "" {
				if len(seen) != most || pages != (most-1)/4 {
					t.Errorf("%s: %d rows in %d pages, want %d", list, len(seen), pages+1, most)
				}
				break
			}
		}
	}
}

func TestFunctionByIDAndName(t *testing.T) {
	at, _ := serve(t, nil)
	one := want[api.FunctionTable](t, do(t, at+monday+"/functions?name=*compute_8(*", ""), 200).Rows[0]
	got := want[api.FunctionDetail](t, do(t, at+monday+"/functions/"+one.ID+"?limit=7&columns=3", ""), 200)
	if !reflect.DeepEqual(got.FunctionRow, one) || got.Calls == nil || *got.Calls != 100 {
		t.Errorf("it is %+v, in the list %+v", got.FunctionRow, one)
	}
	if len(got.Ranks) != 7 || len(got.Paths) != 2 || got.Model == nil || len(got.Model.Counts) == 0 {
		t.Errorf("%d ranks, %d paths, model %+v", len(got.Ranks), len(got.Paths), got.Model)
	}
	anomalies, lost := int64(0), 0.0
	for _, p := range got.Paths {
		anomalies, lost = anomalies+p.Anomalies, lost+p.Lost
		if len(p.Path) != 5 || p.Path[0] != ".TAU application" || p.Path[4] != one.Function {
			t.Errorf("path %q", p.Path)
		}
	}
	for _, l := range got.Strip.Series {
		for c := range l.Lost {
			anomalies, lost = anomalies-l.N[c], lost-l.Lost[c]
		}
	}
	if anomalies != 0 || lost != 0 {
		t.Errorf("paths and strip differ by %v anomalies and %v us", anomalies, lost)
	}
	byName := want[api.FunctionDetail](t, do(t, at+monday+"/functions/"+url.PathEscape(one.Function)+"?limit=7&columns=3", ""), 200)
	if !reflect.DeepEqual(got, byName) {
		t.Errorf("by name %+v", byName)
	}
	fails(t, do(t, at+monday+"/functions/0:4711", ""), 404, "run monday has no function 0:4711")
	fails(t, do(t, at+monday+"/functions/nosuch", ""), 404, "not found")
	fails(t, do(t, at+monday+"/functions/MPI", ""), 400, "several functions")
}

func TestEventIsItsDocument(t *testing.T) {
	at, _ := serve(t, nil)
	for _, r := range storetest.Records(3, 1) {
		got := want[object](t, do(t, at+monday+"/events/"+r.EventID, ""), 200)
		if got["event_id"] != r.EventID || got["func"] != r.Func || len(got["call_stack"].([]any)) != len(r.CallStack) ||
			got["algo_params"] == nil {
			t.Errorf("got %v", got)
		}
	}
	fails(t, do(t, at+monday+"/events/0:0:0", ""), 404, "event 0:0:0 of run monday: not found")
	fails(t, do(t, at+monday+"/events/nonsense?program=x", ""), 400, `program: "x" is not a number`)
}

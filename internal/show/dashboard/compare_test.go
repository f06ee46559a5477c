package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/compare"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// comparableOf returns the comparable data of a run.
func comparableOf(t testing.TB, r provdb.Reader, run string) *comparison.Run {
	t.Helper()
	a, err := query.New(t.Context(), r, run)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Comparable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pairPath returns the path of a comparison.
func pairPath(what, a, b, more string) string {
	return "/api/v1/compare" + what + "?" + url.Values{"a": {a}, "b": {b}}.Encode() + more
}

// compareScene serves the scenes with another store and a baseline to compare with.
func compareScene(t *testing.T) (at string, baseline *comparison.Run) {
	t.Helper()
	tracetest.SkipShort(t, "starts a server")
	var b bytes.Buffer
	if err := comparableOf(t, openScenes(t), "burst").Encode(&b); err != nil {
		t.Fatal(err)
	}
	baseline, err := comparison.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	at = strings.TrimSuffix(scene(t, func(c *dashboard.Config, _ *pipeline) {
		c.References = []compare.Reference{{Where: "elsewhere", Run: "monday", Reader: filled(t)}, {Where: "good.baseline", Baseline: baseline}}
	}), "/api/v1/runs/")
	return at, baseline
}

func TestComparablesAreConfiguredRuns(t *testing.T) {
	at, _ := compareScene(t)
	list := want[api.Comparables](t, do(t, at+"/api/v1/comparable", ""), 200)
	var ids []string
	for _, r := range list.Rows {
		ids = append(ids, r.ID)
	}
	if want := []string{"0:burst", "0:burst-live", "1:monday", "1:tuesday/two", "2:burst"}; !slices.Equal(ids, want) ||
		list.Usual != "1:monday" || len(list.Problems) != 0 {
		t.Errorf("%q, %q", ids, list.Usual)
	}
	if r := list.Rows[4]; !r.Baseline || r.Where != "good.baseline" || r.State != "finished" || list.Rows[2].Where != "elsewhere" {
		t.Errorf("%+v", list.Rows)
	}
	for _, id := range []string{
		"3:burst", "-1:burst", "x", ":", "0:", "0", "1:", "2:other", "/etc/passwd", "0:../../etc",
		"99999999999999999999:x",
	} {
		a := do(t, at+pairPath("", id, "0:burst", ""), "")
		fails(t, a, 404, "")
	}
	fails(t, do(t, at+"/api/v1/compare?b=0:burst", ""), 400, "parameter a: is missing")
	fails(t, do(t, at+pairPath("", "0:burst", "0:burst", "&color=red"), ""), 400, `unknown parameter "color"`)
	fails(t, do(t, at+pairPath("/flame", "0:burst", "0:burst", "&metric=color"), ""), 400, "want lost or time")
	fails(t, do(t, at+pairPath("/histograms", "0:burst", "0:burst", ""), ""), 400, "parameter function: is missing")
	fails(t, do(t, at+pairPath("", "0:burst", "0:burst", ""), "x"), 405, "use GET")
	alone := want[api.Comparables](t, do(t, strings.TrimSuffix(scene(t, nil), "/runs/")+"/comparable", ""), 200)
	if len(alone.Rows) != 2 || alone.Usual != "0:burst" {
		t.Errorf("without anything else: %+v", alone)
	}
}

func TestFailingStoreDoesNotHideOthers(t *testing.T) {
	at := strings.TrimSuffix(scene(t, func(c *dashboard.Config, _ *pipeline) {
		c.References = []compare.Reference{{Where: "empty", Reader: emptyStore(t)}, {Where: "elsewhere", Run: "monday", Reader: filled(t)}}
	}), "/runs/")
	list := want[api.Comparables](t, do(t, at+"/comparable", ""), 200)
	if len(list.Problems) != 1 || !strings.Contains(list.Problems[0], "empty: the store has no runs") || list.Usual != "2:monday" {
		t.Errorf("%+v", list)
	}
}

// The page and chimbuko diff show the same figures, and a baseline equals its run.
func TestComparisonEqualsDiff(t *testing.T) {
	at, baseline := compareScene(t)
	monday := comparableOf(t, filled(t), "monday")
	d := comparison.Diff(baseline, monday, nil)
	for _, a := range []string{"0:burst", "2:burst"} {
		c := want[api.Comparison](t, do(t, at+pairPath("", a, "1:monday", "&limit=5000"), ""), 200)
		if c.Verdict.Sentence != d.Verdict.Sentence || c.Lost != d.Lost || c.Exclusive != d.Exclusive || c.Anomalies != d.Anomalies ||
			c.LostPercent != d.LostPercent || c.Calls != d.Calls {
			t.Errorf("%s: %+v", a, c)
		}
		if len(c.Changes) != len(d.Changes) || len(c.Functions) != len(d.Functions) || len(c.Metadata) != len(d.Metadata) || c.A.ID != a ||
			c.B.Where != "elsewhere" {
			t.Fatalf("%s: %d changes, %d functions, %d facts", a, len(c.Changes), len(c.Functions), len(c.Metadata))
		}
		counts := make(map[string]int64)
		for i, x := range c.Changes {
			y := d.Changes[i]
			counts[x.Kind]++
			if x.Kind != y.Kind || x.CallPath != y.CallPath || x.Lost != y.Lost || x.Mean != y.Mean || !reflect.DeepEqual(x.Distance, y.Distance) {
				t.Fatalf("%s: %+v, want %+v", a, x, y)
			}
		}
		if !reflect.DeepEqual(counts, c.Counts.Changes) {
			t.Errorf("%v, want %v", c.Counts.Changes, counts)
		}
	}
	few := want[api.Comparison](t, do(t, at+pairPath("", "0:burst", "1:monday", "&limit=2"), ""), 200)
	if len(few.Changes) != 2 || len(few.Functions) != 2 || few.Lost != d.Lost {
		t.Errorf("%d changes", len(few.Changes))
	}
	none := want[api.Comparison](t, do(t, at+pairPath("", "0:burst", "0:burst", "&program=7"), ""), 200)
	if len(none.Changes)+len(none.Functions) != 0 || !slices.ContainsFunc(none.Notices,
		func(n api.Notice) bool { return n.Topic == "same-run" }) {
		t.Errorf("%+v", none)
	}
	live := want[api.Comparison](t, do(t, at+pairPath("", "0:burst", "0:burst-live", ""), ""), 200)
	if live.Verdict.Level != api.LevelUnknown || !slices.ContainsFunc(live.Notices,
		func(n api.Notice) bool { return strings.HasPrefix(n.Sentence, "B has not ended") }) {
		t.Errorf("%+v %+v", live.Verdict, live.Notices)
	}
	if live.Lost[1] == 0 {
		t.Error("no lost time of a running run")
	}
}

func TestFlameGraphOfTwoRunsHasAllTimeOfBoth(t *testing.T) {
	at, _ := compareScene(t)
	for _, metric := range []string{"lost", "time"} {
		for _, b := range []string{"0:burst", "1:monday"} {
			flame := want[api.FlamePair](t, do(t, at+pairPath("/flame", "0:burst", b, "&metric="+metric), ""), 200)
			var self [2]float64
			var walk func(n api.FlamePairNode)
			walk = func(n api.FlamePairNode) {
				below := n.Self
				for i := range self {
					self[i] += n.Self[i]
					for _, c := range n.Children {
						below[i] += c.Total[i]
					}
				}
				if math.Abs(below[0]-n.Total[0])+math.Abs(below[1]-n.Total[1]) > 1e-3 {
					t.Errorf("%s: %q has %v, its parts %v", metric, n.Function, n.Total, below)
				}
				if b == "0:burst" && (n.Total[0] != n.Total[1] || n.Calls[0] != n.Calls[1]) {
					t.Errorf("%s: %q differs from itself", metric, n.Function)
				}
				for _, c := range n.Children {
					walk(c)
				}
			}
			walk(flame.Root)
			one := want[api.Flame](t, do(t, at+"/api/v1/runs/burst/flame?metric="+metric, ""), 200)
			if self != flame.Root.Total || math.Abs(flame.Root.Total[0]-one.Root.Total) > 1e-3 || one.Root.Total == 0 {
				t.Errorf("%s: %v in nodes, %v in the root, %v in the flame graph of A", metric, self, flame.Root.Total, one.Root.Total)
			}
		}
	}
	flame := want[api.FlamePair](t, do(t, at+pairPath("/flame", "0:burst", "1:monday", "&metric=time"), ""), 200)
	if !strings.Contains(flame.Partial, "unknown for B") {
		t.Errorf("%q", flame.Partial)
	}
}

func TestHistogramsOfTwoRunsShareBins(t *testing.T) {
	at, baseline := compareScene(t)
	i := slices.IndexFunc(baseline.Functions, func(f comparison.Function) bool {
		return comparison.Overlay([2]json.RawMessage{f.Model, f.Model}, 1) != nil
	})
	name := baseline.Functions[i].Name
	h := want[api.HistogramPair](t, do(t, at+pairPath("/histograms", "0:burst", "2:burst", "&bins=30&function="+url.QueryEscape(name)), ""),
		200)
	if len(h.Edges) != 31 || len(h.Shares[0]) != 30 || !reflect.DeepEqual(h.Shares[0], h.Shares[1]) || h.Distance != 0 || h.Moved != 0 ||
		h.Missing != "" || h.Samples[0] != baseline.Functions[i].Calls {
		t.Errorf("%+v", h)
	}
	h = want[api.HistogramPair](t, do(t, at+pairPath("/histograms", "0:burst", "1:monday", "&function="+url.QueryEscape(name)), ""), 200)
	if h.Missing != "B has no calls of it." || len(h.Edges) != 0 {
		t.Errorf("%+v", h)
	}
}

// Every store gives the same comparison.
func TestComparisonsDoNotDependOnTheStore(t *testing.T) {
	ctx, s := context.WithoutCancel(t.Context()), emptyPostgres(t)
	for name, n := range map[string]int{"monday": numRecords, "tuesday/two": 40} {
		if _, err := fill(ctx, s, name, n); err != nil {
			t.Fatal(err)
		}
	}
	duck, _ := serve(t, nil)
	postgres, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = s })
	function := want[api.Comparison](t, do(t, duck+pairPath("", "0:tuesday/two", "0:monday", ""), ""), 200).Functions[0].Function
	for _, path := range []string{
		pairPath("", "0:tuesday/two", "0:monday", "&limit=5000"), pairPath("", "0:monday", "0:tuesday/two", "&program=0"),
		pairPath("/flame", "0:tuesday/two", "0:monday", "&metric=lost"),
		pairPath("/histograms", "0:tuesday/two", "0:monday", "&function="+url.QueryEscape(function)),
		"/api/v1/compare/trend", "/api/v1/compare/trend?name=day&limit=3",
	} {
		a, b := do(t, duck+path, ""), do(t, postgres+path, "")
		var inDuck, inPostgres any
		if json.Unmarshal([]byte(a.body), &inDuck) != nil || json.Unmarshal([]byte(b.body), &inPostgres) != nil || a.code != 200 ||
			!reflect.DeepEqual(inDuck, inPostgres) {
			t.Errorf("%s:\nDuckDB     %d %.1000s\nPostgreSQL %d %.1000s", path, a.code, a.body, b.code, b.body)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	p := &pipeline{status: someStatus(), reader: openLarge(b)}
	server := func() http.Handler {
		return dashboard.New(dashboard.Config{Config: insight.Config{Source: p, Run: "running"}})
	}
	for name, path := range map[string]string{
		"changes": pairPath("", "0:ended", "0:running", ""),
		"flame":   pairPath("/flame", "0:ended", "0:running", "&metric=lost"),
	} {
		for _, fresh := range []bool{false, true} {
			b.Run(name+map[bool]string{true: "-first"}[fresh], func(b *testing.B) {
				h := server()
				request := func() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost"+path, nil))
					if w.Code != http.StatusOK {
						b.Fatalf("%d %s", w.Code, w.Body)
					}
				}
				request()
				for b.Loop() {
					if fresh {
						h = server()
					}
					request()
				}
			})
		}
	}
}

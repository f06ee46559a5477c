package dashboard_test

import (
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
)

// findingOf returns the finding of a function.
func findingOf(t *testing.T, at, function string) api.Finding {
	t.Helper()
	for _, i := range want[api.FindingList](t, do(t, at+"/findings", ""), 200).Rows {
		if i.Function == function {
			return i
		}
	}
	t.Fatalf("no finding of %s", function)
	return api.Finding{}
}

// The scenario burst has 15 slow calls of collide on rank 1, and 40 of stream on each rank of
// node01.
func TestFindingIsExplainedDuringAndAfterRun(t *testing.T) {
	at := scene(t, nil)
	for _, run := range []string{"burst", "burst-live"} {
		for function, planted := range map[string][2]string{"collide": {"rank", "1"}, "stream": {"host", "node01"}} {
			i := findingOf(t, at+run, function)
			e := want[api.Explained](t, do(t, at+run+"/explain?finding="+i.Key, ""), 200)
			if e.Selected != i.Calls || e.Lost != i.LostOwn || int64(e.Examined) != i.Calls || e.Typical == 0 || len(e.Functions) != 1 ||
				len(e.Fields) == 0 {
				t.Fatalf("%s, %s: got %+v of %+v", run, function, e, i)
			}
			first := e.Fields[0]
			if first.Kind != planted[0] || first.Values != planted[1] || first.With != first.Of || !strings.Contains(e.Sentence, planted[1]) {
				t.Errorf("%s, %s: got %q, %+v, want %v", run, function, e.Sentence, first, planted)
			}
			for _, f := range e.Fields {
				here, there := 0.0, 0.0
				for _, b := range f.Bars {
					here, there = here+b.Share, there+b.BaselineShare
				}
				if here > 1+1e-9 || there > 1+1e-9 || len(f.Bars) == 0 || math.IsNaN(f.Bits) || f.Support == "" || f.Rest == "" {
					t.Errorf("%s, %s: %+v", run, function, f)
				}
			}
			if cmd := "chimbuko explain RUN --run " + run + " --finding "; !strings.HasPrefix(e.Command, cmd) {
				t.Errorf("%q is not %q", e.Command, cmd)
			}
		}
	}
}

func TestBoxIsExplainedByOtherFields(t *testing.T) {
	at := scene(t, nil) + "burst/explain"
	e := want[api.Explained](t, do(t, at+"?rank=4-7&from=5.5&to=6.5&min_us=100", ""), 200)
	if e.Selected == 0 || e.Command != "chimbuko explain RUN --run burst --rank 4-7 --from 5.5 --to 6.5 --min-us 100" {
		t.Fatalf("got %+v", e)
	}
	for _, f := range e.Fields {
		chosen := f.Kind == "rank" || f.Kind == "host" || f.Kind == "time" || f.Kind == "step"
		if (f.Role == "chosen") != chosen || chosen && f.Notable {
			t.Errorf("got %+v", f)
		}
	}
	none := want[api.Explained](t, do(t, at+"?host=nowhere", ""), 200)
	if none.Selected != 0 || none.Fields == nil || none.Functions == nil || none.Sentence == "" {
		t.Errorf("of nothing: got %+v", none)
	}
	all := want[api.Explained](t, do(t, at, ""), 200)
	again := want[api.Explained](t, do(t, at, ""), 200)
	if all.Selected < e.Selected || all.Others != 0 || !reflect.DeepEqual(all, again) {
		t.Errorf("of all: got %+v and %+v", all, again)
	}
}

func TestInvalidExplanationsAreRejected(t *testing.T) {
	at := scene(t, nil) + "burst/explain"
	for query, status := range map[string]int{
		"?finding=nothing": 404, "?rank=x": 400, "?from=2&to=1": 400, "?min_us=-1": 400, "?kind=odd": 400, "?color=red": 400,
		"?only=color=red": 400, "?without=rank=x": 400, "?lasso=1:2": 400, "/groups": 400, "/groups?by=color": 400,
		"/groups?by=rank&limit=-1": 400, "/groups?by=rank&finding=nothing": 404,
		"?" + strings.Repeat("only=rank=1&", 60): 400, "?from=" + url.QueryEscape("soon"): 400,
	} {
		if p := want[object](t, do(t, at+query, ""), status); p["error"] == "" {
			t.Errorf("%s: %v", query, p)
		}
	}
}

// In burst 40 calls of stream are slow on each rank of node01, which are 4 to 7.
func TestSelectionIsNarrowedAndGrouped(t *testing.T) {
	at := scene(t, func(c *dashboard.Config, _ *pipeline) { c.Place = "/data/it's a run" })
	i := findingOf(t, at+"burst", "stream")
	of := "burst/explain?finding=" + i.Key
	first := want[api.Explained](t, do(t, at+of, ""), 200).Fields[0]
	if first.Key != "host" || !reflect.DeepEqual(first.Terms, []string{"host=node01"}) {
		t.Fatalf("got %+v", first)
	}
	narrowed := want[api.Explained](t, do(t, at+of+"&only="+url.QueryEscape(first.Terms[0])+"&without=rank=4..5&without=rank=7", ""), 200)
	if narrowed.Selected != 40 || narrowed.Command != `chimbuko explain '/data/it'\''s a run' --run burst --finding 2 --only host=node01 --without rank=4..5 --without rank=7` {
		t.Errorf("got %+v", narrowed)
	}
	for _, f := range narrowed.Fields {
		if (f.Key == "host") != (f.Role == "chosen") {
			t.Errorf("got %+v", f)
		}
	}
	g := want[api.ExplainGroups](t, do(t, at+strings.Replace(of, "explain?", "explain/groups?", 1)+"&by=rank&limit=3&without=rank=5", ""), 200)
	if g.Selected != 120 || g.Examined != 120 || len(g.Rows) != 3 || g.Values != 3 || g.Ranges || g.Rows[0].Executions != 40 ||
		!strings.HasPrefix(g.Rows[0].Term, "rank=") || g.Rows[0].Lost < g.Rows[1].Lost ||
		!strings.HasSuffix(g.Command, " --without rank=5 --group-by rank") {
		t.Errorf("got %+v", g)
	}
	several := want[api.Explained](t, do(t, at+"burst/explain?rank=0-7", ""), 200)
	byFunction := want[api.ExplainGroups](t, do(t, at+"burst/explain/groups?rank=0-7&by=function", ""), 200)
	if len(several.Functions) < 2 || several.Functions[0].Term != "function=stream" || byFunction.Values != len(several.Functions) ||
		byFunction.Selected != several.Selected {
		t.Errorf("got %+v and %+v", several.Functions, byFunction)
	}
	for _, r := range byFunction.Rows {
		only := want[api.Explained](t, do(t, at+"burst/explain?rank=0-7&only="+url.QueryEscape(r.Term), ""), 200)
		if only.Selected != r.Executions || only.Lost != r.Lost || len(only.Functions) != 1 || only.Functions[0].Term != r.Term {
			t.Errorf("%+v: got %+v", r, only)
		}
	}
	inside := want[api.Explained](t, do(t, at+of+"&lasso="+url.QueryEscape("5:10,7:10,7:1000000,5:1000000"), ""), 200)
	if inside.Selected != 160 || !strings.Contains(inside.Command, "--lasso 5:10,7:10,7:1000000,5:1000000") {
		t.Errorf("got %+v", inside)
	}
}

package dashboard_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// walkFlame calls f with each node and its path.
func walkFlame(n api.FlameNode, path []string, f func(n api.FlameNode, path []string)) {
	path = append(slices.Clip(path), n.Function)
	f(n, path)
	for _, c := range n.Children {
		walkFlame(c, path, f)
	}
}

func TestFlameGraphHasAllTime(t *testing.T) {
	at, store := scene(t, nil)+"burst/", openScenes(t)
	for metric, sql := range map[string]string{
		"lost": countLost, "time": `SELECT sum(exclusive_accumulate)::BIGINT FROM func_stats f JOIN runs r ON r.run = f.run WHERE r.name = $1`,
	} {
		flame := want[api.Flame](t, do(t, at+"flame?metric="+metric, ""), 200)
		self := 0.0
		walkFlame(flame.Root, nil, func(n api.FlameNode, path []string) {
			self += n.Self
			below := n.Self
			for i, c := range n.Children {
				if below += c.Total; i > 0 && c.Total > n.Children[i-1].Total {
					t.Errorf("%s: the children of %q are not in order", metric, path)
				}
			}
			if math.Abs(below-n.Total) > 1e-3 || n.Group == "" {
				t.Errorf("%s: %q has %v, its parts %v", metric, path, n.Total, below)
			}
		})
		if all := float64(count(t, store, sql, "burst")); math.Abs(self-all) > 1 || math.Abs(flame.Root.Total-all) > 1 || flame.Metric != metric {
			t.Errorf("%s: %v in nodes, %v in the root, want %v", metric, self, flame.Root.Total, all)
		}
		if flame.Partial != "" {
			t.Errorf("%s: %q", metric, flame.Partial)
		}
	}
	live := want[api.Flame](t, do(t, scene(t, nil)+"burst-live/flame", ""), 200)
	if !strings.HasPrefix(live.Partial, "Times of call paths are unknown") || len(live.Root.Children) != 0 {
		t.Errorf("%+v", live)
	}
	fails(t, do(t, at+"flame?metric=color", ""), 400, `(want lost or time)`)
}

func TestFunctionsAreListedWithTheirFigures(t *testing.T) {
	at, store := scene(t, nil), openScenes(t)
	table := want[api.FunctionTable](t, do(t, at+"burst/functions?limit=5000", ""), 200)
	lost, calls, modes := 0.0, int64(0), 0
	for i, f := range table.Rows {
		lost += f.Lost
		calls += *f.Calls
		if f.Modes != nil {
			modes++
		}
		if i > 0 && f.Lost > table.Rows[i-1].Lost || f.Group == "" || f.ExclusiveMax == nil || (*f.AnomalousCalls > 0) != (f.Anomalies > 0) {
			t.Errorf("%+v", f)
		}
	}
	if want := count(t, store, `SELECT (info -> 'totals' ->> 'calls')::BIGINT FROM runs WHERE name = $1`, "burst"); calls != want ||
		int64(lost) != count(t, store, countLost, "burst") || modes < 5 || table.Total != int64(len(table.Rows)) {
		t.Errorf("%v calls, want %v; lost %v; %v functions have modes; %v of %v", calls, want, lost, modes, len(table.Rows), table.Total)
	}
	few := want[api.FunctionTable](t, do(t, at+"burst/functions?limit=2&cursor=1", ""), 200)
	if !reflect.DeepEqual(few.Rows, table.Rows[1:3]) || few.Next != "3" || few.Total != table.Total {
		t.Errorf("%+v", few)
	}
	detail := want[api.FunctionDetail](t, do(t, at+"burst/functions/"+table.Rows[0].ID, ""), 200)
	if detail.Model == nil || len(detail.Model.Normal) != int(*detail.Modes) || len(detail.Strip.Series) == 0 ||
		len(detail.Strip.Series[0].Lost) != 60 {
		t.Errorf("%+v", detail)
	}
}

func TestSearchFindsAllKinds(t *testing.T) {
	at := scene(t, nil) + "burst/"
	findings := want[api.FindingList](t, do(t, at+"findings", ""), 200).Rows
	f := func(query string, want1 ...api.Found) {
		t.Helper()
		if got := want[api.FoundList](t, do(t, at+"search?limit=3&q="+query, ""), 200); !reflect.DeepEqual(got.Rows,
			append([]api.Found{}, want1...)) {
			t.Errorf("%q:\n got %+v\nwant %+v", query, got.Rows, want1)
		}
	}
	function := api.Found{Kind: "function", Text: findings[0].Function, Route: "/functions?sel=" + findings[0].FunctionID}
	f("")
	f("nothing+of+that+name")
	f("COLLID", function)
	f("rank:1", api.Found{Kind: "rank", Text: "rank 1 on node00", Route: "/findings?rank=1"})
	f("rank%201", api.Found{Kind: "rank", Text: "rank 1 on node00", Route: "/findings?rank=1"})
	f("rank:99")
	f("node01", api.Found{Kind: "host", Text: "node01 (4 ranks)", Route: "/findings?host=node01"})
	f("%231", api.Found{Kind: "finding", Text: "#1 " + findings[0].Summary, Route: "/findings?sel=" + findings[0].Key})
	f("%230")
	f("%23999999999")
	event := api.Found{Kind: "event", Text: "0:" + findings[0].Example + " " + findings[0].Function, Route: "/e/0:" + findings[0].Example}
	f(findings[0].Example, event)
	f("0:"+findings[0].Example, event)
	f("7:" + findings[0].Example)
	f("99999999999999999999:1:1")
	fails(t, do(t, at+"search?q="+strings.Repeat("x", 1001), ""), 400, "longer than 1000")
	fails(t, do(t, at+"search?q=x&limit=201", ""), 400, "from 0 to 200")
}

package query_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// inEachStore runs a test with each kind of store.
func inEachStore(t *testing.T, test func(t *testing.T, store provdb.Store)) {
	t.Run("DuckDB", func(t *testing.T) {
		test(t, sharedStore(t))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		test(t, sharedPostgres(t))
	})
}

// maxExamined is the number of executions up to which the details of all are examined.
const maxExamined = 400

// For every field, terms select as many executions as the explanation counts, and groups add up to
// the selection.
func TestFieldsFilterExcludeAndGroup(t *testing.T) {
	inEachStore(t, func(t *testing.T, store provdb.Store) {
		a := explainable(t, store, &plantedCause{scenario: "every-field"}, 0)
		result, err := a.Findings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[contrast.FieldKey]bool)
		for i := range result.Findings {
			q := query.Selection{Finding: &result.Findings[i]}
			e := explainedAs(t, a, q)
			if e.Selected == 0 || e.Selected > maxExamined {
				t.Fatalf("%s: selected %d executions, want 1 to %d", result.Findings[i].Func, e.Selected, maxExamined)
			}
			for j := range e.Fields {
				// One finding is enough to test a field.
				if f := &e.Fields[j]; !seen[f.Key] {
					seen[f.Key] = true
					if !testing.Short() || len(seen)%6 == 1 {
						checkField(t, a, q, e, f)
					}
				}
			}
		}
		want := []string{
			"bytes", "call-path", "counter:L2 misses", "gpu-stream", "host", "link", "node-state:Memory Footprint (VmRSS) (KB)", "partner", "rank",
			"step", "thread", "time",
		}
		var got []string
		for key := range seen {
			got = append(got, key.String())
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got fields %v, want %v", got, want)
		}
		// Each rank has one device.
		device, err := a.Group(t.Context(), query.Selection{}, contrast.FieldKey{Kind: contrast.FieldDevice}, 5)
		if err != nil || len(device.Rows) != 1 || device.Rows[0].Executions == 0 || device.None.Executions == 0 {
			t.Fatalf("got %+v, %v", device, err)
		}
		if e := explainedAs(t, a, query.Selection{Only: terms(t, device.Rows[0].Term)}); e.Selected != device.Rows[0].Executions {
			t.Errorf("got %d on the device, want %d", e.Selected, device.Rows[0].Executions)
		}
	})
}

// Functions do not explain a selection, because its baseline has the same functions.
func TestFunctionsFilterExcludeAndGroupByName(t *testing.T) {
	inEachStore(t, func(t *testing.T, store provdb.Store) {
		a := explainable(t, store, &plantedCause{scenario: "every-field"}, 0)
		rows, err := a.Query(t.Context(), `SELECT func, count(*), sum(lost_time)::BIGINT FROM anomalies
			WHERE run = $1 AND status IS DISTINCT FROM 'withdrawn' AND rid < 4 GROUP BY func`, int32(a.Run.ID))
		if err != nil {
			t.Fatal(err)
		}
		functions, err := rows.Collect()
		if err != nil || len(functions) < 3 {
			t.Fatal(functions, err)
		}
		box := executions.Filter{Ranks: []trace.Range{{First: 0, Last: 3}}}
		all := explainedAs(t, a, query.Selection{Filter: box})
		g, err := a.Group(t.Context(), query.Selection{Filter: box}, contrast.FieldKey{Kind: contrast.FieldFunction}, 100)
		if err != nil || len(g.Rows) != len(functions) || g.Name != "function" || g.Selected != all.Selected || g.Lost != all.Lost ||
			g.None.Executions != 0 {
			t.Fatalf("got %+v, %v; want %v", g, err, functions)
		}
		for _, row := range tracetest.Sample(functions, 3) {
			name, n, lost := row[0].(string), row[1].(int64), float64(row[2].(int64))
			if !slices.ContainsFunc(g.Rows, func(r api.ExplainGroup) bool { return r.Label == name && r.Executions == n && r.Lost == lost }) {
				t.Errorf("%v is not in %+v", row, g.Rows)
			}
			of := terms(t, "function="+name)
			only, without := explainedAs(t, a, query.Selection{Filter: box, Only: of}), explainedAs(t, a, query.Selection{Filter: box, Without: of})
			if only.Selected != n || only.Lost != lost || len(only.Functions) != 1 || only.Functions[0].Function != name {
				t.Errorf("only %s: got %d that lost %v, %v; want %d and %v", name, only.Selected, only.Lost, only.Functions, n, lost)
			}
			if without.Selected != all.Selected-n || without.Lost != all.Lost-lost || len(without.Functions) != len(functions)-1 {
				t.Errorf("without %s: got %d that lost %v, %v", name, without.Selected, without.Lost, without.Functions)
			}
		}
		for _, f := range all.Fields {
			if f.Kind == contrast.FieldFunction {
				t.Errorf("the function explains the selection: %+v", f)
			}
		}
	})
}

func explainedAs(t *testing.T, a *query.Queries, q query.Selection) *contrast.Explanation {
	t.Helper()
	e, err := a.Explain(t.Context(), q)
	if err != nil {
		t.Fatalf("%v, %v: %v", q.Only, q.Without, err)
	}
	return e
}

// checkField filters, excludes and groups by a field.
func checkField(t *testing.T, a *query.Queries, q query.Selection, e *contrast.Explanation, f *contrast.Difference) {
	t.Helper()
	what := fmt.Sprintf("%s, %s, %v", a.Run.Name, q.Finding.Func, f.Terms)
	only, without := q, q
	only.Only, without.Without = f.Terms, f.Terms
	with, rest := explainedAs(t, a, only), explainedAs(t, a, without)
	if with.Selected != int64(f.With) || rest.Selected != e.Selected-int64(f.With) || with.Lost+rest.Lost != e.Lost || with.Estimated ||
		len(f.Terms) == 0 {
		t.Errorf("%s: only selects %d and without %d of %d, want %d with the value; lost %v and %v of %v", what,
			with.Selected, rest.Selected, e.Selected, f.With, with.Lost, rest.Lost, e.Lost)
	}
	for i := range with.Fields {
		if c := &with.Fields[i]; c.Key == f.Key && c.Notable {
			t.Errorf("%s: %s is notable, although it was selected by", what, c.Name)
		}
	}
	g, err := a.Group(t.Context(), q, f.Key, 5)
	if err != nil {
		t.Fatal(err)
	}
	n, lost := g.Rest.Executions+g.None.Executions, g.Rest.Lost+g.None.Lost
	for i := range g.Rows {
		r := &g.Rows[i]
		n, lost = n+r.Executions, lost+r.Lost
		if testing.Short() && i > 0 {
			continue
		}
		one := q
		one.Only = terms(t, r.Term)
		if got := explainedAs(t, a, one); got.Selected != r.Executions || got.Lost != r.Lost {
			t.Errorf("%s: group %s has %d executions that lost %v, its term selects %d that lost %v",
				what, r.Term, r.Executions, r.Lost, got.Selected, got.Lost)
		}
		if i > 0 && !g.Ranges && r.Lost > g.Rows[i-1].Lost {
			t.Errorf("%s: %s lost more than %s", what, r.Label, g.Rows[i-1].Label)
		}
	}
	if n != e.Selected || lost != e.Lost || g.Selected != e.Selected || g.Lost != e.Lost || g.Examined != e.Selected || len(g.Rows) > 5 ||
		len(g.Rows) == 0 {
		t.Errorf("%s: got groups %+v, want %d executions that lost %v", what, g, e.Selected, e.Lost)
	}
}

// While a run is in progress, the members of a finding are not stored.
func TestListedMembersCanBeFilteredAndGrouped(t *testing.T) {
	inEachStore(t, func(t *testing.T, store provdb.Store) {
		a := explainable(t, store, &plantedCause{scenario: "burst"}, 0)
		result, err := a.Findings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x := &result.Findings[slices.IndexFunc(result.Findings, func(x provenance.Finding) bool { return x.Func == "stream" })]
		member := func(_ trace.Program, event string) bool { return event[0] >= '4' } // on ranks 4 to 7
		for key, want := range map[string]int64{"rank": 40, "host": 160} {
			field, err := contrast.ParseField(key)
			if err != nil {
				t.Fatal(err)
			}
			g, err := a.Group(t.Context(), query.Selection{Finding: x, Member: member}, field, 10)
			if err != nil || g.Rows[0].Executions != want || g.Examined != 160 {
				t.Errorf("%s: got %+v, %v", key, g, err)
			}
		}
		q := query.Selection{Finding: x, Member: member, Without: terms(t, "rank=4..5")}
		if e := explainedAs(t, a, q); e.Selected != 80 || e.Lost >= float64(x.LostOwn) || e.Lost <= 0 {
			t.Errorf("got %+v", e)
		}
	})
}

func terms(t *testing.T, texts ...string) (list []contrast.Term) {
	t.Helper()
	for _, text := range texts {
		term, err := contrast.ParseTerm(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, term)
	}
	return list
}

// Excluded ranks and hosts are also excluded from the baseline.
func TestExcludedExecutionsAreInNeitherSide(t *testing.T) {
	inEachStore(t, func(t *testing.T, store provdb.Store) {
		a := explainable(t, store, &plantedCause{scenario: "burst"}, 0)
		q := query.Selection{Without: terms(t, "rank=1", "host=node01")}
		for _, f := range explainedAs(t, a, q).Fields {
			if f.Kind == contrast.FieldRank && f.Rest != "1 of 3 ranks" && f.Rest != "2 of 3 ranks" && f.Rest != "3 of 3 ranks" {
				t.Errorf("got %s", f.Rest)
			}
			for _, b := range f.Bars {
				if (f.Kind == contrast.FieldHost && b.Label == "node01" || f.Kind == contrast.FieldRank && b.Label == "1") &&
					b.Share+b.BaselineShare > 0 {
					t.Errorf("got %+v", b)
				}
			}
		}
		// Terms of one field are alternatives; terms of different fields must all hold.
		for n, only := range map[int64][]string{
			160: {"rank=4..5", "rank=6..7"},
			40:  {"rank=4..5", "host=node01", "rank=7", "without rank=4..5"},
		} {
			q := query.Selection{Filter: executions.Filter{Function: "stream"}}
			for _, text := range only {
				if text, isWithout := cut(text, "without "); isWithout {
					q.Without = append(q.Without, terms(t, text)...)
				} else {
					q.Only = append(q.Only, terms(t, text)...)
				}
			}
			if e := explainedAs(t, a, q); e.Selected != n {
				t.Errorf("%v: got %d, want %d", only, e.Selected, n)
			}
		}
	})
}

func cut(text, prefix string) (string, bool) {
	if len(text) > len(prefix) && text[:len(prefix)] == prefix {
		return text[len(prefix):], true
	}
	return text, false
}

// A lasso is a polygon of straight lines in a picture of durations by their logarithm.
func TestLassoSelectsInside(t *testing.T) {
	inEachStore(t, func(t *testing.T, store provdb.Store) {
		a := explainable(t, store, &plantedCause{scenario: "burst"}, 0)
		rows, err := a.Query(t.Context(), "SELECT entry, runtime_exclusive FROM anomalies WHERE run = $1 AND status IS DISTINCT FROM "+
			"'withdrawn'", int32(a.Run.ID))
		if err != nil {
			t.Fatal(err)
		}
		all, err := rows.Collect()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			"0:1,100:1,100:100000000,0:100000000",                         // everything
			"5:1,5.8:100000000,6.6:1",                                     // a triangle
			"5:10,6.6:10000000,6.6:10,5:10000000",                         // a bow tie
			"4:100,5.5:2000,7:100,6:3000,7:90000,5.5:5000,4:90000,5:3000", // a star
			"5:0,6:0,6:0.5", // below all executions
		} {
			lasso, err := contrast.ParseLasso(text)
			if err != nil {
				t.Fatal(err)
			}
			want := int64(0)
			for _, row := range all {
				if within(lasso, float64(row[0].(int64)-int64(a.Begin))/1e6, float64(row[1].(int64))) {
					want++
				}
			}
			e := explainedAs(t, a, query.Selection{Lasso: lasso})
			if e.Selected != want || contrast.LassoText(lasso) != text {
				t.Errorf("%s: got %d, want %d; as %s", text, e.Selected, want, contrast.LassoText(lasso))
			}
			for _, f := range e.Fields {
				if (f.Kind == contrast.FieldTime || f.Kind == contrast.FieldStep) && f.Notable {
					t.Errorf("%s selects by time, but time is notable", text)
				}
			}
		}
	})
}

// within reports whether a polygon winds around a point, by the sum of the angles to its corners.
func within(lasso []contrast.Vertex, seconds, micros float64) bool {
	turns := 0.0
	angle := func(v contrast.Vertex) float64 {
		return math.Atan2(math.Log(max(1, v.Micros))-math.Log(max(1, micros)), v.Seconds-seconds)
	}
	for i, v := range lasso {
		turns += math.Remainder(angle(lasso[(i+1)%len(lasso)])-angle(v), 2*math.Pi)
	}
	return math.Abs(turns) > math.Pi && int(math.Round(math.Abs(turns)/(2*math.Pi)))%2 == 1
}

func TestInvalidTermsAreRejectedWithReason(t *testing.T) {
	for _, text := range []string{
		"", "host", "=x", "host=", "color=red", "counter=5", "counter:=5", "rank:x=5", "rank=x", "rank=-1", "rank=1.5", "rank=5..4", "rank=..",
		"rank=99999999999",
		"time=5", "time=1e300..", "bytes=NaN", "bytes=..Inf", "link=5", "link=5:x", "host=\x00", "host=\xff", "node-state:x=soon", "node-state=3",
	} {
		if term, err := contrast.ParseTerm(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, term)
		}
	}
	for _, text := range []string{"", "1:2,3:4", "1:2,3:4,5", "1:2,3:4,x:6", "1:2,3:4,5:-6", "1:2,3:4,NaN:6"} {
		if lasso, err := contrast.ParseLasso(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, lasso)
		}
	}
}

func FuzzTerm(f *testing.F) {
	for _, text := range []string{
		"host=node02", "function=operator()(int, a = b) [{f.cc} {7,0}]", "rank=3", "rank=4..7", "thread=0", "step=..12", "time=9.03..13.25",
		"call-path=main() > f(int, a = b)", "link=5:6", "partner=7", "bytes=100000..",
		"gpu-device=0", "gpu-stream=1", "counter:a=b:c=..400", "node-state:Memory Footprint (VmRSS) (KB)=-1.5..1e9",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		term, err := contrast.ParseTerm(text)
		if err != nil {
			return
		}
		again, err := contrast.ParseTerm(term.String())
		if err != nil || again != term {
			t.Errorf("%q: parsed %+v, whose text %q parses as %+v, %v", text, term, term, again, err)
		}
	})
}

func FuzzLasso(f *testing.F) {
	f.Add("9.03:1200,9.5:1300,9:1e6")
	f.Fuzz(func(t *testing.T, text string) {
		lasso, err := contrast.ParseLasso(text)
		if err != nil {
			return
		}
		again, err := contrast.ParseLasso(contrast.LassoText(lasso))
		if err != nil || !slices.Equal(again, lasso) {
			t.Errorf("%q: parsed %v, whose text parses as %v, %v", text, lasso, again, err)
		}
	})
}

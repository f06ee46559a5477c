package query_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestCopyAnswersLikeStore(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	t.Run("DuckDB", func(t *testing.T) {
		s, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		compareAnswers(t, s, 9000) // more than two blocks
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		s, err := pgstore.Open(t.Context(), pgtest.Shared(t).Database(t), pgstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		compareAnswers(t, s, 3000) // the copy is the same for all stores
	})
}

func compareAnswers(t *testing.T, s provdb.Store, records int) {
	t.Helper()
	t.Cleanup(func() { _ = s.Close() })
	ctx := context.WithoutCancel(t.Context())
	id, err := s.CreateRun(ctx, provdb.Run{Name: "run", State: provdb.Running, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	timelines := 60
	if testing.Short() {
		records, timelines = 1000, 5
	}
	all := storetest.Records(records, 3)
	for i, r := range all {
		switch i % 50 {
		case 0: // zero duration
			r.Exit = r.Entry
		case 1: // long
			r.Exit = r.Entry + trace.Ticks(i)*10_000
		case 2:
			r.Kind = ""
		}
	}
	all[5].EventID = "an odd id"
	typical := all[records*4/5:]
	for _, r := range typical {
		r.Status, r.LostTime, r.Kind, r.Why = "", 0, "", ""
	}
	if err := s.Write(ctx, id, &provdb.Batch{Anomalies: all[:records*4/5], Typical: typical}); err != nil {
		t.Fatal(err)
	}
	store, err := query.New(ctx, s, "run")
	if err != nil {
		t.Fatal(err)
	}
	found := linkedFindings(ctx, t, store)
	if err := s.Write(ctx, id, &provdb.Batch{Findings: found.Findings, Links: found.Links}); err != nil {
		t.Fatal(err)
	}
	memory := *store
	inMemory(t, &memory)
	one, err := store.Function(ctx, "*relax_22*", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("executions", func(t *testing.T) { compareExecutions(t, store, &memory, found, all) })
	t.Run("lists", func(t *testing.T) { compareLists(t, store, &memory) })
	t.Run("functions", func(t *testing.T) { compareFunctions(t, store, &memory, found) })
	t.Run("explanations", func(t *testing.T) { compareExplanations(t, store, &memory, found) })
	rng := rand.New(rand.NewPCG(1, 2))
	for range timelines {
		q := executions.Timeline{From: trace.Ticks(rng.Int64N(12e6)) - 2e6, Columns: 1 + rng.IntN(400)}
		q.To = q.From + 1 + trace.Ticks(rng.Int64N([]int64{10, 1e5, 15e6}[rng.IntN(3)]))
		if rng.IntN(3) > 0 {
			q.Lines = make(map[trace.RankKey]int)
			for rank := range rng.IntN(2 * storetest.Ranks) {
				q.Lines[trace.RankKey{Rank: trace.Rank(rank)}] = rank * 37 % 50
			}
		}
		q.Filter.Function = []string{"", "MPI_*", "*relax_2?(*", "nobody"}[rng.IntN(4)]
		if rng.IntN(4) == 0 {
			q.Filter.Kinds = []string{"slow", "gpu"}
		}
		if rng.IntN(4) == 0 {
			q.Filter.One = one
		}
		want, err := store.Timeline(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := memory.Timeline(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 && len(want) == 0 {
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("from %d to %d in %d columns, %d lines, %+v:\ngot  %+v\nwant %+v", q.From, q.To, q.Columns, len(q.Lines), q.Filter, got, want)
		}
	}
}

// linkedFindings returns the findings of a run in which some anomalies wait for others.
func linkedFindings(ctx context.Context, t *testing.T, a *query.Queries) *findings.Result {
	t.Helper()
	found, err := a.Conclude(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found.Links {
		l, culprit := &found.Links[i], &found.Links[i-i%20]
		if i%20 > 0 {
			l.Role, l.Culprit, l.CulpritPID, l.Hops = provenance.Victim, culprit.EventID, culprit.PID, 1
			culprit.Role, culprit.Waits = provenance.Culprit, culprit.Waits+1
		}
	}
	return found
}

// same fails the test if the results from memory and from the store differ.
func same[T any](t *testing.T, what string, store, memory func() (T, error)) {
	t.Helper()
	want, err := store()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, err := memory()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

func compareExecutions(t *testing.T, store, memory *query.Queries, found *findings.Result, all []*provenance.Record) {
	ctx := t.Context()
	finding := make(map[string]int)
	for i := range found.Links {
		finding[found.Links[i].EventID] = found.Links[i].Finding
	}
	step := 487
	if testing.Short() {
		step = 1399
	}
	for i := 0; i < len(all); i += step {
		r := all[i]
		for _, offset := range []int{0, 5} { // an odd offset as well
			if offset > 0 {
				if i > 0 {
					break
				}
				r = all[offset]
			}
			place, err := store.Place(ctx, r)
			if err != nil || place == nil {
				t.Fatal(place, err)
			}
			ask := func(f func(a *query.Queries) (any, error)) {
				t.Helper()
				same(t, fmt.Sprintf("%d: %s", i, r.EventID), func() (any, error) { return f(store) }, func() (any, error) { return f(memory) })
			}
			ask(func(a *query.Queries) (any, error) { return a.Place(ctx, r) })
			ask(func(a *query.Queries) (any, error) {
				e, other, place, path, err := a.EventWithTwin(ctx, r.EventID, &r.PID)
				return []any{e, other, place, path}, err
			})
			ask(func(a *query.Queries) (any, error) { return a.FunctionOf(ctx, r.EventID, r.PID) })
			ask(func(a *query.Queries) (any, error) { return a.Related(ctx, r.PID, r.EventID) })
			ask(func(a *query.Queries) (any, error) { return a.Victims(ctx, r.PID, r.EventID, 7) })
			if n := finding[r.EventID]; n > 0 {
				ask(func(a *query.Queries) (any, error) {
					previous, next, err := a.Neighbors(ctx, n, r)
					return [2]string{previous, next}, err
				})
			}
		}
	}
}

func compareLists(t *testing.T, store, memory *query.Queries) {
	ended := *memory
	ended.Run.State = provdb.Finished
	at := func(s time.Duration) *time.Duration { s *= time.Second; return &s }
	for i, f := range []executions.Filter{
		{},
		{Function: "*relax_2*"},
		{Function: "nobody"},
		{Host: "node001*", Kinds: []string{"slow"}},
		{Ranks: []trace.Range{{First: 3, Last: 90}}, Since: at(1), Until: at(4), Lost: 1000},
		{Steps: &trace.Range{First: 2, Last: 5}, Withdrawn: true},
		{Normal: true},
		{Score: 3},
	} {
		for j, order := range []string{"severity", "lost", "score", "time"} {
			if testing.Short() && (i+j)%4 > 0 {
				continue
			}
			f.Order = order
			for _, page := range tracetest.Sample([][2]int{{0, 50}, {0, 1}, {77, 3}, {700, 900}, {0, 100_000}}, 2) {
				f.Offset, f.Limit = page[0], page[1]
				list := func(a *query.Queries) func() ([][]any, error) {
					return func() ([][]any, error) {
						rows, err := a.Executions(t.Context(), f)
						if err != nil {
							return nil, err
						}
						return rows.Collect()
					}
				}
				same(t, fmt.Sprint("filter ", i, " by ", f.Order, " from ", f.Offset), list(store), list(&ended))
			}
		}
	}
}

func compareFunctions(t *testing.T, store, memory *query.Queries, found *findings.Result) {
	ctx := t.Context()
	functions, err := store.Functions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	every := 7
	if testing.Short() {
		every = 21
	}
	for i := range functions {
		if i%every > 0 {
			continue
		}
		f := &functions[i]
		ask := func(f func(a *query.Queries) (any, error)) {
			t.Helper()
			same(t, functions[i].Name, func() (any, error) { return f(store) }, func() (any, error) { return f(memory) })
		}
		ask(func(a *query.Queries) (any, error) { return a.RankLosses(ctx, f, 30) })
		ask(func(a *query.Queries) (any, error) { return a.PathLosses(ctx, f, 5) })
		ask(func(a *query.Queries) (any, error) { return a.PointsOfFunction(ctx, f, 100) })
		ask(func(a *query.Queries) (any, error) { return a.TypicalPoints(ctx, f, 20) })
		ask(func(a *query.Queries) (any, error) {
			return a.FunctionTable(ctx, query.FunctionTable{Function: f, Order: "name", Limit: 1})
		})
		for k := range found.Findings {
			if x := &found.Findings[k]; x.Func == f.Name {
				ask(func(a *query.Queries) (any, error) { return a.PointsOfFinding(ctx, x.Number, 50) })
			}
		}
	}
	for _, order := range []string{"lost", "anomalies", "name"} {
		table := query.FunctionTable{Name: "*e*", Order: order, Limit: 40}
		same(t, order, func() (*api.FunctionTable, error) { return store.FunctionTable(ctx, table) },
			func() (*api.FunctionTable, error) { return memory.FunctionTable(ctx, table) })
	}
}

func compareExplanations(t *testing.T, store, memory *query.Queries, found *findings.Result) {
	ctx := t.Context()
	at := func(s time.Duration) *time.Duration { s *= time.Second; return &s }
	asker := *memory
	detailed := withDetails(t, &asker, 1)
	member := func(program trace.Program, event string) bool { return len(event)%2 == 0 }
	groups, err := store.Group(ctx, query.Selection{}, contrast.FieldKey{Kind: contrast.FieldPath}, 1)
	if err != nil || len(groups.Rows) == 0 {
		t.Fatal(groups, err)
	}
	path := groups.Rows[0].Term
	functions, err := store.Group(ctx, query.Selection{}, contrast.FieldKey{Kind: contrast.FieldFunction}, 2)
	if err != nil || len(functions.Rows) < 2 {
		t.Fatal(functions, err)
	}
	for i, q := range tracetest.Sample([]query.Selection{
		{},
		{Filter: executions.Filter{Ranks: []trace.Range{{First: 3, Last: 90}}, Since: at(1), Until: at(4)}},
		{Filter: executions.Filter{Function: "*relax_2*", Kinds: []string{"slow", "gpu"}}},
		{Filter: executions.Filter{Host: "node001*", Took: &executions.Times{First: 100, Last: 90_000}}},
		{Filter: executions.Filter{Steps: &trace.Range{First: 2, Last: 5}, Lost: 1000}},
		{Filter: executions.Filter{Severity: 5000}},
		{Filter: executions.Filter{Function: "nobody"}},
		{Finding: &found.Findings[0]},
		{Finding: &found.Findings[3], Filter: executions.Filter{Since: at(2)}},
		{Finding: &found.Findings[1], Member: member},
		{Finding: &found.Findings[1], Member: member, Without: terms(t, "rank=0..9", "time=3..")},
		{Only: terms(t, "rank=3..90", "rank=200", "step=1..6"), Without: terms(t, "rank=7", "host=node0003")},
		{Only: terms(t, "host=node0001", "host=node0002", "thread=0"), Lasso: lasso(t, "0:1,9:1,5:1000000")},
		{Only: terms(t, "time=1..4"), Without: terms(t, path, "time=..2")},
		{Only: terms(t, path)},
		{Only: terms(t, functions.Rows[0].Term, functions.Rows[1].Term, "rank=0..90")},
		{Without: terms(t, functions.Rows[0].Term), Filter: executions.Filter{Until: at(4)}},
		{Only: terms(t, "bytes=1000.."), Without: terms(t, "rank=5")},
		{Without: terms(t, "bytes=..1000", "host=node0001"), Filter: executions.Filter{Since: at(1)}},
	}, 9) {
		if q.Finding == nil || !q.Finding.IsChange() {
			for _, by := range tracetest.Sample([]contrast.FieldKind{
				contrast.FieldFunction, contrast.FieldHost, contrast.FieldRank, contrast.FieldThread,
				contrast.FieldPath, contrast.FieldStep, contrast.FieldTime, contrast.FieldBytes, contrast.FieldStream,
			}, 5) {
				group := func(a *query.Queries) func() (*api.ExplainGroups, error) {
					return func() (*api.ExplainGroups, error) { return a.Group(ctx, q, contrast.FieldKey{Kind: by}, 9) }
				}
				same(t, fmt.Sprint("selection ", i, " by ", by), group(store), group(memory))
			}
		}
		stored := sync.OnceValues(func() (*contrast.Explanation, error) { return store.Explain(ctx, q) })
		same(t, fmt.Sprint("selection ", i, " with details"), stored,
			func() (*contrast.Explanation, error) { return detailed.Explain(ctx, q) })
		same(t, fmt.Sprint("selection ", i), stored, func() (*contrast.Explanation, error) { return memory.Explain(ctx, q) })
	}
}

func lasso(t *testing.T, text string) []contrast.Vertex {
	t.Helper()
	l, err := contrast.ParseLasso(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// inMemory makes queries read from a copy in memory.
func inMemory(t *testing.T, a *query.Queries) {
	t.Helper()
	var err error
	if a.Memory, err = a.Copy(t.Context(), 1_000_000); err != nil || a.Memory == nil {
		t.Fatal(a.Memory, err)
	}
}

func TestCopyRefusesTooManyExecutions(t *testing.T) {
	s, err := duckstore.Open(t.Context(), filepath.Join(t.TempDir(), duckstore.FileName), duckstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.CreateRun(t.Context(), provdb.Run{Name: "run", State: provdb.Running, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	records := storetest.Records(40, 3)
	for _, r := range records {
		r.Status = "confirmed"
	}
	if err := s.Write(t.Context(), id, &provdb.Batch{Anomalies: records}); err != nil {
		t.Fatal(err)
	}
	a, err := query.New(t.Context(), s, "run")
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]bool{39: false, 40: true} {
		if c, err := a.Copy(t.Context(), limit); err != nil || (c != nil) != want {
			t.Errorf("40 executions, limit %d: got %v, %v, want %v", limit, c != nil, err, want)
		}
	}
}

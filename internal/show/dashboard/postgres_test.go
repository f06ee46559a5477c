package dashboard_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

// withoutNumbers removes the numbers that functions have in a store from an answer.
func withoutNumbers(v any) {
	switch v := v.(type) {
	case object:
		delete(v, "id")
		delete(v, "function_id")
		if route, ok := v["route"].(string); ok && strings.HasPrefix(route, "/functions") {
			delete(v, "route")
		}
		for _, part := range v {
			withoutNumbers(part)
		}
	case []any:
		for _, part := range v {
			withoutNumbers(part)
		}
	}
}

// emptyPostgres returns a store without runs in a database of its own.
func emptyPostgres(t *testing.T) provdb.Store {
	t.Helper()
	s, err := pgstore.Open(context.WithoutCancel(t.Context()), pgtest.Shared(t).Database(t), pgstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Every store gives the same answers.
func TestAnswersDoNotDependOnTheStore(t *testing.T) {
	ctx, s := context.WithoutCancel(t.Context()), emptyPostgres(t)
	if _, err := fill(ctx, s, "monday", numRecords); err != nil {
		t.Fatal(err)
	}
	duck, _ := serve(t, nil)
	postgres, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = s })
	for _, path := range []string{
		"", "/top?by=path", "/events?order=lost&limit=50", "/events?normal=1&host=node00*&func=MPI_*", "/events/" +
			storetest.Records(1, 1)[0].EventID, "/functions?limit=5000",
		"/functions?order=exclusive&limit=3", "/functions?order=name&name=*relax_1?(*", "/functions/MPI_Collective_29()", "/counters",
		"/metadata?name=CPU_*", "/snapshot",
		"/overview?findings=100", "/overview?columns=7&findings=0", "/heatmap", "/heatmap?rows=7&columns=5&metric=anomalies",
		"/heatmap?from=0.5&to=1.25&columns=30&host=node00*&func=MPI_*&rows=300",
		"/findings", "/explain", "/explain?rank=0-3&from=0.2&to=1", "/explain?func=MPI_*&host=node00*&kind=slow&min_us=10&max_us=100000000",
		"/explain?only=rank=0..3&without=rank=2&without=host=node0001&lasso=0:1,9:1,9:1000000,0:1000000", "/explain?without=bytes=1000..",
		"/explain/groups?by=time", "/explain/groups?by=host", "/explain/groups?by=call-path&limit=4", "/explain/groups?by=bytes",
		"/flame", "/flame?metric=lost&program=0", "/search?q=compute", "/search?q=rank:7", "/events/" + storetest.Records(1, 1)[0].EventID +
			"/evidence",
	} {
		a, b := do(t, duck+monday+path, ""), do(t, postgres+monday+path, "")
		// Functions are numbered in the order in which they came to the store.
		inDuck, inPostgres := want[object](t, a, 200), want[object](t, b, 200)
		withoutNumbers(inDuck)
		withoutNumbers(inPostgres)
		if !reflect.DeepEqual(inDuck, inPostgres) {
			t.Errorf("%s:\nDuckDB     %.1000s\nPostgreSQL %.1000s", path, a.body, b.body)
		}
	}
	all := walk(t, postgres, "limit=400&order=score", nil)
	if want := walk(t, duck, "limit=5000&order=score", nil); !reflect.DeepEqual(all, want) {
		t.Errorf("%d events in pages, want %d", len(all), len(want))
	}
}

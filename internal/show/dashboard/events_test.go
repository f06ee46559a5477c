package dashboard_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// walk follows a list to its end and returns the ids of its events.
func walk(t *testing.T, at, query string, between func()) (ids []string) {
	t.Helper()
	cursor := ""
	for {
		got := want[page](t, do(t, at+monday+"/events?"+query+"&cursor="+url.QueryEscape(cursor), ""), 200)
		for _, row := range got.Rows {
			ids = append(ids, fmt.Sprint(row["program"], " ", row["event_id"]))
		}
		if cursor = got.Next; cursor == "" {
			return ids
		}
		if between != nil {
			between()
		}
	}
}

func TestPagesListAllEventsOnce(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	at, _ := serve(t, nil)
	a, err := query.New(t.Context(), filled(t), "monday")
	if err != nil {
		t.Fatal(err)
	}
	since := 500 * time.Millisecond
	filters := map[string]executions.Filter{
		"limit=313":                     {Order: "severity"},
		"limit=313&order=lost":          {Order: "lost"},
		"limit=833&order=score":         {Order: "score"},
		"limit=500&order=time":          {Order: "time"},
		"limit=100&normal=true":         {Order: "severity", Normal: true},
		"limit=1250&withdrawn=1":        {Order: "severity", Withdrawn: true},
		"limit=5000":                    {Order: "severity"},
		"limit=99&kind=slow,gpu":        {Order: "severity", Kinds: []string{"slow", "gpu"}},
		"limit=7&func=MPI_*&rank=1,3-9": {Order: "severity", Function: "MPI_*", Ranks: []trace.Range{{First: 1, Last: 1}, {First: 3, Last: 9}}},
		"limit=9&host=node001?&step=1:&since=0.5&until=1m&min_severity=1ms&min_lost=500&min_score=9&program=0": {
			Order: "severity", Host: "node001?", Steps: &trace.Range{First: 1, Last: 1 << 30}, Since: &since, Severity: time.Millisecond, Lost: 500 * time.Microsecond, Score: 9,
		},
	}
	for _, params := range slices.Sorted(maps.Keys(filters)) {
		f := filters[params]
		f.Limit = 10_000
		rows, err := a.Executions(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		all, err := rows.Collect()
		if err != nil || len(all) == 0 {
			t.Fatal(len(all), err)
		}
		var want []string
		for _, row := range all {
			want = append(want, fmt.Sprint(row[10], " ", row[0]))
		}
		if got := walk(t, at, params, nil); !slices.Equal(got, want) {
			t.Errorf("%s: got %d events, want %d, in this order", params, len(got), len(want))
		}
	}
}

func TestCursorBelongsToOneList(t *testing.T) {
	at, _ := serve(t, nil)
	next := want[page](t, do(t, at+monday+"/events?limit=5&rank=0-99", ""), 200).Next
	want[page](t, do(t, at+monday+"/events?limit=50&rank=0-99&cursor="+next, ""), 200)
	for _, query := range []string{"rank=0-98", "rank=0-99&order=time", ""} {
		fails(t, do(t, at+monday+"/events?"+query+"&cursor="+next, ""), 400, "from another list")
	}
	fails(t, do(t, at+"/api/v1/runs/tuesday%2Ftwo/events?rank=0-99&cursor="+next, ""), 400, "from another list")
}

// While pages are read, records are added anywhere and others are withdrawn. Remaining ones are
// listed once.
func TestPagesAreStableWhileRecordsChange(t *testing.T) {
	for _, order := range []string{"time", "severity", "lost", "score"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			testStable(t, order)
		})
	}
}

func testStable(t *testing.T, order string) {
	ctx := context.WithoutCancel(t.Context())
	s := emptyStore(t)
	id, err := s.CreateRun(ctx, provdb.Run{Name: "monday", State: provdb.Running})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	records := storetest.Records(400, 3)
	for i, r := range records {
		// Few values, so that many events are equal.
		r.Status = ""
		r.OutlierSeverity, r.OutlierScore, r.LostTime = float64(rng.IntN(5)), float64(rng.IntN(5)), trace.Ticks(rng.IntN(5))
		r.Entry = 1_700_000_000_000_000 + trace.Ticks(rng.IntN(5))
		if i%3 == 0 {
			r.RID = trace.Rank(i % 2) // several of a rank, which are ordered by their text
			r.EventID = fmt.Sprintf("%c odd %d", 'Z'-rune(i%30), i)
		}
	}
	write := func(some ...*provenance.Record) {
		if err := s.Write(ctx, id, &provdb.Batch{Anomalies: some}); err != nil {
			t.Error(err)
		}
	}
	write(records[:200]...)
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = s })
	// Every second of the first records remains, the others are withdrawn; new ones are added.
	gone, come := 0, 200
	got := walk(t, at, "limit=17&order="+order, func() {
		var some []*provenance.Record
		for range 5 {
			records[gone].Status = provenance.Withdrawn
			some = append(some, records[gone])
			gone = min(gone+2, 198)
		}
		n := min(come+rng.IntN(30), 400)
		write(append(some, records[come:n]...)...)
		come = n
	})
	count := make(map[string]int)
	for _, id := range got {
		if count[id]++; count[id] > 1 {
			t.Errorf("%s is listed %d times", id, count[id])
		}
	}
	for i := 1; i < 200; i += 2 {
		if id := fmt.Sprint(records[i].PID, " ", records[i].EventID); count[id] != 1 {
			t.Errorf("%s is listed %d times", id, count[id])
		}
	}
}

package dashboard_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func TestTimelineOfAllRanks(t *testing.T) {
	store := emptyStore(t)
	someRun(t, store, "monday", []*provenance.Record{anomaly(1, 5, 10, 100, 50)})
	comparePeers(t.Context(), t, store, "monday")
	of := func() string {
		at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
		return at + monday + "/timeline"
	}
	if old := want[api.Timeline](t, do(t, of(), ""), 200); old.Recorded || old.Rows == nil || len(old.Classes) != 6 {
		t.Errorf("without activities: %+v", old)
	}
	if none := want[api.CounterTimeline](t, do(t, of()+"/counters", ""), 200); none.Counters == nil || len(none.Counters) != 0 {
		t.Errorf("without activities: %+v", none)
	}
	s := activity.New(trace.Microsecond)
	const begin, second = trace.Ticks(1 << 40), trace.Ticks(1_000_000)
	for r := range trace.Rank(8) {
		s.Add(trace.RankKey{Rank: r}, begin, begin+2*second, []activity.Record{
			{From: begin, To: begin + second, Time: uint64(second), Class: activity.Own},
			{From: begin + second, To: begin + 2*second, Time: uint64(second), Class: activity.MPI},
		})
	}
	s.AddReadings(trace.RankKey{Rank: 2}, []activity.CounterReading{
		{Counter: activity.CounterOf("heap"), At: begin, Reading: activity.Reading{Count: 2, Sum: 6, Min: 1, Max: 5}},
	})
	s.NameCounters(func(trace.Program, activity.CounterID) string { return "heap" })
	run, err := query.Find(t.Context(), store, "monday")
	if err != nil {
		t.Fatal(err)
	}
	peers := &provenance.Peers{Efficiency: []provenance.Efficiency{{Entire: true}}, Activity: s.AppendBinary(nil)}
	if err := store.Write(t.Context(), run.ID, &provdb.Batch{Peers: peers}); err != nil {
		t.Fatal(err)
	}
	at := of()
	all := want[api.Timeline](t, do(t, at, ""), 200)
	cells, err := base64.StdEncoding.DecodeString(all.Cells)
	if err != nil || !all.Recorded || all.Ranks != 8 || len(all.Rows) != 8 || len(cells) != 8*all.Columns || cells[0]&7 != 1 {
		t.Errorf("%+v: %v", all, err)
	}
	if some := want[api.Timeline](t, do(t, at+"?rank=2-5&rows=2", ""), 200); some.Ranks != 4 || len(some.Rows) > 2 || some.Rows[0].FirstRank != 2 {
		t.Errorf("ranks 2 to 5: %+v", some)
	}
	c := want[api.CounterTimeline](t, do(t, at+"/counters?counter=heap&rank=2", ""), 200)
	if len(c.Counters) != 1 || c.Counter != "heap" || c.Selected == nil || c.All.Mean[0] == nil || *c.All.Mean[0] != 3 || *c.Selected.Max[0] != 5 {
		t.Errorf("counter: %+v", c)
	}
	if r := do(t, at+"?rows=0", ""); r.code != 400 || !strings.Contains(r.body, "rows") {
		t.Errorf("rows=0: %+v", r)
	}
}

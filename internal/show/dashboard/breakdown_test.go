package dashboard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// storeTraining stores a finished run of eight ranks with GPUs, two on each host, in nanoseconds. Rank 5
// has two training steps.
func storeTraining(t *testing.T, store provdb.Store) {
	t.Helper()
	b := &provenance.Breakdown{
		Unit:   trace.Nanosecond,
		Clocks: []provenance.RankClock{{RID: 0}, {RID: 5, Offset: 1500, Matched: 3}},
		Collectives: []provenance.CollectiveStats{{
			Operation: "allreduce", Group: "0", Size: 8, Seen: 8, Calls: 2, LatencySum: 3000, LatencyMax: 2000, Skews: 2, SkewSum: 500, SkewMax: 400,
			Last: []provenance.LastRank{{Rank: 5, Calls: 2}}, Bandwidth: 1e9,
		}},
	}
	var records []*provenance.Record
	for r := range trace.Rank(8) {
		records = append(records, anomaly(int(r), r, 0, 10, 5))
		b.Times = append(b.Times, provenance.GPUTime{
			RID: r, Start: beginOf + 2e9, Total: 4_000_500, Compute: 4_000_000, Idle: 500, KernelWait: 500,
			Streams: []provenance.StreamTime{{TID: 7, Activities: 9}},
		})
		if r == 5 {
			b.Times = append(b.Times, provenance.GPUTime{RID: r, Step: new(int64(1)), Start: beginOf + 3e9, Total: 1000},
				provenance.GPUTime{RID: r, Step: new(int64(0)), Start: beginOf + 4e9, Total: 3000})
		}
	}
	run := provdb.Run{Name: "training", State: provdb.Running, Started: time.Unix(1, 0)}
	id, err := store.CreateRun(t.Context(), run)
	if err == nil {
		err = store.Write(t.Context(), id, &provdb.Batch{Anomalies: records, Breakdown: b})
	}
	if err == nil {
		run.ID, run.State, run.Finished = id, provdb.Finished, time.Unix(2, 0)
		run.Info = fmt.Appendf(nil, `{"tick_ns":1,"totals":{"begin_us":%d},"notes":[{"name":"out-of-order","count":1},`+
			`{"name":"launch-unknown","count":9},{"name":"collective-alone","count":4}]}`, beginOf)
		err = store.UpdateRun(t.Context(), run)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// storeHostTraining stores a finished run with collective operations, but without GPUs.
func storeHostTraining(t *testing.T, store provdb.Store) {
	t.Helper()
	run := provdb.Run{Name: "host", State: provdb.Running, Started: time.Unix(1, 0)}
	id, err := store.CreateRun(t.Context(), run)
	if err == nil {
		err = store.Write(t.Context(), id, &provdb.Batch{Anomalies: []*provenance.Record{anomaly(1, 0, 0, 10, 5)}, Breakdown: &provenance.Breakdown{
			Collectives: []provenance.CollectiveStats{{Operation: "gloo:all_reduce", Size: 2, Seen: 2, Calls: 1, Last: []provenance.LastRank{}}},
		}})
	}
	if err == nil {
		run.ID, run.State, run.Finished = id, provdb.Finished, time.Unix(2, 0)
		err = store.UpdateRun(t.Context(), run)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestBreakdown(t *testing.T) {
	t.Run("DuckDB", func(t *testing.T) { testBreakdown(t, emptyStore(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { testBreakdown(t, emptyPostgres(t)) })
}

func testBreakdown(t *testing.T, store provdb.Store) {
	storeTraining(t, store)
	storeHostTraining(t, store)
	someRun(t, store, "without", []*provenance.Record{anomaly(1, 0, 0, 10, 5)})
	at, _ := serve(t, func(_ *dashboard.Config, p *pipeline) { p.reader = store })
	at += "/api/v1/runs/"

	for run, has := range map[string][2]bool{"training": {true, true}, "host": {false, true}, "without": {false, false}} {
		if o := want[api.Overview](t, do(t, at+run+"/overview", ""), 200); o.GPUs != has[0] || o.Collectives != has[1] {
			t.Errorf("the overview of run %s has GPUs %t, collectives %t, want %t", run, o.GPUs, o.Collectives, has)
		}
	}
	if b := want[api.Breakdown](t, do(t, at+"host/breakdown", ""), 200); len(b.Times.Rows) != 0 || len(b.Collectives.Rows) != 1 {
		t.Errorf("got %+v", b)
	}
	want[api.Problem](t, do(t, at+"host/breakdown/steps?rank=0", ""), 404)
	b := want[api.Breakdown](t, do(t, at+"training/breakdown", ""), 200)
	if len(b.Times.Rows) != 8 || len(b.Times.Notes) != 1 || b.Times.Notes[0].Count != 9 || b.Collectives.Notes[0].Count != 4 {
		t.Fatalf("got %+v", b)
	}
	row := b.Times.Rows[5]
	if row.Rank != 5 || row.Host != "node2" || row.Total != 4000.5 || *row.From != 2 || row.Streams != nil || row.Step != nil {
		t.Errorf("got %+v", row)
	}
	if c := b.Collectives.Rows[0]; c.MeanLatency != 1.5 || *c.MaxSkew != 0.4 || c.Last[0].Rank != 5 || b.Collectives.Clocks[1].Offset != 1.5 {
		t.Errorf("got %+v", b.Collectives)
	}
	for filter, n := range map[string]int{"host=node2": 2, "rank=1-3": 3, "program=1": 0} {
		if got := len(want[api.Breakdown](t, do(t, at+"training/breakdown?"+filter, ""), 200).Times.Rows); got != n {
			t.Errorf("%s selects %d ranks, want %d", filter, got, n)
		}
	}

	s := want[api.RankSteps](t, do(t, at+"training/breakdown/steps?rank=5", ""), 200)
	if len(s.Steps) != 2 || *s.Steps[0].Step != 1 || s.Steps[1].Total != 3 || *s.Steps[1].From != 4 || s.Rank.Streams[0].Activities != 9 {
		t.Errorf("got %+v", s)
	}
	want[api.Problem](t, do(t, at+"training/breakdown/steps?rank=8", ""), 404)
	want[api.Problem](t, do(t, at+"without/breakdown", ""), 404)
	want[api.Problem](t, do(t, at+"without/breakdown/steps", ""), 404)
}

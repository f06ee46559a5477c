package analyzer_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestSalvageConfirmsOrWithdraws(t *testing.T) {
	var learned outlier.Model
	for i := range int64(1000) {
		learned.Learn(100+i%10, 0)
	}
	models := analyzer.NewModels(outlier.NewRules(outlier.Default()))
	models.Add(&summary.FunctionStats{FuncKey: trace.FuncKey{Name: "solve"}}, &summary.Learned{Model: learned})
	record := func(rank trace.Rank, step int32, name string, exclusive, total trace.Ticks) *provenance.Record {
		return &provenance.Record{
			RID: rank, IOStep: step, Func: name, Hostname: "node", Status: provenance.Provisional, Entry: 10, Exit: 10 + total,
			RuntimeExclusive: exclusive, RuntimeTotal: total,
		}
	}
	s := models.Salvage(false)
	f := func(r *provenance.Record, want provenance.Status, lost trace.Ticks) {
		t.Helper()
		s.Add(r)
		if r.Status != want || r.LostTime != lost {
			t.Errorf("%s with %d us is %s and lost %d us, want %s and %d", r.Func, r.RuntimeExclusive, r.Status, r.LostTime, want, lost)
		}
	}
	f(record(3, 5, "solve", 5104, 6000), provenance.Confirmed, 5000)
	f(record(3, 5, "solve", 5104, 6000), provenance.Confirmed, 5000)
	f(record(3, 7, "solve", 104, 6000), provenance.Withdrawn, 0)
	f(record(1, 5, "unheard of", 5104, 6000), provenance.Withdrawn, 0)
	all := s.Outcomes()
	if len(all) != 2 || all[0].Rank != 1 || all[1].Rank != 3 {
		t.Fatalf("got the ranks %v", all)
	}
	if r := all[1].Review; r.Confirmed != 2 || r.Withdrawn != 1 || r.Anomalies != 2 {
		t.Errorf("the review is %+v", r)
	}
	solve := all[1].Functions[0]
	if len(all[1].Functions) != 1 || solve.Name != "solve" || solve.LostTime != 10000 || solve.Anomalies.FirstStep != 5 ||
		solve.Anomalies.Count.Count() != 1 || solve.Anomalies.Count.Summary().Maximum != 2 {
		t.Errorf("the statistics of the function are %+v", solve)
	}
	if r := all[0].Review; r.NotJudged != 1 || len(all[0].Functions) != 0 {
		t.Errorf("the review of an unknown function is %+v", r)
	}
	whole := models.Salvage(true)
	r := record(3, 5, "solve", 104, 6000)
	if whole.Add(r); r.Status != provenance.Confirmed {
		t.Errorf("by inclusive time it is %s", r.Status)
	}
}

func TestSalvageKeepsSampleOfSlowMode(t *testing.T) {
	var learned outlier.Model
	const calls, slow = 1_000_000, 50_000
	for i := range int64(calls) {
		if learned.Learn(1000+i%10, 0); i%(calls/slow) == 0 {
			learned.Learn(50_000+i%100, 0)
		}
	}
	models := analyzer.NewModels(outlier.NewRules(outlier.Default()))
	models.Add(&summary.FunctionStats{FuncKey: trace.FuncKey{Name: "solve"}}, &summary.Learned{Model: learned})
	s := models.Salvage(false)
	got := make(map[provenance.Status]int64)
	for i := range 5000 {
		r := &provenance.Record{
			EventID: trace.EventID{Rank: 3, Step: 2, Row: uint32(i)}.String(), RID: 3, Func: "solve", Status: provenance.Provisional,
			RuntimeExclusive: 50_050, RuntimeTotal: 50_050,
		}
		s.Add(r)
		got[r.Status]++
	}
	outcome := s.Outcomes()[0]
	if n := got[provenance.Confirmed]; n < 900 || n > 1100 || got[provenance.Dropped] != 5000-n {
		t.Errorf("got %v, want a fifth confirmed and the others dropped", got)
	}
	if r := outcome.Review; r.Confirmed != got[provenance.Confirmed] || r.Dropped != got[provenance.Dropped] {
		t.Errorf("the review is %+v, the records are %v", r, got)
	}
}

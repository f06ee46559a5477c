package output_test

import (
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/gpus"
	"github.com/chimbuko/chimbuko/internal/show/output"
)

func TestBreakdownConvertsUnits(t *testing.T) {
	b := &provenance.Breakdown{
		Unit: trace.Nanosecond,
		Times: []provenance.GPUTime{
			{RID: 1, Total: 4_000_500, Compute: 2_000_250, Communication: 1000, Overlap: 500, Idle: 1_000_125},
			{RID: 1, Step: new(int64(17)), Total: 2_000_000, Idle: 1_000_000},
			{RID: 1, Step: new(int64(18)), Total: 1_000_000},
		},
		Collectives: []provenance.CollectiveStats{{
			Operation: "allreduce", Group: "0", Size: 4, Seen: 3, Bytes: 26_000_000, Calls: 2, LatencySum: 5_000_000, LatencyMax: 3_000_000,
			Skews: 2, SkewSum: 1_500, SkewMax: 1_000, Last: []provenance.LastRank{{Rank: 2, Calls: 2}}, Bandwidth: 15.6e9,
		}},
		Clocks: []provenance.RankClock{{RID: 0}, {RID: 1, Offset: -250_000, Matched: 9}},
	}
	notes := []tally.Note{
		{Name: "out-of-order", Severity: "repaired", Count: 7, Sentence: "events sorted"},
		{Name: "launch-unknown", Severity: "info", Count: 1200, Sentence: "activities"},
		{Name: "collective-alone", Severity: "info", Count: 3, Sentence: "executions"},
	}
	times := func(steps bool, limit int) output.GPUTimes {
		return output.GPUTimes{GPUTimes: gpus.Times(b.Unit, b.Times, steps, limit, notes, func(*provenance.GPUTime) bool { return true })}
	}
	collectives := output.Collectives{Collectives: gpus.Collectives(b, nil, 9, notes)}
	text := func(a *output.Answer) string {
		var w strings.Builder
		if err := a.Text(&w); err != nil {
			t.Fatal(err)
		}
		return w.String()
	}
	for _, c := range []struct{ got, want string }{
		{text(times(false, 9).Answer()), "1     4.00 ms  50.0 %   0 %            0 %     25.0 %  0 %        0 %          0 %         50.0 %\n"},
		{text(times(true, 1).Answer()), "\n1     17    2.00 ms  0 %"},
		{text(times(true, 1).Answer()), "and 1 more row"},
		{text(collectives.Answer()), "3 of 4"},
		{text(collectives.Answer()), "rank 2 (2 of 2)"},
		{text(collectives.Answer()), "2.50 ms  3.00 ms  750 ns  1 us"},
		{text(collectives.Answer()), "-250 us"},
		{text(times(false, 9).Answer()), "\ninfo: 1,200 activities\n"},
		{text(collectives.Answer()), "\ninfo: 3 executions\n"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("no %q in\n%s", c.want, c.got)
		}
	}
	if g := times(false, 9); g.Rows[0].Total != 4000.5 || len(g.Notes) != 1 {
		t.Errorf("total is %g µs, want 4000.5; notes %v", g.Rows[0].Total, g.Notes)
	}
}

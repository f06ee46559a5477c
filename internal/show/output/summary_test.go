package output_test

import (
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func TestSummaryHasReductionOnlyIfThereIsOne(t *testing.T) {
	for _, c := range []struct {
		traces, records int64
		want            string
	}{
		{1300, 100, "1.3 kB of traces became 100 B of records (1 of 13.0 bytes)\n"},
		{4, 1000, "4 B of traces became 1.0 kB of records\n"},
	} {
		info := provdb.NewInfo("", "", nil)
		info.TraceBytes, info.Review = c.traces, new(summary.Review)
		info.SetSize(c.records)
		var b strings.Builder
		output.Summary(&b, info, "")
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("%d bytes of traces: got %q, want %q", c.traces, b.String(), c.want)
		}
	}
}

func TestSummaryCounts(t *testing.T) {
	info := provdb.NewInfo("", "", nil)
	info.Review, info.EventRate = new(summary.Review), 13_568
	info.Totals.Events, info.Totals.Ranks, info.Totals.Anomalies = 2, 1, 1
	var b strings.Builder
	output.Summary(&b, info, "")
	for _, want := range []string{"2 events, 0 calls of 0 functions on 1 rank in ", "(13.6 thousand events/s)", "1 anomaly stored with its context"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
}

func TestSummaryCountsTimesFromStartOfRun(t *testing.T) {
	info := provdb.NewInfo("", "", nil)
	info.Review = new(summary.Review)
	info.Totals.Begin = 1_700_000_000_000_000
	info.Top = []provdb.TopFunction{{Function: "write", FirstUS: 1_700_000_003_000_000, LastUS: 1_700_000_008_500_000, Anomalies: 2, LostUS: 9}}
	info.Changes = []summary.Change{{Function: "f", Since: 1_700_000_005_000_000, Before: 1, After: 2}}
	info.Findings = provdb.FindingSummary{Count: 1, Worst: []provenance.Finding{
		{Number: 1, Summary: "write hangs", LostOwn: 2_000_000, LostCaused: 3_000_000, Lost: 5_000_000, Share: 0.5},
	}}
	var b strings.Builder
	output.Summary(&b, info, "")
	for _, want := range []string{
		"+3.000 s  +8.500 s  write", "relative to the start of the run", "since +5.000 s",
		"lost 5.00 s (2.00 s own, 3.00 s caused), 50.0 % of the time",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

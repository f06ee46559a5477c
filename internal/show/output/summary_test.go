package output_test

import (
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/online/summary"
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

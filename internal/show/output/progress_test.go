package output

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// pass lets time pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the clock is that of synctest

func TestAnalysisShowsProgressUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := NewAnalysis(&out, 1)
		after := func(d time.Duration, done analyzer.ProgressReport) {
			pass(d)
			p.Show(done)
		}
		totals := summary.Totals{Pass: 1, Events: 30_000_000, Flagged: 1234}
		after(4*time.Second, analyzer.ProgressReport{Totals: totals, ReadShare: 0.3}) // too soon
		after(6*time.Second, analyzer.ProgressReport{Totals: totals, ReadShare: 0.5})
		after(5*time.Second, analyzer.ProgressReport{Totals: totals, ReadShare: 1})
		after(3*time.Second, analyzer.ProgressReport{Totals: totals, ReadShare: 1, Reviewed: 0, Captures: 2000})
		after(9*time.Second, analyzer.ProgressReport{Totals: totals, ReadShare: 1, Reviewed: 1500, Captures: 2000})
		end := p.During("finding the causes of 7 anomalies")
		pass(13 * time.Second)
		end()
		end = p.During("closing the store")
		pass(time.Second)
		end()
		want := `reading:  50 %, 30,000,000 events, 3.0 million/s, 1,234 flagged, 10s left
reading: 100 %, 30,000,000 events, 2.0 million/s, 1,234 flagged, 0s left
reviewing and storing records:  75 %, 1,500 of 2,000, 3s left
finding the causes of 7 anomalies, for 5s
finding the causes of 7 anomalies, for 10s
`
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestAnalysisShowsShareOfEachPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := NewAnalysis(&out, 2)
		for n := 1; n <= 2; n++ {
			p.Show(analyzer.ProgressReport{Totals: summary.Totals{Pass: n}})
			pass(8 * time.Second)
			p.Show(analyzer.ProgressReport{Totals: summary.Totals{Pass: n, Events: 8_000_000}, ReadShare: 0.5})
		}
		want := `reading, pass 1 of 2:  50 %, 8,000,000 events, 1.0 million/s, 0 flagged, 8s left
reading, pass 2 of 2:  50 %, 8,000,000 events, 1.0 million/s, 0 flagged, 8s left
`
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

package dashboard

import (
	"math"
	"net/http"
	"net/url"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/insight"
)

// Any parameters give a valid filter, or a problem.
func FuzzParameters(f *testing.F) {
	f.Add("rank=0,4-7&step=3:&since=90s&until=1.5&min_severity=20ms&min_lost=-3&min_score=1e3&kind=slow,gpu&func=MPI_*&host=n?&normal=1&withdrawn=false&program=2&order=time&limit=9")
	f.Add("rank=-1&step=:&since=-0&min_score=+Inf&program=-2")
	f.Add("rank=2147483648&since=1e16&until=NaN&token=x&token=y&%zz")
	f.Fuzz(func(t *testing.T, raw string) {
		p := newParams(&http.Request{URL: &url.URL{RawQuery: raw}})
		filter := p.filter()
		limit := p.limit(100, insight.MaxRows)
		if err := p.done(); err != nil {
			if got := insight.AsProblem(err); got.Status != http.StatusBadRequest || got.Message == "" {
				t.Errorf("%q: %+v", raw, got)
			}
			return
		}
		for _, r := range append(filter.Ranks, trace.Range{}) {
			if r.First < 0 || r.Last < r.First || r.Last > math.MaxInt32 {
				t.Errorf("%q: ranks %v", raw, r)
			}
		}
		if limit < 0 || limit > insight.MaxRows || len(filter.Ranks) > maxRanges || filter.Order == "" || math.IsNaN(filter.Score) {
			t.Errorf("%q: %+v, %d", raw, filter, limit)
		}
		if s := filter.Steps; s != nil && (s.First < 0 || s.Last < s.First) {
			t.Errorf("%q: steps %v", raw, s)
		}
	})
}

// Any parameters give a heatmap within bounds, or a problem.
func FuzzHeatmap(f *testing.F) {
	f.Add("from=1&to=2.5s&columns=7&rows=3&metric=anomalies&program=1&host=n*&func=MPI_*")
	f.Add("from=-1e10&to=1e10&columns=2000&rows=300&metric=lost")
	f.Add("from=2&to=1&columns=0&rows=-1&metric=")
	f.Fuzz(func(t *testing.T, raw string) {
		p := newParams(&http.Request{URL: &url.URL{RawQuery: raw}})
		h := p.heatmap()
		if err := p.done(); err != nil {
			if got := insight.AsProblem(err); got.Status != http.StatusBadRequest || got.Message == "" {
				t.Errorf("%q: %+v", raw, got)
			}
			return
		}
		if h.Columns < 1 || h.Columns > insight.MaxColumns || h.Rows < 1 || h.Rows > maxHeatRows {
			t.Errorf("%q: %+v", raw, h)
		}
	})
}

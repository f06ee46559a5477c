package dashboard

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Any parameters give a filter that can be asked and hashed, or a problem.
func FuzzParameters(f *testing.F) {
	f.Add("rank=0,4-7&step=3:&since=90s&until=1.5&min_severity=20ms&min_lost=-3&min_score=1e3&kind=slow,gpu&func=MPI_*&host=n?&normal=1&withdrawn=false&program=2&order=time&limit=9")
	f.Add("rank=-1&step=:&since=-0&min_score=+Inf&program=-2")
	f.Add("rank=2147483648&since=1e16&until=NaN&token=x&token=y&%zz")
	f.Fuzz(func(t *testing.T, raw string) {
		p := newParams(&http.Request{URL: &url.URL{RawQuery: raw}})
		filter := p.filter()
		limit := p.limit(100, maxRows)
		if err := p.done(); err != nil {
			if got := asProblem(err); got.status != http.StatusBadRequest || got.Message == "" {
				t.Errorf("%q: %+v", raw, got)
			}
			return
		}
		for _, r := range append(filter.Ranks, query.Range{}) {
			if r.First < 0 || r.Last < r.First || r.Last > math.MaxInt32 {
				t.Errorf("%q: ranks %v", raw, r)
			}
		}
		if limit < 0 || limit > maxRows || len(filter.Ranks) > maxRanges || filter.Order == "" || math.IsNaN(filter.Score) {
			t.Errorf("%q: %+v, %d", raw, filter, limit)
		}
		if s := filter.Steps; s != nil && (s.First < 0 || s.Last < s.First) {
			t.Errorf("%q: steps %v", raw, s)
		}
		_ = filterHash(1, filter)
	})
}

// Any parameters give a heatmap that can be asked for, or a problem.
func FuzzHeatmap(f *testing.F) {
	f.Add("from=1&to=2.5s&columns=7&rows=3&metric=anomalies&program=1&host=n*&func=MPI_*", int64(1e9))
	f.Add("from=-1e10&to=1e10&columns=2000&rows=300&metric=lost", int64(1))
	f.Add("from=2&to=1&columns=0&rows=-1&metric=", int64(-5))
	f.Fuzz(func(t *testing.T, raw string, length int64) {
		p := newParams(&http.Request{URL: &url.URL{RawQuery: raw}})
		h := p.heat()
		if err := p.done(); err != nil {
			if got := asProblem(err); got.status != http.StatusBadRequest || got.Message == "" {
				t.Errorf("%q: %+v", raw, got)
			}
			return
		}
		from, to := h.span(trace.Micros(max(0, min(length, maxMicros))))
		q := query.Timeline{From: from, To: to, Columns: h.columns}
		width := q.ColumnWidth()
		if to <= from || h.columns < 1 || h.columns > maxColumns || h.rows < 1 || h.rows > maxHeatRows || width < 1 || width*trace.Micros(h.columns) < to-from {
			t.Errorf("%q: %+v from %d to %d, %d wide", raw, h, from, to, width)
		}
	})
}

// Any ranks are divided into groups that hold each of them once, in order.
func FuzzGroups(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 1, 2}, uint8(3))
	f.Add([]byte{0, 16, 32, 48, 64}, uint8(2))
	f.Fuzz(func(t *testing.T, places []byte, most uint8) {
		var ranks []query.Placed
		for i, b := range places {
			ranks = append(ranks, query.Placed{RankKey: trace.RankKey{Program: trace.Program(b >> 5), Rank: trace.Rank(i)}, Host: string(rune('a' + b&31))})
		}
		sortPlaced(ranks)
		limit := max(1, int(most))
		groups := groupRanks(ranks, limit)
		if all := slices.Concat(groups...); !slices.Equal(all, ranks) || len(groups) > limit {
			t.Errorf("%d groups of %d ranks, at most %d", len(groups), len(ranks), limit)
		}
	})
}

// A cursor that is accepted is within bounds, and reads back as itself.
func FuzzCursor(f *testing.F) {
	f.Add((&cursor{place{1.5, 0, 3, "3:1:7"}, 10, 1_700_000_000_000_000, "x"}).String())
	f.Add((&cursor{place{-1e300, 1, 3, "odd"}, 1, 0, "x"}).String())
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text, "x")
		if err != nil {
			return
		}
		if c.Offset < 1 || c.Offset > math.MaxInt32 {
			t.Errorf("offset %d", c.Offset)
		}
		again, err := parseCursor(c.String(), "x")
		if err != nil || *again != *c || c.compare(again.place) != 0 {
			t.Errorf("%+v reads back as %+v, %v", c, again, err)
		}
	})
}

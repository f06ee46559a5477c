package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/compare"

	"github.com/chimbuko/chimbuko/internal/show/insight"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// How much is answered unless the client says how much, and at most.
const (
	snapshotTop    = 10
	snapshotNewest = 20
	usualWorst     = 5
	maxWorst       = 100
	usualHeatRows  = 100
	maxHeatRows    = 300
	usualPoints    = 2000
	stripParts     = 60 // columns of the strip of a function
	usualGroups    = 12
	usualFound     = 20
	maxFound       = 200
	overlayBins    = 80
	maxOverlay     = 1000
	maxChanges     = 5000
	trendFunctions = 12
	maxTrend       = 1000
)

func (s *server) overview(r *http.Request, p *params) (any, error) {
	return call(r, p, s.views.Overview, p.overview())
}

func (p *params) overview() insight.OverviewParams {
	return insight.OverviewParams{Columns: p.columns(insight.UsualColumns), Issues: int(p.integer("issues", usualWorst, 0, maxWorst))}
}

// overviewJSON is the overview of the run that is watched, for streams.
func (s *server) overviewJSON(ctx context.Context) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	o, err := s.views.Overview(ctx, s.Run, insight.OverviewParams{Columns: insight.UsualColumns, Issues: usualWorst})
	if err != nil {
		return nil, err
	}
	return api.Marshal(o)
}

func (s *server) runs(r *http.Request, p *params) (any, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	return s.insight.Runs(r.Context())
}

func (s *server) snapshot(r *http.Request, p *params) (any, error) {
	return call(r, p, s.insight.Snapshot, insight.SnapshotParams{
		Top: int(p.integer("top", snapshotTop, 0, insight.MaxRows)), Newest: int(p.integer("newest", snapshotNewest, 0, insight.MaxRows)),
	})
}

func (s *server) top(r *http.Request, p *params) (any, error) {
	return call(r, p, s.insight.Top, insight.TopParams{
		By: p.word("by", "function"), Order: p.word("order", "lost"), Program: p.program(), Limit: p.limit(10, insight.MaxRows),
	})
}

func (s *server) events(r *http.Request, p *params) (any, error) {
	of := insight.EventsParams{Filter: p.filter(), Limit: p.limit(100, insight.MaxRows), Cursor: p.text("cursor")}
	if of.Limit == 0 {
		p.fail("limit", "a page has at least one event")
	}
	return call(r, p, s.insight.Events, of)
}

// event reads which execution is meant.
func (p *params) event(r *http.Request) insight.EventParams {
	return insight.EventParams{ID: r.PathValue("id"), Program: p.program()}
}

func (s *server) event(r *http.Request, p *params) (any, error) {
	e, err := call(r, p, s.insight.Event, p.event(r))
	if err != nil {
		return nil, err
	}
	return e.Document, nil
}

func (s *server) evidence(r *http.Request, p *params) (any, error) {
	return call(r, p, s.insight.Evidence, p.event(r))
}

func (p *params) functions() insight.FunctionsParams {
	return insight.FunctionsParams{
		Name: p.text("name"), Program: p.program(), Order: p.text("order"), Limit: p.limit(100, insight.MaxRows),
		Offset: int(p.integer("cursor", 0, 0, math.MaxInt32)),
	}
}

func (s *server) functions(r *http.Request, p *params) (any, error) {
	return call(r, p, s.views.Functions, p.functions())
}

func (s *server) function(r *http.Request, p *params) (any, error) {
	return call(r, p, s.insight.Function, insight.FunctionParams{
		ID: r.PathValue("id"), Program: p.program(), Limit: p.limit(100, insight.MaxRows), Columns: p.columns(stripParts),
	})
}

// heatmap reads the parameters of a heatmap.
func (p *params) heatmap() insight.HeatmapParams {
	return insight.HeatmapParams{
		From: p.duration("from", time.Second), To: p.duration("to", time.Second), Columns: p.columns(insight.UsualColumns),
		Rows: int(p.integer("rows", usualHeatRows, 1, maxHeatRows)), Metric: p.word("metric", insight.MetricLost),
		Filter: query.Filter{Program: p.program(), Host: p.text("host"), Function: p.text("func")},
	}
}

func (s *server) heatmap(r *http.Request, p *params) (any, error) {
	return call(r, p, s.views.Heatmap, p.heatmap())
}

func (s *server) plot(r *http.Request, p *params) (any, error) {
	return call(r, p, s.insight.Plot, insight.PlotParams{Key: r.PathValue("key"), Limit: p.limit(usualPoints, insight.MaxPoints)})
}

func (s *server) explain(r *http.Request, p *params) (any, error) {
	return call(r, p, s.insight.Explain, p.explain())
}

func (s *server) groups(r *http.Request, p *params) (any, error) {
	by, err := contrast.ParseField(p.text("by"))
	if err != nil {
		p.fail("by", "%w", err)
	}
	return call(r, p, s.insight.Groups, insight.GroupParams{ExplainParams: p.explain(), By: by, Limit: p.limit(usualGroups, query.MaxGroups)})
}

// explain reads which anomalies are meant.
func (p *params) explain() insight.ExplainParams {
	of := insight.ExplainParams{
		Issue: p.text("issue"), Only: p.terms("only"), Without: p.terms("without"), Lasso: p.text("lasso"),
		Filter: query.Filter{
			Function: p.text("func"), Kinds: p.words("kind"), Host: p.text("host"), Ranks: p.ranks("rank"), Program: p.program(),
			Since: p.duration("from", time.Second), Until: p.duration("to", time.Second), Took: p.took(),
		},
	}
	if f := &of.Filter; f.Since != nil && f.Until != nil && *f.Until < *f.Since {
		p.fail("to", "it is before from")
	}
	return of
}

// terms reads conditions on fields; the parameter may be given several times.
func (p *params) terms(name string) (terms []contrast.Term) {
	p.known[name] = true
	for _, text := range p.values[name] {
		t, err := contrast.ParseTerm(text)
		if err != nil {
			p.fail(name, "%w", err)
		}
		terms = append(terms, t)
	}
	if len(terms) > contrast.MaxTerms {
		p.fail(name, "%d are more than %d", len(terms), contrast.MaxTerms)
	}
	return terms
}

// took reads the exclusive time in microseconds; nil if neither end is given.
func (p *params) took() *query.Range {
	least, most := p.integer("min_us", 0, 0, insight.MaxMicros), p.integer("max_us", math.MaxInt64, 0, math.MaxInt64)
	if least == 0 && most == math.MaxInt64 {
		return nil
	}
	return &query.Range{First: least, Last: most}
}

func (s *server) flame(r *http.Request, p *params) (any, error) {
	return call(r, p, s.insight.Flame, p.flame())
}

func (p *params) flame() insight.FlameParams {
	return insight.FlameParams{Metric: p.word("metric", "time"), Program: p.program()}
}

func (p *params) search() insight.SearchParams {
	return insight.SearchParams{Text: p.text("q"), Limit: p.limit(usualFound, maxFound)}
}

func (s *server) search(r *http.Request, p *params) (any, error) {
	return call(r, p, s.views.Search, p.search())
}

func (s *server) ignoreFile(r *http.Request, p *params) (any, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	text, err := s.insight.IgnoreFile(r.Context(), r.PathValue("run"))
	if err != nil {
		return nil, err
	}
	return &file{"text/plain; charset=utf-8", "", []byte(text)}, nil
}

func (p *params) counters() insight.CountersParams {
	return insight.CountersParams{Name: p.text("name"), Program: p.program(), Limit: p.limit(1000, insight.MaxRows)}
}

func (s *server) counters(r *http.Request, p *params) (any, error) {
	return call(r, p, s.views.Counters, p.counters())
}

func (s *server) metadata(r *http.Request, p *params) (any, error) {
	m := query.Metadata{
		Name: p.text("name"), Program: p.program(), Limit: int64(p.limit(100, insight.MaxRows)), Offset: p.integer("cursor", 0, 0, math.MaxInt32),
	}
	if n := p.integer("rank", -1, 0, math.MaxInt32); n >= 0 {
		rank := trace.Rank(n)
		m.Rank = &rank
	}
	return call(r, p, s.insight.Metadata, m)
}

// executionsPDB answers about the watched run as the original does.
func (s *server) executionsPDB(r *http.Request, p *params) (any, error) {
	q, err := legacy.ParseExecutions(p.text)
	if err := errors.Join(p.done(), err); err != nil {
		return nil, err
	}
	answer := legacy.Executions{Rows: []json.RawMessage{}}
	if q != nil {
		answer.Rows, err = s.insight.ExecutionsPDB(r.Context(), s.Run, *q)
	}
	return answer, err
}

func (s *server) comparables(r *http.Request, p *params) (any, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	return s.compared.Comparables(r.Context())
}

// two reads the ids of two runs.
func (p *params) two() (ids [2]string) {
	for i, name := range []string{"a", "b"} {
		if ids[i] = p.text(name); ids[i] == "" {
			p.fail(name, "is missing: name a run that comparable lists")
		}
	}
	return ids
}

func (s *server) compare(r *http.Request, p *params) (any, error) {
	of := compare.Params{IDs: p.two(), Program: p.program(), Limit: p.limit(1000, maxChanges)}
	if err := p.done(); err != nil {
		return nil, err
	}
	return s.compared.Compare(r.Context(), of)
}

func (s *server) compareFlame(r *http.Request, p *params) (any, error) {
	ids, of := p.two(), p.flame()
	if err := p.done(); err != nil {
		return nil, err
	}
	return s.compared.CompareFlame(r.Context(), ids, of)
}

func (s *server) compareHistograms(r *http.Request, p *params) (any, error) {
	of := compare.HistogramParams{
		IDs: p.two(), Program: p.program(), Function: p.text("function"), Bins: int(p.integer("bins", overlayBins, 1, maxOverlay)),
	}
	if of.Function == "" {
		p.fail("function", "is missing")
	}
	if err := p.done(); err != nil {
		return nil, err
	}
	return s.compared.CompareHistograms(r.Context(), of)
}

func (s *server) trend(r *http.Request, p *params) (any, error) {
	of := compare.TrendParams{Name: p.text("name"), Program: p.program(), Limit: p.limit(trendFunctions, maxTrend)}
	if err := p.done(); err != nil {
		return nil, err
	}
	return s.compared.Trend(r.Context(), of)
}

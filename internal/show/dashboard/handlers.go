package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/compare"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Default and maximum sizes of answers.
const (
	snapshotTop     = 10
	snapshotNewest  = 20
	defaultWorst    = 5
	maxWorst        = 100
	defaultHeatRows = 100
	maxHeatRows     = 300
	maxTimelineRows = 2000
	defaultPoints   = 2000
	stripParts      = 60 // columns of the strip of a function
	defaultGroups   = 12
	defaultMatches  = 20
	maxMatches      = 200
	overlayBins     = 80
	maxOverlay      = 1000
	maxChanges      = 5000
	trendFunctions  = 12
	maxTrend        = 1000
)

func (p *params) overview() insight.OverviewParams {
	return insight.OverviewParams{Columns: p.columns(insight.DefaultColumns), Findings: int(p.integer("findings", defaultWorst, 0, maxWorst))}
}

func (p *params) snapshot() insight.SnapshotParams {
	return insight.SnapshotParams{
		Top: int(p.integer("top", snapshotTop, 0, insight.MaxRows)), Newest: int(p.integer("newest", snapshotNewest, 0, insight.MaxRows)),
	}
}

func (p *params) top() query.Top {
	return query.Top{
		Waits: true,
		By:    p.word("by", "function"), Order: p.word("order", "lost"), Program: p.program(), Limit: p.limit(10, insight.MaxRows),
	}
}

func (p *params) events() insight.EventsParams {
	of := insight.EventsParams{Filter: p.filter(), Limit: p.limit(100, insight.MaxRows), Cursor: p.text("cursor")}
	if of.Limit == 0 {
		p.fail("limit", "must be ≥ 1")
	}
	return of
}

func (p *params) event() insight.EventParams {
	return insight.EventParams{ID: p.path("id"), Program: p.program()}
}

// document returns an execution as it is stored.
func (s *server) document(ctx context.Context, run string, of insight.EventParams) (json.RawMessage, error) {
	e, err := s.insight.Event(ctx, run, of)
	if err != nil {
		return nil, err
	}
	return e.Document, nil
}

func (p *params) functions() query.FunctionTable {
	return query.FunctionTable{
		Name: p.text("name"), Program: p.program(), Order: p.text("order"), Limit: p.limit(100, insight.MaxRows),
		Offset: int(p.integer("cursor", 0, 0, math.MaxInt32)),
	}
}

func (p *params) function() insight.FunctionParams {
	return insight.FunctionParams{
		ID: p.path("id"), Program: p.program(), Limit: p.limit(100, insight.MaxRows), Columns: p.columns(stripParts),
	}
}

func (p *params) heatmap() heatmap.Params {
	return heatmap.Params{
		From: p.duration("from", time.Second), To: p.duration("to", time.Second), Columns: p.columns(insight.DefaultColumns),
		Rows: int(p.integer("rows", defaultHeatRows, 1, maxHeatRows)), Metric: p.word("metric", heatmap.MetricLost),
		Filter: executions.Filter{Program: p.program(), Host: p.text("host"), Function: p.text("func")},
	}
}

func (p *params) counterTimeline() insight.CounterTimelineParams {
	return insight.CounterTimelineParams{BreakdownParams: p.breakdown(), Counter: p.text("counter")}
}

func (p *params) timeline() insight.TimelineParams {
	return insight.TimelineParams{
		BreakdownParams: p.breakdown(), From: p.duration("from", time.Second), To: p.duration("to", time.Second),
		Rows: int(p.integer("rows", defaultHeatRows, 1, maxTimelineRows)),
	}
}

func (p *params) rankTable() ranks.Params {
	return ranks.Params{By: p.word("by", ranks.ByRank), Program: p.program(), Host: p.text("host"), Ranks: p.ranks()}
}

func (p *params) rankFunctions() ranks.Params {
	of := p.rankTable()
	of.Role = int(p.integer("role", 0, 0, math.MaxInt32))
	if p.text("thread") != "" {
		of.Thread = new(p.integer("thread", 0, 0, math.MaxInt64))
	}
	return of
}

func (p *params) breakdown() insight.BreakdownParams {
	return insight.BreakdownParams{Program: p.program(), Host: p.text("host"), Ranks: p.ranks()}
}

func (p *params) rankSteps() (of insight.RankParams) {
	if program := p.program(); program != nil {
		of.Program = *program
	}
	of.Rank = trace.Rank(p.integer("rank", 0, 0, math.MaxInt32))
	return of
}

func (p *params) plot() insight.PlotParams {
	return insight.PlotParams{Key: p.path("key"), Limit: p.limit(defaultPoints, insight.MaxPoints)}
}

func (p *params) finding() insight.FindingParams { return insight.FindingParams{Key: p.path("key")} }

func (p *params) explain() insight.ExplainParams {
	of := insight.ExplainParams{
		Finding: p.text("finding"), Only: p.terms("only"), Without: p.terms("without"), Lasso: p.text("lasso"),
		Filter: executions.Filter{
			Function: p.text("func"), Kinds: p.words("kind"), Host: p.text("host"), Ranks: p.ranks(), Program: p.program(),
			Since: p.duration("from", time.Second), Until: p.duration("to", time.Second), Took: p.took(),
		},
	}
	if f := &of.Filter; f.Since != nil && f.Until != nil && *f.Until < *f.Since {
		p.fail("to", "must not be before from")
	}
	return of
}

func (p *params) groups() insight.GroupParams {
	by, err := contrast.ParseField(p.text("by"))
	if err != nil {
		p.fail("by", "%w", err)
	}
	return insight.GroupParams{ExplainParams: p.explain(), By: by, Limit: p.limit(defaultGroups, query.MaxGroups)}
}

// terms reads conditions on fields from a parameter that may be repeated.
func (p *params) terms(name string) (terms []contrast.Term) {
	p.names[name] = true
	for _, text := range p.values[name] {
		t, err := contrast.ParseTerm(text)
		if err != nil {
			p.fail(name, "%w", err)
		}
		terms = append(terms, t)
	}
	if len(terms) > contrast.MaxTerms {
		p.fail(name, "has %d conditions (at most %d)", len(terms), contrast.MaxTerms)
	}
	return terms
}

// took reads a range of exclusive times in microseconds, or nil.
func (p *params) took() *executions.Times {
	t := executions.Times{First: p.number("min_us"), Last: p.number("max_us")}
	for _, v := range []float64{t.First, t.Last} {
		if !(v >= 0 && v <= insight.MaxMicros) {
			p.fail("min_us", "and max_us must be from 0 to %v", float64(insight.MaxMicros))
		}
	}
	if t == (executions.Times{}) {
		return nil
	}
	return &t
}

func (p *params) flame() insight.FlameParams {
	return insight.FlameParams{Metric: p.word("metric", "time"), Program: p.program()}
}

func (p *params) search() insight.SearchParams {
	return insight.SearchParams{Text: p.text("q"), Limit: p.limit(defaultMatches, maxMatches)}
}

func (p *params) counters() insight.CountersParams {
	return insight.CountersParams{Name: p.text("name"), Program: p.program(), Limit: p.limit(1000, insight.MaxRows)}
}

func (p *params) metadata() query.Metadata {
	m := query.Metadata{
		Name: p.text("name"), Program: p.program(), Limit: int64(p.limit(100, insight.MaxRows)), Offset: p.integer("cursor", 0, 0, math.MaxInt32),
	}
	if n := p.integer("rank", -1, 0, math.MaxInt32); n >= 0 {
		m.Rank = new(trace.Rank(n))
	}
	return m
}

func (s *server) ignoreFile(ctx context.Context, run string) (*file, error) {
	text, err := s.insight.IgnoreFile(ctx, run)
	return &file{"text/plain; charset=utf-8", "", []byte(text)}, err
}

// executionsPDB answers about the watched run as the original does.
func (s *server) executionsPDB(p *params) (any, error) {
	q, err := legacy.ParseExecutions(p.text)
	if err := errors.Join(p.done(), err); err != nil {
		return nil, err
	}
	rows := legacy.Executions{Rows: []json.RawMessage{}}
	if q != nil {
		rows.Rows, err = s.insight.ExecutionsPDB(p.r.Context(), s.Run, *q)
	}
	return rows, err
}

// pair reads the ids of two runs.
func (p *params) pair() (ids [2]string) {
	for i, name := range []string{"a", "b"} {
		if ids[i] = p.text(name); ids[i] == "" {
			p.fail(name, "is missing: name a run that comparable lists")
		}
	}
	return ids
}

func (p *params) compare() compare.Params {
	return compare.Params{IDs: p.pair(), Program: p.program(), Limit: p.limit(1000, maxChanges)}
}

func (p *params) compareFlame() compare.FlameParams {
	return compare.FlameParams{IDs: p.pair(), FlameParams: p.flame()}
}

func (p *params) compareHistograms() compare.HistogramParams {
	of := compare.HistogramParams{
		IDs: p.pair(), Program: p.program(), Function: p.text("function"), Bins: int(p.integer("bins", overlayBins, 1, maxOverlay)),
	}
	if of.Function == "" {
		p.fail("function", "is missing")
	}
	return of
}

func (p *params) trend() compare.TrendParams {
	return compare.TrendParams{Name: p.text("name"), Program: p.program(), Limit: p.limit(trendFunctions, maxTrend)}
}

// Package report writes the page of a run as one HTML file for a ticket or a paper: verdict,
// findings, evidence of the worst findings, charts. The file is self-contained, has no scripts, and
// escapes all text from traces. The package only lays out answers of the dashboard.
package report

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Bounds of a report.
const (
	worst       = 10 // findings with evidence
	maxFindings = 50
	maxFuncs    = 30
	maxRanks    = 20
	heatColumns = 160
	heatRows    = 64
)

// Source returns the answers that a report shows.
type Source interface {
	Overview(ctx context.Context, run string, of insight.OverviewParams) (*api.Overview, error)
	Findings(ctx context.Context, run string) (*api.FindingList, error)
	Heatmap(ctx context.Context, run string, of heatmap.Params) (*api.Heatmap, error)
	Ranks(ctx context.Context, run string, of ranks.Params) (*api.RankTable, error)
	Functions(ctx context.Context, run string, of query.FunctionTable) (*api.FunctionTable, error)
	Evidence(ctx context.Context, run string, of insight.EventParams) (*api.Evidence, error)
}

// Report is the data of a report.
type Report struct {
	Made     time.Time
	Version  string // of this program
	Overview *api.Overview
	Findings *api.FindingList
	Own      *api.Heatmap // without waits
	Lost     *api.Heatmap // with waits; nil without waits
	Ranks    *api.RankTable
	Funcs    *api.FunctionTable
	Evidence []*api.Evidence // of the worst findings, in their order
	Missing  []string        // parts that are not available, and why
}

// Gather collects the data of a report. It fails if there is no overview; the report lists
// other parts that are missing.
func Gather(ctx context.Context, from Source, run string) (*Report, error) {
	var err error
	r := &Report{Findings: new(api.FindingList), Ranks: new(api.RankTable), Funcs: new(api.FunctionTable)}
	if r.Overview, err = from.Overview(ctx, run, insight.OverviewParams{Columns: insight.DefaultColumns, Findings: worst}); err != nil {
		return nil, err
	}
	keep(r, "The findings", &r.Findings)(from.Findings(ctx, run))
	heat := heatmap.Params{Metric: heatmap.MetricOwn, Columns: heatColumns, Rows: heatRows}
	keep(r, "The heatmap", &r.Own)(from.Heatmap(ctx, run, heat))
	if r.Overview.Figures.Victims > 0 {
		heat.Metric = heatmap.MetricLost
		keep(r, "The heatmap with waits", &r.Lost)(from.Heatmap(ctx, run, heat))
	}
	keep(r, "The ranks", &r.Ranks)(from.Ranks(ctx, run, ranks.Params{By: ranks.ByRank}))
	keep(r, "The functions", &r.Funcs)(from.Functions(ctx, run, query.FunctionTable{Limit: maxFuncs}))
	for i := range r.Overview.Findings {
		finding := &r.Overview.Findings[i]
		if finding.Example == "" {
			continue
		}
		var e *api.Evidence
		of := insight.EventParams{ID: finding.Example, Program: new(trace.Program(finding.Program))}
		keep(r, fmt.Sprintf("The evidence of finding %d", finding.Number), &e)(from.Evidence(ctx, run, of))
		if e != nil {
			e.Finding = finding.Number
			r.Evidence = append(r.Evidence, e)
		}
	}
	return r, ctx.Err()
}

// keep returns a function that stores an answer, or reports that a part is missing.
func keep[T any](r *Report, what string, to **T) func(*T, error) {
	return func(v *T, err error) {
		if err != nil {
			r.Missing = append(r.Missing, fmt.Sprintf("%s: %v", what, err))
			return
		}
		*to = v
	}
}

//go:embed report.html
var pageText string

//go:embed report.css
var style string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(style) }, //nolint:gosec // a constant
	"short": text.ShortName, "line": text.OneLine, "percent": text.Percent, "about": text.About,
	"share":   func(v float64) string { return text.Percent(100 * v) },
	"grouped": text.Int[int64], "ranks": ranksText, "hosts": hostsText, "kind": kindWords, "gpu": gpuWords, "thread": threadWords,
	"level": func(l api.Level) string { return levels[l] },
	"state": stateWords, "optional": optional, "optionalValue": optionalValue, "value": text.Value,
	"add":    func(a, b float64) float64 { return a + b },
	"micros": text.Duration,
	"len64":  func(rows []api.FunctionRow) int64 { return int64(len(rows)) },
}).Parse(pageText))

// Write writes the report as HTML.
func (r *Report) Write(w io.Writer) error { return page.Execute(w, newSheet(r)) }

package viewer

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
)

// Answers returns the data of the page of a run. A dashboard.Client requests it from another
// process, Local computes it in this one.
type Answers interface {
	Status(ctx context.Context) (*api.Status, error)
	Overview(ctx context.Context, run string, issues int) (*api.Overview, error)
	Issues(ctx context.Context, run string) (*api.IssueList, error)
	Heatmap(ctx context.Context, run, metric string, columns, rows int) (*api.Heatmap, error)
	Functions(ctx context.Context, run string, limit int) (*api.FunctionTable, error)
	Evidence(ctx context.Context, run string, program int64, event string) (*api.Evidence, error)
}

// Local computes the answers of a stored run.
type Local struct{ insight *insight.Insight }

var _ Answers = Local{}

// NewLocal returns the answers of the runs of a configuration.
func NewLocal(cfg insight.Config) Local { return Local{insight.New(cfg)} }

// Status returns the state of the pipeline.
func (l Local) Status(ctx context.Context) (*api.Status, error) { return l.insight.Source.Status(ctx) }

// Overview returns the overview of a run with its worst issues.
func (l Local) Overview(ctx context.Context, run string, issues int) (*api.Overview, error) {
	return l.insight.Overview(ctx, run, insight.OverviewParams{Columns: insight.UsualColumns, Issues: issues})
}

// Issues returns all issues of a run.
func (l Local) Issues(ctx context.Context, run string) (*api.IssueList, error) {
	return l.insight.Issues(ctx, run)
}

// Heatmap returns the ranks over the time of a whole run.
func (l Local) Heatmap(ctx context.Context, run, metric string, columns, rows int) (*api.Heatmap, error) {
	return l.insight.Heatmap(ctx, run, insight.HeatmapParams{Metric: metric, Columns: columns, Rows: rows})
}

// Functions returns the functions of a run that lost most.
func (l Local) Functions(ctx context.Context, run string, limit int) (*api.FunctionTable, error) {
	return l.insight.Functions(ctx, run, insight.FunctionsParams{Limit: limit})
}

// Evidence returns the evidence of one execution.
func (l Local) Evidence(ctx context.Context, run string, program int64, event string) (*api.Evidence, error) {
	of := trace.Program(program)
	return l.insight.Evidence(ctx, run, insight.EventParams{ID: event, Program: &of})
}

package insight

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Functions returns the functions of a run, with and without anomalies. Its cursor is an
// offset, because the list changes slowly. The default order is lost.
func (in *Insight) Functions(ctx context.Context, run string, of query.FunctionTable) (*api.FunctionTable, error) {
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.FunctionTable, error) {
		of.Order = cmp.Or(of.Order, "lost")
		return q.functionTable(ctx, of)
	})
}

func (q *runQuery) functionTable(ctx context.Context, of query.FunctionTable) (*api.FunctionTable, error) {
	table, err := q.FunctionTable(ctx, of)
	if err != nil {
		return nil, err
	}
	for i := range table.Rows {
		r := &table.Rows[i]
		r.Group = cmp.Or(r.Group, activity.Group(r.Function, false))
	}
	return table, nil
}

// FunctionParams name a function and bound the answer.
type FunctionParams struct {
	ID      string // or its name
	Program *trace.Program
	Limit   int // of ranks and call paths
	Columns int // of the strip
}

// Function returns the details of a function.
func (in *Insight) Function(ctx context.Context, run string, of FunctionParams) (*api.FunctionDetail, error) {
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.FunctionDetail, error) { return q.function(ctx, of) })
}

func (q *runQuery) function(ctx context.Context, of FunctionParams) (*api.FunctionDetail, error) {
	f, err := q.findFunction(ctx, of.ID, of.Program)
	if err != nil {
		return nil, err
	}
	var d api.FunctionDetail
	g, ctx := errgroup.WithContext(ctx) // the parts set different fields
	g.Go(func() error {
		table, err := q.functionTable(ctx, query.FunctionTable{Function: f, Order: "name", Limit: 1})
		if err == nil && len(table.Rows) > 0 {
			d.FunctionRow = table.Rows[0]
		}
		return err
	})
	g.Go(func() (err error) { d.Ranks, err = q.RankLosses(ctx, f, of.Limit); return err })
	g.Go(func() (err error) { d.Paths, err = q.PathLosses(ctx, f, of.Limit); return err })
	g.Go(func() error {
		params, err := q.ModelNow(ctx, f)
		if err != nil {
			return err
		}
		d.Model = q.data.pageModel(params)
		d.Strip, err = stripOf(ctx, q.Queries, executions.Timeline{To: q.data.extent, Columns: of.Columns, Filter: executions.Filter{One: f}})
		return err
	})
	return &d, g.Wait()
}

// findFunction finds a function by its id, or by its name like chimbuko func.
func (q *runQuery) findFunction(ctx context.Context, id string, program *trace.Program) (*executions.Function, error) {
	if _, _, ok := functionNumbers(id); !ok {
		f, err := q.Function(ctx, id, program)
		return f, forAPI(err)
	}
	f, err := q.functionByID(ctx, id)
	if err == nil && f == nil {
		err = api.Problemf(api.NotFound, "functions lists the ids", "run %s has no function %s", q.Run.Name, id)
	}
	return f, err
}

// functionByID returns the function with an id, or nil.
func (q *runQuery) functionByID(ctx context.Context, id string) (*executions.Function, error) {
	program, fn, ok := functionNumbers(id)
	if !ok {
		return nil, nil //nolint:nilnil // not found
	}
	return q.FunctionNumbered(ctx, program, fn)
}

// functionNumbers parses the id of a function.
func functionNumbers(id string) (program trace.Program, fn int32, ok bool) {
	first, second, _ := strings.Cut(id, ":")
	p, err1 := strconv.ParseUint(first, 10, 31)
	n, err2 := strconv.ParseUint(second, 10, 31)
	return trace.Program(p), int32(n), err1 == nil && err2 == nil
}

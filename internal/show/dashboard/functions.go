package dashboard

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// functions are those of the run, with and without anomalies. The list changes slowly,
// so its cursor is the number of rows before a page.
func (s *server) functions(ctx context.Context, q *asked) (any, error) {
	limit, offset := q.p.limit(100, maxRows), q.p.integer("cursor", 0, 0, math.MaxInt32)
	t := query.FunctionTable{Name: q.p.text("name"), Program: q.p.program(), Order: q.p.word("order", "lost"), Limit: limit + 1, Offset: int(offset)}
	if err := q.p.done(); err != nil {
		return nil, err
	}
	rows, total, err := q.FunctionTable(ctx, t)
	if err != nil {
		return nil, err
	}
	table := api.FunctionTable{Rows: []api.FunctionRow{}, Total: total}
	for i := range rows[:min(limit, len(rows))] {
		table.Rows = append(table.Rows, functionRow(&rows[i]))
	}
	if len(rows) > limit {
		table.Next = strconv.FormatInt(offset+int64(limit), 10)
	}
	return table, nil
}

func functionRow(r *query.FunctionRow) api.FunctionRow {
	row := api.FunctionRow{
		ID: r.ID(), Program: int64(r.Program), FID: int64(r.FID), Function: r.Name, Group: groupOf(r.Name, r.OnGPU), Calls: r.Calls, Exclusive: r.Exclusive, ExclusiveMean: r.ExclusiveMean,
		ExclusiveMax: r.ExclusiveMax, Inclusive: r.Inclusive, InclusiveMean: r.InclusiveMean, Anomalies: r.Anomalies, Lost: r.Lost, Modes: r.Modes,
	}
	if r.Calls != nil && *r.Calls > 0 {
		percent := 100 * float64(r.Anomalies) / float64(*r.Calls)
		row.AnomalousCalls = &percent
	}
	if r.Exclusive != nil && *r.Exclusive > 0 {
		percent := 100 * float64(r.AnomalousTime) / *r.Exclusive
		row.AnomalousTime = &percent
	}
	return row
}

// stripParts is into how many columns the strip of a function is divided, unless told.
const stripParts = 60

// function is what a row of the table unfolds to.
func (s *server) function(ctx context.Context, q *asked) (any, error) {
	program, limit := q.p.program(), q.p.limit(100, maxRows)
	columns := int(q.p.integer("columns", stripParts, 1, maxColumns))
	if err := q.p.done(); err != nil {
		return nil, err
	}
	f, err := q.findFunction(ctx, q.r.PathValue("id"), program)
	if err != nil {
		return nil, err
	}
	d := api.FunctionDetail{Paths: []api.FunctionPath{}}
	g, ctx := errgroup.WithContext(ctx) // each part fills in fields of its own
	g.Go(func() error {
		rows, _, err := q.FunctionTable(ctx, query.FunctionTable{Function: f, Order: "name", Limit: 1})
		if err == nil && len(rows) > 0 {
			d.FunctionRow = functionRow(&rows[0])
		}
		return err
	})
	g.Go(func() error {
		losses, err := q.RankLosses(ctx, f, limit)
		d.Ranks = make([]api.FunctionRank, 0, len(losses))
		for _, l := range losses {
			d.Ranks = append(d.Ranks, api.FunctionRank{Rank: int64(l.Rank), Host: l.Host, Anomalies: l.Anomalies, Lost: l.Lost, Longest: l.Longest, First: l.First, Last: l.Last})
		}
		return err
	})
	g.Go(func() error {
		ways, err := q.Ways(ctx, f, limit)
		for _, w := range ways {
			d.Paths = append(d.Paths, api.FunctionPath{Path: w.Path, Anomalies: w.N, Lost: w.Lost})
		}
		return err
	})
	g.Go(func() error {
		params, err := q.ModelNow(ctx, f)
		if err != nil {
			return err
		}
		d.Model = q.known.pageModel(params)
		d.Strip, err = stripOf(ctx, q.Asker, query.Timeline{To: q.known.extent, Columns: columns, Filter: query.Filter{One: f}})
		return err
	})
	return &d, g.Wait()
}

// findFunction finds a function by its id, which functions lists, or by its name
// as chimbuko func does.
func (q *asked) findFunction(ctx context.Context, id string, program *trace.Program) (*query.Function, error) {
	if _, _, ok := functionNumbers(id); !ok {
		f, err := q.Function(ctx, id, program)
		return f, choosing(err)
	}
	f, err := q.numbered(ctx, id)
	if err == nil && f == nil {
		err = &problem{http.StatusNotFound, fmt.Sprintf("run %s has no function %s", q.Run.Name, id), "functions lists the ids"}
	}
	return f, err
}

// numbered returns the function with an id; nil if there is none.
func (q *asked) numbered(ctx context.Context, id string) (*query.Function, error) {
	program, fn, ok := functionNumbers(id)
	if !ok {
		return nil, nil //nolint:nilnil // there is none
	}
	return q.FunctionNumbered(ctx, program, fn)
}

// functionNumbers reads an id of a function.
func functionNumbers(id string) (program trace.Program, fn int32, ok bool) {
	first, second, _ := strings.Cut(id, ":")
	p, err1 := strconv.ParseUint(first, 10, 31)
	n, err2 := strconv.ParseUint(second, 10, 31)
	return trace.Program(p), int32(n), err1 == nil && err2 == nil
}

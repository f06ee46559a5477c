package query

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// FunctionNumbered returns the function with a number, or nil.
func (a *Queries) FunctionNumbered(ctx context.Context, program trace.Program, fn int32) (*executions.Function, error) {
	return executions.ReadFirst[executions.Function](ctx, a, text("function_number"), int32(program), fn)
}

// SearchFunctions returns the functions whose names contain a text, ignoring case: names that begin
// with it first, then the shortest.
func (a *Queries) SearchFunctions(ctx context.Context, part string, limit int) ([]executions.Function, error) {
	part = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(part))
	return executions.ReadAll[executions.Function](ctx, a, text("function_search"), "%"+part+"%", part+"%", int64(limit))
}

// FunctionTable describes a query for functions.
type FunctionTable struct {
	Name          string // pattern with * and ?; all if empty
	Program       *trace.Program
	Function      *executions.Function // only this one
	Order         string               // name, lost, anomalies, calls, exclusive or inclusive
	Limit, Offset int
}

var tableOrder = map[string]string{
	"name": "", "lost": "lost_us DESC, ", "anomalies": "anomalies DESC, ", "calls": "calls DESC NULLS LAST, ",
	"exclusive": "exclusive_us DESC NULLS LAST, ", "inclusive": "inclusive_us DESC NULLS LAST, ",
}

// FunctionTable returns one page of the selected functions. Only the groups of functions that ran
// on a GPU are set.
func (a *Queries) FunctionTable(ctx context.Context, q FunctionTable) (*api.FunctionTable, error) {
	order, err := executions.Choose("order", q.Order, tableOrder)
	if err != nil {
		return nil, err
	}
	var name, fn any
	where := executions.AllOf()
	if q.Name != "" {
		name = executions.Like(q.Name)
	}
	if q.Function != nil {
		fn, q.Program = q.Function.Number, &q.Function.Program
		where = executions.OfFunction(q.Function)
	} else if q.Program != nil {
		where = executions.Program.In(int64(*q.Program))
	}
	sums := ""
	if tables := a.Tables(); tables != nil && q.Function == nil {
		sums = tables.FunctionSums
	} else if groups, err := a.Sum(ctx, where, executions.ByFunction); err != nil {
		return nil, err
	} else {
		sums = executions.SumText(groups)
	}
	type row struct {
		api.FunctionRow
		Normal string `sql:"normal"` // modes of the model, as JSON
		Total  int64  `sql:"total"`
	}
	table := &api.FunctionTable{Rows: []api.FunctionRow{}}
	sql := strings.ReplaceAll(text("function_table"), "/*order*/ ", order)
	err = executions.ReadEach(ctx, a, sql, func(r *row) {
		var modes []json.RawMessage
		if json.Unmarshal([]byte(r.Normal), &modes) == nil && len(modes) > 0 {
			r.Modes = new(int64(len(modes)))
		}
		if a.Unit.Canonical() != 0 {
			a.scaleRow(&r.FunctionRow)
		}
		table.Rows, table.Total = append(table.Rows, r.FunctionRow), r.Total
	}, executions.OptionalProgram(q.Program), name, fn, int64(q.Limit)+1, int64(q.Offset), sums)
	if len(table.Rows) > q.Limit {
		table.Rows, table.Next = table.Rows[:q.Limit], strconv.Itoa(q.Offset+q.Limit)
	}
	return table, err
}

// scaleRow converts the times of a function to microseconds.
func (a *Queries) scaleRow(r *api.FunctionRow) {
	for _, t := range []*float64{r.Exclusive, r.ExclusiveMean, r.ExclusiveMax, r.Inclusive, r.InclusiveMean, &r.Lost} {
		if t != nil {
			*t = a.Unit.MicrosOf(*t)
		}
	}
}

// ModelNow returns the final model of a function or, while the run is in progress, the newest model
// stored with an execution. It returns nil without a model.
func (a *Queries) ModelNow(ctx context.Context, f *executions.Function) (json.RawMessage, error) {
	model, err := a.Model(ctx, f)
	if err != nil || model != nil {
		return model, err
	}
	return a.model(ctx, "model_newest", f)
}

// NewestModels calls f with the newest stored model of each function that has one.
func (a *Queries) NewestModels(ctx context.Context, f func(p trace.Program, name string, model json.RawMessage)) error {
	type row struct {
		Program trace.Program   `sql:"pid"`
		Name    string          `sql:"name"`
		Model   json.RawMessage `sql:"model"`
	}
	return executions.ReadEach(ctx, a, text("models_newest"), func(r *row) { f(r.Program, r.Name, r.Model) })
}

// PathLosses returns the call paths that lead to a function, those with the most lost time first.
func (a *Queries) PathLosses(ctx context.Context, f *executions.Function, limit int) ([]api.FunctionPath, error) {
	groups, err := a.Sum(ctx, executions.OfFunction(f), executions.Grouping{executions.PathNumber})
	if err != nil {
		return nil, err
	}
	paths := make(map[executions.PathID][]string)
	if tables := a.Tables(); tables != nil {
		for _, g := range groups {
			if p := tables.Paths[g.PathID()]; p != nil {
				paths[g.PathID()] = p.Funcs
			}
		}
	} else {
		names, err := a.FunctionNames(ctx)
		if err != nil {
			return nil, err
		}
		if paths, err = a.PathFunctions(ctx, &f.Program, names); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(groups, func(x, y executions.Sums) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(y.Anomalies, x.Anomalies), cmp.Compare(x.Path, y.Path))
	})
	list := []api.FunctionPath{}
	for _, g := range groups {
		if path, ok := paths[g.PathID()]; ok && len(list) < limit {
			list = append(list, api.FunctionPath{Path: path, Anomalies: g.Anomalies, Lost: a.Unit.Micros(g.Lost)})
		}
	}
	return list, nil
}

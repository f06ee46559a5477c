package query

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
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

// OnDevice calls f for each function with a stored execution on a GPU.
func (a *Queries) OnDevice(ctx context.Context, f func(p trace.Program, name string)) error {
	type row struct {
		Program trace.Program `sql:"pid"`
		Name    string        `sql:"name"`
	}
	return executions.ReadEach(ctx, a, text("function_device"), func(r *row) { f(r.Program, r.Name) })
}

// FunctionRow is a function with the statistics of its calls and anomalies.
type FunctionRow struct {
	executions.Function
	// Statistics of all calls, which are stored when the run ends; nil before.
	Calls         *int64   `sql:"calls"`
	Exclusive     *float64 `sql:"exclusive_us"`
	ExclusiveMean *float64 `sql:"exclusive_mean_us"`
	ExclusiveMax  *float64 `sql:"exclusive_max_us"`
	Inclusive     *float64 `sql:"inclusive_us"`
	InclusiveMean *float64 `sql:"inclusive_mean_us"`

	// Sums over anomalies that were not withdrawn; times in microseconds.
	Anomalies     int64 `sql:"anomalies"`
	Lost          int64 `sql:"lost_us"`
	AnomalousTime int64 `sql:"anomalous_us"`

	OnGPU bool `sql:"on_gpu"` // a stored execution ran on a GPU
	Modes *int64
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

// FunctionTable returns one page of the selected functions, and how many are selected in all.
func (a *Queries) FunctionTable(ctx context.Context, q FunctionTable) (list []FunctionRow, total int64, err error) {
	order, err := executions.Choose("order", q.Order, tableOrder)
	if err != nil {
		return nil, 0, err
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
	if a.Memory != nil && q.Function == nil {
		sums = a.Memory.FunctionSums
	} else if groups, err := a.Sum(ctx, where, executions.ByFunction); err != nil {
		return nil, 0, err
	} else {
		sums = executions.SumText(groups)
	}
	type row struct {
		FunctionRow
		Normal string `sql:"normal"` // modes of the model, as JSON
		Total  int64  `sql:"total"`
	}
	sql := strings.ReplaceAll(text("function_table"), "/*order*/ ", order)
	err = executions.ReadEach(ctx, a, sql, func(r *row) {
		var modes []json.RawMessage
		r.Modes = nil
		if json.Unmarshal([]byte(r.Normal), &modes) == nil && len(modes) > 0 {
			n := int64(len(modes))
			r.Modes = &n
		}
		total = r.Total
		list = append(list, r.FunctionRow)
	}, executions.OptionalProgram(q.Program), name, fn, int64(q.Limit), int64(q.Offset), sums)
	return list, total, err
}

// ModelNow returns the final model of a function or, while the run is in progress, the newest model
// stored with an execution. It returns nil if there is none.
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

// PathLoss is the lost time of a call path.
type PathLoss struct {
	Program trace.Program
	Path    []string // outermost function first
	Lost    int64    // microseconds
	N       int64    // anomalies
}

// PathLosses returns the call paths that lead to a function, those with the most lost time first.
func (a *Queries) PathLosses(ctx context.Context, f *executions.Function, limit int) ([]PathLoss, error) {
	groups, err := a.Sum(ctx, executions.OfFunction(f), executions.Grouping{executions.PathNumber})
	if err != nil {
		return nil, err
	}
	paths := make(map[executions.PathID][]string)
	if a.Memory != nil {
		for _, g := range groups {
			if p := a.Memory.Paths[g.PathID()]; p != nil {
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
	var list []PathLoss
	for _, g := range groups {
		if path, ok := paths[g.PathID()]; ok && len(list) < limit {
			list = append(list, PathLoss{Program: f.Program, Path: path, N: g.Anomalies, Lost: int64(g.Lost)})
		}
	}
	return list, nil
}

// AllPathLosses returns the call paths of all anomalies that were not withdrawn.
func (a *Queries) AllPathLosses(ctx context.Context, p *trace.Program) ([]PathLoss, error) {
	sql, err := a.rollupStatement(ctx, "path_lost")
	if err != nil {
		return nil, err
	}
	names, err := a.FunctionNames(ctx)
	if err != nil {
		return nil, err
	}
	paths, err := a.PathFunctions(ctx, p, names)
	if err != nil {
		return nil, err
	}
	type row struct {
		executions.PathID
		Lost int64 `sql:"lost_us"`
		N    int64 `sql:"anomalies"`
	}
	var list []PathLoss
	err = executions.ReadEach(ctx, a, sql, func(r *row) {
		list = append(list, PathLoss{Program: r.Program, Path: paths[r.PathID], Lost: r.Lost, N: r.N})
	}, executions.OptionalProgram(p))
	return list, err
}

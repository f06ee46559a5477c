package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Functions returns all functions of the run.
func (a *Asker) Functions(ctx context.Context) ([]Function, error) {
	return readAll[Function](ctx, a, text("function_list"))
}

// ID names the function within the run in its store: program:fn.
func (f *Function) ID() string { return fmt.Sprintf("%d:%d", f.Program, f.Number) }

// FunctionNumbered returns the function with a number; nil if there is none.
func (a *Asker) FunctionNumbered(ctx context.Context, program trace.Program, fn int32) (*Function, error) {
	return readFirst[Function](ctx, a, text("function_number"), int32(program), fn)
}

// SearchFunctions returns the functions with a part in their names, whatever the case
// of letters: those that begin with it first, then the shortest.
func (a *Asker) SearchFunctions(ctx context.Context, part string, limit int) ([]Function, error) {
	part = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(part))
	return readAll[Function](ctx, a, text("function_search"), "%"+part+"%", part+"%", int64(limit))
}

// OnDevice calls f with each function of which an execution is kept that ran on a GPU.
func (a *Asker) OnDevice(ctx context.Context, f func(p trace.Program, name string)) error {
	type row struct {
		Program trace.Program `sql:"pid"`
		Name    string        `sql:"name"`
	}
	return readEach(ctx, a, text("function_device"), func(r *row) { f(r.Program, r.Name) })
}

// FunctionRow is a function with all that is known of its calls and anomalies.
type FunctionRow struct {
	Function
	// Of all calls; nil until they are stored, which is when the run ends.
	Calls         *int64   `sql:"calls"`
	Exclusive     *float64 `sql:"exclusive_us"`
	ExclusiveMean *float64 `sql:"exclusive_mean_us"`
	ExclusiveMax  *float64 `sql:"exclusive_max_us"`
	Inclusive     *float64 `sql:"inclusive_us"`
	InclusiveMean *float64 `sql:"inclusive_mean_us"`

	// Of anomalies that were not withdrawn; times in microseconds.
	Anomalies     int64 `sql:"anomalies"`
	Lost          int64 `sql:"lost_us"`
	AnomalousTime int64 `sql:"anomalous_us"`

	OnGPU bool `sql:"on_gpu"` // executions that were kept ran on a GPU
	Modes *int64
}

// FunctionTable asks for functions.
type FunctionTable struct {
	Name          string // pattern with * and ?; empty: all
	Program       *trace.Program
	Function      *Function // only this one
	Order         string    // name, lost, anomalies, calls, exclusive or inclusive
	Limit, Offset int
}

var tableOrder = map[string]string{
	"name": "", "lost": "lost_us DESC, ", "anomalies": "anomalies DESC, ", "calls": "calls DESC NULLS LAST, ",
	"exclusive": "exclusive_us DESC NULLS LAST, ", "inclusive": "inclusive_us DESC NULLS LAST, ",
}

// FunctionTable answers with a part of the functions, in order, and how many there are.
func (a *Asker) FunctionTable(ctx context.Context, q FunctionTable) (list []FunctionRow, total int64, err error) {
	order, err := choose("order", q.Order, tableOrder)
	if err != nil {
		return nil, 0, err
	}
	var name, fn any
	if q.Name != "" {
		name = like(q.Name)
	}
	if q.Function != nil {
		fn, q.Program = q.Function.Number, &q.Function.Program
	}
	sql := strings.ReplaceAll(text("function_table"), "/*order*/ ", order)
	type row struct {
		FunctionRow
		Normal string `sql:"normal"` // modes of the model, as JSON
		Total  int64  `sql:"total"`
	}
	err = readEach(ctx, a.bulk(), sql, func(r *row) {
		var modes []json.RawMessage
		r.Modes = nil
		if json.Unmarshal([]byte(r.Normal), &modes) == nil && len(modes) > 0 {
			n := int64(len(modes))
			r.Modes = &n
		}
		total = r.Total
		list = append(list, r.FunctionRow)
	}, program(q.Program), name, fn, int64(q.Limit), int64(q.Offset))
	return list, total, err
}

// ModelNow returns the model of a function as far as it is known: the final one, or
// while the run goes on the newest by which an execution was judged that is stored; nil
// where there is none.
func (a *Asker) ModelNow(ctx context.Context, f *Function) (json.RawMessage, error) {
	model, err := a.Model(ctx, f)
	if err != nil || model != nil {
		return model, err
	}
	return a.model(ctx, "model_newest", f)
}

// NewestModels calls f with the newest model of each function of which one is stored.
func (a *Asker) NewestModels(ctx context.Context, f func(p trace.Program, name string, model json.RawMessage)) error {
	type row struct {
		Program trace.Program   `sql:"pid"`
		Name    string          `sql:"name"`
		Model   json.RawMessage `sql:"model"`
	}
	return readEach(ctx, a, text("models_newest"), func(r *row) { f(r.Program, r.Name, r.Model) })
}

// Way is a call path with what was counted of it.
type Way struct {
	Program trace.Program
	Path    []string // from the outermost function on
	Lost    int64    // microseconds
	N       int64    // anomalies, or executions that are kept
}

// Ways answers with the call paths that lead to a function, those that lost most first.
func (a *Asker) Ways(ctx context.Context, f *Function, limit int) ([]Way, error) {
	a = a.bulk()
	names, err := a.names(ctx)
	if err != nil {
		return nil, err
	}
	type row struct {
		N     int64           `sql:"anomalies"`
		Lost  int64           `sql:"lost_us"`
		Funcs json.RawMessage `sql:"fns"`
	}
	var list []Way
	var bad error
	err = readEach(ctx, a, text("func_ways"), func(r *row) {
		path, err := names.path(f.Program, r.Funcs)
		bad = errors.Join(bad, err)
		list = append(list, Way{Program: f.Program, Path: path, N: r.N, Lost: r.Lost})
	}, int32(f.Program), f.Number, int64(limit))
	return list, errors.Join(err, bad)
}

// LostWays returns the call paths of all anomalies that were not withdrawn.
func (a *Asker) LostWays(ctx context.Context, p *trace.Program) ([]Way, error) {
	sql, err := a.summing(ctx, "path_lost")
	if err != nil {
		return nil, err
	}
	names, err := a.names(ctx)
	if err != nil {
		return nil, err
	}
	type listed struct {
		pathKey
		Funcs json.RawMessage `sql:"fns"`
	}
	paths := make(map[pathKey][]string)
	var bad error
	err = readEach(ctx, a, text("path_list"), func(r *listed) {
		path, err := names.path(r.Program, r.Funcs)
		bad = errors.Join(bad, err)
		paths[r.pathKey] = path
	}, program(p))
	if err := errors.Join(err, bad); err != nil {
		return nil, err
	}
	type row struct {
		pathKey
		Lost int64 `sql:"lost_us"`
		N    int64 `sql:"anomalies"`
	}
	var list []Way
	err = readEach(ctx, a, sql, func(r *row) {
		list = append(list, Way{Program: r.Program, Path: paths[r.pathKey], Lost: r.Lost, N: r.N})
	}, program(p))
	return list, err
}

// pathKey identifies a call path by its number in a program.
type pathKey struct {
	Program trace.Program `sql:"pid"`
	Path    int32         `sql:"path"`
}

// numberKey identifies a function by its number in a program.
type numberKey struct {
	Program trace.Program `sql:"pid"`
	Number  int32         `sql:"fn"`
}

// functionNames are the names of functions by their numbers.
type functionNames map[numberKey]string

func (a *Asker) names(ctx context.Context) (functionNames, error) {
	type row struct {
		numberKey
		Name string `sql:"name"`
	}
	names := make(functionNames)
	err := readEach(ctx, a, text("function_list"), func(r *row) { names[r.numberKey] = r.Name })
	return names, err
}

// path returns the names of a JSON list of numbers of functions.
func (n functionNames) path(p trace.Program, list json.RawMessage) ([]string, error) {
	var numbers []int32
	if err := json.Unmarshal(list, &numbers); err != nil {
		return nil, fmt.Errorf("call path %s: %w", list, err)
	}
	path := make([]string, len(numbers))
	for i, fn := range numbers {
		path[i] = n[numberKey{p, fn}]
	}
	return path, nil
}

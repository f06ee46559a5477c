package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	x := a.columns()
	where := allOf()
	if q.Name != "" {
		name = like(q.Name)
	}
	if q.Function != nil {
		fn, q.Program = q.Function.Number, &q.Function.Program
		where = x.ofFunction(q.Function.Program, q.Function.Number)
	} else if q.Program != nil {
		where = x.inProgram(*q.Program)
	}
	sums := ""
	if a.Memory != nil && q.Function == nil {
		sums = a.Memory.functionSums
	} else if groups, err := a.sum(ctx, where, byFunction); err != nil {
		return nil, 0, err
	} else {
		sums = sumText(groups)
	}
	type row struct {
		FunctionRow
		Normal string `sql:"normal"` // modes of the model, as JSON
		Total  int64  `sql:"total"`
	}
	sql := strings.ReplaceAll(text("function_table"), "/*order*/ ", order)
	err = readEach(ctx, a, sql, func(r *row) {
		var modes []json.RawMessage
		r.Modes = nil
		if json.Unmarshal([]byte(r.Normal), &modes) == nil && len(modes) > 0 {
			n := int64(len(modes))
			r.Modes = &n
		}
		total = r.Total
		list = append(list, r.FunctionRow)
	}, program(q.Program), name, fn, int64(q.Limit), int64(q.Offset), sums)
	return list, total, err
}

// byFunction divides executions by their functions.
var byFunction = grouping{"pid, fn", func(x *columns, row int32) [2]int64 { return [2]int64{int64(x.function[row])} }}

// sumText writes sums of functions as a parameter of function_table.sql.
func sumText(groups []sums) string {
	var b strings.Builder
	for i, g := range groups {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d:%d:%d:%d:%d:%t", g.Program, g.Number, g.Anomalies, g.Lost, g.Exclusive, g.OnGPU)
	}
	return b.String()
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

// Ways returns the call paths that lead to a function, those with the most lost time first.
func (a *Asker) Ways(ctx context.Context, f *Function, limit int) ([]Way, error) {
	groups, err := a.sum(ctx, a.columns().ofFunction(f.Program, f.Number), byPath)
	if err != nil {
		return nil, err
	}
	paths := make(map[pathID][]string)
	if a.Memory != nil {
		for _, g := range groups {
			if p := a.Memory.paths[pathID{g.Program, g.Path}]; p != nil {
				paths[pathID{g.Program, g.Path}] = p.funcs
			}
		}
	} else {
		names, err := a.names(ctx)
		if err != nil {
			return nil, err
		}
		if paths, err = a.pathFunctions(ctx, &f.Program, names); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(groups, func(x, y sums) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(y.Anomalies, x.Anomalies), cmp.Compare(x.Path, y.Path))
	})
	var list []Way
	for _, g := range groups {
		if path, ok := paths[pathID{g.Program, g.Path}]; ok && len(list) < limit {
			list = append(list, Way{Program: f.Program, Path: path, N: g.Anomalies, Lost: int64(g.Lost)})
		}
	}
	return list, nil
}

// pathFunctions returns the functions of all call paths of a program, or of all programs.
func (a *Asker) pathFunctions(ctx context.Context, p *trace.Program, names functionNames) (map[pathID][]string, error) {
	type row struct {
		pathID
		Funcs json.RawMessage `sql:"fns"`
	}
	paths := make(map[pathID][]string)
	var bad error
	err := readEach(ctx, a, text("path_list"), func(r *row) {
		path, err := names.path(r.Program, r.Funcs)
		bad = errors.Join(bad, err)
		paths[r.pathID] = path
	}, program(p))
	return paths, errors.Join(err, bad)
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
	paths, err := a.pathFunctions(ctx, p, names)
	if err != nil {
		return nil, err
	}
	type row struct {
		pathID
		Lost int64 `sql:"lost_us"`
		N    int64 `sql:"anomalies"`
	}
	var list []Way
	err = readEach(ctx, a, sql, func(r *row) {
		list = append(list, Way{Program: r.Program, Path: paths[r.pathID], Lost: r.Lost, N: r.N})
	}, program(p))
	return list, err
}

// pathID identifies a call path by its number in a program.
type pathID struct {
	Program trace.Program `sql:"pid"`
	Path    int32         `sql:"path"`
}

// functionID identifies a function by its number in a program.
type functionID struct {
	Program trace.Program `sql:"pid"`
	Number  int32         `sql:"fn"`
}

// functionNames are the names of functions by their numbers.
type functionNames map[functionID]string

func (a *Asker) names(ctx context.Context) (functionNames, error) {
	type row struct {
		functionID
		Name string `sql:"name"`
	}
	names := make(functionNames)
	err := readEach(ctx, a, text("function_list"), func(r *row) { names[r.functionID] = r.Name })
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
		path[i] = n[functionID{p, fn}]
	}
	return path, nil
}

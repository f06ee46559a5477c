package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Functions returns all functions of the run.
func (a *Asker) Functions(ctx context.Context) (list []Function, err error) {
	err = a.each(ctx, text("function_list"), func(row []any) { list = append(list, functionOf(row)) })
	return list, err
}

func functionOf(row []any) Function {
	return Function{Program: whole[trace.Program](row[0]), FID: whole[int](row[2]), Name: word[string](row[3]), fn: whole[int32](row[1])}
}

// ID names the function within the run in its store: program:fn.
func (f *Function) ID() string { return fmt.Sprintf("%d:%d", f.Program, f.fn) }

// FunctionNumbered returns the function with a number; nil if there is none.
func (a *Asker) FunctionNumbered(ctx context.Context, program trace.Program, fn int32) (*Function, error) {
	rows, err := a.collect(ctx, text("function_number"), int32(a.Run.ID), int32(program), fn)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	f := functionOf(rows[0])
	return &f, nil
}

// SearchFunctions returns the functions with a part in their names, whatever the case
// of letters: those that begin with it first, then the shortest.
func (a *Asker) SearchFunctions(ctx context.Context, part string, limit int) (list []Function, err error) {
	part = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(part))
	err = a.each(ctx, text("function_search"), func(row []any) { list = append(list, functionOf(row)) }, "%"+part+"%", part+"%", int64(limit))
	return list, err
}

// OnDevice calls f with each function of which an execution is kept that ran on a GPU.
func (a *Asker) OnDevice(ctx context.Context, f func(p trace.Program, name string)) error {
	return a.each(ctx, text("function_device"), func(row []any) { f(whole[trace.Program](row[0]), word[string](row[1])) })
}

// FunctionRow is a function with all that is known of its calls and anomalies.
type FunctionRow struct {
	Function
	// Of all calls; nil until they are stored, which is when the run ends.
	Calls                                  *int64
	Exclusive, ExclusiveMean, ExclusiveMax *float64
	Inclusive, InclusiveMean               *float64

	Anomalies, Lost, AnomalousTime int64 // of those that were not withdrawn; times in microseconds
	OnGPU                          bool  // executions that were kept ran on a GPU
	Modes                          *int64
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
		fn, q.Program = q.Function.fn, &q.Function.Program
	}
	sql := strings.ReplaceAll(text("function_table"), "/*order*/ ", order)
	err = a.bulk().each(ctx, sql, func(row []any) {
		r := FunctionRow{
			Function: functionOf(row), Calls: number[int64](row[4]), Exclusive: number[float64](row[5]), ExclusiveMean: number[float64](row[6]),
			ExclusiveMax: number[float64](row[7]), Inclusive: number[float64](row[8]), InclusiveMean: number[float64](row[9]),
			Anomalies: whole[int64](row[10]), Lost: whole[int64](row[11]), AnomalousTime: whole[int64](row[12]), OnGPU: row[13] == true,
		}
		var modes []json.RawMessage
		if json.Unmarshal([]byte(word[string](row[14])), &modes) == nil && len(modes) > 0 {
			n := int64(len(modes))
			r.Modes = &n
		}
		total = whole[int64](row[15])
		list = append(list, r)
	}, program(q.Program), name, fn, int64(q.Limit), int64(q.Offset))
	return list, total, err
}

// number is a value of a row; nil for null.
func number[T any](v any) *T {
	if n, ok := v.(T); ok {
		return &n
	}
	return nil
}

// ModelNow returns the model of a function as far as it is known: the final one, or
// while the run goes on the newest by which an execution was judged that is stored; nil
// where there is none.
func (a *Asker) ModelNow(ctx context.Context, f *Function) (json.RawMessage, error) {
	model, err := a.Model(ctx, f)
	if err != nil || model != nil {
		return model, err
	}
	rows, err := a.collect(ctx, text("model_newest"), int32(a.Run.ID), int32(f.Program), f.fn)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return json.RawMessage(word[string](rows[0][0])), nil
}

// NewestModels calls f with the newest model of each function of which one is stored.
func (a *Asker) NewestModels(ctx context.Context, f func(p trace.Program, name string, model json.RawMessage)) error {
	return a.each(ctx, text("models_newest"), func(row []any) {
		f(whole[trace.Program](row[0]), word[string](row[1]), json.RawMessage(word[string](row[2])))
	})
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
	var list []Way
	var bad error
	err = a.each(ctx, text("func_ways"), func(row []any) {
		path, err := names.path(f.Program, row[2])
		if err != nil {
			bad = err
		}
		list = append(list, Way{Program: f.Program, Path: path, N: whole[int64](row[0]), Lost: whole[int64](row[1])})
	}, int32(f.Program), f.fn, int64(limit))
	if err == nil {
		err = bad
	}
	return list, err
}

// LostWays returns the call paths of all anomalies that were not withdrawn.
func (a *Asker) LostWays(ctx context.Context, p *trace.Program) ([]Way, error) {
	sql, err := a.summing(ctx, "path_lost")
	if err != nil {
		return nil, err
	}
	return a.ways(ctx, p, sql, func(w *Way, row []any) { w.Lost, w.N = whole[int64](row[2]), whole[int64](row[3]) })
}

// ways reads rows that begin with program and path.
func (a *Asker) ways(ctx context.Context, p *trace.Program, sql string, fill func(w *Way, row []any)) ([]Way, error) {
	names, err := a.names(ctx)
	if err != nil {
		return nil, err
	}
	paths := make(map[[2]int64][]string)
	var bad error
	err = a.each(ctx, text("path_list"), func(row []any) {
		path, err := names.path(whole[trace.Program](row[0]), row[2])
		if err != nil {
			bad = err
		}
		paths[[2]int64{whole[int64](row[0]), whole[int64](row[1])}] = path
	}, program(p))
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, err
	}
	var list []Way
	err = a.each(ctx, sql, func(row []any) {
		w := Way{Program: whole[trace.Program](row[0]), Path: paths[[2]int64{whole[int64](row[0]), whole[int64](row[1])}]}
		fill(&w, row)
		list = append(list, w)
	}, program(p))
	return list, err
}

// functionNames are names by program and number.
type functionNames map[[2]int64]string

func (a *Asker) names(ctx context.Context) (functionNames, error) {
	names := make(functionNames)
	err := a.each(ctx, text("function_list"), func(row []any) {
		names[[2]int64{whole[int64](row[0]), whole[int64](row[1])}] = word[string](row[3])
	})
	return names, err
}

// path reads a list of numbers of functions.
func (n functionNames) path(p trace.Program, list any) ([]string, error) {
	raw, _ := list.(json.RawMessage)
	var numbers []int64
	if err := json.Unmarshal(raw, &numbers); err != nil {
		return nil, fmt.Errorf("call path %s: %w", raw, err)
	}
	path := make([]string, len(numbers))
	for i, fn := range numbers {
		path[i] = n[[2]int64{int64(p), fn}]
	}
	return path, nil
}

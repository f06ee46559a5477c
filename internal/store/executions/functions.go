package executions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Function identifies a function of the run.
type Function struct {
	Program trace.Program `sql:"pid"`
	FID     int           `sql:"fid"`
	Name    string        `sql:"name"`
	Number  int32         `sql:"fn"` // in the store
}

// Functions returns all functions of the run.
func (a *Reader) Functions(ctx context.Context) ([]Function, error) {
	return ReadAll[Function](ctx, a, text("function_list"))
}

// ID returns the ID of the function in the store of the run: program:fn.
func (f *Function) ID() string { return fmt.Sprintf("%d:%d", f.Program, f.Number) }

// PathFunctions returns the functions of all call paths of a program, or of all programs.
func (a *Reader) PathFunctions(ctx context.Context, p *trace.Program, names FunctionNames) (map[PathID][]string, error) {
	type row struct {
		PathID
		Funcs json.RawMessage `sql:"fns"`
	}
	paths := make(map[PathID][]string)
	var bad error
	err := ReadEach(ctx, a, text("path_list"), func(r *row) {
		path, err := names.Path(r.Program, r.Funcs)
		bad = errors.Join(bad, err)
		paths[r.PathID] = path
	}, OptionalProgram(p))
	return paths, errors.Join(err, bad)
}

// PathID identifies a call path by its number in a program.
type PathID struct {
	Program trace.Program `sql:"pid"`
	Path    int32         `sql:"path"`
}

// FunctionID identifies a function by its number in a program.
type FunctionID struct {
	Program trace.Program `sql:"pid"`
	Number  int32         `sql:"fn"`
}

// FunctionNames are the names of functions by their numbers.
type FunctionNames map[FunctionID]string

// FunctionNames reads the names of all functions of the run.
func (a *Reader) FunctionNames(ctx context.Context) (FunctionNames, error) {
	type row struct {
		FunctionID
		Name string `sql:"name"`
	}
	names := make(FunctionNames)
	err := ReadEach(ctx, a, text("function_list"), func(r *row) { names[r.FunctionID] = r.Name })
	return names, err
}

// Path returns the names of functions from a JSON list of their numbers.
func (n FunctionNames) Path(p trace.Program, list json.RawMessage) ([]string, error) {
	var numbers []int32
	if err := json.Unmarshal(list, &numbers); err != nil {
		return nil, fmt.Errorf("call path %s: %w", list, err)
	}
	path := make([]string, len(numbers))
	for i, fn := range numbers {
		path[i] = n[FunctionID{p, fn}]
	}
	return path, nil
}

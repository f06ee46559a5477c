package summary

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// refer returns what AppendModels needs of models from a file.
func refer(all []NamedModels) (functions []FunctionModels) {
	for i := range all {
		f := &all[i]
		var paths callpath.Sample[*outlier.Model]
		paths.Raise(f.Level, nil)
		for path, m := range f.Paths {
			paths.Put(path, &m, nil)
		}
		functions = append(functions, FunctionModels{
			FunctionStats: &FunctionStats{FuncKey: f.FuncKey}, Model: &f.Model, Paths: paths.Sorted(), NumPaths: paths.Len(), Level: f.Level,
		})
	}
	return functions
}

// modelFile encodes models of some functions, each with two call paths.
func modelFile(functions int) []byte {
	var all []NamedModels
	for i := range functions {
		f := NamedModels{FuncKey: trace.FuncKey{Name: fmt.Sprint("f", i)}}
		for _, path := range []callpath.Hash{0, callpath.Hash(0).Then("a"), callpath.Hash(0).Then("b")} {
			var model outlier.Model
			for j := range 100 {
				model.Learn(int64(100+i*j%50), int64(j))
			}
			f.Set(path, model)
		}
		all = append(all, f)
	}
	return AppendModels(nil, 0, refer(all))
}

// TestDamagedModelFiles reads mutations of a model file. It is refused, or its models encode to
// the same bytes again.
func TestDamagedModelFiles(t *testing.T) {
	file := func(functions int) damage.Files { return damage.Files{"models": modelFile(functions)} }
	damage.Run(t, damage.Format{Files: file(9), Others: []damage.Files{file(3)}, Read: readModelFile})
}

func readModelFile(files damage.Files) error {
	all, err := ReadModels(files["models"], 0)
	if err != nil {
		if !errors.Is(err, ErrModels) && err.Error() == "" {
			return fmt.Errorf("unclear error: %w", err)
		}
		return nil
	}
	b := AppendModels(nil, 0, refer(all))
	again, err := ReadModels(b, 0)
	if err != nil {
		return fmt.Errorf("accepted models cannot be read again: %w", err)
	}
	if !bytes.Equal(AppendModels(nil, 0, refer(again)), b) {
		return errors.New("accepted models change when they are read again")
	}
	return nil
}

func TestModelFileIsReadAgain(t *testing.T) {
	b := modelFile(3)
	all, err := ReadModels(b, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || len(all[0].Paths) != 2 || !bytes.Equal(AppendModels(nil, 0, refer(all)), b) {
		t.Errorf("got %d functions, want the 3 of the file with 2 paths each", len(all))
	}
	two := refer(all[:2])
	two[1].FuncKey = two[0].FuncKey
	if _, err := ReadModels(AppendModels(nil, 0, two), 0); err == nil {
		t.Error("a file with the same function twice is accepted")
	}
}

// FuzzModelFile checks that any bytes are refused, or can be written and read again.
func FuzzModelFile(f *testing.F) {
	f.Add([]byte(modelHead(0)))
	f.Add([]byte(modelHead(0) + "\x01\x00\x01f"))
	f.Add(modelFile(1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readModelFile(damage.Files{"models": b}); err != nil {
			t.Fatal(err)
		}
	})
}

package analyzer

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedModelFiles reads mutations of a model file. It is refused, or its models encode to
// the same number of functions.
func TestDamagedModelFiles(t *testing.T) {
	file := func(functions int) damage.Files {
		m := NewModels(outlier.NewRules(outlier.Default()))
		for i := range functions {
			f := m.function(trace.FuncKey{Name: fmt.Sprint("f", i)})
			var model outlier.Model
			for j := range 100 {
				model.Learn(int64(100+i*j%50), int64(j))
			}
			m.set(f, 0, 0, model)
		}
		m.settle()
		return damage.Files{"models": m.AppendBinary(nil)}
	}
	damage.Run(t, damage.Format{Files: file(9), Others: []damage.Files{file(3)}, Read: readModelFile})
}

func readModelFile(files damage.Files) error {
	rules := outlier.NewRules(outlier.Default())
	m, err := ReadModels(files["models"], rules)
	if err != nil {
		if !errors.Is(err, ErrModels) && err.Error() == "" {
			return fmt.Errorf("unclear error: %w", err)
		}
		return nil
	}
	b := m.AppendBinary(nil)
	again, err := ReadModels(b, rules)
	if err != nil {
		return fmt.Errorf("accepted models cannot be read again: %w", err)
	}
	if !bytes.Equal(again.AppendBinary(nil), b) {
		return errors.New("accepted models change when they are read again")
	}
	return nil
}

// FuzzModelFile checks that any bytes are refused, or can be written and read again.
func FuzzModelFile(f *testing.F) {
	f.Add([]byte(modelHead(0)))
	f.Add([]byte(modelHead(0) + "\x01\x00\x01f"))
	m := NewModels(outlier.NewRules(outlier.Default()))
	fn := m.function(trace.FuncKey{Name: "f"})
	var model outlier.Model
	for j := range 20 {
		model.Learn(int64(100+j), int64(j))
	}
	m.set(fn, 0, 0, model)
	m.settle()
	f.Add(m.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readModelFile(damage.Files{"models": b}); err != nil {
			t.Fatal(err)
		}
	})
}

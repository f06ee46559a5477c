package analyzer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// modelMagic is the beginning of a model file; its number is the version.
const modelMagic = "chimbuko models 4\n"

// ErrModels marks bytes that do not encode models.
var ErrModels = errors.New("not a model file of chimbuko")

// AppendBinary appends the encoding of all models to b, ordered by program and name, so
// that equal models have equal encodings.
func (m *Models) AppendBinary(b []byte) []byte {
	b = append(b, modelMagic...)
	b = binary.AppendUvarint(b, uint64(len(m.functions)))
	for _, f := range slices.SortedFunc(slices.Values(m.functions), func(x, y *Function) int { return x.Compare(y.FuncKey) }) {
		b = binary.AppendUvarint(b, uint64(f.Program))
		b = binary.AppendUvarint(b, uint64(len(f.Name)))
		b = append(b, f.Name...)
		b = f.model.model.AppendBinary(b)
	}
	return b
}

// Restart drops the timelines of the models, so that another run can continue them.
func (m *Models) Restart() {
	for _, f := range m.functions {
		f.model.model.Times.Reset()
		m.touch(f.model)
	}
	m.settle()
}

// ReadModels decodes models; their judges follow rules. Functions are numbered in the
// order of the encoding.
func ReadModels(b []byte, rules *outlier.Rules) (*Models, error) {
	b, ok := bytes.CutPrefix(b, []byte(modelMagic))
	if !ok {
		return nil, ErrModels
	}
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b, ok = nil, false
			return 0
		}
		b = b[n:]
		return v
	}
	m := NewModels(rules)
	for range number() {
		program, length := number(), number()
		if !ok || length > uint64(len(b)) {
			return nil, ErrModels
		}
		f := m.function(trace.FuncKey{Program: trace.Program(program), Name: string(b[:length])})
		var err error
		if f.model.model, b, err = outlier.ReadModel(b[length:]); err != nil {
			return nil, fmt.Errorf("%w: function %q: %w", ErrModels, f.Name, err)
		}
		m.touch(f.model)
	}
	if !ok || len(b) > 0 {
		return nil, ErrModels
	}
	m.settle()
	return m, nil
}

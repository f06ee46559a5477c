package analyzer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/codec"
	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// modelMagic begins a model file; the number of its format follows.
const modelMagic = "chimbuko models "

// ModelFormat is the format of model files.
var ModelFormat = fileformat.Format{Number: 6, Oldest: 6, Renew: "learn the models again with chimbuko analyze --save-model"}

// modelHead returns the first line of models of times in ticks of a unit.
func modelHead(unit trace.Unit) string {
	if unit.Canonical() == 0 {
		return fmt.Sprintf("%s%d\n", modelMagic, ModelFormat.Number)
	}
	return fmt.Sprintf("%s%d, ticks of %d ns\n", modelMagic, ModelFormat.Number, unit.Nanos())
}

// ErrModels marks bytes that do not encode models.
var ErrModels = errors.New("not a model file of chimbuko")

// AppendBinary appends the encoding of all models to b, ordered by program and name, so that equal models have equal encodings.
func (m *Models) AppendBinary(b []byte) []byte {
	b = append(b, modelHead(m.rules.Config().Unit)...)
	b = binary.AppendUvarint(b, uint64(len(m.functions)))
	for _, f := range slices.SortedFunc(slices.Values(m.functions), func(x, y *Function) int { return x.Compare(y.FuncKey) }) {
		b = binary.AppendUvarint(b, uint64(f.Program))
		b = binary.AppendUvarint(b, uint64(len(f.Name)))
		b = append(b, f.Name...)
		b = f.Learned().AppendBinary(b)
		b = append(b, f.models.paths.Level())
		b = binary.AppendUvarint(b, uint64(f.models.paths.Len()))
		for path, s := range f.models.paths.Sorted() {
			b = binary.LittleEndian.AppendUint64(b, uint64(path))
			b = s.model.AppendBinary(b)
		}
	}
	return b
}

// Restart drops the timelines of the models, so that another run can continue with them.
func (m *Models) Restart() {
	for _, f := range m.functions {
		f.Learned().Times.Reset()
		for s := range f.models.paths.Values() {
			s.model.Times.Reset()
			s.changed = true
		}
		m.touch(f.models)
	}
	m.settle()
}

// ReadModels decodes models whose judges follow rules. It numbers functions in the order of the encoding.
func ReadModels(b []byte, rules *outlier.Rules) (*Models, error) {
	number, _, ok := fileformat.CutHead(b, modelMagic)
	if !ok {
		return nil, ErrModels
	}
	if err := ModelFormat.Check(number); err != nil {
		return nil, err
	}
	unit := rules.Config().Unit
	head, b, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return nil, ErrModels
	}
	if string(head)+"\n" != modelHead(unit) {
		return nil, fmt.Errorf("%w of this unit: it has %q, but the ticks of the traces are %d ns", ErrModels, head, unit.Nanos())
	}
	r := reader{codec.Decoder(b, ErrModels)}
	m := NewModels(rules)
	for range r.ReadUint(math.MaxUint64) {
		if !m.read(&r) {
			break
		}
	}
	if r.End(); r.Err != nil {
		return nil, r.Err
	}
	m.settle()
	return m, nil
}

// read adds the next function. It returns false if there is none, or after an error.
func (m *Models) read(r *reader) bool {
	program, name := r.ReadUint(math.MaxUint32), string(r.ReadText())
	if r.Err != nil {
		return false
	}
	f := m.function(trace.FuncKey{Program: trace.Program(program), Name: name})
	model, level := r.model(name), uint8(r.ReadUint(64))
	m.set(f, 0, level, model)
	for range r.ReadUint(callpath.MaxSample) {
		path := callpath.Hash(r.Fixed(0))
		if path == 0 || !f.models.paths.Keeps(path) {
			r.Fail("impossible call path")
		}
		if model := r.model(name); r.Err == nil {
			m.set(f, path, level, model)
		}
	}
	return r.Err == nil
}

// reader decodes models.
type reader struct{ codec.Coder }

func (r *reader) model(name string) outlier.Model {
	m, rest, err := outlier.ReadModel(r.Rest())
	if r.Continue(rest); err != nil {
		r.Fail("function %q: %w", name, err)
	}
	return m
}

package analyzer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// modelMagic is the beginning of a model file; its number is the version.
const modelMagic = "chimbuko models 6\n"

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

// Restart drops the timelines of the models, so that another run can continue them.
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

// ReadModels decodes models; their judges follow rules. Functions are numbered in the
// order of the encoding.
func ReadModels(b []byte, rules *outlier.Rules) (*Models, error) {
	b, ok := bytes.CutPrefix(b, []byte(modelMagic))
	if !ok {
		return nil, ErrModels
	}
	r := reader{b: b}
	m := NewModels(rules)
	for range r.number(math.MaxUint64) {
		if !m.read(&r) {
			break
		}
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = ErrModels
	}
	if r.err != nil {
		return nil, r.err
	}
	m.settle()
	return m, nil
}

// read adds the next function, and reports whether that was possible.
func (m *Models) read(r *reader) bool {
	program, name := r.number(math.MaxUint32), r.text()
	if r.err != nil {
		return false
	}
	f := m.function(trace.FuncKey{Program: trace.Program(program), Name: name})
	model, level := r.model(name), uint8(r.number(64))
	m.set(f, 0, level, model)
	for range r.number(callpath.MaxSample) {
		path := callpath.Hash(r.fixed())
		if path == 0 || !f.models.paths.Keeps(path) {
			r.fail(ErrModels)
		}
		if model := r.model(name); r.err == nil {
			m.set(f, path, level, model)
		}
	}
	return r.err == nil
}

// reader decodes models. After an error all values are zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.fail(ErrModels)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) fixed() uint64 {
	if len(r.b) < 8 {
		r.fail(ErrModels)
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (r *reader) text() string {
	n := r.number(math.MaxUint64)
	if n > uint64(len(r.b)) {
		r.fail(ErrModels)
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) model(name string) outlier.Model {
	m, rest, err := outlier.ReadModel(r.b)
	if r.b = rest; err != nil {
		r.fail(fmt.Errorf("%w: function %q: %w", ErrModels, name, err))
	}
	return m
}

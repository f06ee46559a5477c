package summary

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
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

// FunctionModels refers to the statistics and the models of a function.
type FunctionModels struct {
	*FunctionStats
	Ignored  bool                                     // it is not judged
	Model    *outlier.Model                           // of all calls
	Paths    iter.Seq2[callpath.Hash, *outlier.Model] // in order of the hashes
	NumPaths int
	Level    uint8 // level of the callpath.Sample of these paths
}

// AppendModels appends the encoding of models to b, ordered by program and name, so that equal models have equal encodings.
func AppendModels(b []byte, unit trace.Unit, functions []FunctionModels) []byte {
	b = append(b, modelHead(unit)...)
	b = binary.AppendUvarint(b, uint64(len(functions)))
	byKey := func(x, y FunctionModels) int { return x.Compare(y.FuncKey) }
	for _, f := range slices.SortedFunc(slices.Values(functions), byKey) {
		b = binary.AppendUvarint(b, uint64(f.Program))
		b = binary.AppendUvarint(b, uint64(len(f.Name)))
		b = append(b, f.Name...)
		b = f.Model.AppendBinary(b)
		b = append(b, f.Level)
		b = binary.AppendUvarint(b, uint64(f.NumPaths))
		for path, m := range f.Paths {
			b = binary.LittleEndian.AppendUint64(b, uint64(path))
			b = m.AppendBinary(b)
		}
	}
	return b
}

// NamedModels are the models of a function in a file.
type NamedModels struct {
	trace.FuncKey
	Learned
}

// ReadModels decodes models of times in ticks of a unit, in the order of the encoding.
func ReadModels(b []byte, unit trace.Unit) (all []NamedModels, err error) {
	number, _, ok := fileformat.CutHead(b, modelMagic)
	if !ok {
		return nil, ErrModels
	}
	if err := ModelFormat.Check(number); err != nil {
		return nil, err
	}
	head, b, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return nil, ErrModels
	}
	if string(head)+"\n" != modelHead(unit) {
		return nil, fmt.Errorf("%w of this unit: it has %q, but the ticks of the traces are %d ns", ErrModels, head, unit.Nanos())
	}
	r := modelReader{codec.Decoder(b, ErrModels)}
	for range r.ReadUint(math.MaxUint64) {
		f := r.function()
		if n := len(all); n > 0 && all[n-1].Compare(f.FuncKey) >= 0 {
			r.Fail("function %q is out of order", f.Name)
		}
		if r.Err != nil {
			break
		}
		all = append(all, f)
	}
	if r.End(); r.Err != nil {
		return nil, r.Err
	}
	return all, nil
}

// modelReader decodes models.
type modelReader struct{ codec.Coder }

// function decodes the next function.
func (r *modelReader) function() (f NamedModels) {
	f.Program, f.Name = trace.Program(r.ReadUint(math.MaxUint32)), string(r.ReadText())
	if r.Err != nil {
		return f
	}
	f.Model, f.Level = r.model(f.Name), uint8(r.ReadUint(64))
	var sample callpath.Sample[bool]
	sample.Raise(f.Level, nil)
	last := callpath.Hash(0)
	for range r.ReadUint(callpath.MaxSample) {
		path := callpath.Hash(r.Fixed(0))
		if path <= last || !sample.Keeps(path) {
			r.Fail("impossible call path")
		}
		model := r.model(f.Name)
		if r.Err != nil {
			break
		}
		f.Set(path, model)
		last = path
	}
	return f
}

func (r *modelReader) model(name string) outlier.Model {
	m, rest, err := outlier.ReadModel(r.Rest())
	if r.Continue(rest); err != nil {
		r.Fail("function %q: %w", name, err)
	}
	return m
}

// Package bpwriter writes BP4 datasets that ADIOS2 and package bp read, without ADIOS2:
// global and local arrays and single values of numbers, strings, and string attributes,
// which is more than TAU writes. It does not write compressed arrays or other
// attributes.
//
// A dataset grows as with ADIOS2: for each step arrays, then metadata, then the index record that
// makes the step exist. Close clears the active flag. A Writer holds only positions. A Step holds
// the content of one step, and one Step can serve any number of Writers in turn, so that thousands
// of datasets need the memory of one step.
package bpwriter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// tauIO is the name of TAU's ADIOS2 IO.
const tauIO = "TAU trace data"

// Writer writes one dataset. It serves one goroutine.
type Writer struct {
	dir   string
	steps uint32
	err   error // that ended it

	attributes uint32 // in all steps so far

	data, meta, index file
	stage             int // next part of the current step to write
}

// file is one of a dataset's files.
type file struct {
	path string
	f    *os.File // nil while it is closed
	size int64
}

// Create creates the directory of a dataset and its files, or empties existing ones. As
// with ADIOS2 they have no content before the first step.
func Create(dir string) (*Writer, error) {
	w := &Writer{dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for name, f := range map[string]*file{"data.0": &w.data, "md.0": &w.meta, "md.idx": &w.index} {
		f.path = filepath.Join(dir, name)
		h, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			w.Release()
			return nil, err
		}
		f.f = h
	}
	return w, nil
}

// Release closes the files; the Writer opens them again when it needs them. The dataset
// stays active.
func (w *Writer) Release() {
	for _, f := range []*file{&w.data, &w.meta, &w.index} {
		if f.f != nil {
			_ = f.f.Close() // nothing is buffered
			f.f = nil
		}
	}
}

// append writes b at the end of the file.
func (f *file) append(b []byte) error {
	if err := f.writeAt(b, f.size); err != nil {
		return err
	}
	f.size += int64(len(b))
	return nil
}

func (f *file) writeAt(b []byte, off int64) error {
	if f.f == nil {
		h, err := os.OpenFile(f.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		f.f = h
	}
	_, err := f.f.WriteAt(b, off)
	return err
}

// Begin makes s the empty next step of this dataset. time is the time of the write, in Unix
// seconds.
func (w *Writer) Begin(s *Step, time int64) { s.reset(w, time) }

// Write adds the step to the dataset.
func (w *Writer) Write(s *Step) error {
	for _, write := range []func(*Step) (int, error){w.WriteData, w.WriteMetadata, w.WriteIndex} {
		if _, err := write(s); err != nil {
			return err
		}
	}
	return nil
}

var errOrder = errors.New("WriteData, WriteMetadata and WriteIndex must be called once each, in this order")

// begin checks that stage is the next one.
func (w *Writer) begin(s *Step, stage int) error {
	if w.err == nil {
		switch {
		case s.w != w || s.number != w.steps+1 || w.stage != stage:
			w.err = fmt.Errorf("%s step %d: %w", w.dir, w.steps, errOrder)
		case s.err != nil:
			w.err = fmt.Errorf("%s step %d: %w", w.dir, w.steps, s.err)
		}
	}
	w.stage = stage + 1
	return w.err
}

// write appends b to a file. An error is final.
func (w *Writer) write(f *file, b []byte) (int, error) {
	if err := f.append(b); err != nil {
		w.err = err
		return 0, err
	}
	return len(b), nil
}

// WriteData writes the step's arrays and ends the step. It returns the number of bytes.
func (w *Writer) WriteData(s *Step) (int, error) {
	s.end()
	if err := w.begin(s, 0); err != nil {
		return 0, err
	}
	return w.write(&w.data, s.data)
}

// WriteMetadata writes the metadata of the step. It returns the number of bytes.
func (w *Writer) WriteMetadata(s *Step) (int, error) {
	if err := w.begin(s, 1); err != nil {
		return 0, err
	}
	s.describe(w.meta.size)
	return w.write(&w.meta, s.meta)
}

// WriteIndex writes the index record that makes the step exist. It returns the number
// of bytes.
func (w *Writer) WriteIndex(s *Step) (int, error) {
	if err := w.begin(s, 2); err != nil {
		return 0, err
	}
	var b []byte
	if w.index.size == 0 {
		b = header("Index Table")
		b[activeByte] = 1
	}
	for _, v := range [...]uint64{
		uint64(s.number), 0, s.groupsAt, s.variablesAt, s.attributesAt, uint64(w.meta.size), uint64(s.time), 0,
	} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	n, err := w.write(&w.index, b)
	if err == nil {
		w.steps++
		w.attributes += uint32(len(s.attributes.list))
		w.stage = 0
	}
	return n, err
}

// Close marks the dataset as closed. Like ADIOS2, it adds an empty step to a dataset
// without steps.
func (w *Writer) Close() error {
	defer w.Release()
	if w.err == nil && w.steps == 0 && w.stage == 0 {
		var s Step
		w.Begin(&s, 0)
		if err := w.Write(&s); err != nil {
			return err
		}
	}
	if w.err != nil {
		return w.err
	}
	w.err = os.ErrClosed
	return w.index.writeAt([]byte{0}, activeByte)
}

const (
	headerSize = 64
	activeByte = 38 // in the header of md.idx
)

// header returns the beginning of a file. It names ADIOS2 2.12.0, whose format this is.
func header(kind string) []byte {
	b := make([]byte, headerSize, 2*headerSize)
	copy(b, "ADIOS-BP v2.<.0 "+kind)
	copy(b[32:], "2<0\x00\x00\x04")
	return b
}

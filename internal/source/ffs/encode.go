package ffs

import (
	"encoding/binary"
	"fmt"
)

// Values are the values of a structure's fields by name. A number is a uint64, a string
// a string; an array is a []uint64, a []byte if its elements are bytes, or a []Values;
// a structure, or a pointer to one, is Values. Missing values are zero or null. Fields
// with the lengths of arrays must be present and match.
type Values map[string]any

// Encode returns a record of this format, with its header, as ADIOS2 sends it.
func (f *Format) Encode(v Values) ([]byte, error) {
	header := 16
	if f.variant {
		header = 24
	}
	e := encoder{buf: make([]byte, header+f.Size, header+f.Size+256), base: header}
	copy(e.buf, f.ID[:])
	if err := e.put(f, v, 0); err != nil {
		return nil, fmt.Errorf("record %q: %w", f.Name, err)
	}
	if f.variant {
		binary.LittleEndian.PutUint64(e.buf[12:], uint64(len(e.buf)-header))
	}
	return e.buf, nil
}

// encoder lays out a record: the structure first, then the targets of its pointers.
type encoder struct {
	buf  []byte
	base int // origin of pointers
}

// alloc adds n bytes and returns their position relative to base.
func (e *encoder) alloc(n, align int) int {
	at := len(e.buf) - e.base
	pad := -at & (align - 1)
	e.buf = append(e.buf, make([]byte, pad+n)...)
	return at + pad
}

func (e *encoder) at(pos int) []byte { return e.buf[e.base+pos:] }

// put writes the values of the structure at pos.
func (e *encoder) put(f *Format, v Values, pos int) error {
	written := 0
	for i := range f.Fields {
		fd := &f.Fields[i]
		value, ok := v[fd.Name]
		if !ok {
			continue
		}
		written++
		if err := e.field(f, fd, v, value, pos+fd.Offset); err != nil {
			return fmt.Errorf("field %q: %w", fd.Name, err)
		}
	}
	if written < len(v) {
		return fmt.Errorf("%d of the values have no field in %q", len(v)-written, f.Name)
	}
	return nil
}

func (e *encoder) field(f *Format, fd *Field, all Values, value any, pos int) error {
	n, err := fd.count(f, all)
	if err != nil {
		return err
	}
	if have := length(value); have != n {
		return fmt.Errorf("%d values, want %d", have, n)
	}
	if fd.pointer {
		if n == 0 {
			return nil // null
		}
		to := e.alloc(int(n)*fd.elementSize(), pointerSize)
		binary.LittleEndian.PutUint64(e.at(pos), uint64(to))
		pos = to
	}
	switch value := value.(type) {
	case string:
		return e.text(fd, value, pos)
	case uint64:
		return e.number(fd, value, pos)
	case []uint64:
		for i, x := range value {
			if err := e.number(fd, x, pos+i*fd.Size); err != nil {
				return err
			}
		}
		return nil
	case []byte:
		if fd.Size != 1 || fd.Kind == Struct {
			return fmt.Errorf("bytes where %q is wanted", fd.Type)
		}
		copy(e.at(pos), value)
		return nil
	case Values:
		return e.structure(fd, value, pos)
	case []Values:
		for i, x := range value {
			if err := e.structure(fd, x, pos+i*fd.elementSize()); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("a value of type %T", value)
}

// count returns the number of elements of the field.
func (fd *Field) count(f *Format, all Values) (n uint64, err error) {
	n = 1
	for _, d := range fd.dims {
		if d.field < 0 {
			n *= d.n
			continue
		}
		name := f.Fields[d.field].Name
		v, ok := all[name].(uint64)
		if !ok && all[name] != nil {
			return 0, fmt.Errorf("length %q is not a number", name)
		}
		n *= v
	}
	return n, nil
}

func length(value any) uint64 {
	switch value := value.(type) {
	case []uint64:
		return uint64(len(value))
	case []byte:
		return uint64(len(value))
	case []Values:
		return uint64(len(value))
	}
	return 1
}

func (e *encoder) text(fd *Field, text string, pos int) error {
	if fd.Kind != String {
		return fmt.Errorf("a string where %q is wanted", fd.Type)
	}
	to := e.alloc(len(text)+1, 1)
	copy(e.at(to), text)
	binary.LittleEndian.PutUint64(e.at(pos), uint64(to))
	return nil
}

func (e *encoder) number(fd *Field, v uint64, pos int) error {
	if fd.Kind == Struct || fd.Kind == String || fd.each {
		return fmt.Errorf("a number where %q is wanted", fd.Type)
	}
	b := e.at(pos)
	switch fd.Size {
	case 8:
		binary.LittleEndian.PutUint64(b, v)
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 1:
		b[0] = byte(v)
	default:
		return fmt.Errorf("a number of %d bytes", fd.Size)
	}
	return nil
}

func (e *encoder) structure(fd *Field, v Values, pos int) error {
	if fd.Kind != Struct {
		return fmt.Errorf("a structure where %q is wanted", fd.Type)
	}
	if fd.each {
		to := e.alloc(fd.Sub.Size, pointerSize)
		binary.LittleEndian.PutUint64(e.at(pos), uint64(to))
		pos = to
	}
	return e.put(fd.Sub, v, pos)
}

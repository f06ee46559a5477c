package ffs

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// BlockID returns the id of the format of a block.
func BlockID(block []byte) (ID, error) {
	if len(block) < len(ID{}) {
		return ID{}, &Error{Reason: fmt.Sprintf("record needs %d bytes for its format id, have %d", len(ID{}), len(block))}
	}
	return ID(block[:12]), nil
}

// Record is a view of one structure in an encoded block. Its strings and byte slices
// refer to the block. The zero Record is invalid.
type Record struct {
	Format *Format
	data   []byte // from the start of the base record, the origin of pointers
	at     uint64 // of this structure in data
	base   int64  // of data in the block, for errors
	budget *uint64
}

// spend takes n bytes from the budget of the block. It allows reading all of a block
// several times, but limits the memory if damaged pointers refer to the same bytes many
// times.
func (r Record) spend(fd *Field, n uint64) error {
	if n > *r.budget {
		return r.fail(fd, "values overlap")
	}
	*r.budget -= n
	return nil
}

// Decode returns a view of the record in block, which must be encoded in this format
// (see BlockID). Padding may follow it.
func (f *Format) Decode(block []byte) (Record, error) {
	header, length := 16, uint64(f.Size)
	if f.variant {
		header = 24
		if len(block) < header {
			return Record{}, &Error{Reason: fmt.Sprintf("record needs %d bytes, have %d", header, len(block))}
		}
		length = binary.LittleEndian.Uint64(block[12:])
	}
	if len(block) < header || length > uint64(len(block)-header) {
		return Record{}, &Error{Offset: 12, Reason: fmt.Sprintf("record is %d bytes long, have %d", length, max(0, len(block)-header))}
	}
	budget := 16*length + 64
	r := Record{Format: f, data: block[header : header+int(length)], base: int64(header), budget: &budget}
	if f.Size > len(r.data) {
		return Record{}, &Error{Offset: r.base, Reason: fmt.Sprintf("structure %q needs %d bytes, have %d", f.Name, f.Size, len(r.data))}
	}
	return r, nil
}

func (r Record) fail(fd *Field, format string, args ...any) error {
	return &Error{
		Offset: r.base + int64(r.at) + int64(fd.Offset),
		Reason: fmt.Sprintf("field %q: %s", fd.Name, fmt.Sprintf(format, args...)),
	}
}

// inline returns the field's bytes within the structure. They exist: link compared the
// field with the structure, and the creator of the Record compared the structure with
// the data.
func (r Record) inline(fd *Field) []byte {
	return r.data[r.at+uint64(fd.Offset):]
}

// Uint returns the value of a single integer, sign-extended if it is signed.
func (r Record) Uint(fd *Field) (uint64, error) {
	if fd.pointer || fd.each || fd.IsArray() || fd.Kind == Struct || fd.Kind == String {
		return 0, r.fail(fd, "%q is not a single number", fd.Type)
	}
	return r.number(fd, r.inline(fd))
}

func (r Record) number(fd *Field, b []byte) (uint64, error) {
	var v uint64
	switch fd.Size {
	case 8:
		return binary.LittleEndian.Uint64(b), nil
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
	case 1:
		v = uint64(b[0])
	default:
		return 0, r.fail(fd, "number of %d bytes", fd.Size)
	}
	if fd.Kind == Integer {
		unused := 64 - 8*fd.Size
		v = uint64(int64(v<<unused) >> unused)
	}
	return v, nil
}

// Raw returns the bytes of a single value that is stored in the structure.
func (r Record) Raw(fd *Field) ([]byte, error) {
	if fd.pointer || fd.each || fd.IsArray() || fd.Kind == String {
		return nil, r.fail(fd, "%q is not a single value", fd.Type)
	}
	if err := r.spend(fd, uint64(fd.Size)); err != nil {
		return nil, err
	}
	return r.inline(fd)[:fd.Size:fd.Size], nil
}

// elements returns the position of the field's elements in data and their number, 0 if
// the pointer is null. All of them lie within data.
func (r Record) elements(fd *Field) (at, n uint64, err error) {
	n = 1
	for _, d := range fd.dims {
		v := d.n
		if d.field >= 0 {
			if v, err = r.Uint(&r.Format.Fields[d.field]); err != nil {
				return 0, 0, err
			}
		}
		hi, lo := bits.Mul64(n, v)
		if hi != 0 {
			return 0, 0, r.fail(fd, "impossible length")
		}
		n = lo
	}
	at = r.at + uint64(fd.Offset)
	if fd.pointer {
		at = binary.LittleEndian.Uint64(r.inline(fd))
	}
	if at == 0 && fd.pointer || fd.elementSize() == 0 {
		return 0, 0, nil
	}
	if err := r.check(fd, at, n, uint64(fd.elementSize())); err != nil {
		return 0, 0, err
	}
	return at, n, nil
}

// check returns an error unless n elements of that size lie within data at position at.
func (r Record) check(fd *Field, at, n, size uint64) error {
	hi, width := bits.Mul64(n, size)
	if have := uint64(len(r.data)); hi != 0 || at > have || width > have-at {
		return r.fail(fd, "%d elements of %d bytes at %d do not lie in the record of %d bytes", n, size, at, have)
	}
	return nil
}

// Bytes returns the bytes of all elements of an array, nil if it is empty.
func (r Record) Bytes(fd *Field) ([]byte, error) {
	at, n, err := r.elements(fd)
	if err != nil || n == 0 {
		return nil, err
	}
	end := at + n*uint64(fd.elementSize())
	if err := r.spend(fd, end-at); err != nil {
		return nil, err
	}
	return r.data[at:end:end], nil
}

// Uints appends the values of an array of integers to dst.
func (r Record) Uints(dst []uint64, fd *Field) ([]uint64, error) {
	if fd.each || fd.Kind == Struct || fd.Kind == String {
		return dst, r.fail(fd, "%q is not an array of numbers", fd.Type)
	}
	at, n, err := r.elements(fd)
	if err != nil {
		return dst, err
	}
	if err := r.spend(fd, n*8); err != nil {
		return dst, err
	}
	for i := range n {
		v, err := r.number(fd, r.data[at+i*uint64(fd.Size):])
		if err != nil {
			return dst, err
		}
		dst = append(dst, v)
	}
	return dst, nil
}

// text returns the string to which the pointer in b refers, "" for null.
func (r Record) text(fd *Field, b []byte) (string, error) {
	at := binary.LittleEndian.Uint64(b)
	if at == 0 {
		return "", nil
	}
	s, ok := cString(r.data, at)
	if !ok {
		return "", r.fail(fd, "string at %d does not end in the record of %d bytes", at, len(r.data))
	}
	return s, r.spend(fd, uint64(len(s)))
}

// Text returns the value of a single string.
func (r Record) Text(fd *Field) (string, error) {
	if fd.Kind != String || fd.pointer || fd.each || fd.IsArray() {
		return "", r.fail(fd, "%q is not a string", fd.Type)
	}
	return r.text(fd, r.inline(fd))
}

// Texts appends the values of an array of strings to dst.
func (r Record) Texts(dst []string, fd *Field) ([]string, error) {
	if fd.Kind != String || fd.each {
		return dst, r.fail(fd, "%q is not an array of strings", fd.Type)
	}
	at, n, err := r.elements(fd)
	if err != nil {
		return dst, err
	}
	if err := r.spend(fd, n*16); err != nil {
		return dst, err
	}
	for i := range n {
		s, err := r.text(fd, r.data[at+i*pointerSize:])
		if err != nil {
			return dst, err
		}
		dst = append(dst, s)
	}
	return dst, nil
}

// Structs is an array of structures; a single one is an array of length 1.
type Structs struct {
	in   Record // with the field
	of   Record // with the Format of the elements, and at of the first one
	n    int
	each bool
	fd   *Field
}

// Len returns the number of structures.
func (s Structs) Len() int { return s.n }

// At returns structure i, 0 ≤ i < Len. ok is false for a null pointer.
func (s Structs) At(i int) (rec Record, ok bool, err error) {
	rec = s.of
	if !s.each {
		rec.at += uint64(i) * uint64(rec.Format.Size)
		return rec, true, nil
	}
	at := binary.LittleEndian.Uint64(rec.data[rec.at+uint64(i)*pointerSize:])
	if at == 0 {
		return Record{}, false, nil
	}
	if err := s.in.check(s.fd, at, 1, uint64(rec.Format.Size)); err != nil {
		return Record{}, false, err
	}
	rec.at = at
	return rec, true, nil
}

// Structs returns the structures of a field. It returns none if the pointer is null.
func (r Record) Structs(fd *Field) (Structs, error) {
	if fd.Kind != Struct {
		return Structs{}, r.fail(fd, "%q is not a structure", fd.Type)
	}
	at, n, err := r.elements(fd)
	if err != nil || n == 0 {
		return Structs{}, err
	}
	of := r
	of.Format, of.at = fd.Sub, at
	return Structs{in: r, of: of, n: int(n), each: fd.each, fd: fd}, nil
}

// Package ffs decodes and encodes FFS, the self-describing records of ADIOS2's BP5
// metadata and SST messages: formats, which describe structures field by field, and
// records, which are encoded in such a format. It is pure: decoding turns bytes into
// views, encoding turns values into bytes. A view copies nothing until a value is read,
// and every access is checked against the available bytes.
//
// It supports the records that ADIOS2 2.9 and later write on little-endian machines with 8-byte
// pointers. Errors name unsupported features.
package ffs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// ErrUnsupported marks formats that are valid but not supported.
var ErrUnsupported = errors.New("unsupported FFS format")

// Error describes invalid bytes and their place.
type Error struct {
	Offset int64 // from the first byte of the input
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Reason) }

// ID identifies a format; records begin with it.
type ID [12]byte

func (id ID) String() string { return fmt.Sprintf("%x", id[:]) }

// Kind is the base type of a field.
type Kind uint8

// The base types. Other is any type that this package does not interpret, such as
// ADIOS2's complex4; its bytes are available.
const (
	Other Kind = iota
	Integer
	Unsigned
	Float
	Char
	String
	Struct
)

var kindsByName = map[string]Kind{
	"integer": Integer, "enumeration": Integer,
	"unsigned integer": Unsigned, "unsigned": Unsigned, "boolean": Unsigned,
	"float": Float, "double": Float,
	"char":   Char,
	"string": String,
}

// Format describes a structure.
type Format struct {
	ID     ID // of a top-level format
	Name   string
	Size   int // bytes of the structure without the targets of its pointers
	Fields []Field

	variant bool // has pointers, so records include their length
}

// Field is one member of a structure.
type Field struct {
	Name   string
	Type   string // as written, for example "MetaArrayMM8" or "integer[Dims]"
	Kind   Kind
	Size   int // bytes of one element
	Offset int // in the structure
	Sub    *Format

	base    string
	dims    []dim
	pointer bool // the structure holds a pointer to the value or values
	each    bool // each element is itself a pointer
}

// dim is one dimension of an array: a constant, or the value of an integer
// field of the same structure.
type dim struct {
	n     uint64
	field int // -1 if n is the length
}

const (
	pointerSize  = 8
	repHeader    = 8
	structHeader = 28
	fieldEntry   = 16

	// maxTexts limits the total length of the strings of a structure to a multiple of its
	// size: each is copied, and only damage makes many of them overlap.
	maxTexts = 4
)

// ParseFormat decodes the description of a format. Padding may follow it.
func ParseFormat(id ID, rep []byte) (*Format, error) {
	if len(rep) < repHeader {
		return nil, &Error{Reason: fmt.Sprintf("format needs %d bytes, have %d", repHeader, len(rep))}
	}
	total := repLength(rep)
	if total > len(rep) {
		return nil, &Error{Reason: fmt.Sprintf("format is %d bytes long, have %d", total, len(rep))}
	}
	if rep[2] != 0 {
		return nil, fmt.Errorf("%w: big-endian", ErrUnsupported)
	}
	if rep[3] != repVersion {
		return nil, fmt.Errorf("%w: description version %d, as ADIOS 2.8 and older write; want %d", ErrUnsupported, rep[3], repVersion)
	}
	n := 1 + int(rep[4])
	all := make([]*Format, 0, min(n, len(rep)/structHeader+1))
	for off := repHeader; len(all) < n; {
		f, length, err := parseStruct(rep[:total], off)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
		off += length
	}
	if err := link(all); err != nil {
		return nil, err
	}
	all[0].ID = id
	return all[0], nil
}

// repLength returns the length of a description without padding.
func repLength(rep []byte) int {
	return int(binary.BigEndian.Uint16(rep)) | int(binary.BigEndian.Uint16(rep[6:]))<<16
}

func parseStruct(rep []byte, off int) (*Format, int, error) {
	fail := func(at int, format string, args ...any) (*Format, int, error) {
		return nil, 0, &Error{Offset: int64(off + at), Reason: fmt.Sprintf(format, args...)}
	}
	if len(rep)-off < structHeader {
		return fail(0, "structure needs %d bytes, have %d", structHeader, len(rep)-off)
	}
	b := rep[off:]
	length := int(binary.BigEndian.Uint16(b)) | int(binary.BigEndian.Uint16(b[24:]))<<16
	if length < structHeader || length > len(b) {
		return fail(0, "structure is %d bytes long, have %d", length, len(b))
	}
	b = b[:length]
	if b[3] != 0 {
		return nil, 0, fmt.Errorf("%w: big-endian structure", ErrUnsupported)
	}
	if b[16] != pointerSize {
		return nil, 0, fmt.Errorf("%w: %d-byte pointers", ErrUnsupported, b[16])
	}
	if b[22] != 0 {
		return nil, 0, fmt.Errorf("%w: column-major arrays", ErrUnsupported)
	}
	header := int(b[17])
	count := binary.LittleEndian.Uint32(b[8:])
	size := int32(binary.LittleEndian.Uint32(b[12:]))
	if uint64(header)+uint64(count)*fieldEntry > uint64(length) {
		return fail(8, "%d fields do not fit into %d bytes", count, length)
	}
	if size < 0 {
		return fail(12, "negative record length %d", size)
	}
	name, ok := cString(b, uint64(binary.LittleEndian.Uint32(b[4:])))
	if !ok {
		return fail(4, "structure name lies outside")
	}
	f := &Format{Name: name, Size: int(size), Fields: make([]Field, count)}
	texts := 0
	for i := range f.Fields {
		at := header + i*fieldEntry
		e := b[at : at+fieldEntry]
		fieldName, ok1 := cString(b, uint64(binary.LittleEndian.Uint32(e)))
		typ, ok2 := cString(b, uint64(binary.LittleEndian.Uint32(e[4:])))
		if !ok1 || !ok2 {
			return fail(at, "name or type of field %d lies outside", i)
		}
		if texts += len(fieldName) + len(typ); texts > maxTexts*length {
			return fail(at, "names and types of fields overlap")
		}
		f.Fields[i] = Field{
			Name: fieldName, Type: typ,
			Size:   int(int32(binary.LittleEndian.Uint32(e[8:]))),
			Offset: int(int32(binary.LittleEndian.Uint32(e[12:]))),
		}
	}
	for i := range f.Fields {
		if err := f.parseType(&f.Fields[i]); err != nil {
			return fail(header+i*fieldEntry, "%v", err)
		}
	}
	return f, length, nil
}

// cString returns the bytes from off to the next NUL.
func cString(b []byte, off uint64) (string, bool) {
	if off >= uint64(len(b)) {
		return "", false
	}
	end := bytes.IndexByte(b[off:], 0)
	if end < 0 {
		return "", false
	}
	return string(b[off : off+uint64(end)]), true
}

// parseType splits a type such as "(*S)[n]" into base type, dimensions and pointers.
// Dynamic arrays always have a pointer.
func (f *Format) parseType(fd *Field) error {
	t := strings.TrimSpace(fd.Type)
	if rest, ok := strings.CutPrefix(t, "(*"); ok {
		inner, tail, ok := strings.Cut(rest, ")")
		if !ok {
			return fmt.Errorf("type %q of field %q is malformed", fd.Type, fd.Name)
		}
		fd.each, t = true, inner+tail
	} else if rest, ok := strings.CutPrefix(t, "*"); ok {
		fd.pointer = true
		t = strings.NewReplacer("(", "", ")", "").Replace(rest)
	}
	base, tail, _ := strings.Cut(t, "[")
	fd.base = strings.TrimSpace(base)
	if tail != "" {
		inner, ok := strings.CutSuffix(tail, "]")
		if !ok {
			return fmt.Errorf("type %q of field %q is malformed", fd.Type, fd.Name)
		}
		for d := range strings.SplitSeq(inner, "][") {
			n, err := strconv.ParseUint(d, 10, 31)
			if err == nil {
				fd.dims = append(fd.dims, dim{n: n, field: -1})
				continue
			}
			i := f.index(d)
			if i < 0 {
				return fmt.Errorf("array %q has the unknown length %q", fd.Name, d)
			}
			fd.dims = append(fd.dims, dim{field: i})
			fd.pointer = true
		}
	}
	fd.Kind = kindsByName[strings.ToLower(fd.base)]
	return nil
}

func (f *Format) index(name string) int {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// link resolves the names of substructures, checks that every field lies within its
// structure, and marks the formats with pointers.
func link(all []*Format) error {
	byName := make(map[string]*Format, len(all))
	for _, s := range all[1:] {
		byName[s.Name] = s
	}
	for _, s := range all {
		for i := range s.Fields {
			fd := &s.Fields[i]
			if sub := byName[fd.base]; sub != nil && fd.Kind == Other {
				fd.Kind, fd.Sub, fd.Size = Struct, sub, sub.Size
			}
			if fd.Kind == String {
				fd.Size = pointerSize
			}
			if fd.Size < 0 {
				return &Error{Reason: fmt.Sprintf("field %q of %q has negative size", fd.Name, s.Name)}
			}
			width, ok := fd.footprint()
			if !ok || fd.Offset < 0 || uint64(fd.Offset)+width > uint64(s.Size) {
				return &Error{Reason: fmt.Sprintf("field %q does not lie in its structure %q", fd.Name, s.Name)}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, s := range all {
			if !s.variant && s.holdsPointer() {
				s.variant, changed = true, true
			}
		}
	}
	return nil
}

func (f *Format) holdsPointer() bool {
	for i := range f.Fields {
		fd := &f.Fields[i]
		if fd.pointer || fd.each || fd.Kind == String || fd.Sub != nil && fd.Sub.variant {
			return true
		}
	}
	return false
}

// footprint returns the number of bytes of the field within its structure.
func (fd *Field) footprint() (uint64, bool) {
	if fd.pointer {
		return pointerSize, true
	}
	width := uint64(fd.elementSize())
	for _, d := range fd.dims {
		hi, lo := bits.Mul64(width, d.n)
		if hi != 0 {
			return 0, false
		}
		width = lo
	}
	return width, width < 1<<40
}

func (fd *Field) elementSize() int {
	if fd.each {
		return pointerSize
	}
	return fd.Size
}

// IsArray reports whether the field is an array.
func (fd *Field) IsArray() bool { return len(fd.dims) > 0 }

// Field returns the field of that name, or nil.
func (f *Format) Field(name string) *Field {
	if i := f.index(name); i >= 0 {
		return &f.Fields[i]
	}
	return nil
}

package bp

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"strconv"
)

// Type is the type of a variable's or an attribute's elements.
type Type uint8

// The types of ADIOS2.
const (
	Unknown Type = iota
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float
	Double
	LongDouble
	ComplexFloat
	ComplexDouble
	String
	Char
	Structure
)

// types has the name of each type, the bytes of one element, and its code in the metadata of BP3
// and BP4, in the order of the codes in BP5.
var types = [...]struct {
	name    string
	size    int
	bp4Code int
}{
	Unknown:       {"unknown", 0, -1},
	Int8:          {"int8", 1, 0},
	Int16:         {"int16", 2, 1},
	Int32:         {"int32", 4, 2},
	Int64:         {"int64", 8, 4},
	Uint8:         {"uint8", 1, 50},
	Uint16:        {"uint16", 2, 51},
	Uint32:        {"uint32", 4, 52},
	Uint64:        {"uint64", 8, 54},
	Float:         {"float", 4, 5},
	Double:        {"double", 8, 6},
	LongDouble:    {"long double", 16, 7},
	ComplexFloat:  {"complex float", 8, 10},
	ComplexDouble: {"complex double", 16, 11},
	String:        {"string", 0, 9},
	Char:          {"char", 1, 55},
	Structure:     {"structure", 0, -1},
}

// bp4StringArray is the only code of BP4 that means both a type and a shape.
const bp4StringArray = 12

func typeOfBP4(code uint8) Type {
	if code == bp4StringArray {
		return String
	}
	for t := range types {
		if types[t].bp4Code == int(code) {
			return Type(t)
		}
	}
	return Unknown
}

// String returns the type's name, for example "uint64".
func (t Type) String() string {
	if int(t) < len(types) {
		return types[t].name
	}
	return types[Unknown].name
}

// Size returns the bytes of one element; 0 for strings.
func (t Type) Size() int {
	if int(t) < len(types) {
		return types[t].size
	}
	return 0
}

// Shape is the relation between the blocks of a variable.
type Shape uint8

// The shapes of ADIOS2.
const (
	GlobalValue Shape = iota // one value, the same for all writers
	LocalValue               // one value for each writer
	GlobalArray              // blocks are parts of one array
	LocalArray               // blocks are separate arrays
	JoinedArray              // blocks follow each other in one array
)

// String returns the shape's name.
func (s Shape) String() string {
	return [...]string{"global value", "local value", "global array", "local array", "joined array", "", "", ""}[s&7]
}

// Step holds the output of the writers between two EndSteps. It is valid until the
// Reader's next call; its strings may be kept.
type Step struct {
	Index      int   // from 0, in the order of the file
	Time       int64 // Unix seconds of the write; 0 in BP5, which does not store it
	Variables  []Variable
	Attributes []Attribute // those that are new in this step
	Restored   bool        // the step was read before; only its attributes are here

	data   data
	byName map[string]int
}

// Variable is one variable of a step: at least one block.
type Variable struct {
	Name   string
	Type   Type
	Shape  Shape
	Blocks []Block

	refused  string // reason why its data cannot be read, or ""
	operator bool   // refused because it is compressed; its data name the operator
}

// Block is the output of one Put of one writer.
type Block struct {
	Writer int      // -1 in BP3 and BP4, which do not store it
	Shape  []uint64 // of the whole array; empty for values and local arrays
	Start  []uint64 // position in it
	Count  []uint64 // elements along each dimension; empty for values
	Value  []byte   // a single value: its bytes, for strings the text

	file int   // data.<file>
	pos  int64 // in that file
	size int64 // bytes of the elements
}

// Variable returns the variable of that name, or nil.
func (s *Step) Variable(name string) *Variable {
	if i, ok := s.byName[name]; ok {
		return &s.Variables[i]
	}
	return nil
}

func (s *Step) reset(index int, time int64, data data) {
	s.Index, s.Time, s.Restored, s.data = index, time, false, data
	s.Variables = s.Variables[:0]
	s.Attributes = s.Attributes[:0]
	if s.byName == nil {
		s.byName = make(map[string]int)
	}
	clear(s.byName)
}

// arrays yields the blocks whose arrays have bytes and can be read.
func (s *Step) arrays() iter.Seq2[*Variable, *Block] {
	return func(yield func(*Variable, *Block) bool) {
		for i := range s.Variables {
			v := &s.Variables[i]
			for j := range v.Blocks {
				if v.refused == "" && v.Blocks[j].size > 0 && !yield(v, &v.Blocks[j]) {
					return
				}
			}
		}
	}
}

// variable returns the variable of that name, added if it does not exist yet.
func (s *Step) variable(name []byte, t Type, shape Shape) *Variable {
	if i, ok := s.byName[string(name)]; ok {
		return &s.Variables[i]
	}
	n := len(s.Variables)
	if n < cap(s.Variables) {
		s.Variables = s.Variables[:n+1]
	} else {
		s.Variables = append(s.Variables, Variable{})
	}
	v := &s.Variables[n]
	if v.Name != string(name) { // steps resemble each other: keep an equal name
		v.Name = string(name)
	}
	v.Type, v.Shape, v.refused, v.operator = t, shape, "", false
	v.Blocks = v.Blocks[:0]
	s.byName[v.Name] = n
	return v
}

// Size returns the number of bytes of the block's array.
func (b *Block) Size() int64 { return b.size }

// Uint64 returns the single integer in a block; negative values wrap around.
func (v *Variable) Uint64(block int) (uint64, bool) {
	if block >= len(v.Blocks) {
		return 0, false
	}
	return uintOf(v.Type, v.Blocks[block].Value)
}

// Text returns the single value in a block as text: strings unchanged, and numbers in
// the shortest decimal form that reads back exactly.
func (v *Variable) Text(block int) (string, bool) {
	if block >= len(v.Blocks) || v.Blocks[block].Count != nil {
		return "", false
	}
	return textOf(v.Type, v.Blocks[block].Value)
}

// ReadAt reads len(p) bytes of the array of one of v's blocks, beginning at its byte
// off. It fails if the block is too short.
func (s *Step) ReadAt(v *Variable, b *Block, p []byte, off int64) error {
	if v.operator {
		return s.refuseOperator(v, b)
	}
	if v.refused != "" {
		return &UnsupportedError{Path: s.data.path(b.file), What: fmt.Sprintf("variable %q %s", v.Name, v.refused)}
	}
	if off < 0 || off > b.size || int64(len(p)) > b.size-off {
		return fmt.Errorf("variable %q: bytes %d to %d lie outside its block of %d", v.Name, off, off+int64(len(p)), b.size)
	}
	return s.data.readAt(b.file, p, b.pos+off, s.Index)
}

// Bytes returns the bytes that ReadAt would read into p. They are in p, or, if the
// data of the step are in memory, part of those; the caller must not change them.
func (s *Step) Bytes(v *Variable, b *Block, p []byte, off int64) ([]byte, error) {
	if m, ok := s.data.(*memory); ok && v.refused == "" && off >= 0 && off <= b.size && int64(len(p)) <= b.size-off {
		at := b.pos + off
		return m.blocks[b.file][at : at+int64(len(p))], nil
	}
	return p, s.ReadAt(v, b, p, off)
}

// operators are the names of compression operators by the first byte of a BP5 block.
var operators = map[byte]string{
	0: "blosc", 1: "bzip2", 2: "libpressio", 3: "mgard", 4: "png", 5: "sirius", 6: "sz", 7: "zfp",
	8: "mgardplus", 9: "bigwhoop", 10: "mgardcomplex", 11: "sz3", 41: "mdr", 53: "plugin", 127: "null",
}

func (s *Step) refuseOperator(v *Variable, b *Block) error {
	name := "unknown"
	first := make([]byte, 1)
	if err := s.data.readAt(b.file, first, b.pos, s.Index); err == nil && operators[first[0]] != "" {
		name = operators[first[0]]
	}
	return &UnsupportedError{Path: s.data.path(b.file), What: fmt.Sprintf("variable %q %s", v.Name, compressionReason(name))}
}

// compressionReason returns the reason to refuse a compressed variable.
func compressionReason(operator string) string {
	return fmt.Sprintf("is compressed with the operator %q, which", operator)
}

// Reread reports whether reading the step's arrays a second time can help if their content is
// impossible, and makes the following ReadAt open the files again. That can help while a dataset is
// followed: a network file system may show stale bytes.
func (s *Step) Reread() bool { return s.data.reopen() }

// Attribute is a named value that belongs to the whole dataset.
type Attribute struct {
	Name  string
	Type  Type
	Array bool
	// Block numbers the attribute blocks of the step. With several writers in one
	// BP5 file, attributes of the same block come from one writer, but the number
	// does not identify it. It is -1 in BP3 and BP4, which do not distinguish writers.
	Block  int
	Values []string // strings unchanged, numbers in decimal
}

// Text returns the first value, which is the only one unless Array is set.
func (a *Attribute) Text() string {
	if len(a.Values) == 0 {
		return ""
	}
	return a.Values[0]
}

// product multiplies the counts by the size of an element.
func product(counts []uint64, size int) (int64, bool) {
	n := uint64(size)
	for _, c := range counts {
		hi, lo := bits.Mul64(n, c)
		if hi != 0 {
			return 0, false
		}
		n = lo
	}
	return int64(n), n <= math.MaxInt64
}

func uintOf(t Type, b []byte) (uint64, bool) {
	signed, unsigned := t >= Int8 && t <= Int64 || t == Char, t >= Uint8 && t <= Uint64
	if !signed && !unsigned || len(b) < t.Size() {
		return 0, false
	}
	v := uint64(0)
	for i := range t.Size() {
		v |= uint64(b[i]) << (8 * i)
	}
	if signed {
		unused := 64 - 8*t.Size()
		v = uint64(int64(v<<unused) >> unused)
	}
	return v, true
}

func textOf(t Type, b []byte) (string, bool) {
	if len(b) < t.Size() {
		return "", false
	}
	float := func(b []byte, size int) string {
		if size == 4 {
			return strconv.FormatFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 'g', -1, 32)
		}
		return strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)), 'g', -1, 64)
	}
	switch t {
	case String:
		return string(b), true
	case Float, Double:
		return float(b, t.Size()), true
	case ComplexFloat, ComplexDouble:
		half := t.Size() / 2
		return "(" + float(b, half) + "," + float(b[half:], half) + ")", true
	case LongDouble:
		return fmt.Sprintf("%x", b[:16]), true
	}
	v, ok := uintOf(t, b)
	if !ok {
		return "", false
	}
	if t >= Uint8 && t <= Uint64 {
		return strconv.FormatUint(v, 10), true
	}
	return strconv.FormatInt(int64(v), 10), true
}

// textsOf splits b into elements of type t, which is not String.
func textsOf(t Type, b []byte) []string {
	size := t.Size()
	if size == 0 {
		return nil
	}
	values := make([]string, 0, len(b)/size)
	for ; len(b) >= size; b = b[size:] {
		v, _ := textOf(t, b)
		values = append(values, v)
	}
	return values
}

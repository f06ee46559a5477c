package bpwriter

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Step is the content of a dataset between two records of its index. Writer.Begin starts
// it. It is reusable: it allocates only if it exceeds the largest step so far. Errors are
// reported when it is written.
//
// Several writers of one dataset add their parts to the same step in turn; see Group.
type Step struct {
	w      *Writer
	number uint32 // from 1
	time   int64
	base   uint64 // position of data[0] in its file
	err    error

	data []byte // of data.0
	meta []byte // of md.0

	groups     []group
	variables  elements
	attributes elements
	waiting    []attribute // of the current group
	array      array       // the one that the caller is filling
	ended      bool

	groupsAt, variablesAt, attributesAt uint64 // in md.0
}

// group is the output of one writer. Positions are those in Step.data.
type group struct {
	at        int
	variables int // position of the number of variables
	count     uint32
}

type attribute struct{ name, value string }

// elements are the variables, or the attributes, of a step.
type elements struct {
	list   []element
	byName map[string]int
}

// element is one variable or attribute and its sets of characteristics.
type element struct {
	name string
	code Type
	sets []byte
	n    uint64
}

// add returns the element of that name. It adds a missing one.
func (e *elements) add(name string, code Type) (el *element, id int, isNew bool) {
	if i, ok := e.byName[name]; ok {
		return &e.list[i], i, false
	}
	n := len(e.list)
	if n < cap(e.list) {
		e.list = e.list[:n+1] // with the memory of an earlier step
	} else {
		e.list = append(e.list, element{})
	}
	el = &e.list[n]
	el.name, el.code, el.sets, el.n = name, code, el.sets[:0], 0
	e.byName[name] = n
	return el, n, true
}

func (e *elements) reset() {
	e.list = e.list[:0]
	if e.byName == nil {
		e.byName = make(map[string]int)
	}
	clear(e.byName)
}

func (s *Step) reset(w *Writer, time int64) {
	s.w, s.number, s.time, s.err, s.ended = w, w.steps+1, time, nil, false
	s.data, s.meta = s.data[:0], s.meta[:0]
	s.groups, s.waiting, s.array = s.groups[:0], s.waiting[:0], array{}
	s.variables.reset()
	s.attributes.reset()
	s.base = uint64(w.data.size)
	if s.base == 0 {
		s.data = append(s.data, header("Data")...)
	}
	s.beginGroup()
}

// Group ends the part of one writer of the dataset and begins that of the next. Datasets
// of one writer do not need it.
func (s *Step) Group() {
	s.endGroup()
	s.beginGroup()
}

func (s *Step) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *Step) beginGroup() {
	g := group{at: len(s.data)}
	b := append(s.data, "[PGI\x00\x00\x00\x00\x00\x00\x00\x00n"...) // length later; row-major
	b = appendText(b, tauIO)
	b = append(b, 0, 0, 0, 0)
	b = appendText(b, strconv.Itoa(int(s.number)))
	b = binary.LittleEndian.AppendUint32(b, s.number)
	b = append(b, 1, 3, 0, 2, 0, 0) // one transport, in 3 bytes: POSIX, without parameters
	g.variables = len(b)
	s.data = append(b, make([]byte, 12)...) // their number and length
	s.groups = append(s.groups, g)
}

func (s *Step) endGroup() {
	s.seal()
	g := &s.groups[len(s.groups)-1]
	binary.LittleEndian.PutUint32(s.data[g.variables:], g.count)
	binary.LittleEndian.PutUint64(s.data[g.variables+4:], uint64(len(s.data)-g.variables-12))
	at := len(s.data)
	s.data = binary.LittleEndian.AppendUint32(s.data, s.w.attributes+uint32(len(s.waiting))) // of all steps so far
	s.data = append(s.data, make([]byte, 8)...)
	for i, a := range s.waiting {
		s.putAttribute(uint32(i), a)
	}
	if len(s.waiting) > 0 {
		binary.LittleEndian.PutUint64(s.data[at+4:], uint64(len(s.data)-at-4))
	}
	s.waiting = s.waiting[:0]
	s.data = append(s.data, "PGI]"...)
	binary.LittleEndian.PutUint64(s.data[g.at+4:], uint64(len(s.data)-g.at-4))
}

func (s *Step) end() {
	if !s.ended && s.w != nil {
		s.ended = true
		s.endGroup()
	}
}

// maxText is the greatest length of a string in BP4: lengths have 16 bits.
const maxText = math.MaxUint16

// truncate truncates a string that is too long and records an error with kind and name.
func (s *Step) truncate(text, kind, name string) string {
	if len(text) > maxText {
		s.fail("%s %q: a text of %d bytes; BP4 holds %d", kind, brief(name), len(text), maxText)
		return text[:maxText]
	}
	return text
}

func appendText(b []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(text))), text...)
}

// Attribute adds an attribute of the dataset. BP4 stores one value per name and step:
// that of the first writer.
func (s *Step) Attribute(name, value string) {
	name = s.truncate(name, "attribute", name)
	value = s.truncate(value, "attribute", name)
	s.waiting = append(s.waiting, attribute{name, value})
}

func brief(text string) string { return text[:min(len(text), 100)] }

func (s *Step) putAttribute(id uint32, a attribute) {
	at := len(s.data)
	b := append(s.data, "[AMD\x00\x00\x00\x00"...) // length later
	b = binary.LittleEndian.AppendUint32(b, id)
	b = appendText(b, a.name)
	b = append(b, 0, 0, 'n', byte(String))
	payload := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(a.value)))
	b = append(b, a.value...)
	s.data = append(b, "AMD]"...)
	binary.LittleEndian.PutUint32(s.data[at+4:], uint32(len(s.data)-at-4))

	el, _, isNew := s.attributes.add(a.name, String)
	if !isNew {
		return
	}
	from := s.beginSet(el)
	el.sets = s.appendDims(el.sets, Dims{Count: oneElement})
	el.sets = append(el.sets, charValue)
	el.sets = appendText(el.sets, a.value)
	s.endSet(el, from, at, payload)
}

var oneElement = []uint64{1}

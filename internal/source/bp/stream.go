package bp

import (
	"fmt"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// Stream decodes BP5 steps that arrive without a dataset, as over SST. It serves one
// goroutine.
type Stream struct {
	name    string
	formats map[ffs.ID]parsedFormat
	lists   []ffs.ID // formats of attributes, in order of arrival
	decoder bp5Decoder
	data    *memory
	step    Step
	carried []Attribute // of skipped steps, for the next one with data
	skipped Step
}

// Part is one writer's share of a step of a Stream.
type Part struct {
	Metadata   []byte // an FFS record; empty if the writer wrote nothing
	Attributes []byte // an FFS record; empty without new attributes
	Data       []byte // the arrays to which the metadata refer
}

// NewStream returns a Stream; its errors begin with name.
func NewStream(name string) *Stream {
	return &Stream{name: name, formats: make(map[ffs.ID]parsedFormat), data: &memory{name: name}}
}

// AddFormat parses the description of a format and does not keep rep. If parsing fails, the first
// step that needs the format fails.
func (s *Stream) AddFormat(id ffs.ID, rep []byte) {
	if s.formats[id].format != nil {
		return
	}
	f, err := ffs.ParseFormat(id, rep)
	if err == nil && f.Name == attributesFormat {
		s.lists = append(s.lists, id)
	}
	s.formats[id] = parsedFormat{format: f, err: ffsError(err, s.name+": format "+id.String(), -1, 0)}
}

// attributesFormat is the name of the formats in which each attribute is a
// field.
const attributesFormat = "Attributes"

func (s *Stream) lookup(id ffs.ID) (*ffs.Format, error) {
	if p, ok := s.formats[id]; ok {
		return p.format, p.err
	}
	return nil, &CorruptError{Step: -1, Reason: fmt.Sprintf("the format %v was never sent", id)}
}

// DataSize returns the size of the data that belong to the metadata.
func (s *Stream) DataSize(metadata []byte) (uint64, error) {
	r, err := record(cursor{buf: metadata}, s.lookup)
	if err != nil {
		return 0, place(err, s.name, -1, 0)
	}
	fd := r.Format.Field("DataBlockSize")
	if fd == nil {
		return 0, &CorruptError{File: s.name, Step: -1, Reason: fmt.Sprintf("metadata in the format %q, which has no DataBlockSize",
			r.Format.Name)}
	}
	n, err := r.Uint(fd)
	return n, ffsError(err, s.name, -1, 0)
}

// Decode returns the step that consists of parts, one for each writer. It is valid
// until the next call and refers to the bytes of the parts.
func (s *Stream) Decode(index int, parts []Part) (*Step, error) {
	s.data.blocks = s.data.blocks[:0]
	for i := range parts {
		s.data.blocks = append(s.data.blocks, parts[i].Data)
	}
	s.step.reset(index, 0, s.data)
	s.step.Attributes = append(s.step.Attributes, s.carried...)
	s.carried = s.carried[:0]
	s.decoder.tries++
	for w := range parts {
		if len(parts[w].Metadata) == 0 {
			continue
		}
		if err := s.decoder.variables(&s.step, cursor{buf: parts[w].Metadata}, w, s.data, s.lookup); err != nil {
			return nil, place(err, s.name, index, 0)
		}
	}
	if err := s.attributes(&s.step, parts); err != nil {
		return nil, err
	}
	if err := s.data.check(&s.step); err != nil {
		return nil, err
	}
	return &s.step, nil
}

// Skip reads the attributes of a step whose data are lost. They appear in the next
// step that is decoded.
func (s *Stream) Skip(index int, parts []Part) error {
	s.skipped.reset(index, 0, s.data)
	s.decoder.tries++
	err := s.attributes(&s.skipped, parts)
	s.carried = append(s.carried, s.skipped.Attributes...)
	return err
}

// Restore returns a step without variables that has attributes of an earlier reader of the
// stream. Later steps do not repeat them.
func (s *Stream) Restore(index int, attributes []Attribute) *Step {
	s.step.reset(-1, 0, s.data) // before all others
	s.decoder.tries++
	for _, a := range attributes {
		s.decoder.add(&s.step, a)
	}
	s.step.Index, s.step.Restored = index, true
	return &s.step
}

func (s *Stream) attributes(step *Step, parts []Part) error {
	for w := range parts {
		if len(parts[w].Attributes) == 0 {
			continue
		}
		if err := s.decoder.attributes(step, cursor{buf: parts[w].Attributes}, w, s.lookup); err != nil {
			return place(err, s.name, step.Index, 0)
		}
	}
	if len(parts) == 1 && len(parts[0].Attributes) > 0 {
		s.forget(ffs.ID(parts[0].Attributes))
	}
	return nil
}

// forget drops the formats of attributes that came before id. A writer sends a new
// format with all attributes whenever it adds one, and never uses an older one again.
// With several writers, one may still need a format that another no longer uses.
func (s *Stream) forget(id ffs.ID) {
	i := slices.Index(s.lists, id)
	if i <= 0 {
		return
	}
	for _, old := range s.lists[:i] {
		delete(s.formats, old)
	}
	s.lists = slices.Delete(s.lists, 0, i)
}

// memory holds the arrays of a step, one block for each writer.
type memory struct {
	name   string
	blocks [][]byte
}

func (m *memory) path(int) string { return m.name }
func (m *memory) reopen() bool    { return false }

func (m *memory) locate(w int, at uint64) (file int, pos int64, ok bool) {
	return w, int64(at), at <= math.MaxInt64
}

func (m *memory) readAt(k int, p []byte, off int64, step int) error {
	if off < 0 || off > int64(len(m.blocks[k])) || len(p) > len(m.blocks[k])-int(off) {
		return &CorruptError{File: m.name, Step: step, Offset: off, Reason: "the data end before this byte"}
	}
	copy(p, m.blocks[k][off:])
	return nil
}

// check makes sure that the arrays of all blocks exist.
func (m *memory) check(s *Step) error {
	for v, b := range s.arrays() {
		if have := int64(len(m.blocks[b.file])); b.pos > have || b.size > have-b.pos {
			return &CorruptError{
				File: m.name, Step: s.Index, Offset: b.pos,
				Reason: fmt.Sprintf("variable %q has %d bytes here, but the data of writer %d end after %d", v.Name, b.size, b.file, have),
			}
		}
	}
	return nil
}

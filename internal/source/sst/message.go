package sst

import (
	"fmt"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// outgoing is a message of the reader, with its format as ADIOS2 declares it.
type outgoing struct {
	format *ffs.Format
	rep    []byte
}

// The messages of a reader. Sizes and offsets are those of the declarations in C on
// 64-bit machines, so that the ids of the formats equal those of the library.
var (
	dpQuery = message(structure("DPQuery", 16,
		number("writer_ID", 8, 0), number("writer_response_condition", 4, 8)))

	readerRegister = message(
		structure("ReaderRegister", 40,
			number("writer_ID", 8, 0), number("writer_response_condition", 4, 8),
			number("ReaderCohortSize", 4, 12), number("SpecPreload", 4, 16),
			field("CP_ReaderInfo", "(*cp_reader)[ReaderCohortSize]", 16, 24),
			field("DP_ReaderInfo", "(*EvpathReaderContactInfo)[ReaderCohortSize]", 24, 32)),
		structure("cp_reader", 16, field("ContactInfo", "string", 8, 0), number("reader_ID", 8, 8)),
		structure("EvpathReaderContactInfo", 24, field("ContactString", "string", 8, 0), number("reader_ID", 8, 16)))

	readerActivate = message(structure("ReaderActivate", 8, number("WSR_Stream", 8, 0)))

	releaseTimestep = message(structure("ReleaseTimestep", 16, number("WSR_Stream", 8, 0), number("Timestep", 8, 8)))

	readerClose = message(structure("ReaderClose", 8, number("WSR_Stream", 8, 0)))

	readRequest = message(structure("EvpathReadRequest", 48,
		number("Timestep", 8, 0), number("Offset", 8, 8), number("Length", 8, 16), number("WS_Stream", 8, 24),
		number("RS_Stream", 8, 32), number("RequestingRank", 4, 40), number("NotifyCondition", 4, 44)))
)

// outgoingMessages are all messages of a reader; the peer may request their formats.
var outgoingMessages = []*outgoing{dpQuery, readerRegister, readerActivate, releaseTimestep, readerClose, readRequest}

func structure(name string, size int, fields ...ffs.Field) *ffs.Format {
	return &ffs.Format{Name: name, Size: size, Fields: fields}
}

func number(name string, size, offset int) ffs.Field { return field(name, "integer", size, offset) }

func field(name, typ string, size, offset int) ffs.Field {
	return ffs.Field{Name: name, Type: typ, Size: size, Offset: offset}
}

// message returns a message with that declaration, which must be valid.
func message(structures ...*ffs.Format) *outgoing {
	rep := ffs.Describe(structures...)
	f, err := ffs.ParseFormat(ffs.DescriptionID(rep), rep)
	if err != nil {
		panic(err)
	}
	return &outgoing{f, rep}
}

// incoming reads the fields of a message by name; the first error is sticky.
type incoming struct {
	ffs.Record
	err error
}

func (m *incoming) field(name string) *ffs.Field {
	fd := m.Format.Field(name)
	if fd == nil && m.err == nil {
		m.err = fmt.Errorf("the program's message %q has no field %q", m.Format.Name, name)
	}
	if m.err != nil {
		return nil
	}
	return fd
}

func (m *incoming) keep(err error) {
	if m.err == nil && err != nil {
		m.err = fmt.Errorf("the program's message %q: %w", m.Format.Name, err)
	}
}

// get reads a field of a message with one of the methods of ffs.Record.
func get[T any](m *incoming, name string, read func(*ffs.Field) (T, error)) (v T) {
	if fd := m.field(name); fd != nil {
		var err error
		v, err = read(fd)
		m.keep(err)
	}
	return v
}

func (m *incoming) uint(name string) uint64  { return get(m, name, m.Uint) }
func (m *incoming) text(name string) string  { return get(m, name, m.Text) }
func (m *incoming) bytes(name string) []byte { return get(m, name, m.Bytes) }

// each calls f for the structures of a field, except null pointers, and returns the
// length of the array.
func (m *incoming) each(name string, f func(i int, s *incoming)) (n int) {
	fd := m.field(name)
	if fd == nil {
		return 0
	}
	all, err := m.Structs(fd)
	m.keep(err)
	for i := range all.Len() {
		rec, ok, err := all.At(i)
		m.keep(err)
		if m.err != nil {
			return 0
		}
		if !ok {
			continue
		}
		s := incoming{Record: rec}
		f(i, &s)
		m.keep(s.err)
	}
	return all.Len()
}

// writerResponse is the answer to a registration.
type writerResponse struct {
	next    uint64 // number of the next step
	marshal uint64
	pattern uint64
	distribution,
	rowMajor uint64
	writers []writerInfo
}

// writerInfo is one rank of a writer.
type writerInfo struct {
	contact string
	control uint64 // its number for the control connection
	data    uint64 // its number for the data connection
}

// The required values in messages of a writer, and the names of these messages.
const (
	marshalBP5     = 2
	patternMin     = 0
	distributeAll  = 0
	maxWriters     = 1 << 20
	preloadNone    = 0
	responseName   = "WriterResponse"
	dpResponseName = "DPQueryResponse"
	metadataName   = "timestepMetadata"
	preloadName    = "EvpathPreload"
	replyName      = "EvpathReadReply"
	closeName      = "WriterClose"
)

func parseWriterResponse(rec ffs.Record) (r writerResponse, err error) {
	m := &incoming{Record: rec}
	n := m.uint("WriterCohortSize")
	r.next = m.uint("NextStepNumber")
	if n == 0 || n > maxWriters {
		m.keep(fmt.Errorf("%d writers", n))
	}
	if params := m.each("WriterConfigParams", func(_ int, p *incoming) {
		r.marshal, r.pattern = p.uint("MarshalMethod"), p.uint("CPCommPattern")
		r.rowMajor = p.uint("IsRowMajor")
		if p.Format.Field("StepDistributionMode") != nil {
			r.distribution = p.uint("StepDistributionMode")
		}
	}); params != 1 {
		m.keep(fmt.Errorf("%d sets of parameters", params))
	}
	if m.err != nil {
		return r, m.err
	}
	m.each("cp_WriterInfo", func(_ int, w *incoming) {
		r.writers = append(r.writers, writerInfo{contact: w.text("ContactInfo"), control: w.uint("WriterID")})
	})
	data := 0
	m.each("dp_WriterInfo", func(i int, w *incoming) {
		if i < len(r.writers) {
			r.writers[i].data = w.uint("writer_ID")
			data++
		}
	})
	if uint64(len(r.writers)) != n || uint64(data) != n {
		m.keep(fmt.Errorf("%d writers, but %d and %d addresses", n, len(r.writers), data))
	}
	return r, m.err
}

// stepMetadata describes a step. Its slices refer to the record.
type stepMetadata struct {
	step       uint64
	preload    bool // the data come without a request
	discarded  bool // the step has no data
	formats    []sentFormat
	metadata   [][]byte // of each writer
	attributes [][]byte
}

type sentFormat struct {
	id  ffs.ID
	rep []byte
}

// maxFormats is the number of formats that a step may have: several per writer.
const maxFormats = 1 << 20

func parseStepMetadata(rec ffs.Record) (s stepMetadata, err error) {
	m := &incoming{Record: rec}
	s.step = m.uint("timestep")
	n := m.uint("cohort_size")
	s.preload = m.uint("preload_mode") != preloadNone
	if m.err == nil && (n == 0 || n > maxWriters) {
		m.keep(fmt.Errorf("%d writers", n))
	}
	if m.err != nil {
		return s, m.err
	}
	block := func(list *[][]byte) func(int, *incoming) {
		return func(_ int, b *incoming) { *list = append(*list, b.bytes("BlockData")) }
	}
	s.discarded = m.each("metadata", block(&s.metadata)) == 0
	m.each("attribute_data", block(&s.attributes))
	for at, name := m, "formats"; m.err == nil; name = "Next" {
		var next *incoming
		at.each(name, func(_ int, b *incoming) {
			next = b
			id := b.bytes("FormatIDRep")
			if b.err == nil && len(id) != len(ffs.ID{}) {
				b.err = fmt.Errorf("a format id of %d bytes", len(id))
			}
			if b.err == nil {
				s.formats = append(s.formats, sentFormat{ffs.ID(id), b.bytes("FormatServerRep")})
			}
		})
		if at != m {
			m.keep(at.err)
		}
		if next == nil {
			break
		}
		if m.keep(next.err); len(s.formats) > maxFormats {
			m.keep(fmt.Errorf("more than %d formats", maxFormats))
		}
		at = next
	}
	return s, m.err
}

// stepData are the data of a writer in a step.
type stepData struct {
	step   uint64
	writer int
	data   []byte
	buf    []byte // of the record that contains data
}

// parseStepData reads a message with data from that writer. buf is the buffer of rec.
func parseStepData(rec ffs.Record, writer int, buf []byte) (stepData, error) {
	m := &incoming{Record: rec}
	return stepData{step: m.uint("Timestep"), writer: writer, data: m.bytes("Data"), buf: buf}, m.err
}

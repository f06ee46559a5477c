package bp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// bp5 reads BP5: the records of md.idx vary in length and also have the offsets in
// data.K at which the arrays of each writer begin. The metadata are FFS records; their formats are in
// mmd.0.
type bp5 struct {
	dataset
	mmd     file
	mmdPos  int64
	formats map[ffs.ID]parsedFormat
	used    int64    // bytes of mmd.0 up to the last format that a step used
	writers []uint64 // number of the data file of each writer
	decoder bp5Decoder
}

// parsedFormat is a format, or the reason why it cannot be used.
type parsedFormat struct {
	format *ffs.Format
	err    error
	end    int64 // in mmd.0
}

// Records of md.idx: a type, the length of the rest, and numbers of 8 bytes.
const (
	bp5RecordHead = 9
	bp5Writers    = 'w'
	bp5Step       = 's'
)

func newBP5(dir string, x index, opt Options) (engine, error) {
	if minor := x.header[headerBP5Minor]; minor != 2 {
		return nil, &UnsupportedError{
			Path: dir, What: fmt.Sprintf("BP5 with the minor version %d, as ADIOS 2.8 and older write it,", minor), Advice: newerADIOS2,
		}
	}
	if x.header[headerBP5Column] == 'y' {
		return nil, &UnsupportedError{Path: dir, What: columnMajor}
	}
	return &bp5{
		dataset: newDataset(dir, x, headerBP5Active, opt),
		mmd:     file{path: filepath.Join(dir, "mmd.0")},
		formats: make(map[ffs.ID]parsedFormat),
	}, nil
}

func (e *bp5) close() {
	e.dataset.close()
	e.mmd.close()
}

func (e *bp5) next() (*Step, error) {
	for {
		b, err := e.index.take(e.steps, e.recordSize)
		if err != nil {
			return nil, e.atEnd(err)
		}
		switch b[0] {
		case bp5Step:
			rec, err := parseBP5Record(b[bp5RecordHead:], e.writers)
			if err != nil {
				return nil, e.corruptIndex("%v", err)
			}
			if again, err := e.repeats(len(b), rec.pos, rec.size); err != nil {
				return nil, err
			} else if again {
				continue
			}
			return e.load(len(b), rec.pos, rec.size, 0, func(md []byte) error {
				return place(e.decoder.decode(&e.step, md, &rec, e.lookup), e.meta.path, e.steps, rec.pos)
			})
		case bp5Writers:
			if err := e.mapWriters(b[bp5RecordHead:]); err != nil {
				return nil, err
			}
		default:
			return nil, e.corruptIndex("a record of the unknown type %#x", b[0])
		}
		e.index.use(len(b))
	}
}

// recordSize returns the length of the record that b begins with, or 0 if b is too
// short. An impossible length is an error, because waiting cannot help.
func (e *bp5) recordSize(b []byte) (int, error) {
	if len(b) < bp5RecordHead {
		return 0, nil
	}
	length := binary.LittleEndian.Uint64(b[1:])
	if length > math.MaxInt32 {
		return 0, e.corruptIndex("a record of %d bytes", length)
	}
	return bp5RecordHead + int(length), nil
}

// mapWriters reads a record with the number of each writer's data file.
func (e *bp5) mapWriters(b []byte) error {
	if len(b) < 24 {
		return e.corruptIndex("the map of writers has %d bytes", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n == 0 || n > uint64(len(b)-24)/8 {
		return e.corruptIndex("the map of %d writers has %d bytes", n, len(b))
	}
	e.writers = e.writers[:0]
	for i := range n {
		e.writers = append(e.writers, binary.LittleEndian.Uint64(b[24+8*i:]))
	}
	return nil
}

// bp5Record is one step record of md.idx.
type bp5Record struct {
	pos     int64 // of the metadata in md.0
	size    uint64
	flushes uint64
	places  []byte // for each writer: flushes × (position, size), position
	writers []uint64
}

func parseBP5Record(b []byte, writers []uint64) (rec bp5Record, err error) {
	if len(writers) == 0 {
		return rec, errors.New("a step before any map of writers")
	}
	if len(b) < 24 {
		return rec, fmt.Errorf("a step record of %d bytes", len(b))
	}
	pos := binary.LittleEndian.Uint64(b)
	rec = bp5Record{
		pos: int64(pos), size: binary.LittleEndian.Uint64(b[8:]),
		flushes: binary.LittleEndian.Uint64(b[16:]), places: b[24:], writers: writers,
	}
	if end, carry := bits.Add64(pos, rec.size, 0); carry != 0 || end > math.MaxInt64 {
		return rec, fmt.Errorf("metadata of %d bytes at %d", rec.size, pos)
	}
	if rec.flushes > uint64(len(b)) || (2*rec.flushes+1)*uint64(len(writers)) > uint64(len(rec.places))/8 {
		return rec, fmt.Errorf("a step record of %d bytes for %d writers with %d flushes", len(b), len(writers), rec.flushes)
	}
	return rec, nil
}

// locate turns a position in the output of writer w in this step into one in its
// data file. Each flush moved a part of the output there; the rest follows.
func (rec *bp5Record) locate(w int, at uint64) (file int, pos int64, ok bool) {
	p := rec.places[uint64(w)*(2*rec.flushes+1)*8:]
	for range rec.flushes {
		size := binary.LittleEndian.Uint64(p[8:])
		if at < size {
			break
		}
		at -= size
		p = p[16:]
	}
	sum, carry := bits.Add64(binary.LittleEndian.Uint64(p), at, 0)
	return int(rec.writers[w]), int64(sum), carry == 0 && sum <= math.MaxInt64
}

// lookup returns the format with that id. It reads newly appended parts of mmd.0 to find a missing
// one.
func (e *bp5) lookup(id ffs.ID) (*ffs.Format, error) {
	p, ok := e.formats[id]
	if !ok {
		if err := e.readFormats(); err != nil {
			return nil, err
		}
		if p, ok = e.formats[id]; !ok {
			return nil, &pendingError{file: e.mmd.path, step: e.steps, have: e.mmdPos, reason: fmt.Sprintf("the format %v is missing", id)}
		}
	}
	e.used = max(e.used, p.end)
	return p.format, p.err
}

// readFormats reads the complete entries that were appended to mmd.0. An entry is the
// length of the id, the length of the description, the id and the description.
func (e *bp5) readFormats() error {
	if err := e.mmd.reopen(); err != nil {
		return &pendingError{file: e.mmd.path, step: e.steps, reason: err.Error()}
	}
	rest := e.mmd.size - e.mmdPos
	if rest <= 0 {
		return nil
	}
	b := make([]byte, rest)
	if err := e.mmd.readAt(b, e.mmdPos, e.steps); err != nil {
		return err
	}
	for len(b) >= 16 {
		idLen, repLen := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		if idLen != uint64(len(ffs.ID{})) {
			return &CorruptError{File: e.mmd.path, Step: e.steps, Offset: e.mmdPos, Reason: fmt.Sprintf("a format id of %d bytes", idLen)}
		}
		if repLen > uint64(len(b))-16 || repLen+idLen > uint64(len(b))-16 {
			return nil // not complete yet
		}
		id := ffs.ID(b[16:])
		f, err := ffs.ParseFormat(id, b[16+idLen:16+idLen+repLen])
		if err = ffsError(err, e.mmd.path, e.steps, e.mmdPos+16+int64(idLen)); err != nil && e.live {
			return err // perhaps stale bytes: read them again
		}
		e.mmdPos += int64(16 + idLen + repLen)
		e.formats[id] = parsedFormat{f, err, e.mmdPos}
		b = b[16+idLen+repLen:]
	}
	return nil
}

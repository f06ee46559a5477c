package bp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// bp5 reads BP5: md.idx holds records of varying length, which tell where in
// md.0 a step's metadata lie and where in data.K each writer's arrays begin.
// The metadata are FFS records; their formats are in mmd.0.
type bp5 struct {
	index   index
	meta    file
	mmd     file
	mmdPos  int64
	formats map[ffs.ID]*ffs.Format
	bad     map[ffs.ID]error // formats that cannot be used
	data    dataFiles
	tally   *tally.Tally
	live    bool

	buf     []byte
	writers []uint64 // number of the data file of each writer
	step    Step
	steps   int
	end     int64
	decoder bp5Decoder
}

// Records of md.idx: a type, the length of the rest, and numbers of 8 bytes.
const (
	bp5RecordHead = 9
	bp5Writers    = 'w'
	bp5Step       = 's'
)

func newBP5(dir string, x index, opt Options) (*bp5, error) {
	x.activeByte = headerBP5Active
	x.active = x.header[headerBP5Active] != 0
	if minor := x.header[headerBP5Minor]; minor != 2 {
		return nil, &UnsupportedError{
			Path: dir, What: fmt.Sprintf("BP5 with the minor version %d, as ADIOS 2.8 and older write it,", minor),
			Advice: "write the trace with ADIOS2 2.9 or newer, or as BP4",
		}
	}
	if x.header[headerBP5Column] == 'y' {
		return nil, &UnsupportedError{Path: dir, What: columnMajor}
	}
	return &bp5{
		index:   x,
		meta:    file{path: within(dir, "md.0")},
		mmd:     file{path: within(dir, "mmd.0")},
		formats: make(map[ffs.ID]*ffs.Format),
		bad:     make(map[ffs.ID]error),
		data:    newDataFiles(within(dir, "data."), opt.Follow),
		tally:   opt.Tally,
		live:    opt.Follow,
	}, nil
}

func (e *bp5) state() state {
	read, of := e.index.progress()
	return state{
		engine: "BP5", version: version(e.index.header[headerMajor:]), active: e.index.active, modified: e.index.modified,
		read: read, of: of,
	}
}

func (e *bp5) close() {
	e.meta.close()
	e.mmd.close()
	e.data.close()
}

func (e *bp5) forget() { e.buf, e.step = nil, Step{} }

func (e *bp5) next() (*Step, error) {
	for {
		b, err := e.index.take(e.steps, e.recordSize)
		if err != nil {
			return nil, e.atEnd(err)
		}
		if b[0] == bp5Step {
			rec, err := parseBP5Record(b[bp5RecordHead:], e.writers)
			if err != nil {
				return nil, e.corruptIndex("%v", err)
			}
			if err := e.load(rec); err != nil {
				return nil, err
			}
			e.index.use(len(b))
			e.steps++
			e.end = rec.pos + int64(rec.size)
			return &e.step, nil
		}
		if b[0] == bp5Writers {
			if err := e.mapWriters(b[bp5RecordHead:]); err != nil {
				return nil, err
			}
		}
		e.index.use(len(b))
	}
}

func (e *bp5) corruptIndex(format string, args ...any) error {
	return &CorruptError{File: e.index.path, Step: e.steps, Offset: e.index.pos, Reason: fmt.Sprintf(format, args...)}
}

// recordSize returns the length of the record that b begins with. A record that
// says more of itself than its length allows will not get better by waiting.
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

// mapWriters reads a record that says into which data file each writer writes.
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

// locate turns a position in what writer w put out in this step into one in
// its data file. Each flush moved a part of it there; the rest came last.
func (rec *bp5Record) locate(w int, at uint64) (file int, pos int64, ok bool) {
	pos, ok = rec.position(w, at)
	return int(rec.writers[w]), pos, ok
}

func (rec *bp5Record) position(w int, at uint64) (int64, bool) {
	p := rec.places[uint64(w)*(2*rec.flushes+1)*8:]
	for range rec.flushes {
		pos, size := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		if at < size {
			return position(pos, at)
		}
		at -= size
		p = p[16:]
	}
	return position(binary.LittleEndian.Uint64(p), at)
}

func position(pos, at uint64) (int64, bool) {
	sum, carry := bits.Add64(pos, at, 0)
	return int64(sum), carry == 0 && sum <= math.MaxInt64
}

// load reads and decodes the step that rec describes.
func (e *bp5) load(rec bp5Record) error {
	md, err := e.meta.read(&e.buf, rec.pos, rec.size, e.steps)
	if err != nil {
		return err
	}
	e.step.reset(e.steps, 0, e.data)
	if err := e.decoder.decode(&e.step, md, &rec, e.lookup); err != nil {
		e.meta.close() // what is read again must be checked again
		return place(err, e.meta.path, e.steps, rec.pos)
	}
	if err := e.data.check(&e.step); err != nil {
		return err
	}
	e.index.remember(&e.meta, rec.pos, md)
	return nil
}

// lookup returns the format of that id, and looks for it in what was appended
// to mmd.0 since.
func (e *bp5) lookup(id ffs.ID) (*ffs.Format, error) {
	if f := e.formats[id]; f != nil {
		return f, nil
	}
	if err := e.bad[id]; err != nil {
		return nil, err
	}
	if err := e.readFormats(); err != nil {
		return nil, err
	}
	if f := e.formats[id]; f != nil {
		return f, nil
	}
	if err := e.bad[id]; err != nil {
		return nil, err
	}
	return nil, &pendingError{file: e.mmd.path, step: e.steps, have: e.mmdPos, reason: fmt.Sprintf("the format %v is missing", id)}
}

// readFormats reads the complete entries that were appended to mmd.0: length
// of the id, length of the description, id, description.
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
		switch {
		case err == nil:
			e.formats[id] = f
		case e.live: // perhaps stale bytes: they are looked at again
			return ffsError(err, e.mmd.path, e.steps, e.mmdPos+16+int64(idLen))
		default:
			e.bad[id] = ffsError(err, e.mmd.path, e.steps, e.mmdPos+16+int64(idLen))
		}
		e.mmdPos += int64(16 + idLen + repLen)
		b = b[16+idLen+repLen:]
	}
	return nil
}

// atEnd notices when a closed dataset has metadata beyond its last step.
func (e *bp5) atEnd(err error) error {
	if !e.live && !e.index.active && e.meta.reopen() == nil && e.meta.size > e.end {
		e.tally.Add(tally.MetadataUnindexed, e.meta.size-e.end)
	}
	return err
}

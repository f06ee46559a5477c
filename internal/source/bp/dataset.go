package bp

import (
	"fmt"
	"path/filepath"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

// dataset is the common part of BP4 and BP5: the records of md.idx locate
// the metadata of each step in md.0, and the metadata locate the arrays in data.K.
type dataset struct {
	index index
	meta  file
	buf   []byte
	data  *dataFiles
	tally *tally.Tally
	step  Step
	steps int
	begin int64 // of the metadata of the last step
	end   int64 // of the metadata in the index so far
	live  bool
}

// newDataset takes an index whose header was read; activeByte is the position of
// the active flag in it.
func newDataset(dir string, x index, activeByte int, opt Options) dataset {
	x.activeByte = activeByte
	x.active = x.header[activeByte] != 0
	return dataset{
		index: x,
		meta:  file{path: filepath.Join(dir, "md.0")},
		data:  newDataFiles(filepath.Join(dir, "data."), opt.Follow),
		tally: opt.Tally,
		live:  opt.Follow,
	}
}

// repeats reports whether an index record of recordSize bytes with metadata at pos repeats the previous one.
// If so, it consumes the record. It fails if the record refers to other metadata before the end of the last
// step's metadata.
func (d *dataset) repeats(recordSize int, pos int64, n uint64) (bool, error) {
	if d.steps == 0 || pos >= d.end {
		return false, nil
	}
	if pos != d.begin || n != uint64(d.end-d.begin) {
		return false, d.corruptIndex("the metadata of the record begin at byte %d, before the end of those of the last step at %d", pos, d.end)
	}
	d.index.use(recordSize)
	d.tally.Add(tally.IndexRepeated, 1)
	return true, nil
}

// load reads n bytes of metadata at pos of md.0, calls decode to turn them into d.step, and then
// consumes the index record of recordSize bytes.
func (d *dataset) load(recordSize int, pos int64, n uint64, time int64, decode func(md []byte) error) (*Step, error) {
	md, err := d.meta.read(&d.buf, pos, n, d.steps)
	if err != nil {
		return nil, err
	}
	d.step.reset(d.steps, time, d.data)
	if err := decode(md); err != nil {
		d.meta.close() // bytes that are read again must be checked again
		return nil, err
	}
	if err := d.data.check(&d.step); err != nil {
		return nil, err
	}
	d.index.remember(&d.meta, pos, md)
	d.index.use(recordSize)
	d.steps++
	if pos > d.end { // metadata follow each other without a gap
		d.tally.Add(tally.MetadataUnindexed, pos-d.end)
	}
	d.begin, d.end = pos, pos+int64(n)
	return &d.step, nil
}

func (d *dataset) state() state {
	read, of := d.index.progress()
	return state{
		engine: fmt.Sprintf("BP%d", d.index.header[headerVersion]), version: version(d.index.header[headerMajor:]),
		active: d.index.active, modified: d.index.modified, read: read, of: of,
	}
}

func (d *dataset) close() {
	d.meta.close()
	d.data.close()
}

func (d *dataset) forget() { d.buf, d.step = nil, Step{} }

// atEnd returns err after counting the metadata beyond the last step of a closed
// dataset.
func (d *dataset) atEnd(err error) error {
	if !d.live && !d.index.active && d.meta.reopen() == nil && d.meta.size > d.end {
		d.tally.Add(tally.MetadataUnindexed, d.meta.size-d.end)
	}
	return err
}

func (d *dataset) corruptIndex(format string, args ...any) error {
	return &CorruptError{File: d.index.path, Step: d.steps, Offset: d.index.pos, Reason: fmt.Sprintf(format, args...)}
}

package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// Sizes and positions in md.idx; docs/formats has the bytes.
const (
	headerSize    = 64
	headerVersion = 37
	activeBP4     = 38
	activeBP5     = 39
	recordBP4     = 64
	recordHeadBP5 = 9
)

// maxRecord is the longest record of an index that is believed.
const maxRecord = 1 << 30

// record is what an index tells of one step: where the files of the dataset
// end when the step is there.
type record struct {
	end      int64   // of the record in md.idx
	metaPos  int64   // of the step's metadata in md.0
	metaEnd  int64   // behind them
	step     uint64  // BP4: the number under which the step is in the data files
	writers  int     // BP5
	dataFrom []int64 // BP5: where the step begins in each data file, -1: it has none there
}

// index reads the records of an md.idx one after the other. It trusts only
// what it must: a record that makes no sense ends it like the end of the file.
//
// The file is open only while it is read: there may be thousands of them.
type index struct {
	path   string
	size   int64
	pos    int64 // of the next record
	isBP5  bool
	header [headerSize]byte
	files  []uint64 // BP5: the data file of each writer
	buf    []byte
}

// openIndex opens the md.idx at path. One that is too short for a header has
// no records; one that is not there is an error.
func openIndex(path string) (*index, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	x := &index{path: path, size: info.Size(), pos: headerSize}
	if err := readAt(path, x.header[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	x.isBP5 = x.header[headerVersion] == 5
	return x, nil
}

// readAt fills b from the position off of a file; io.EOF means that the file
// ends before.
func readAt(path string, b []byte, off int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	_, err = f.ReadAt(b, off)
	return err
}

// activeByte is where the header says whether the dataset is being written.
func (x *index) activeByte() int64 {
	if x.isBP5 {
		return activeBP5
	}
	return activeBP4
}

// next returns the next step, or io.EOF where no whole record follows.
func (x *index) next() (record, error) {
	for {
		b, err := x.take()
		if err != nil {
			return record{}, err
		}
		if !x.isBP5 {
			return recordOfBP4(b, x.pos), nil
		}
		switch b[0] {
		case 'w':
			if err := x.mapWriters(b[recordHeadBP5:]); err != nil {
				return record{}, err
			}
		case 's':
			return x.recordOfBP5(b[recordHeadBP5:])
		}
	}
}

// take returns the bytes of the next record of any kind and goes behind it.
func (x *index) take() ([]byte, error) {
	length := int64(recordBP4)
	if x.isBP5 {
		var head [recordHeadBP5]byte
		if err := readAt(x.path, head[:], x.pos); err != nil {
			return nil, err
		}
		n := binary.LittleEndian.Uint64(head[1:])
		if n > maxRecord {
			return nil, fmt.Errorf("%s at byte %d: a record of %d bytes", x.path, x.pos, n)
		}
		length = recordHeadBP5 + int64(n)
	}
	if x.pos > x.size-length {
		return nil, io.EOF
	}
	if int64(cap(x.buf)) < length {
		x.buf = make([]byte, length)
	}
	b := x.buf[:length]
	if err := readAt(x.path, b, x.pos); err != nil {
		return nil, err
	}
	x.pos += length
	return b, nil
}

func recordOfBP4(b []byte, end int64) record {
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	return record{end: end, step: u64(0), metaPos: position(u64(16)), metaEnd: position(u64(40))}
}

// position turns a number of a file into a position; impossible ones end
// beyond every file.
func position(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// maxDataFile is the highest number of a data file that is believed.
const maxDataFile = 1 << 20

func (x *index) mapWriters(b []byte) error {
	if len(b) < 24 || binary.LittleEndian.Uint64(b) > uint64(len(b)-24)/8 {
		return fmt.Errorf("%s before byte %d: a map of writers in %d bytes", x.path, x.pos, len(b))
	}
	x.files = x.files[:0]
	for i := range binary.LittleEndian.Uint64(b) {
		file := binary.LittleEndian.Uint64(b[24+8*i:])
		if file > maxDataFile {
			return fmt.Errorf("%s before byte %d: a data file with the number %d", x.path, x.pos, file)
		}
		x.files = append(x.files, file)
	}
	return nil
}

func (x *index) recordOfBP5(b []byte) (record, error) {
	bad := fmt.Errorf("%s before byte %d: a step record of %d bytes for %d writers", x.path, x.pos, len(b), len(x.files))
	if len(b) < 24 {
		return record{}, bad
	}
	u64 := func(at uint64) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	pos, size, flushes := u64(0), u64(8), u64(16)
	if flushes > maxRecord || (2*flushes+1)*uint64(len(x.files)) > uint64(len(b)-24)/8 || pos > math.MaxInt64 || size > math.MaxInt64-pos {
		return record{}, bad
	}
	r := record{end: x.pos, metaPos: int64(pos), metaEnd: int64(pos + size), writers: len(x.files)}
	at := uint64(24)
	for _, file := range x.files {
		for range flushes {
			r.begin(file, position(u64(at)))
			at += 16
		}
		r.begin(file, position(u64(at)))
		at += 8
	}
	return r, nil
}

// begin notes that something of the step begins at pos of a data file.
func (r *record) begin(file uint64, pos int64) {
	for uint64(len(r.dataFrom)) <= file {
		r.dataFrom = append(r.dataFrom, -1)
	}
	if old := r.dataFrom[file]; old < 0 || pos < old {
		r.dataFrom[file] = pos
	}
}

// countSteps returns how many steps the index of a dataset has; 0 where that
// cannot be told.
func countSteps(dataset string) (n int) {
	x, err := openIndex(filepath.Join(dataset, "md.idx"))
	if err != nil {
		return 0
	}
	if !x.isBP5 {
		return int(max(0, x.size-headerSize) / recordBP4)
	}
	for {
		if _, err := x.next(); err != nil {
			return n
		}
		n++
	}
}

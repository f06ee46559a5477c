package bp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

const headerSize = 64

// Positions in the header of md.idx, and of the first bytes after it.
const (
	headerMajor     = 32
	headerEndian    = 36
	headerVersion   = 37
	headerBP4Active = 38
	headerBP5Minor  = 38
	headerBP5Active = 39
	headerBP5Column = 40
	fingerprintSize = 128 // header and the first record: they never change
)

// index is md.idx: a step exists as soon as it has a record there. The file is read again when all
// bytes of the last read are consumed.
type index struct {
	path       string
	activeByte int

	header      [headerSize]byte
	fingerprint []byte
	modified    time.Time
	active      bool

	pos  int64  // of buf[0] in the file
	buf  []byte // read but not yet used
	size int64  // of the file at the last read

	// Beginning of the metadata of the first step: two runs of the same program may
	// have equal indexes, but not equal times and process numbers.
	meta     *file
	metaPos  int64
	metaSize int // of the beginning; 0 without metadata to compare
	metaHash [sha256.Size]byte
}

// metaHeadSize is the number of bytes of metadata to compare.
const metaHeadSize = 4096

// remember keeps a hash of the beginning of the first step's metadata, which lie at
// pos of the file meta.
func (x *index) remember(meta *file, pos int64, md []byte) {
	if x.meta == nil {
		x.meta = &file{path: meta.path}
		head := md[:min(len(md), metaHeadSize)]
		x.metaPos, x.metaSize, x.metaHash = pos, len(head), sha256.Sum256(head)
	}
}

// sameMeta reports whether the metadata still have the remembered beginning.
func (x *index) sameMeta() bool {
	if x.metaSize == 0 {
		return true
	}
	head := make([]byte, x.metaSize)
	x.meta.close()
	defer x.meta.close()
	return x.meta.readAt(head, x.metaPos, -1) == nil && sha256.Sum256(head) == x.metaHash
}

// indexChunk limits how much of the index is in memory at once.
const indexChunk = 64 << 10

// refresh reads the bytes that were appended. It reads the active flag before the
// size, so that no records can follow after it sees a clear flag.
func (x *index) refresh() error {
	f, err := os.Open(x.path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoStep
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	var head [fingerprintSize]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	seen := x.pos + int64(len(x.buf))
	if info.Size() < seen || n < headerSize {
		return fmt.Errorf("%s: %w", x.path, ErrRecreated)
	}
	active := head[x.activeByte] != 0
	head[x.activeByte] = 0
	if common := min(len(x.fingerprint), n); !bytes.Equal(x.fingerprint[:common], head[:common]) || !x.sameMeta() {
		return fmt.Errorf("%s: %w", x.path, ErrRecreated)
	}
	x.fingerprint = append(x.fingerprint[:0], head[:n]...)
	x.active, x.modified, x.size = active, info.ModTime(), info.Size()
	more := min(info.Size()-seen, indexChunk)
	old := len(x.buf)
	x.buf = append(x.buf, make([]byte, more)...)
	n, err = f.ReadAt(x.buf[old:], seen)
	x.buf = x.buf[:old+n]
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// take returns the next record without consuming it. size returns the length of the
// record that b begins with, or 0 if b is too short. One refresh may not read
// all of the file, so take repeats it until it reads nothing.
func (x *index) take(step int, size func(b []byte) (int, error)) ([]byte, error) {
	for {
		n, err := size(x.buf)
		if err != nil {
			return nil, err
		}
		if n > 0 && n <= len(x.buf) {
			return x.buf[:n], nil
		}
		before := len(x.buf)
		if err := x.refresh(); err != nil {
			return nil, err
		}
		if len(x.buf) == before {
			return nil, x.end(step)
		}
	}
}

// progress returns the number of consumed bytes of records, and of all.
func (x *index) progress() (used, of int64) {
	if x.size <= headerSize {
		return 0, 0
	}
	return x.pos - headerSize, x.size - headerSize
}

// use consumes the first n bytes.
func (x *index) use(n int) {
	x.pos += int64(n)
	x.buf = x.buf[n:]
}

// end returns the error for an index without another complete record: io.EOF, or a
// pendingError while the dataset is active. A closed index that ends within a record
// lost its end.
func (x *index) end(step int) error {
	switch {
	case x.active && len(x.buf) == 0:
		return errNoStep
	case x.active:
		return errTorn
	case len(x.buf) == 0:
		return io.EOF
	}
	return &pendingError{
		file: x.path, step: step, have: x.pos,
		reason: fmt.Sprintf("the index is marked as closed but ends in the middle of a record, after %d of its bytes", len(x.buf)),
	}
}

var errTorn = &pendingError{reason: "the last record of the index is not complete"}

package bp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// file is one file of a dataset. It is opened at the first use, and again whenever it is too short:
// on network file systems only opening a file is certain to show the writes of other machines.
type file struct {
	path    string
	f       *os.File
	size    int64
	claimed int64 // sum of the sizes of the current step's arrays
}

// need returns a pendingError unless the file has at least end bytes.
func (f *file) need(end int64, step int) error {
	if f.f != nil && end <= f.size {
		return nil
	}
	if err := f.reopen(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return &pendingError{file: f.path, step: step, reason: "the file is missing"}
		}
		return err
	}
	if f.size < end {
		return &pendingError{
			file: f.path, step: step, have: f.size,
			reason: fmt.Sprintf("the file ends here, but %d more bytes belong to it", end-f.size),
		}
	}
	return nil
}

func (f *file) reopen() error {
	f.close()
	h, err := os.Open(f.path)
	if err != nil {
		return err
	}
	info, err := h.Stat()
	if err != nil {
		_ = h.Close() // the first error is the one that matters
		return err
	}
	f.f, f.size = h, info.Size()
	return nil
}

// readAt fills p from position off. The caller has called need for these bytes.
func (f *file) readAt(p []byte, off int64, step int) error {
	if f.f == nil {
		if err := f.reopen(); err != nil {
			return err
		}
	}
	n, err := f.f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return &CorruptError{File: f.path, Step: step, Offset: off + int64(n), Reason: "the file became shorter while it was read"}
	}
	return err
}

func (f *file) close() {
	if f.f != nil {
		_ = f.f.Close() // only read from: nothing can be lost
		f.f, f.size = nil, 0
	}
}

// read returns n bytes from position off in *buf, which grows as needed. It checks
// the size of the file first, so that a wrong n cannot make buf grow.
func (f *file) read(buf *[]byte, off int64, n uint64, step int) ([]byte, error) {
	if off < 0 || n > 1<<62 || off > 1<<62 {
		return nil, &CorruptError{
			File: f.path, Step: step, Offset: f.size,
			Reason: fmt.Sprintf("impossible extent: %d bytes at %d", n, uint64(off)),
		}
	}
	if err := f.need(off+int64(n), step); err != nil {
		return nil, err
	}
	if uint64(cap(*buf)) < n {
		*buf = make([]byte, n, n+n/4)
	}
	b := (*buf)[:n]
	return b, f.readAt(b, off, step)
}

// data holds the arrays of a step.
type data interface {
	// path names place k, for errors.
	path(k int) string
	// readAt fills p from position off of place k.
	readAt(k int, p []byte, off int64, step int) error
	// reopen makes the following reads check the data again. It reports whether that can help.
	reopen() bool
}

// dataFiles are the files that hold the arrays of a dataset.
type dataFiles struct {
	prefix string // of the names; a number follows
	live   bool   // the dataset is followed, so bytes may have been stale
	files  map[int]*file
}

// maxOpenData limits how many data files are open at once; only very large runs in
// one dataset have more.
const maxOpenData = 64

func newDataFiles(prefix string, live bool) *dataFiles {
	return &dataFiles{prefix: prefix, live: live, files: make(map[int]*file)}
}

func (d *dataFiles) path(k int) string { return d.prefix + strconv.Itoa(k) }

func (d *dataFiles) file(k int) *file {
	f := d.files[k]
	if f == nil {
		if len(d.files) >= maxOpenData {
			d.close()
		}
		f = &file{path: d.path(k)}
		d.files[k] = f
	}
	return f
}

// check makes sure that the arrays of all blocks exist, and that together they are
// no longer than their file. This bounds the memory that reading them all needs.
func (d *dataFiles) check(s *Step) error {
	for _, f := range d.files {
		f.claimed = 0
	}
	for v, b := range s.arrays() {
		f := d.file(b.file)
		if err := f.need(b.pos+b.size, s.Index); err != nil {
			return fmt.Errorf("variable %q: %w", v.Name, err)
		}
		if f.claimed += b.size; f.claimed > f.size {
			return &CorruptError{
				File: f.path, Step: s.Index, Offset: b.pos,
				Reason: fmt.Sprintf("variable %q overlaps others: all arrays of the step are longer than the file", v.Name),
			}
		}
	}
	return nil
}

func (d *dataFiles) readAt(k int, p []byte, off int64, step int) error {
	if len(p) == 0 {
		return nil
	}
	return d.file(k).readAt(p, off, step)
}

func (d *dataFiles) reopen() bool {
	if d.live {
		d.close()
	}
	return d.live
}

func (d *dataFiles) close() {
	for _, f := range d.files {
		f.close()
	}
	clear(d.files)
}

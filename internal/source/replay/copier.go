package replay

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// Sizes and positions in md.idx; docs/formats describes the bytes.
const (
	headerSize = 64
	activeBP4  = 38
	activeBP5  = 39
	recordBP4  = 64
	headBP5    = 9 // of a record: its type, and the length of the rest
)

// copier writes a dataset whose bytes equal those of the recorded one when it is
// finished.
type copier struct {
	p        *Replay
	src      *bp.Reader
	to       string
	activeAt int64          // position of the active flag in md.idx
	flag     []byte         // the recorded flag; empty if md.idx has no header
	files    []*growingFile // in the order in which ADIOS2 writes a step
	rest     []*growingFile // files that ADIOS2 writes when it closes the dataset
}

// open creates the directory and its files, all empty: ADIOS2 writes nothing before the
// first step.
func (c *copier) open() error {
	c.activeAt = activeBP4
	if c.src.Engine() == "BP5" {
		c.activeAt = activeBP5
	}
	header := make([]byte, headerSize)
	err := readAt(filepath.Join(c.src.Path(), "md.idx"), header, 0)
	switch {
	case err == nil:
		c.flag = header[c.activeAt : c.activeAt+1]
	case !errors.Is(err, io.EOF):
		return err
	}
	entries, err := os.ReadDir(c.src.Path())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		g := &growingFile{p: c.p, name: e.Name(), from: filepath.Join(c.src.Path(), e.Name()), to: filepath.Join(c.to, e.Name())}
		switch {
		case e.IsDir():
		case g.order() < 0:
			c.rest = append(c.rest, g)
		default:
			c.files = append(c.files, g)
			if err := g.create(); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(c.files, func(a, b *growingFile) int { return cmp.Compare(a.order(), b.order()) })
	c.p.wrote(0)
	return nil
}

// write adds a step: arrays, formats, metadata, and the record that makes it exist.
func (c *copier) write(*bp.Step, trace.Ticks) error {
	ends := c.src.Extents()
	return c.grow(func(g *growingFile) int64 { return ends[g.name] })
}

func (c *copier) grow(end func(*growingFile) int64) error {
	for _, g := range c.files {
		patch := c.setActive
		if g.name != "md.idx" || len(c.flag) == 0 {
			patch = nil
		}
		if err := g.growTo(end(g), patch); err != nil {
			return err
		}
	}
	return nil
}

// setActive marks the dataset as being written.
func (c *copier) setActive(b []byte, pos int64) {
	if at := c.activeAt - pos; at >= 0 && at < int64(len(b)) {
		b[at] = 1
	}
}

// finish copies the rest, and marks the dataset as closed if the recorded one is. BP4
// writes its profile before that, BP5 after it.
func (c *copier) finish() error {
	if err := c.grow(func(*growingFile) int64 { return math.MaxInt64 }); err != nil {
		return err
	}
	if c.activeAt == activeBP5 {
		return errors.Join(c.clearActive(), c.copyRest())
	}
	return errors.Join(c.copyRest(), c.clearActive())
}

func (c *copier) copyRest() error {
	for _, g := range c.rest {
		if err := errors.Join(g.create(), g.growTo(math.MaxInt64, nil)); err != nil {
			return err
		}
	}
	return nil
}

// clearActive sets the active flag to the recorded one.
func (c *copier) clearActive() error {
	if len(c.flag) == 0 || c.flag[0] == 1 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(c.to, "md.idx"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(c.flag, c.activeAt)
	c.p.wrote(1)
	return errors.Join(err, f.Close())
}

// growingFile is a file that becomes a copy of a recorded one. Neither is open between two calls,
// so that thousands of datasets can grow side by side.
type growingFile struct {
	p              *Replay
	name, from, to string
	done           int64 // copied bytes
}

// order returns the place of the file among the writes of a step, or -1 if it has none.
func (g *growingFile) order() int {
	switch g.name {
	case "mmd.0":
		return math.MaxInt - 2
	case "md.0":
		return math.MaxInt - 1
	case "md.idx":
		return math.MaxInt
	}
	number, isData := strings.CutPrefix(g.name, "data.")
	if k, err := strconv.ParseUint(number, 10, 31); isData && err == nil {
		return int(k)
	}
	return -1
}

// create creates the copy, empty.
func (g *growingFile) create() error {
	f, err := os.OpenFile(g.to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// bufferSize bounds the size of a write.
const bufferSize = 1 << 20

// growTo copies the bytes up to the position end, or to the end of the recorded file.
// patch, unless nil, may change the bytes, the first of which is at pos.
func (g *growingFile) growTo(end int64, patch func(b []byte, pos int64)) (err error) {
	if end <= g.done {
		return nil
	}
	from, err := os.Open(g.from)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read from
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if end = min(end, info.Size()); end <= g.done {
		return nil
	}
	to, err := os.OpenFile(g.to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for g.done < end {
		b := g.p.buffer(int(min(bufferSize, end-g.done)))
		n, err := from.ReadAt(b, g.done)
		if n == 0 || err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if patch != nil {
			patch(b[:n], g.done)
		}
		if _, err := to.WriteAt(b[:n], g.done); err != nil {
			return err
		}
		g.done += int64(n)
		g.p.wrote(int64(n))
	}
	return nil
}

// readAt fills b from the position off of a file. It returns io.EOF if the file ends
// before that.
func readAt(path string, b []byte, off int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from
	_, err = f.ReadAt(b, off)
	return err
}

// countSteps returns the number of steps in the index of a dataset, 0 if it has none.
func countSteps(dataset string, isBP5 bool) (n int) {
	path := filepath.Join(dataset, "md.idx")
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	if !isBP5 {
		return int(max(0, info.Size()-headerSize) / recordBP4)
	}
	head := make([]byte, headBP5)
	for pos := int64(headerSize); readAt(path, head, pos) == nil; {
		length := binary.LittleEndian.Uint64(head[1:])
		if length > uint64(info.Size()) || pos > info.Size()-headBP5-int64(length) {
			break
		}
		if head[0] == 's' {
			n++
		}
		pos += headBP5 + int64(length)
	}
	return n
}

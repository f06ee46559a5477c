package replay

import (
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

// copier writes a dataset whose bytes, once it is finished, are those of the
// recorded one.
type copier struct {
	p        *Replay
	from, to string
	isBP5    bool

	index *growing
	meta  *growing
	mmd   *growing // nil if none
	data  []*dataFile
	rest  []*growing // files that are written when the dataset is closed

	records *index
	ahead   *record // the step to come; nil if none
	formats formats // BP5
}

// dataFile is one data.K.
type dataFile struct {
	growing
	number int
}

// bufferSize is how much of a file is written at once, at most.
const bufferSize = 1 << 20

func (c *copier) buffer() []byte { return c.p.buffer(bufferSize) }

func (c *copier) wrote(n int64) { c.p.wrote(n) }

func newCopier(p *Replay, from, to string) *copier {
	return &copier{p: p, from: from, to: to}
}

// open makes the directory and the files, all empty: ADIOS2 writes nothing
// before the first step.
func (c *copier) open() (err error) {
	if c.records, err = openIndex(filepath.Join(c.from, "md.idx")); err != nil {
		return err
	}
	c.isBP5 = c.records.isBP5
	entries, err := os.ReadDir(c.from)
	if err != nil {
		return err
	}
	if err := makeDataset(c.to); err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			if err := c.add(e.Name()); err != nil {
				return err
			}
		}
	}
	c.p.wrote(0)
	return c.look()
}

// add takes up a file of the dataset.
func (c *copier) add(name string) error {
	g := &growing{from: filepath.Join(c.from, name), to: filepath.Join(c.to, name), c: c}
	number, isData := strings.CutPrefix(name, "data.")
	k, err := strconv.Atoi(number)
	switch {
	case name == "md.idx":
		c.index = g
	case name == "md.0":
		c.meta = g
	case name == "mmd.0":
		c.mmd = g
	case isData && err == nil && k >= 0:
		d := &dataFile{growing: *g, number: k}
		c.data = append(c.data, d)
		return d.create()
	default:
		c.rest = append(c.rest, g)
		return nil
	}
	return g.create()
}

// look reads the record of the step to come.
func (c *copier) look() error {
	r, err := c.records.next()
	c.ahead = &r
	if err != nil {
		c.ahead = nil
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// write adds a step: arrays, formats, metadata, and the record that makes it
// exist.
func (c *copier) write(*bp.Step, trace.Micros) error {
	if c.ahead == nil {
		return errors.New(c.from + ": the index has fewer steps than before: it was replaced while it was read")
	}
	r := *c.ahead
	if err := c.look(); err != nil {
		return err
	}
	for _, d := range c.data {
		end, err := c.dataEnd(d, &r)
		if err == nil {
			err = d.growTo(end, nil)
		}
		if err != nil {
			return err
		}
	}
	if err := c.growFormats(&r); err != nil {
		return err
	}
	if c.meta != nil {
		if err := c.meta.growTo(r.metaEnd, nil); err != nil {
			return err
		}
	}
	return c.index.growTo(r.end, c.setActive)
}

// setActive marks the dataset as being written.
func (c *copier) setActive(b []byte, pos int64) {
	if at := c.records.activeByte(); pos <= at && at < pos+int64(len(b)) {
		b[at-pos] = 1
	}
}

// dataEnd returns how long a data file is when the step of r is there. In BP5
// that is where the step to come begins.
func (c *copier) dataEnd(d *dataFile, r *record) (int64, error) {
	if !c.isBP5 {
		return d.groupsEnd(r.step)
	}
	if c.ahead == nil {
		return math.MaxInt64, nil
	}
	if d.number >= len(c.ahead.dataFrom) {
		return d.done, nil
	}
	return c.ahead.dataFrom[d.number], nil // -1: nothing of it in this file
}

// finish copies the rest, and marks the dataset as closed if the recorded
// one is. BP4 writes its profile before that, BP5 after it.
func (c *copier) finish() error {
	left := []*growing{c.mmd, c.meta, c.index}
	for _, d := range slices.Backward(c.data) {
		left = slices.Insert(left, 0, &d.growing)
	}
	for _, g := range left {
		if g == nil {
			continue
		}
		patch := c.setActive
		if g != c.index || c.records.size < headerSize {
			patch = nil
		}
		if err := g.growTo(math.MaxInt64, patch); err != nil {
			return err
		}
	}
	if c.isBP5 {
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

// clearActive gives the active flag the value that the recorded one has.
func (c *copier) clearActive() error {
	at := c.records.activeByte()
	if c.records.size < headerSize || c.records.header[at] == 1 {
		return nil
	}
	f, err := os.OpenFile(c.index.to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(c.records.header[at:at+1], at)
	c.wrote(1)
	return errors.Join(err, f.Close())
}

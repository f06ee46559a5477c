package bp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

// bp3 reads BP3: one file that describes all steps and is rewritten with each, and a
// directory with the arrays.
type bp3 struct {
	path     string
	version  string
	modified time.Time
	data     *dataFiles
	blocks   []element // of the steps that were not returned yet, in order
	attrs    []element
	step     Step
	steps    int
	last     int64 // number of the last step, from 1
	active   bool
}

// Layout of the end of the file.
const (
	bp3FooterSize = 56
	bp3Version    = 24 // three characters
	bp3Positions  = 28
	bp3Endian     = 52
	bp3Subfiles   = 54
	bp3Format     = 55
)

func newBP3(path string, f *os.File, opt Options) (engine, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	e := &bp3{
		path: path, modified: info.ModTime(),
		data: newDataFiles(filepath.Join(path+".dir", filepath.Base(path)+"."), opt.Follow),
	}
	description := file{path: path, f: f, size: size}
	e.active = !hasBP3Footer(e.data.file(0))
	complete := hasBP3Footer(&description) // checked before reading, because it may be any large file
	if _, err := os.Stat(path + ".dir"); opt.Follow && err == nil && (e.active || !complete) {
		return nil, fmt.Errorf("%s: %w: BP3 is rewritten with each step; read it after it is closed", path, ErrNotReady)
	}
	if !complete {
		return nil, &UnsupportedError{Path: path, What: "a file that is not an ADIOS2 dataset"}
	}
	b := make([]byte, size)
	if err := description.readAt(b, 0, -1); err != nil {
		return nil, err
	}
	if err := e.parse(b, opt.Tally); err != nil {
		return nil, err
	}
	return e, nil
}

// hasBP3Footer reports whether a file ends with a BP3 footer. The description has one
// after each step, a data file only after it is closed.
func hasBP3Footer(f *file) bool {
	if f.f == nil && f.reopen() != nil || f.size < bp3FooterSize {
		return false
	}
	foot := make([]byte, bp3FooterSize)
	return f.readAt(foot, f.size-bp3FooterSize, -1) == nil && foot[bp3Format] == 3 && bytes.HasPrefix(foot, bpSignature)
}

// parse reads the description of all steps.
func (e *bp3) parse(b []byte, t *tally.Tally) error {
	corrupt := func(at int64, format string, args ...any) error {
		return &CorruptError{File: e.path, Step: -1, Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
	if len(b) < bp3FooterSize {
		return corrupt(int64(len(b)), "a BP3 file needs %d bytes", bp3FooterSize)
	}
	end := len(b) - bp3FooterSize
	foot := b[end:]
	e.version = version(foot[bp3Version:])
	if foot[bp3Endian] != 0 {
		return &UnsupportedError{Path: e.path, What: "a dataset written on a big-endian machine"}
	}
	if foot[bp3Subfiles] != 3 {
		return &UnsupportedError{Path: e.path, What: "a BP3 file that holds its arrays itself, as ADIOS 1 wrote it,"}
	}
	u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(foot[bp3Positions+8*i:]) }
	groups, variables, attributes := u64(0), u64(1)-u64(0), u64(2)-u64(0)
	if groups > u64(1) || variables > attributes || attributes > uint64(end) {
		return corrupt(int64(end)+bp3Positions, "the positions of the sections are not in order")
	}
	c := cursor{buf: b[:end]}
	groupList := c.sub(variables)
	varList := c.sub(attributes - variables)
	attrList := c.sub(uint64(end) - attributes)
	if err := parseGroups(&groupList); err != nil {
		return place(err, e.path, -1, 0)
	}
	p := elementParser{tally: t, bp3: true}
	collect := func(list *cursor, to *[]element) {
		p.section(list, func(el *element) {
			if el.step == 0 || el.step > math.MaxInt32 {
				el.fail(fmt.Sprintf("belongs to the impossible step %d", el.step))
				return
			}
			*to = append(*to, *el)
		})
		slices.SortStableFunc(*to, func(a, b element) int { return cmp.Compare(a.step, b.step) })
	}
	collect(&varList, &e.blocks)
	collect(&attrList, &e.attrs)
	for _, list := range [][]element{e.blocks, e.attrs} {
		if len(list) > 0 {
			e.last = max(e.last, int64(list[len(list)-1].step))
		}
	}
	for _, list := range []cursor{varList, attrList} {
		if list.err != nil {
			return place(list.err, e.path, -1, 0)
		}
	}
	return nil
}

func (e *bp3) state() state {
	return state{engine: "BP3", version: e.version, modified: e.modified, active: e.active, read: int64(e.steps), of: e.last}
}

func (e *bp3) close() { e.data.close() }

func (e *bp3) forget() { e.step = Step{} }

// next collects the elements of the lowest remaining step.
func (e *bp3) next() (*Step, error) {
	number := uint32(math.MaxUint32)
	for _, list := range [][]element{e.blocks, e.attrs} {
		if len(list) > 0 {
			number = min(number, list[0].step)
		}
	}
	if number == math.MaxUint32 {
		return nil, io.EOF
	}
	e.step.reset(e.steps, 0, e.data)
	var c cursor // for errors about impossible extents
	n := 0
	for ; n < len(e.blocks) && e.blocks[n].step == number; n++ {
		e.blocks[n].c = &c
		e.step.addBlock(&e.blocks[n])
	}
	a := 0
	for ; a < len(e.attrs) && e.attrs[a].step == number; a++ {
		if e.attrs[a].set == 0 {
			e.step.addAttribute(&e.attrs[a])
		}
	}
	if c.err != nil {
		c.err.File, c.err.Step = e.path, e.step.Index
		return nil, c.err
	}
	if err := e.data.check(&e.step); err != nil {
		return nil, err
	}
	e.blocks, e.attrs = e.blocks[n:], e.attrs[a:]
	e.steps++
	return &e.step, nil
}

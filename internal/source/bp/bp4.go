package bp

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

// bp4 reads BP4: md.idx holds one record of 64 bytes for each step, which
// tells where in md.0 the descriptions of the step's variables and attributes
// lie; these tell where in data.K the arrays lie.
type bp4 struct {
	index index
	meta  file
	buf   []byte
	data  dataFiles
	tally *tally.Tally
	step  Step
	steps int
	end   int64 // of the metadata that the index mentioned so far
	live  bool
}

const bp4RecordSize = 64

func newBP4(dir string, x index, opt Options) *bp4 {
	x.activeByte = headerBP4Active
	x.active = x.header[headerBP4Active] != 0
	return &bp4{
		index: x,
		meta:  file{path: within(dir, "md.0")},
		data:  newDataFiles(within(dir, "data."), opt.Follow),
		tally: opt.Tally,
		end:   headerSize,
		live:  opt.Follow,
	}
}

func (e *bp4) state() state {
	read, of := e.index.progress()
	return state{
		engine: "BP4", version: version(e.index.header[headerMajor:]), active: e.index.active, modified: e.index.modified,
		read: read, of: of,
	}
}

func (e *bp4) close() {
	e.meta.close()
	e.data.close()
}

func (e *bp4) forget() { e.buf, e.step = nil, Step{} }

// bp4Record is one record of md.idx. Its positions are those in md.0.
type bp4Record struct {
	groups, variables, attributes, end uint64
	time                               uint64
}

func parseBP4Record(b []byte) (rec bp4Record, ok bool) {
	u64 := binary.LittleEndian.Uint64
	rec = bp4Record{groups: u64(b[16:]), variables: u64(b[24:]), attributes: u64(b[32:]), end: u64(b[40:]), time: u64(b[48:])}
	ok = rec.groups <= rec.variables && rec.variables <= rec.attributes && rec.attributes <= rec.end && rec.end <= math.MaxInt64
	return rec, ok
}

func (e *bp4) next() (*Step, error) {
	b, err := e.index.take(e.steps, func([]byte) (int, error) { return bp4RecordSize, nil })
	if err != nil {
		return nil, e.atEnd(err)
	}
	rec, ok := parseBP4Record(b)
	if !ok {
		return nil, &CorruptError{File: e.index.path, Step: e.steps, Offset: e.index.pos, Reason: "the record's positions are not in order"}
	}
	md, err := e.meta.read(&e.buf, int64(rec.groups), rec.end-rec.groups, e.steps)
	if err != nil {
		return nil, err
	}
	e.step.reset(e.steps, int64(rec.time), e.data)
	if err := parseBP4Step(md, rec, &e.step, e.tally); err != nil {
		e.meta.close() // what is read again must be checked again
		return nil, place(err, e.meta.path, e.steps, 0)
	}
	if err := e.data.check(&e.step); err != nil {
		return nil, err
	}
	e.index.remember(&e.meta, int64(rec.groups), md)
	e.index.use(bp4RecordSize)
	e.steps++
	e.end = int64(rec.end)
	return &e.step, nil
}

// atEnd notices when a closed dataset has metadata beyond its last step.
func (e *bp4) atEnd(err error) error {
	if !e.live && !e.index.active && e.meta.reopen() == nil && e.meta.size > e.end {
		e.tally.Add(tally.MetadataUnindexed, e.meta.size-e.end)
	}
	return err
}

// parseBP4Step decodes the metadata of one step, which rec describes.
func parseBP4Step(md []byte, rec bp4Record, s *Step, t *tally.Tally) error {
	c := cursor{buf: md, base: int64(rec.groups)}
	groups := c.sub(rec.variables - rec.groups)
	variables := c.sub(rec.attributes - rec.variables)
	attributes := c.sub(rec.end - rec.attributes)
	if err := parseGroups(&groups); err != nil {
		return err
	}
	p := elementParser{tally: t}
	p.section(&variables, func(el *element) { s.addBlock(el) })
	if variables.err != nil {
		return variables.err
	}
	p.section(&attributes, func(el *element) {
		if el.set == 0 { // further sets are the same attribute of other writers
			s.addAttribute(el)
		}
	})
	if attributes.err != nil {
		return attributes.err
	}
	return nil
}

// parseGroups reads the index of process groups, one for each writer, only to
// find out whether one wrote its arrays column by column.
func parseGroups(c *cursor) error {
	c.u64() // their number
	list := c.sub(c.u64())
	for c.err == nil && list.left() > 0 {
		g := list.sub(uint64(list.u16()))
		g.str16()
		if g.u8() == 'y' {
			return &UnsupportedError{What: columnMajor}
		}
		if list.err == nil {
			list.err = g.err
		}
		c.err = list.err
	}
	c.done()
	if c.err != nil {
		return c.err
	}
	return nil
}

func (s *Step) addBlock(el *element) {
	v := s.variable(el.name, el.typ, el.shapeKind())
	if v.Type != el.typ {
		el.fail(fmt.Sprintf("is of type %v and of type %v", v.Type, el.typ))
		return
	}
	switch {
	case el.operator != "":
		v.refused = compressed(el.operator)
	case v.Shape == JoinedArray:
		v.refused = "is a joined array, which"
	case v.Type == Unknown || v.Type == Structure:
		v.refused = fmt.Sprintf("has the unknown type %d, which", el.code)
	}
	b := Block{Writer: -1, file: int(el.file), pos: int64(el.payload)}
	if v.Shape == GlobalValue || v.Shape == LocalValue {
		b.Value = el.value
	} else {
		b.Count = el.count
		if v.Shape != LocalArray {
			b.Shape, b.Start = el.shape, el.start
		}
		size, ok := product(el.count, el.typ.Size())
		if v.refused == "" && (!ok || el.payload > math.MaxInt64 || size > math.MaxInt64-b.pos) {
			el.fail("the array's extent is impossible")
			return
		}
		b.size = size
	}
	v.Blocks = append(v.Blocks, b)
}

func (s *Step) addAttribute(el *element) {
	a := Attribute{Name: string(el.name), Type: el.typ, Block: -1, Array: el.code == bp4StringArray || len(el.count) > 0 && el.count[0] != 1}
	if el.typ == String {
		a.Values = el.texts
		if el.code != bp4StringArray {
			a.Values = []string{string(el.value)}
		}
	} else {
		a.Values = textsOf(el.typ, el.value)
	}
	s.Attributes = append(s.Attributes, a)
}

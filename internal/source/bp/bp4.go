package bp

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

// bp4 reads BP4: md.idx holds one record of 64 bytes for each step.
type bp4 struct{ dataset }

const bp4RecordSize = 64

func newBP4(dir string, x index, opt Options) *bp4 {
	e := &bp4{newDataset(dir, x, headerBP4Active, opt)}
	e.end = headerSize
	return e
}

// bp4Record is one record of md.idx: positions in md.0 and the time of the write.
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
	for {
		b, err := e.index.take(e.steps, func([]byte) (int, error) { return bp4RecordSize, nil })
		if err != nil {
			return nil, e.atEnd(err)
		}
		rec, ok := parseBP4Record(b)
		if !ok {
			return nil, e.corruptIndex("the record's positions are not in order")
		}
		pos, size := int64(rec.groups), rec.end-rec.groups
		if again, err := e.repeats(bp4RecordSize, pos, size); err != nil {
			return nil, err
		} else if again {
			continue
		}
		return e.load(bp4RecordSize, pos, size, int64(rec.time), func(md []byte) error {
			return place(parseBP4Step(md, rec, &e.step, e.tally), e.meta.path, e.steps, 0)
		})
	}
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

// parseGroups reads the index of process groups, one for each writer, and refuses
// column-major arrays.
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
		v.refused = compressionReason(el.operator)
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

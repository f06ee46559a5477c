package bp

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// bp5Decoder turns the metadata of a BP5 step into variables and attributes.
// SST sends the same records over the network.
type bp5Decoder struct {
	plans map[*ffs.Format]*bp5Plan
	bits  []uint64
	seen  map[string]seenAttribute // by block and name; later blocks may repeat them
	tries int                      // calls of decode: a step may be decoded again
}

// bp5Plan describes the variables in the records of a format.
type bp5Plan struct {
	bitField *ffs.Field
	vars     []bp5Variable
}

type bp5Variable struct {
	name     []byte
	typ      Type
	shape    Shape
	size     int // of one element, for arrays
	field    *ffs.Field
	refused  string
	operator bool

	// Fields of the structure that describes an array.
	dims, blocks, arrayShape, count, offset, location *ffs.Field
}

// bp5Places locates the arrays of a step.
type bp5Places interface {
	// locate turns a position in the output of writer w into the number of a data file
	// and a position in it.
	locate(w int, at uint64) (file int, pos int64, ok bool)
}

// decode reads the metadata md of the step that rec describes into s. Offsets in its
// errors are relative to the start of md.
func (d *bp5Decoder) decode(s *Step, md []byte, rec *bp5Record, lookup func(ffs.ID) (*ffs.Format, error)) error {
	d.tries++
	c := cursor{buf: md}
	total := c.u64()
	if c.err == nil && total != uint64(len(md))-8 {
		c.fail(0, "the metadata have %d bytes by their own header, %d by the index", total, len(md)-8)
	}
	writers := len(rec.writers)
	sizes := c.sub(8 * uint64(writers))
	attrSizes := c.sub(8 * uint64(writers))
	each := func(sizes *cursor, read func(b cursor, w int) error) error {
		for w := range writers {
			b := c.sub(sizes.u64())
			if b.err != nil {
				return b.err
			}
			if len(b.buf) == 0 {
				continue
			}
			if err := read(b, w); err != nil {
				return err
			}
		}
		return nil
	}
	if err := each(&sizes, func(b cursor, w int) error { return d.variables(s, b, w, rec, lookup) }); err != nil {
		return err
	}
	return each(&attrSizes, func(b cursor, w int) error { return d.attributes(s, b, w, lookup) })
}

// record decodes the record in one block.
func record(b cursor, lookup func(ffs.ID) (*ffs.Format, error)) (ffs.Record, error) {
	id, err := ffs.BlockID(b.buf)
	if err != nil {
		return ffs.Record{}, ffsError(err, "", -1, b.base)
	}
	f, err := lookup(id)
	if err != nil {
		return ffs.Record{}, err
	}
	rec, err := f.Decode(b.buf)
	return rec, ffsError(err, "", -1, b.base)
}

func (d *bp5Decoder) variables(s *Step, b cursor, w int, places bp5Places, lookup func(ffs.ID) (*ffs.Format, error)) error {
	r, err := record(b, lookup)
	if err != nil {
		return err
	}
	plan, err := d.plan(r.Format)
	if err != nil {
		return err
	}
	if d.bits, err = r.Uints(d.bits[:0], plan.bitField); err != nil {
		return ffsError(err, "", -1, b.base)
	}
	for i := range plan.vars {
		if i/64 >= len(d.bits) || d.bits[i/64]>>(i%64)&1 == 0 {
			continue
		}
		pv := &plan.vars[i]
		v := s.variable(pv.name, pv.typ, pv.shape)
		if v.Type != pv.typ {
			return &CorruptError{Step: -1, Offset: b.base, Reason: fmt.Sprintf("%q is of type %v and of type %v", pv.name, v.Type, pv.typ)}
		}
		if pv.refused != "" {
			v.refused, v.operator = pv.refused, pv.operator
		}
		if pv.dims != nil {
			err = pv.addBlocks(v, r, w, places)
		} else {
			err = pv.addValue(v, r, w)
		}
		if err != nil {
			return ffsError(err, "", -1, b.base)
		}
	}
	return nil
}

func (pv *bp5Variable) addValue(v *Variable, r ffs.Record, w int) error {
	var value []byte
	switch {
	case pv.refused != "":
	case pv.typ == String:
		text, err := r.Text(pv.field)
		if err != nil {
			return err
		}
		value = []byte(text)
	default:
		raw, err := r.Raw(pv.field)
		if err != nil {
			return err
		}
		value = raw
	}
	v.Blocks = append(v.Blocks, Block{Writer: w, Value: value})
	return nil
}

func (pv *bp5Variable) addBlocks(v *Variable, r ffs.Record, w int, places bp5Places) error {
	fail := func(format string, args ...any) error {
		return &ffs.Error{Offset: int64(pv.field.Offset), Reason: fmt.Sprintf("array %q: ", pv.name) + fmt.Sprintf(format, args...)}
	}
	list, err := r.Structs(pv.field)
	if err != nil {
		return err
	}
	if list.Len() != 1 {
		return fail("has %d descriptions", list.Len())
	}
	m, _, err := list.At(0)
	if err != nil {
		return err
	}
	dims, err := m.Uint(pv.dims)
	if err != nil {
		return err
	}
	blocks, err := m.Uint(pv.blocks)
	if err != nil {
		return err
	}
	var numbers [4][]uint64
	for i, fd := range []*ffs.Field{pv.arrayShape, pv.count, pv.offset, pv.location} {
		if numbers[i], err = m.Uints(nil, fd); err != nil {
			return err
		}
	}
	shape, count, offset, location := numbers[0], numbers[1], numbers[2], numbers[3]
	if dims == 0 || dims > 1<<16 || blocks == 0 || blocks != uint64(len(location)) || dims*blocks != uint64(len(count)) {
		return fail("%d dimensions and %d blocks, but %d counts and %d places", dims, blocks, len(count), len(location))
	}
	if len(shape) != 0 && uint64(len(shape)) != dims || len(offset) != 0 && len(offset) != len(count) {
		return fail("%d dimensions, but a shape of %d and %d positions", dims, len(shape), len(offset))
	}
	for i := range blocks {
		b := Block{Writer: w, Shape: shape, Count: count[i*dims : (i+1)*dims]}
		if len(offset) != 0 {
			b.Start = offset[i*dims : (i+1)*dims]
		}
		size, ok := product(b.Count, pv.size)
		file, pos, located := places.locate(w, location[i])
		b.file = file
		switch {
		case location[i] == math.MaxUint64 && size > 0:
			v.refused = "was written without its data, which"
		case v.operator:
			b.pos = pos
		case size > 0 && v.refused == "":
			if !ok || !located || size > math.MaxInt64-pos {
				return fail("the extent of block %d is impossible", i)
			}
			b.pos, b.size = pos, size
		}
		v.Blocks = append(v.Blocks, b)
	}
	return nil
}

// plan returns the meaning of a format's fields. It caches the result.
func (d *bp5Decoder) plan(f *ffs.Format) (*bp5Plan, error) {
	if p := d.plans[f]; p != nil {
		return p, nil
	}
	p := &bp5Plan{bitField: f.Field("BitField")}
	if f.Field("BitFieldCount") == nil || p.bitField == nil || len(f.Fields) < 3 {
		return nil, &CorruptError{Step: -1, Reason: fmt.Sprintf("metadata in the format %q, which has no BitField", f.Name)}
	}
	for i := 3; i < len(f.Fields); i++ {
		v, err := planVariable(&f.Fields[i])
		if err != nil {
			return nil, err
		}
		p.vars = append(p.vars, v)
	}
	if d.plans == nil {
		d.plans = make(map[*ffs.Format]*bp5Plan)
	}
	d.plans[f] = p
	return p, nil
}

var shapesBP5 = map[byte]Shape{'g': GlobalValue, 'l': LocalValue, 'G': GlobalArray, 'L': LocalArray, 'J': JoinedArray}

// planVariable parses the name of a field, such as BPG_8_8_event_timestamps.
func planVariable(fd *ffs.Field) (v bp5Variable, err error) {
	bad := func() (bp5Variable, error) {
		return v, &CorruptError{Step: -1, Reason: fmt.Sprintf("the metadata field %q does not name a variable", fd.Name)}
	}
	rest, ok := strings.CutPrefix(fd.Name, "BP")
	if !ok || len(rest) < 2 {
		return bad()
	}
	shape, ok := shapesBP5[rest[0]]
	if !ok {
		return bad()
	}
	v = bp5Variable{shape: shape, field: fd}
	isArray := strings.HasPrefix(fd.Type, "MetaArray")
	if !isArray {
		if shape != GlobalValue && shape != LocalValue {
			return v, &UnsupportedError{
				What: fmt.Sprintf("BP5 metadata as ADIOS 2.8 writes them (field %q)", fd.Name), Advice: newerADIOS2,
			}
		}
		if rest[1] != '_' {
			return bad()
		}
		v.name, v.typ = []byte(rest[2:]), typeOfFFS(fd)
		if v.typ == Unknown || fd.IsArray() {
			v.refused = fmt.Sprintf("has the unknown type %q, which", fd.Type)
		}
		return v, nil
	}
	rest = rest[1:]
	if strings.HasPrefix(rest, "-") { // derived: -n-<n characters>-
		length, tail, ok := strings.Cut(rest[1:], "-")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || n < 0 || n+1 > len(tail) {
			return bad()
		}
		rest = tail[n:]
		v.refused = "is derived from others by an expression, which"
	}
	size, rest, ok1 := strings.Cut(rest[1:], "_")
	code, name, ok2 := strings.Cut(rest, "_")
	n, err1 := strconv.ParseUint(size, 10, 16)
	t, err2 := strconv.ParseUint(code, 10, 8)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || t >= uint64(len(types)) {
		return bad()
	}
	v.size, v.typ = int(n), Type(t)
	if v.typ == Structure {
		_, name, _ = strings.Cut(name, "_") // format of the structure
		v.refused = "is an array of structures, which"
	} else if v.typ.Size() != v.size {
		return bad()
	}
	v.name = []byte(name)
	if shape == JoinedArray {
		v.refused = "is a joined array, which"
	}
	if strings.Contains(fd.Type, "Op") {
		v.refused, v.operator = compressionReason("unknown"), true
	}
	if fd.Sub == nil {
		return bad()
	}
	for name, f := range map[string]**ffs.Field{
		"Dims": &v.dims, "BlockCount": &v.blocks, "Shape": &v.arrayShape, "Count": &v.count, "Offset": &v.offset,
		"DataBlockLocation": &v.location,
	} {
		if *f = fd.Sub.Field(name); *f == nil {
			return bad()
		}
	}
	return v, nil
}

// typesOfFFS are the types of fields by kind and size.
var typesOfFFS = map[ffs.Kind]map[int]Type{
	ffs.Integer:  {1: Int8, 2: Int16, 4: Int32, 8: Int64},
	ffs.Unsigned: {1: Uint8, 2: Uint16, 4: Uint32, 8: Uint64},
	ffs.Float:    {4: Float, 8: Double, 16: LongDouble},
	ffs.Char:     {1: Char},
}

// typeOfFFS returns the type of a field's elements.
func typeOfFFS(fd *ffs.Field) Type {
	switch {
	case fd.Kind == ffs.String:
		return String
	case strings.HasPrefix(fd.Type, "complex4") && fd.Size == 8:
		return ComplexFloat
	case strings.HasPrefix(fd.Type, "complex8") && fd.Size == 16:
		return ComplexDouble
	}
	return typesOfFFS[fd.Kind][fd.Size]
}

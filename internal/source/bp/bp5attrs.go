package bp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// attributes reads one attribute block.
func (d *bp5Decoder) attributes(s *Step, b cursor, block int, lookup func(ffs.ID) (*ffs.Format, error)) error {
	r, err := record(b, lookup)
	if err != nil {
		return err
	}
	if r.Format.Name == "GenericAttributes" {
		err = d.genericAttributes(s, r, block)
	} else {
		err = d.fieldAttributes(s, r, block)
	}
	return ffsError(err, "", -1, b.base)
}

// arrayMark is added to the type in the first character of the name of an attribute
// that is an array.
const arrayMark = 18

// genericAttributes reads the usual form: a list of strings and one of all others.
func (d *bp5Decoder) genericAttributes(s *Step, r ffs.Record, block int) error {
	for _, list := range []string{"PrimAttrs", "StrAttrs"} {
		fd := r.Format.Field(list)
		if fd == nil {
			return &ffs.Error{Reason: fmt.Sprintf("attributes without a list %q", list)}
		}
		all, err := r.Structs(fd)
		if err != nil {
			return err
		}
		for i := range all.Len() {
			m, ok, err := all.At(i)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			a, err := genericAttribute(m, block)
			if err != nil {
				return err
			}
			d.add(s, a)
		}
	}
	return nil
}

// seenAttribute is the last value of an attribute, with the step and the call of decode that read
// it.
type seenAttribute struct {
	value     string
	step, try int
}

// add appends an attribute to the step unless this step or an earlier one has it with the same
// value.
func (d *bp5Decoder) add(s *Step, a Attribute) {
	if d.seen == nil {
		d.seen = make(map[string]seenAttribute)
	}
	value := strings.Join(a.Values, "\x00")
	key := strconv.Itoa(a.Block) + "/" + a.Name
	if old, ok := d.seen[key]; ok && old.value == value && (old.step < s.Index || old.try == d.tries) {
		return
	}
	d.seen[key] = seenAttribute{value, s.Index, d.tries}
	s.Attributes = append(s.Attributes, a)
}

func genericAttribute(m ffs.Record, block int) (a Attribute, err error) {
	nameField, values := m.Format.Field("name"), m.Format.Field("Values")
	if nameField == nil || values == nil {
		return a, &ffs.Error{Reason: fmt.Sprintf("attributes in the structure %q, which has no name or no Values", m.Format.Name)}
	}
	name, err := m.Text(nameField)
	if err != nil {
		return a, err
	}
	if name == "" || name[0] < '0' || int(name[0]-'0') >= arrayMark+len(types) {
		return a, &ffs.Error{Reason: fmt.Sprintf("attribute %q does not begin with a type", name)}
	}
	t := int(name[0] - '0')
	a = Attribute{Name: name[1:], Block: block, Array: t > arrayMark}
	if a.Array {
		t -= arrayMark
	}
	if t >= len(types) {
		return a, &ffs.Error{Reason: fmt.Sprintf("attribute %q has the unknown type %d", name, t)}
	}
	a.Type = Type(t)
	if a.Type == String {
		a.Values, err = m.Texts(nil, values)
		return a, err
	}
	raw, err := m.Bytes(values)
	a.Values = textsOf(a.Type, raw)
	return a, err
}

// fieldAttributes reads the other form: each attribute is a field, an array two of
// them, and each block repeats all attributes so far.
func (d *bp5Decoder) fieldAttributes(s *Step, r ffs.Record, block int) error {
	for i := range r.Format.Fields {
		fd := &r.Format.Fields[i]
		a, ok, err := fieldAttribute(r, fd)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		a.Block = block
		d.add(s, a)
	}
	return nil
}

func fieldAttribute(r ffs.Record, fd *ffs.Field) (a Attribute, ok bool, err error) {
	if rest, single := strings.CutPrefix(fd.Name, "BPg_"); single {
		_, rest, _ = strings.Cut(rest, "_") // size
		code, name, _ := strings.Cut(rest, "_")
		t, err := strconv.Atoi(code)
		if err != nil || t < 0 || t >= len(types) {
			return Attribute{Name: fd.Name}, true, nil // of unknown type
		}
		a = Attribute{Name: name, Type: Type(t)}
		if a.Type == String {
			text, err := r.Text(fd)
			a.Values = []string{text}
			return a, true, err
		}
		raw, err := r.Raw(fd)
		a.Values = textsOf(a.Type, raw)
		return a, true, err
	}
	name, isArray := strings.CutPrefix(fd.Name, "BPG_")
	if !isArray || !fd.IsArray() {
		return a, false, nil
	}
	a = Attribute{Name: name, Array: true}
	if fd.Kind == ffs.String {
		a.Type = String
		a.Values, err = r.Texts(nil, fd)
		return a, true, err
	}
	a.Type = typeOfFFS(fd)
	raw, err := r.Bytes(fd)
	a.Values = textsOf(a.Type, raw)
	return a, true, err
}

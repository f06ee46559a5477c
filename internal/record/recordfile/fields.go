package recordfile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// setter sets a part of a T to a value, which is not null.
type setter[T any] func(d *decoder, into *T, v value) error

// field is a field of a JSON object that stands for a T. Where one is needed an
// object without it is an error.
type field[T any] struct {
	name   string
	set    setter[T]
	needed bool
}

// fields are those of one kind of object. At most 64 are possible.
type fields[T any] struct {
	object string // its place in the schema, for notes
	list   []field[T]
	index  map[string]int
	needed uint64 // a bit for each
}

func newFields[T any](object string, list ...field[T]) *fields[T] {
	f := &fields[T]{object: object, list: list, index: make(map[string]int, len(list))}
	for i := range list {
		f.index[list[i].name] = i
		if list[i].needed {
			f.needed |= 1 << i
		}
	}
	return f
}

// read reads an object and returns which fields it has, a bit for each. A field
// that is null is as one that is not there. Those that the schema does not know
// are noted, but for the number that the original's database gave to a record.
func (f *fields[T]) read(d *decoder, v value, into *T) (seen uint64, err error) {
	if !v.isObject() {
		return 0, v.wrong("%s is not an object", v.excerpt())
	}
	for name, member := range v.members() {
		i, ok := f.find(name)
		switch {
		case !ok && string(name.text) != `"__id"`:
			s, _ := d.text(name) // is one
			d.notes.unknownField(f.object, s)
		case !ok || member.isNull():
		default:
			if seen&(1<<i) != 0 {
				d.notes.Add(noteTwice, 1)
			}
			seen |= 1 << i
			if err := f.list[i].set(d, into, member); err != nil {
				return seen, inside(f.list[i].name, err)
			}
		}
	}
	if missing := f.needed &^ seen; missing != 0 {
		return seen, v.wrong("without %s", strings.Join(f.names(missing), ", "))
	}
	return seen, nil
}

// find returns the number of the field with a name.
func (f *fields[T]) find(name value) (int, bool) {
	text := name.text[1 : len(name.text)-1]
	if i, ok := f.index[string(text)]; ok {
		return i, true
	}
	i, ok := f.index[unquote(text)]
	return i, ok
}

// has reports whether a field was among those seen.
func (f *fields[T]) has(seen uint64, name string) bool { return seen&(1<<f.index[name]) != 0 }

// names returns the names of fields, in order.
func (f *fields[T]) names(which uint64) (names []string) {
	for i := range f.list {
		if which&(1<<i) != 0 {
			names = append(names, f.list[i].name)
		}
	}
	slices.Sort(names)
	return names
}

// inside says in which part of a record a fault is.
func inside(part string, err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return &fault{f.at, part + ": " + f.text}
	}
	return err
}

// integer sets a number that must be whole and fit.
func integer[T any, N ~int | ~int32 | ~int64 | ~uint32 | ~uint64](at func(*T) *N) setter[T] {
	return func(_ *decoder, into *T, v value) error {
		w, err := v.whole()
		if err != nil {
			return err
		}
		n := N(w.abs)
		back := uint64(n)
		if w.neg {
			n = -n
			back = uint64(-int64(n))
		}
		if back != w.abs || w.neg != (n < 0) {
			return v.wrong("%s is too large or too small", v.excerpt())
		}
		*at(into) = n
		return nil
	}
}

// unknownTime is what times are set to that are not known.
const unknownTime trace.Micros = -1

// instant sets a time that may be that which the original writes when it knows
// none.
func instant[T any](at func(*T) *trace.Micros) setter[T] {
	set := integer(at)
	return func(d *decoder, into *T, v value) error {
		if w, err := v.whole(); err == nil && w == (whole{abs: math.MaxUint64}) {
			d.notes.Add(noteUnknownTime, 1)
			*at(into) = unknownTime
			return nil
		}
		return set(d, into, v)
	}
}

// wrapped sets a number of 32 bits with a sign, which the original writes
// without: -1 may be 2^32-1 or 2^64-1.
func wrapped[T any, N ~int32](at func(*T) *N) setter[T] {
	set := integer(at)
	return func(d *decoder, into *T, v value) error {
		w, err := v.whole()
		if err == nil && !w.neg && (w.abs > math.MaxInt32 && w.abs <= math.MaxUint32 || w.abs >= 1<<64-1<<31) {
			*at(into) = N(int32(uint32(w.abs)))
			return nil
		}
		return set(d, into, v)
	}
}

// float sets a number.
func float[T any](at func(*T) *float64) setter[T] {
	return func(_ *decoder, into *T, v value) (err error) {
		*at(into), err = v.float()
		return err
	}
}

// boolean sets a truth value.
func boolean[T any](at func(*T) *bool) setter[T] {
	return func(_ *decoder, into *T, v value) error {
		*at(into) = v.text[0] == 't'
		if v.text[0] != 't' && v.text[0] != 'f' {
			return v.wrong("%s is neither true nor false", v.excerpt())
		}
		return nil
	}
}

// text sets a text that few records share.
func text[T any](at func(*T) *string) setter[T] {
	return func(d *decoder, into *T, v value) (err error) {
		*at(into), err = d.text(v)
		return err
	}
}

// name sets a text that many records share.
func name[T any](at func(*T) *string) setter[T] {
	return func(d *decoder, into *T, v value) (err error) {
		*at(into), err = d.name(v)
		return err
	}
}

// list sets a list of objects.
func list[T, E any](f *fields[E], at func(*T) *[]E) setter[T] {
	return func(d *decoder, into *T, v value) error {
		if !v.isArray() {
			return v.wrong("%s is not an array", v.excerpt())
		}
		all := []E{}
		for v := range v.elements() {
			var e E
			if _, err := f.read(d, v, &e); err != nil {
				return inside(fmt.Sprint(len(all)), err)
			}
			all = append(all, e)
		}
		*at(into) = all
		return nil
	}
}

// object sets a part that is an object of its own.
func object[T, E any](f *fields[E], set func(*T, E)) setter[T] {
	return func(d *decoder, into *T, v value) error {
		var e E
		if _, err := f.read(d, v, &e); err != nil {
			return err
		}
		set(into, e)
		return nil
	}
}

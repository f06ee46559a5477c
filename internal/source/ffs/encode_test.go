package ffs_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

func TestDescriptionIDOfRecordedFormats(t *testing.T) {
	for _, run := range recordedBP5 {
		for _, e := range metametadata(t, run) {
			if got := ffs.DescriptionID(e.rep); got != e.id {
				t.Errorf("%s: got %v, want %v", run, got, e.id)
			}
		}
	}
}

// messageFormat is a format with all that can be encoded.
func messageFormat(t testing.TB) *ffs.Format {
	t.Helper()
	rep := ffs.Describe(
		&ffs.Format{Name: "message", Size: 88, Fields: []ffs.Field{
			{Name: "long", Type: "integer", Size: 8, Offset: 0},
			{Name: "short", Type: "unsigned integer", Size: 2, Offset: 8},
			{Name: "byte", Type: "integer", Size: 1, Offset: 10},
			{Name: "n", Type: "integer", Size: 4, Offset: 12},
			{Name: "text", Type: "string", Size: 8, Offset: 16},
			{Name: "words", Type: "integer[n]", Size: 4, Offset: 24},
			{Name: "bytes", Type: "char[n]", Size: 1, Offset: 32},
			{Name: "inside", Type: "part", Size: 16, Offset: 40},
			{Name: "parts", Type: "part[n]", Size: 16, Offset: 56},
			{Name: "pointers", Type: "(*part)[n]", Size: 16, Offset: 64},
			{Name: "next", Type: "*part", Size: 16, Offset: 72},
			{Name: "pair", Type: "integer[2]", Size: 4, Offset: 80},
		}},
		&ffs.Format{Name: "part", Size: 16, Fields: []ffs.Field{
			{Name: "number", Type: "integer", Size: 8, Offset: 0}, {Name: "name", Type: "string", Size: 8, Offset: 8},
		}},
	)
	f, err := ffs.ParseFormat(ffs.DescriptionID(rep), rep)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func part(number uint64, name string) ffs.Values { return ffs.Values{"number": number, "name": name} }

func TestEncodeDecode(t *testing.T) {
	f := messageFormat(t)
	for _, want := range []ffs.Values{
		{},
		{"long": uint64(1) << 63, "short": uint64(65535), "byte": uint64(7), "text": "Grüße", "pair": []uint64{1, 2}},
		{
			"n": uint64(3), "words": []uint64{1, 2, 1<<31 - 1}, "bytes": []byte("xyz"), "inside": part(1, "one"),
			"parts":    []ffs.Values{part(1, "a"), part(2, ""), part(3, "ccc")},
			"pointers": []ffs.Values{part(4, "d"), part(5, "e"), part(6, "f")}, "next": part(7, strings.Repeat("long", 1000)),
		},
	} {
		b, err := f.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := ffs.BlockID(b); err != nil || id != f.ID {
			t.Errorf("the record has the id %v, error %v", id, err)
		}
		r, err := f.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range want {
			if got := valueOf(t, r, name, v); !reflect.DeepEqual(got, v) {
				t.Errorf("%s: got %v, want %v", name, got, v)
			}
		}
	}
}

// valueOf reads a field as the type of v.
func valueOf(t *testing.T, r ffs.Record, name string, v any) (got any) {
	t.Helper()
	fd := r.Format.Field(name)
	var err error
	switch v.(type) {
	case uint64:
		got, err = r.Uint(fd)
	case string:
		got, err = r.Text(fd)
	case []byte:
		got, err = r.Bytes(fd)
	case []uint64:
		got, err = r.Uints(nil, fd)
	case ffs.Values:
		got = partsOf(t, r, fd)[0]
	case []ffs.Values:
		got = partsOf(t, r, fd)
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return got
}

func partsOf(t *testing.T, r ffs.Record, fd *ffs.Field) (all []ffs.Values) {
	t.Helper()
	list, err := r.Structs(fd)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Len() {
		p, ok, err := list.At(i)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		n, err1 := p.Uint(p.Format.Field("number"))
		s, err2 := p.Text(p.Format.Field("name"))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		all = append(all, part(n, s))
	}
	return all
}

func TestEncodeRefusesWrongValues(t *testing.T) {
	f := messageFormat(t)
	g := func(v ffs.Values, want string) {
		t.Helper()
		if _, err := f.Encode(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got the error %v, want one with %q", v, err, want)
		}
	}
	g(ffs.Values{"nothing": uint64(1)}, "have no field")
	g(ffs.Values{"long": "text"}, "a string where")
	g(ffs.Values{"text": uint64(1)}, "a number where")
	g(ffs.Values{"long": 1}, "type int")
	g(ffs.Values{"n": uint64(2), "words": []uint64{1}}, "1 values, want 2")
	g(ffs.Values{"words": []uint64{1}}, "1 values, want 0")
	g(ffs.Values{"n": "three", "words": []uint64{1}}, `field "`)
	g(ffs.Values{"n": uint64(1), "words": []byte{1}}, "bytes where")
	g(ffs.Values{"long": part(1, "")}, "a structure where")
	g(ffs.Values{"inside": part(1, ""), "parts": []ffs.Values{{"x": uint64(1)}}, "n": uint64(1)}, "have no field")
}

func TestDescribeEqualsLibrary(t *testing.T) {
	structs := []structure{
		{"top", 24, []field{{"n", "integer", 8, 0}, {"list", "sub[n]", 16, 8}, {"text", "string", 8, 16}}},
		{"sub", 16, []field{{"number", "float", 8, 0}, {"name", "string", 8, 8}}},
	}
	var formats []*ffs.Format
	for _, s := range structs {
		f := &ffs.Format{Name: s.name, Size: int(s.size)}
		for _, fd := range s.fields {
			f.Fields = append(f.Fields, ffs.Field{Name: fd.name, Type: fd.typ, Size: int(fd.size), Offset: int(fd.offset)})
		}
		formats = append(formats, f)
	}
	if got, want := ffs.Describe(formats...), describe(structs...); !bytes.Equal(got, want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	if got, want := ffs.DescriptionID(describe(structs...)), formatID(describe(structs...)); got != want {
		t.Errorf("got the id %v, want %v", got, want)
	}
}

// FuzzEncode encodes a record with any values and reads it back.
func FuzzEncode(f *testing.F) {
	f.Add(uint64(1), "text", []byte{1, 2, 3}, uint64(9), "name")
	f.Fuzz(func(t *testing.T, long uint64, text string, list []byte, number uint64, name string) {
		fm := messageFormat(t)
		text, name = strings.ReplaceAll(text, "\x00", ""), strings.ReplaceAll(name, "\x00", "")
		want := ffs.Values{"long": long, "text": text, "inside": part(number, name)}
		if len(list) > 0 {
			want["n"], want["bytes"] = uint64(len(list)), list
		}
		b, err := fm.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		r, err := fm.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		for field, v := range want {
			if got := valueOf(t, r, field, v); fmt.Sprint(got) != fmt.Sprint(v) {
				t.Errorf("%s: got %v, want %v", field, got, v)
			}
		}
	})
}

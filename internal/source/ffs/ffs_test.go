package ffs_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// The worked example of the format document: TAU's metadata without messages.
// The recorded GPU run begins with this very format.
func TestExampleFormat(t *testing.T) {
	f := parse(t, workedExample(t))
	if f.Name != "MetaData" || f.Size != 256 {
		t.Errorf("got structure %q of %d bytes, want \"MetaData\" of 256", f.Name, f.Size)
	}
	want := []string{
		"BitFieldCount integer 8@0", "BitField integer[BitFieldCount] 8@8", "DataBlockSize integer 8@16",
		"BPg_program_count integer 4@24", "BPg_comm_rank_count integer 4@28", "BPg_thread_count integer 4@32",
		"BPg_event_type_count integer 4@36", "BPg_timer_count integer 4@40", "BPg_timer_event_count unsigned integer 8@48",
		"BPg_counter_count integer 4@56", "BPg_counter_event_count unsigned integer 8@64", "BPg_comm_count unsigned integer 8@72",
		"BPG_8_8_event_timestamps MetaArrayMM8 64@128", "BPG_8_8_counter_values MetaArrayMM8 64@192",
	}
	if got := list(f); !slices.Equal(got, want) {
		t.Errorf("fields:\n got %q\nwant %q", got, want)
	}
	sub := f.Field("BPG_8_8_event_timestamps").Sub
	if sub == nil {
		t.Fatal("event_timestamps has no structure")
	}
	wantSub := []string{
		"Dims integer 8@0", "BlockCount integer 8@8", "DBCount integer 8@16",
		"Shape integer[Dims] 8@24", "Count integer[DBCount] 8@32", "Offset integer[DBCount] 8@40",
		"DataBlockLocation integer[BlockCount] 8@48", "MinMax char[16][BlockCount] 1@56",
	}
	if got := list(sub); !slices.Equal(got, wantSub) {
		t.Errorf("fields of %s:\n got %q\nwant %q", sub.Name, got, wantSub)
	}
}

func TestExampleRecord(t *testing.T) {
	f := parse(t, workedExample(t))
	data := make([]byte, 408)
	put := func(at int, values ...uint64) {
		for i, v := range values {
			binary.LittleEndian.PutUint64(data[at+8*i:], v)
		}
	}
	put(0, 1, 256, 336)
	for i, v := range []uint32{1, 1, 1, 4, 2} {
		binary.LittleEndian.PutUint32(data[24+4*i:], v)
	}
	put(48, 4)
	binary.LittleEndian.PutUint32(data[56:], 2)
	put(64, 3, 0)
	put(128, 2, 1, 2, 264, 280, 296, 312, 320)
	put(192, 2, 1, 2, 336, 352, 368, 384, 392)
	copy(data[256:], unhex(t, "ff 07"))
	put(264, 4, 6, 4, 6, 0, 0, 0, 0)
	copy(data[328:], unhex(t, "21 40 1e 18 24 0a 06 00"))
	put(336, 3, 6, 3, 6, 0, 0, 0xc0)
	head := unhex(t, "02 00 01 0b e4 5c ac b3 a5 dc 2d 46 98 01 00 00 00 00 00 00 00 00 00 00")
	id, err := ffs.BlockID(head)
	if err != nil || id != f.ID {
		t.Fatalf("the record is in format %v (%v), want %v", id, err, f.ID)
	}
	r := decode(t, f, append(head, data...))
	for name, want := range map[string]uint64{
		"BitFieldCount": 1, "DataBlockSize": 336, "BPg_program_count": 1, "BPg_comm_rank_count": 1, "BPg_thread_count": 1,
		"BPg_event_type_count": 4, "BPg_timer_count": 2, "BPg_timer_event_count": 4, "BPg_counter_count": 2,
		"BPg_counter_event_count": 3, "BPg_comm_count": 0,
	} {
		if got, err := r.Uint(f.Field(name)); err != nil || got != want {
			t.Errorf("%s: got %d (%v), want %d", name, got, err, want)
		}
	}
	wantUints(t, r, "BitField", 0x7ff)
	a := structAt(t, r, "BPG_8_8_event_timestamps", 0)
	wantUints(t, a, "Shape", 4, 6)
	wantUints(t, a, "Count", 4, 6)
	wantUints(t, a, "Offset", 0, 0)
	wantUints(t, a, "DataBlockLocation", 0)
	wantMinMax := binary.LittleEndian.AppendUint64(make([]byte, 8), 1700000000000033)
	if got, err := a.Bytes(a.Format.Field("MinMax")); err != nil || !bytes.Equal(got, wantMinMax) {
		t.Errorf("MinMax: got %x (%v), want %x", got, err, wantMinMax)
	}
	c := structAt(t, r, "BPG_8_8_counter_values", 0)
	wantUints(t, c, "Shape", 3, 6)
	wantUints(t, c, "DataBlockLocation", 192)
}

func TestExampleAttributes(t *testing.T) {
	entries := metametadata(t, "gpu-BP5")
	if got := hex.EncodeToString(entries[1].id[:]); got != "0200008d72b6d67f54032261" {
		t.Fatalf("the second format is %s", got)
	}
	f := parse(t, entries[1])
	data := make([]byte, 0x140, 0x200)
	copy(data, words(0, 0, 11, 32)) // no others, eleven strings at 32, of which ten are left out here
	copy(data[32:], words(0x128, 1, 0x138))
	copy(data[0x128:], ">program_name 0")
	copy(data[0x138:], words(0x140))
	data = append(data, "/usr/bin/prog0\x00"...)
	r := decode(t, f, encode(f.ID, data))
	others, err := r.Structs(f.Field("PrimAttrs"))
	if err != nil || others.Len() != 0 {
		t.Errorf("got %d PrimAttrs (%v), want none", others.Len(), err)
	}
	all, err := r.Structs(f.Field("StrAttrs"))
	if err != nil || all.Len() != 11 {
		t.Fatalf("got %d StrAttrs (%v), want 11", all.Len(), err)
	}
	a := structAt(t, r, "StrAttrs", 0)
	if got, err := a.Text(a.Format.Field("name")); err != nil || got != ">program_name 0" {
		t.Errorf("got name %q (%v)", got, err)
	}
	if got, err := a.Texts(nil, a.Format.Field("Values")); err != nil || !slices.Equal(got, []string{"/usr/bin/prog0"}) {
		t.Errorf("got values %q (%v)", got, err)
	}
}

// ADIOS2 computes the id of a format from its description; that the recorded
// ids come out shows that the descriptions are taken from the right bytes.
func TestRecordedFormatIDsAreHashes(t *testing.T) {
	n := 0
	for _, run := range recordedBP5 {
		for _, e := range metametadata(t, run) {
			n++
			if got := formatID(e.rep); got != e.id {
				t.Errorf("%s: format id %v, its description gives %v", run, e.id, got)
			}
			if f := parse(t, e); f.ID != e.id {
				t.Errorf("%s: parsed format has id %v, want %v", run, f.ID, e.id)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d formats were looked at", n)
	}
}

// The descriptions that these tests build are those that ADIOS2 builds: they
// hash to the ids that SST uses for its messages.
func TestBuiltDescriptionsHaveIDsOfADIOS2(t *testing.T) {
	f := func(want string, s structure) {
		t.Helper()
		if got := formatID(describe(s)).String(); got != want {
			t.Errorf("%s: got %s, want %s", s.name, got, want)
		}
	}
	f("02000019d952f615b60dcc2a", structure{"ReaderActivate", 8, []field{{"WSR_Stream", "integer", 8, 0}}})
	f("020000210ee2118818d8303a", structure{"ReleaseTimestep", 16, []field{{"WSR_Stream", "integer", 8, 0}, {"Timestep", "integer", 8, 8}}})
	f("0200001858bdd7b4b95d2179", structure{"ReaderClose", 8, []field{{"WSR_Stream", "integer", 8, 0}}})
}

// One field of each form that a type can take, with the value in the record.
func TestTypes(t *testing.T) {
	s := structure{"S", 8, []field{{"v", "integer", 8, 0}}}
	f := func(typ string, size int32, inline, rest []byte, want string) {
		t.Helper()
		width := int32(len(inline))
		top := structure{"top", 24 + width, []field{
			{"n", "integer", 8, 0},
			{"m", "integer", 8, 8},
			{"pointer", "string", 8, 16},
			{"x", typ, size, 24},
		}}
		fm := parse(t, entryOf(top, s))
		data := slices.Concat(words(2, 3, 0), inline, rest)
		if got := render(decode(t, fm, encode(fm.ID, data)), fm.Field("x")); got != want {
			t.Errorf("%q: got %s, want %s", typ, got, want)
		}
	}
	f("integer", 4, []byte{0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0}, nil, "uint fffffffffffffffe raw feffffff")
	f("unsigned integer", 4, []byte{0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0}, nil, "uint fffffffe raw feffffff")
	f("Unsigned", 2, []byte{0xfe, 0xff}, nil, "uint fffe raw feff")
	f("enumeration", 2, []byte{0xfe, 0xff}, nil, "uint fffffffffffffffe raw feff")
	f("boolean", 1, []byte{0xff}, nil, "uint ff raw ff")
	f("integer", 1, []byte{0x80}, nil, "uint ffffffffffffff80 raw 80")
	f("char", 1, []byte{'c'}, nil, "uint 63 raw 63")
	f("float", 4, []byte{0, 0, 0x80, 0x3f}, nil, "uint 3f800000 raw 0000803f")
	f("complex4", 8, words(7), nil, "uint 7 raw 0700000000000000")
	f("integer[2]", 2, []byte{1, 0, 0xff, 0xff}, nil, "uints [1 ffffffffffffffff] bytes 0100ffff")
	f("integer[2][2]", 1, []byte{1, 2, 3, 4}, nil, "uints [1 2 3 4] bytes 01020304")
	f("integer[n]", 8, words(32), words(5, 6), "uints [5 6] bytes 05000000000000000600000000000000")
	f("char[2][n]", 1, words(32), []byte("abcd"), "uints [61 62 63 64] bytes 61626364")
	f("char[n][m]", 1, words(32), []byte("abcdef"), "uints [61 62 63 64 65 66] bytes 616263646566")
	f("integer[n]", 8, words(0), nil, "uints [] bytes ")
	f("string", 8, words(32), []byte("text\x00"), `text "text"`)
	f("string", 8, words(0), nil, `text ""`)
	f("string[n]", 8, words(32), append(words(48, 50), "a\x00b\x00"...), `texts ["a" "b"] bytes 30000000000000003200000000000000`)
	f("S", 8, words(9), nil, "raw 0900000000000000 bytes 0900000000000000 structs [9]")
	f("S[2]", 8, words(8, 9), nil, "bytes 08000000000000000900000000000000 structs [8 9]")
	f("S[n]", 8, words(32), words(8, 9), "bytes 08000000000000000900000000000000 structs [8 9]")
	f("*S", 8, words(32), words(9), "bytes 0900000000000000 structs [9]")
	f("*(S[n])", 8, words(32), words(8, 9), "bytes 08000000000000000900000000000000 structs [8 9]")
	f("(*S)[n]", 8, words(32), words(0, 48, 7), "bytes 00000000000000003000000000000000 structs [null 7]")
}

func TestTruncatedFormatIsRefused(t *testing.T) {
	for _, e := range metametadata(t, "ring-BP5") {
		inner := int(binary.BigEndian.Uint16(e.rep)) // the rest is padding
		for n := range e.rep {
			_, err := ffs.ParseFormat(e.id, e.rep[:n])
			if n >= inner {
				if err != nil {
					t.Errorf("without %d bytes of padding: %v", len(e.rep)-n, err)
				}
				continue
			}
			if offset, ok := place(err); !ok || offset < 0 || offset > int64(n) {
				t.Fatalf("cut at %d of %d bytes: got %v, want an *ffs.Error within them", n, inner, err)
			}
		}
	}
}

// The end is missing, and the length in the description matches.
func TestFormatWithShortLengthIsRefused(t *testing.T) {
	for _, e := range metametadata(t, "ring-BP5") {
		inner := int(binary.BigEndian.Uint16(e.rep))
		for n := range inner {
			rep := slices.Clone(e.rep[:n])
			if n >= 2 {
				binary.BigEndian.PutUint16(rep, uint16(n))
			}
			_, err := ffs.ParseFormat(e.id, rep)
			if offset, ok := place(err); !ok || offset < 0 || offset > int64(n) {
				t.Fatalf("shortened to %d of %d bytes: got %v, want an *ffs.Error within them", n, inner, err)
			}
		}
	}
}

func TestTruncatedRecordIsRefused(t *testing.T) {
	f := parse(t, workedExample(t))
	block := encode(f.ID, make([]byte, 408))
	for n := range block {
		_, err := f.Decode(block[:n])
		if offset, ok := place(err); !ok || offset > int64(n) && offset > 12 {
			t.Fatalf("cut at %d of %d bytes: got %v, want an *ffs.Error within them", n, len(block), err)
		}
	}
	if _, err := f.Decode(append(block, 0, 0, 0)); err != nil {
		t.Errorf("with padding: %v", err)
	}
	for n := range 12 {
		if _, err := ffs.BlockID(block[:n]); err == nil {
			t.Errorf("the id of a record was taken from %d bytes", n)
		}
	}
}

func TestRecordWithWrongLengthIsRefused(t *testing.T) {
	f := parse(t, workedExample(t))
	for _, length := range []uint64{0, 1, 255, 409, 1 << 31, 1<<32 + 408, 1 << 63, math.MaxUint64 - 23, math.MaxUint64} {
		block := encode(f.ID, make([]byte, 408))
		binary.LittleEndian.PutUint64(block[12:], length)
		if _, err := f.Decode(block); !isError(err) {
			t.Errorf("length %d: got %v, want an *ffs.Error", length, err)
		}
	}
}

// A record without pointers has no length field and a shorter header.
func TestRecordWithoutPointers(t *testing.T) {
	f := parse(t, entryOf(structure{"plain", 8, []field{{"x", "integer", 8, 0}}}))
	block := slices.Concat(f.ID[:], make([]byte, 4), words(42))
	if got, err := decode(t, f, block).Uint(f.Field("x")); err != nil || got != 42 {
		t.Errorf("got %d (%v), want 42", got, err)
	}
	if _, err := f.Decode(block[:len(block)-1]); !isError(err) {
		t.Errorf("one byte short: got %v, want an *ffs.Error", err)
	}
}

func TestInconsistentStructuresAreRefused(t *testing.T) {
	good := func() []byte {
		return describe(structure{"top", 16, []field{{"n", "integer", 8, 0}, {"x", "integer[n]", 8, 8}}})
	}
	f := func(what string, at int, patch ...byte) {
		t.Helper()
		rep := good()
		copy(rep[at:], patch)
		if _, err := ffs.ParseFormat(ffs.ID{}, rep); !isError(err) {
			t.Errorf("%s: got %v, want an *ffs.Error", what, err)
		}
	}
	if _, err := ffs.ParseFormat(ffs.ID{}, good()); err != nil {
		t.Fatal(err)
	}
	const header, entries, second = 8, 8 + 28, 8 + 28 + 16
	f("more structures than there are", 4, 1)
	f("structure of no length", header, 0, 0)
	f("structure shorter than its header", header, 0, 27)
	f("structure longer than all", header, 0xff, 0xff)
	f("structure of gigabytes", header+24, 0xff, 0xff)
	f("name of the structure outside", header+4, 0xff, 0xff, 0xff, 0xff)
	f("too many fields", header+8, 3)
	f("2^32-1 fields", header+8, 0xff, 0xff, 0xff, 0xff)
	f("negative size of the structure", header+12, 0xff, 0xff, 0xff, 0xff)
	f("structure too small for its fields", header+12, 15)
	f("header that reaches into the names", header+17, 0xff)
	f("name of a field outside", entries, 0xff, 0xff, 0xff, 0x7f)
	f("type of a field outside", entries+4, 0, 0, 0, 0x80)
	f("negative size of a field", entries+8, 0xff, 0xff, 0xff, 0xff)
	f("huge size of a field", entries+8, 0xff, 0xff, 0xff, 0x7f)
	f("negative size of an array's elements", second+8, 0xff, 0xff, 0xff, 0xff)
	f("negative position of a field", entries+12, 0xff, 0xff, 0xff, 0xff)
	f("position behind the structure", second+12, 9)

	g := func(what string, structs ...structure) {
		t.Helper()
		if _, err := ffs.ParseFormat(ffs.ID{}, describe(structs...)); !isError(err) {
			t.Errorf("%s: got %v, want an *ffs.Error", what, err)
		}
	}
	g("length in an unknown field", structure{"top", 8, []field{{"x", "integer[n]", 8, 0}}})
	g("bracket without end", structure{"top", 8, []field{{"x", "integer[8", 1, 0}}})
	g("parenthesis without end", structure{"top", 8, []field{{"x", "(*S[8]", 8, 0}}})
	g("array larger than the structure", structure{"top", 8, []field{{"x", "char[9]", 1, 0}}})
	g("array of 2^93 bytes", structure{"top", 8, []field{{"x", "char[2147483647][2147483647][2147483647]", 1, 0}}})
	g("nested structure larger than its own", structure{"top", 8, []field{{"x", "S", 8, 0}}}, structure{"S", 9, nil})
}

// Names may lie anywhere in a description, so many fields could share a long
// one, each with a copy of it.
func TestOverlappingNamesAreBounded(t *testing.T) {
	const fields = 1000
	long := strings.Repeat("x", 16*fields)
	top := structure{"top", 8, []field{{long, "char", 1, 0}}}
	for range fields - 1 {
		top.fields = append(top.fields, field{"", "char", 1, 0})
	}
	rep := describe(top)
	if _, err := ffs.ParseFormat(ffs.ID{}, rep); err != nil {
		t.Fatalf("one long name: %v", err)
	}
	for i := range fields { // all have the name and the type of the first
		copy(rep[8+28+16*i:][:8], rep[8+28:])
	}
	if _, err := ffs.ParseFormat(ffs.ID{}, rep); !isError(err) {
		t.Errorf("%d names of %d bytes in a description of %d: got %v, want an *ffs.Error", fields, len(long), len(rep), err)
	}
}

func TestPointersOutsideRecordAreErrors(t *testing.T) {
	fm := parse(t, entryOf(
		structure{"top", 56, []field{
			{"n", "integer", 8, 0},
			{"array", "integer[n]", 8, 8},
			{"text", "string", 8, 16},
			{"texts", "string[n]", 8, 24},
			{"list", "S[n]", 16, 32},
			{"one", "*S", 16, 40},
			{"each", "(*S)[n]", 16, 48},
		}},
		structure{"S", 16, []field{{"v", "integer", 8, 0}, {"w", "integer", 8, 8}}},
	))
	const size = 56 + 32
	access := func(r ffs.Record, name string) (err error) {
		fd := fm.Field(name)
		switch name {
		case "array":
			_, err = r.Uints(nil, fd)
			if _, other := r.Bytes(fd); (other == nil) != (err == nil) {
				t.Errorf("Uints returns %v, Bytes returns %v", err, other)
			}
		case "text":
			_, err = r.Text(fd)
		case "texts":
			_, err = r.Texts(nil, fd)
		default:
			var all ffs.Structs
			all, err = r.Structs(fd)
			for i := 0; err == nil && i < all.Len(); i++ {
				_, _, err = all.At(i)
			}
		}
		return err
	}
	// The last position from which two elements still fit.
	fits := map[string]uint64{"array": size - 16, "text": size - 1, "texts": size - 16, "list": size - 32, "one": size - 16, "each": size - 16}
	for name, last := range fits {
		for _, at := range []uint64{1, last, last + 1, size, size + 1, 1 << 31, 1 << 32, 1 << 63, math.MaxUint64 - 15, math.MaxUint64} {
			data := make([]byte, size)
			copy(data, words(2))
			copy(data[fm.Field(name).Offset:], words(at))
			err := access(decode(t, fm, encode(fm.ID, data)), name)
			offset, bad := place(err)
			if at > last && (!bad || offset != int64(24+fm.Field(name).Offset)) || at == last && err != nil {
				t.Errorf("%s at %d of %d bytes: %v", name, at, size, err)
			}
		}
		// The elements of texts and each are pointers.
		for _, at := range []uint64{size, size + 1, 1 << 63, math.MaxUint64} {
			data := make([]byte, size)
			copy(data, words(2))
			copy(data[fm.Field(name).Offset:], words(56))
			copy(data[56+8:], words(at))
			err := access(decode(t, fm, encode(fm.ID, data)), name)
			offset, bad := place(err)
			if want := name == "texts" || name == "each"; bad != want || bad && offset != int64(24+fm.Field(name).Offset) {
				t.Errorf("%s with the element %d: got %v, want an error at its field: %v", name, at, err, want)
			}
		}
	}
}

func TestImpossibleLengthsAreErrors(t *testing.T) {
	fm := parse(t, entryOf(structure{"top", 40, []field{
		{"n", "integer", 8, 0},
		{"x", "integer[n]", 8, 8},
		{"square", "integer[n][n]", 8, 16},
		{"texts", "string[n]", 8, 24},
		{"each", "(*S)[n]", 8, 32},
	}}, structure{"S", 8, nil}))
	for _, n := range []uint64{9, 1 << 31, 1 << 32, 1 << 60, 1 << 61, 1 << 63, math.MaxUint64 - 7, math.MaxUint64} {
		r := decode(t, fm, encode(fm.ID, slices.Concat(words(n, 40, 40, 40, 40), make([]byte, 64))))
		if got, err := r.Uints(nil, fm.Field("x")); !isError(err) {
			t.Errorf("%d numbers: got %d (%v)", n, len(got), err)
		}
		if got, err := r.Bytes(fm.Field("square")); !isError(err) {
			t.Errorf("%d times %d numbers: got %d bytes (%v)", n, n, len(got), err)
		}
		if got, err := r.Texts(nil, fm.Field("texts")); !isError(err) {
			t.Errorf("%d strings: got %d (%v)", n, len(got), err)
		}
		if got, err := r.Structs(fm.Field("each")); !isError(err) {
			t.Errorf("%d structures: got %d (%v)", n, got.Len(), err)
		}
	}
}

// Pointers may all lead to the same bytes. What is taken out of a record is
// bounded by its size nevertheless.
func TestOverlappingValuesAreBounded(t *testing.T) {
	const n, size = 1000, 8 * 1000
	fm := parse(t, entryOf(structure{"top", 24, []field{{"n", "integer", 8, 0}, {"texts", "string[n]", 8, 8}, {"bytes", "char[n]", 1, 16}}}))
	data := words(n, 24, 24+size)
	for range n {
		data = append(data, words(24+size)...)
	}
	data = append(data, bytes.Repeat([]byte("x"), size)...)
	data = append(data, 0)
	r := decode(t, fm, encode(fm.ID, data))
	got, err := r.Texts(nil, fm.Field("texts"))
	total := 0
	for _, s := range got {
		total += len(s)
	}
	if !isError(err) || total > 16*len(data)+64 {
		t.Errorf("%d strings in the same %d bytes of a record of %d: got %d bytes (%v)", n, size, len(data), total, err)
	}

	bounded := func(what string, read func(ffs.Record) (int, error)) {
		t.Helper()
		r, total := decode(t, fm, encode(fm.ID, data)), 0
		for range 100 * len(data) {
			n, err := read(r)
			if total += n; total > 16*len(data)+64 {
				t.Errorf("%s: %d bytes came out of a record of %d", what, total, len(data))
				return
			}
			if err != nil {
				return
			}
		}
		t.Errorf("%s: no end", what)
	}
	bounded("the same numbers again and again", func(r ffs.Record) (int, error) {
		v, err := r.Uints(nil, fm.Field("bytes"))
		return 8 * len(v), err
	})
	bounded("the same bytes again and again", func(r ffs.Record) (int, error) {
		v, err := r.Bytes(fm.Field("bytes"))
		return len(v), err
	})
	bounded("the same value again and again", func(r ffs.Record) (int, error) {
		v, err := r.Raw(fm.Field("n"))
		return len(v), err
	})
}

// A linked list is a structure that points to its own kind; damage can close
// it to a ring. The caller decides how far to follow it.
func TestRecursiveStructures(t *testing.T) {
	fm := parse(t, entryOf(
		structure{"top", 8, []field{{"first", "*Node", 16, 0}}},
		structure{"Node", 16, []field{{"v", "integer", 8, 0}, {"Next", "*Node", 16, 8}}},
	))
	walk := func(data []byte, limit int) (values []uint64) {
		r := decode(t, fm, encode(fm.ID, data))
		for name := "first"; len(values) < limit; name = "Next" {
			all, err := r.Structs(r.Format.Field(name))
			if err != nil {
				t.Fatal(err)
			}
			if all.Len() == 0 {
				break
			}
			if r, _, err = all.At(0); err != nil {
				t.Fatal(err)
			}
			v, err := r.Uint(r.Format.Field("v"))
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
		return values
	}
	if got := walk(words(8, 71, 24, 72, 0), 10); !slices.Equal(got, []uint64{71, 72}) {
		t.Errorf("list: got %v, want [71 72]", got)
	}
	if got := walk(words(8, 71, 24, 72, 8), 5); !slices.Equal(got, []uint64{71, 72, 71, 72, 71}) {
		t.Errorf("ring: got %v, want 71 and 72 in turns", got)
	}
}

// Nothing stops a description from putting a structure into itself. There is
// always one more inside, at the same place.
func TestStructureInsideItself(t *testing.T) {
	fm, err := ffs.ParseFormat(ffs.ID{}, describe(
		structure{"top", 8, []field{{"s", "S", 8, 0}}},
		structure{"S", 8, []field{{"v", "integer", 8, 0}, {"s", "S", 8, 0}}},
	))
	if err != nil {
		if !isError(err) {
			t.Errorf("got %v, want an *ffs.Error or none", err)
		}
		return
	}
	r, err := fm.Decode(slices.Concat(fm.ID[:], make([]byte, 4), words(5)))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		r = structAt(t, r, "s", 0)
	}
	if got, err := r.Uint(r.Format.Field("v")); err != nil || got != 5 {
		t.Errorf("got %d (%v), want 5", got, err)
	}
}

func TestAccessorsRefuseOtherTypes(t *testing.T) {
	fm := parse(t, entryOf(structure{"top", 48, []field{
		{"n", "integer", 8, 0},
		{"odd", "integer", 3, 8},
		{"array", "integer[n]", 8, 16},
		{"text", "string", 8, 24},
		{"s", "S", 8, 32},
		{"each", "(*S)[n]", 8, 40},
	}}, structure{"S", 8, nil}))
	r := decode(t, fm, encode(fm.ID, words(0, 0, 0, 0, 0, 0)))
	accessors := map[string]func(*ffs.Field) error{
		"Uint":    func(fd *ffs.Field) error { _, err := r.Uint(fd); return err },
		"Raw":     func(fd *ffs.Field) error { _, err := r.Raw(fd); return err },
		"Uints":   func(fd *ffs.Field) error { _, err := r.Uints(nil, fd); return err },
		"Text":    func(fd *ffs.Field) error { _, err := r.Text(fd); return err },
		"Texts":   func(fd *ffs.Field) error { _, err := r.Texts(nil, fd); return err },
		"Structs": func(fd *ffs.Field) error { _, err := r.Structs(fd); return err },
	}
	for accessor, fields := range map[string]string{
		"Uint": "odd array text s each", "Raw": "array text each", "Uints": "odd text s each",
		"Text": "n odd array s each", "Texts": "n odd array s each", "Structs": "n odd array text",
	} {
		for name := range strings.FieldsSeq(fields) {
			if err := accessors[accessor](fm.Field(name)); !isError(err) || !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Errorf("%s of %s: got %v, want an *ffs.Error that names the field", accessor, name, err)
			}
		}
	}
	if fm.Field("none") != nil {
		t.Error("there is a field of a name that was never given")
	}
}

func TestUnsupportedFormatsAreNamed(t *testing.T) {
	f := func(at int, value byte, want string) {
		t.Helper()
		rep := describe(structure{"top", 8, []field{{"x", "integer", 8, 0}}})
		rep[at] = value
		if _, err := ffs.ParseFormat(ffs.ID{}, rep); !errors.Is(err, ffs.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("byte %d = %d: got %v, want %q in it", at, value, err, want)
		}
	}
	f(2, 1, "big-endian")
	f(3, 1, "ADIOS 2.8")
	f(8+3, 1, "big-endian")
	f(8+16, 4, "4-byte pointers")
	f(8+22, 1, "column-major")
}

// ---- helpers ----

// recordedBP5 are the runs in testdata whose metadata are in FFS.
var recordedBP5 = []string{"ring-BP5", "ring-default", "ring-onefile-BP5", "burst", "gpu-BP5"}

// entry is one entry of mmd.0.
type entry struct {
	id  ffs.ID
	rep []byte
}

// metametadata returns the formats of the first dataset of a run.
func metametadata(tb testing.TB, run string) (entries []entry) {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(tracetest.Recorded(tb, run)[0], "mmd.0"))
	if err != nil {
		tb.Fatal(err)
	}
	for len(b) > 0 {
		idLen, repLen := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		if idLen != 12 {
			tb.Fatalf("%s: a format id of %d bytes", run, idLen)
		}
		entries = append(entries, entry{ffs.ID(b[16:]), b[28 : 28+repLen]})
		b = b[28+repLen:]
	}
	return entries
}

func workedExample(t *testing.T) entry {
	t.Helper()
	e := metametadata(t, "gpu-BP5")[0]
	if got := hex.EncodeToString(e.id[:]); got != "0200010be45cacb3a5dc2d46" {
		t.Fatalf("the first format is %s", got)
	}
	return e
}

func parse(t *testing.T, e entry) *ffs.Format {
	t.Helper()
	f, err := ffs.ParseFormat(e.id, e.rep)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func decode(t *testing.T, f *ffs.Format, block []byte) ffs.Record {
	t.Helper()
	r, err := f.Decode(block)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func structAt(t *testing.T, r ffs.Record, name string, i int) ffs.Record {
	t.Helper()
	all, err := r.Structs(r.Format.Field(name))
	if err != nil || i >= all.Len() {
		t.Fatalf("%s has %d structures (%v), want number %d", name, all.Len(), err, i)
	}
	s, ok, err := all.At(i)
	if err != nil || !ok {
		t.Fatalf("%s[%d]: there %v, %v", name, i, ok, err)
	}
	return s
}

func wantUints(t *testing.T, r ffs.Record, name string, want ...uint64) {
	t.Helper()
	if got, err := r.Uints(nil, r.Format.Field(name)); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: got %v (%v), want %v", name, got, err, want)
	}
}

// list returns the fields of a structure, one line each.
func list(f *ffs.Format) (lines []string) {
	for i := range f.Fields {
		fd := &f.Fields[i]
		lines = append(lines, fmt.Sprintf("%s %s %d@%d", fd.Name, fd.Type, fd.Size, fd.Offset))
	}
	return lines
}

// render returns the results of all accessors that accept the field.
func render(r ffs.Record, fd *ffs.Field) string {
	var parts []string
	add := func(err error, format string, args ...any) {
		if err == nil {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	if u, err := r.Uint(fd); err == nil {
		add(err, "uint %x", u)
	}
	if !fd.IsArray() {
		raw, err := r.Raw(fd)
		add(err, "raw %x", raw)
	}
	text, err := r.Text(fd)
	add(err, "text %q", text)
	single := len(parts) > 0 && fd.Kind != ffs.Struct
	if !single {
		uints, err := r.Uints(nil, fd)
		add(err, "uints %x", uints)
		texts, err := r.Texts(nil, fd)
		add(err, "texts %q", texts)
		b, err := r.Bytes(fd)
		add(err, "bytes %x", b)
	}
	if all, err := r.Structs(fd); err == nil {
		values := make([]string, 0, all.Len())
		for i := range all.Len() {
			s, ok, err := all.At(i)
			value := "null"
			if err != nil {
				value = err.Error()
			} else if ok {
				v, err := s.Uint(s.Format.Field("v"))
				value = fmt.Sprint(v)
				if err != nil {
					value = err.Error()
				}
			}
			values = append(values, value)
		}
		add(nil, "structs %v", values)
	}
	return strings.Join(parts, " ")
}

// place returns the offset of an *ffs.Error.
func place(err error) (offset int64, ok bool) {
	var bad *ffs.Error
	if !errors.As(err, &bad) {
		return 0, false
	}
	return bad.Offset, bad.Reason != ""
}

func isError(err error) bool { _, ok := place(err); return ok }

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func words(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// encode puts the header of a record with pointers before its data.
func encode(id ffs.ID, data []byte) []byte {
	return slices.Concat(id[:], words(uint64(len(data))), make([]byte, 4), data)
}

// structure is a structure to describe; its fields have a size and a position.
type structure struct {
	name   string
	size   int32
	fields []field
}

type field struct {
	name, typ    string
	size, offset int32
}

func entryOf(structs ...structure) entry {
	rep := describe(structs...)
	return entry{formatID(rep), rep}
}

// describe returns the description of a format, as ADIOS2 builds it: the
// structure at the top, then those inside it.
func describe(structs ...structure) []byte {
	var body []byte
	for _, s := range structs {
		body = append(body, describeStructure(s)...)
	}
	total := uint32(8 + len(body))
	head := []byte{byte(total >> 8), byte(total), 0, 2, byte(len(structs) - 1), 0, byte(total >> 24), byte(total >> 16)}
	return append(head, body...)
}

func describeStructure(s structure) []byte {
	const headerSize, entrySize = 28, 16
	var entries, texts []byte
	base := uint32(headerSize + entrySize*len(s.fields))
	add := func(t string) uint32 {
		at := base + uint32(len(texts))
		texts = append(append(texts, t...), 0)
		return at
	}
	name := add(s.name)
	for _, f := range s.fields {
		for _, v := range []uint32{add(f.name), add(f.typ), uint32(f.size), uint32(f.offset)} {
			entries = binary.LittleEndian.AppendUint32(entries, v)
		}
	}
	for (int(base)+len(texts))%4 != 0 {
		texts = append(texts, 0)
	}
	options := base + uint32(len(texts))
	total := options + 12
	b := []byte{byte(total >> 8), byte(total), 2, 0}
	for _, v := range []uint32{name, uint32(len(s.fields)), uint32(s.size)} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(b, 8, headerSize, 2, 0, byte(options), byte(options>>8), 0, 8)
	b = append(b, byte(total>>24), byte(total>>16), byte(options>>16), byte(options>>24))
	return slices.Concat(b, entries, texts, make([]byte, 12))
}

// formatID computes the id of a description, which padding may follow.
func formatID(rep []byte) (id ffs.ID) {
	length := int(binary.BigEndian.Uint16(rep)) | int(binary.BigEndian.Uint16(rep[6:]))<<16
	c, b := lookup3(rep[:length])
	id[0], id[1] = 2, byte(length>>18)
	binary.BigEndian.PutUint16(id[2:], uint16(length>>2))
	binary.BigEndian.PutUint32(id[4:], c)
	binary.BigEndian.PutUint32(id[8:], b)
	return id
}

// lookup3 is Bob Jenkins' hash of that name with two results, seeded with 0.
func lookup3(key []byte) (primary, secondary uint32) {
	a := 0xdeadbeef + uint32(len(key))
	b, c := a, a
	for len(key) > 12 {
		a += binary.LittleEndian.Uint32(key)
		b += binary.LittleEndian.Uint32(key[4:])
		c += binary.LittleEndian.Uint32(key[8:])
		a, c = (a-c)^bits.RotateLeft32(c, 4), c+b
		b, a = (b-a)^bits.RotateLeft32(a, 6), a+c
		c, b = (c-b)^bits.RotateLeft32(b, 8), b+a
		a, c = (a-c)^bits.RotateLeft32(c, 16), c+b
		b, a = (b-a)^bits.RotateLeft32(a, 19), a+c
		c, b = (c-b)^bits.RotateLeft32(b, 4), b+a
		key = key[12:]
	}
	if len(key) == 0 {
		return c, b
	}
	var last [12]byte
	copy(last[:], key)
	a += binary.LittleEndian.Uint32(last[:])
	b += binary.LittleEndian.Uint32(last[4:])
	c += binary.LittleEndian.Uint32(last[8:])
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	c = (c ^ b) - bits.RotateLeft32(b, 24)
	return c, b
}

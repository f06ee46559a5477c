package ffs_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/ffs"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func FuzzFormat(f *testing.F) {
	for _, run := range recordedBP5 {
		for _, e := range metametadata(f, run) {
			f.Add(e.rep)
		}
	}
	f.Add(describe(everyForm()...))
	f.Fuzz(func(t *testing.T, rep []byte) {
		fm, err := ffs.ParseFormat(ffs.ID{1}, rep)
		if err != nil {
			wantPlace(t, err, len(rep))
			return
		}
		if fm.ID != (ffs.ID{1}) {
			t.Errorf("the format got the id %v", fm.ID)
		}
		checkFormat(t, fm, string(rep), make(map[*ffs.Format]bool))
	})
}

// checkFormat calls the methods of a format and its fields.
func checkFormat(t *testing.T, fm *ffs.Format, rep string, seen map[*ffs.Format]bool) {
	if seen[fm] {
		return
	}
	seen[fm] = true
	texts := 0
	for i := range fm.Fields {
		fd := &fm.Fields[i]
		if fd.Size < 0 || fd.Offset < 0 || fd.Offset > fm.Size {
			t.Fatalf("field %q: %d bytes at %d of %d", fd.Name, fd.Size, fd.Offset, fm.Size)
		}
		if (fd.Kind == ffs.Struct) != (fd.Sub != nil) {
			t.Fatalf("field %q is of kind %d and has the structure %v", fd.Name, fd.Kind, fd.Sub)
		}
		if fd.IsArray() && !strings.Contains(fd.Type, "[") {
			t.Fatalf("field %q of type %q is an array", fd.Name, fd.Type)
		}
		if first := fm.Field(fd.Name); first == nil || first.Name != fd.Name {
			t.Fatalf("field %q is not found", fd.Name)
		}
		if !strings.Contains(rep, fd.Name) || !strings.Contains(rep, fd.Type) {
			t.Fatalf("field %q of type %q does not stand in the description", fd.Name, fd.Type)
		}
		texts += len(fd.Name) + len(fd.Type)
		if fd.Sub != nil {
			checkFormat(t, fd.Sub, rep, seen)
		}
	}
	if texts > 4*len(rep) {
		t.Fatalf("%d bytes of names came out of a description of %d", texts, len(rep))
	}
}

func FuzzRecord(f *testing.F) {
	for _, run := range recordedBP5 {
		for _, r := range recordedBlocks(f, run) {
			f.Add(r.rep, r.block)
		}
	}
	every := describe(everyForm()...)
	f.Add(every, encode(formatID(every), words(2, 136, 136, 136, 136, 136, 136, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 136, 136, 136)))
	f.Fuzz(func(t *testing.T, rep, block []byte) {
		fm, err := ffs.ParseFormat(ffs.ID{}, rep)
		if err != nil {
			return
		}
		if _, err := ffs.BlockID(block); (err == nil) != (len(block) >= 12) {
			t.Errorf("the id of a block of %d bytes: %v", len(block), err)
		}
		r, err := fm.Decode(block)
		if err != nil {
			wantPlace(t, err, max(12, len(block)))
			return
		}
		w := walker{t: t, block: len(block), visits: 2000}
		w.walk(r, 4)
		if w.taken > 16*len(block)+64 {
			t.Errorf("%d bytes came out of a block of %d", w.taken, len(block))
		}
	})
}

// walker calls every accessor for every field of a record and of those inside
// it. Pointers can make the same structures appear again and again, so it
// stops at some depth and after some visits.
type walker struct {
	t      *testing.T
	block  int
	visits int
	taken  int
}

func (w *walker) walk(r ffs.Record, depth int) {
	if w.visits--; w.visits < 0 {
		return
	}
	for i := range r.Format.Fields {
		fd := &r.Format.Fields[i]
		_, err := r.Uint(fd)
		w.note(0, err)
		raw, err := r.Raw(fd)
		w.note(len(raw), err)
		b, err := r.Bytes(fd)
		w.note(len(b), err)
		uints, err := r.Uints(nil, fd)
		w.note(8*len(uints), err)
		text, err := r.Text(fd)
		w.note(len(text), err)
		texts, err := r.Texts(nil, fd)
		w.note(len(strings.Join(texts, "")), err)
		all, err := r.Structs(fd)
		w.note(0, err)
		for j := range all.Len() {
			s, ok, err := all.At(j)
			w.note(0, err)
			if ok && depth > 0 {
				w.walk(s, depth-1)
			}
			if w.visits < 0 {
				return
			}
		}
	}
}

func (w *walker) note(n int, err error) {
	w.taken += n
	if err != nil {
		wantPlace(w.t, err, w.block)
	}
}

// wantPlace fails unless err is ErrUnsupported or has a place in the input.
func wantPlace(t *testing.T, err error, size int) {
	if errors.Is(err, ffs.ErrUnsupported) {
		return
	}
	if offset, ok := place(err); !ok || offset < 0 || offset > int64(size) {
		t.Fatalf("got the error %v for %d bytes, want an *ffs.Error with its place", err, size)
	}
}

// everyForm is a structure with a field of each form that a type can take.
func everyForm() []structure {
	return []structure{
		{"top", 136, []field{
			{"n", "integer", 8, 0},
			{"array", "integer[n]", 8, 8},
			{"texts", "string[n]", 8, 16},
			{"list", "S[n]", 16, 24},
			{"each", "(*S)[n]", 16, 32},
			{"one", "*S", 16, 40},
			{"text", "string", 8, 48},
			{"s", "S", 16, 56},
			{"fixed", "S[2]", 16, 72},
			{"bytes", "char[2][4]", 1, 104},
			{"float", "float", 4, 112},
			{"short", "integer", 2, 116},
			{"byte", "unsigned integer", 1, 118},
			{"square", "integer[n][n]", 8, 120},
			{"complex", "complex4", 8, 128},
		}},
		{"S", 16, []field{{"v", "integer", 8, 0}, {"Next", "*S", 16, 8}}},
	}
}

// recordedBlock is a record of a recorded trace with its format.
type recordedBlock struct{ rep, block []byte }

// recordedBlocks returns the records of the first step of a recorded run.
func recordedBlocks(tb testing.TB, run string) (blocks []recordedBlock) {
	tb.Helper()
	dir := tracetest.Recorded(tb, run)[0]
	idx, err := os.ReadFile(filepath.Join(dir, "md.idx"))
	if err != nil {
		tb.Fatal(err)
	}
	md, err := os.ReadFile(filepath.Join(dir, "md.0"))
	if err != nil {
		tb.Fatal(err)
	}
	formats := make(map[ffs.ID][]byte)
	for _, e := range metametadata(tb, run) {
		formats[e.id] = e.rep
	}
	u64 := binary.LittleEndian.Uint64
	writers := u64(idx[64+9:]) // the index begins with the map of writers
	sizes := md[8 : 8+16*writers]
	at := 8 + 16*writers
	for ; len(sizes) > 0; sizes = sizes[8:] {
		block := md[at : at+u64(sizes)]
		at += u64(sizes)
		if len(block) == 0 {
			continue
		}
		rep := formats[ffs.ID(block)]
		if rep == nil {
			tb.Fatalf("%s: a record in the unknown format %x", run, block[:12])
		}
		blocks = append(blocks, recordedBlock{rep, block})
	}
	return blocks
}

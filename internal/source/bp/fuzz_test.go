package bp

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func FuzzBP4Index(f *testing.F) { fuzzIndex(f, "ring-BP4", "ring-onefile-BP4") }

func FuzzBP5Index(f *testing.F) { fuzzIndex(f, "ring-BP5", "burst", "ring-onefile-BP5") }

// fuzzIndex reads the first run with a fuzzed index.
func fuzzIndex(f *testing.F, runs ...string) {
	dir := tracetest.Copy(f, tracetest.Recorded(f, runs[0])[0])
	for _, run := range runs {
		idx := readFile(f, filepath.Join(tracetest.Recorded(f, run)[0], "md.idx"))
		f.Add(idx)
		active := slices.Clone(idx)
		active[headerBP4Active+int(idx[headerVersion])-4] = 1 // one byte later in BP5
		f.Add(active)
	}
	size := sizeOf(f, dir)
	f.Fuzz(func(t *testing.T, idx []byte) {
		writeFile(t, filepath.Join(dir, "md.idx"), idx)
		var v visitor
		_ = v.bounded(t, dir, size+int64(len(idx))) // which checks the error
	})
}

// FuzzBP4Metadata decodes the metadata of one step; variables and attributes begin at
// the given positions.
func FuzzBP4Metadata(f *testing.F) {
	for _, run := range []string{"ring-BP4", "ring-monitoring-BP4", "ring-onefile-BP4"} {
		dir := tracetest.Recorded(f, run)[0]
		idx, md := readFile(f, filepath.Join(dir, "md.idx")), readFile(f, filepath.Join(dir, "md.0"))
		for rec := idx[headerSize:]; len(rec) > 0; rec = rec[bp4RecordSize:] {
			r, _ := parseBP4Record(rec)
			f.Add(md[r.groups:r.end], uint32(r.variables-r.groups), uint32(r.attributes-r.groups))
		}
	}
	f.Fuzz(func(t *testing.T, md []byte, variables, attributes uint32) {
		const base = 64
		end := uint64(len(md))
		rec := bp4Record{groups: base, variables: base + min(uint64(variables), uint64(attributes), end), attributes: base +
			min(uint64(attributes), end), end: base + end}
		s := emptyStep()
		var skipped tally.Tally
		if err := parseBP4Step(md, rec, s, &skipped); err != nil {
			wantDecoderError(t, err, base, base+int64(end))
			return
		}
		v := visitor{noData: true}
		v.step(t, s)
	})
}

// FuzzBP5Step decodes one step from its record in md.idx, its metadata and the formats
// in mmd.0, for a number of writers.
func FuzzBP5Step(f *testing.F) {
	for _, run := range []string{"ring-BP5", "ring-onefile-BP5", "burst"} {
		dir := tracetest.Recorded(f, run)[0]
		idx, md := readFile(f, filepath.Join(dir, "md.idx")), readFile(f, filepath.Join(dir, "md.0"))
		mmd := readFile(f, filepath.Join(dir, "mmd.0"))
		u64 := binary.LittleEndian.Uint64
		writers := uint8(u64(idx[headerSize+bp5RecordHead:]))
		for rec := idx[headerSize:]; len(rec) > 0; rec = rec[bp5RecordHead+u64(rec[1:]):] {
			if body := rec[bp5RecordHead:][:u64(rec[1:])]; rec[0] == bp5Step {
				f.Add(body, md[u64(body):][:u64(body[8:])], mmd, writers)
			}
		}
	}
	f.Fuzz(func(t *testing.T, record, md, mmd []byte, writers uint8) {
		rec, err := parseBP5Record(record, make([]uint64, writers))
		if err != nil {
			return
		}
		unknown := errors.New("unknown format")
		formats := parseFormats(mmd)
		s := emptyStep()
		var d bp5Decoder
		for range 2 { // the second time with the plans of the first
			s.reset(s.Index, 0, s.data)
			err = d.decode(s, md, &rec, func(id ffs.ID) (*ffs.Format, error) {
				if fm := formats[id]; fm != nil {
					return fm, nil
				}
				return nil, unknown
			})
		}
		if errors.Is(err, unknown) {
			return
		}
		if err != nil {
			wantDecoderError(t, err, 0, int64(len(md)))
			return
		}
		v := visitor{noData: true}
		v.step(t, s)
	})
}

// parseFormats returns the valid formats in an mmd.0.
func parseFormats(b []byte) map[ffs.ID]*ffs.Format {
	formats := make(map[ffs.ID]*ffs.Format)
	for len(b) >= 28 {
		n := binary.LittleEndian.Uint64(b[8:])
		if n > uint64(len(b)-28) {
			break
		}
		id := ffs.ID(b[16:])
		if fm, err := ffs.ParseFormat(id, b[28:28+n]); err == nil {
			formats[id] = fm
		}
		b = b[28+n:]
	}
	return formats
}

func FuzzBP3Footer(f *testing.F) {
	for _, run := range []string{"ring-BP4", "ring-onefile-BP4"} {
		f.Add(tracetest.AsBP3(f, tracetest.Recorded(f, run)[0]))
	}
	dir := f.TempDir()
	writeFile(f, filepath.Join(dir, "data.0"), make([]byte, 64<<10))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &bp3{path: dir, data: newDataFiles(filepath.Join(dir, "data."), false)}
		defer e.close()
		if err := e.parse(b, new(tally.Tally)); err != nil {
			wantDecoderError(t, err, 0, int64(len(b)))
			return
		}
		var v visitor
		for last := -1; ; {
			s, err := e.next()
			if pending, ok := errors.AsType[*pendingError](err); ok {
				err = pending.corrupt()
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					wantDecoderError(t, err, 0, max(64<<10, int64(len(b))))
				}
				return
			}
			if s.Index <= last {
				t.Fatalf("step %d came after step %d", s.Index, last)
			}
			last = s.Index
			v.step(t, s)
		}
	})
}

// FuzzDataset reads a small dataset.
func FuzzDataset(f *testing.F) {
	for _, run := range []string{"ring-BP4", "ring-BP5", "ring-onefile-BP5"} {
		var b [4][]byte
		for i, name := range datasetFiles {
			b[i], _ = os.ReadFile(filepath.Join(tracetest.Recorded(f, run)[0], name)) // BP4 has no mmd.0
		}
		f.Add(b[0], b[1], b[2], b[3])
		f.Add(b[0], b[1], b[2], b[3][:min(len(b[3]), 5000)])
	}
	dir := filepath.Join(f.TempDir(), "any.bp")
	if err := os.Mkdir(dir, 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, idx, md, mmd, data []byte) {
		for i, b := range [][]byte{idx, md, mmd, data} {
			writeFile(t, filepath.Join(dir, datasetFiles[i]), b)
		}
		var v visitor
		_ = v.bounded(t, dir, int64(len(idx)+len(md)+len(mmd)+len(data))) // which checks the error
	})
}

// emptyStep returns a step to decode into; it has no data files.
func emptyStep() *Step {
	s := new(Step)
	s.reset(0, 0, newDataFiles(filepath.Join("no", "such", "data."), false))
	return s
}

// wantDecoderError fails unless err names an unsupported feature or a place between
// from and to.
func wantDecoderError(t *testing.T, err error, from, to int64) {
	t.Helper()
	if refused, ok := errors.AsType[*UnsupportedError](err); ok && refused.What != "" {
		return
	}
	bad, ok := errors.AsType[*CorruptError](err)
	if !ok || bad.Reason == "" || bad.Offset < from || bad.Offset > to {
		t.Fatalf("got %v (%T), want an error with a place between %d and %d", err, err, from, to)
	}
}

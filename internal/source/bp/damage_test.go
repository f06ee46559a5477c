package bp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// datasetFiles are the files that these tests damage if the dataset has them.
var datasetFiles = []string{"md.idx", "md.0", "mmd.0", "data.0"}

// damagedRuns are the recordings that these tests damage.
var damagedRuns = []string{"ring-BP4", "ring-BP5", "burst"}

// forEachFile runs f for each of the files of each recording, with a fresh copy.
func forEachFile(t *testing.T, runs, files []string, f func(t *testing.T, dir, name string)) {
	for _, run := range runs {
		for _, name := range files {
			dataset := tracetest.Recorded(t, run)[0]
			if _, err := os.Stat(filepath.Join(dataset, name)); err != nil {
				continue // BP4 has no mmd.0
			}
			t.Run(run+"/"+name, func(t *testing.T) { f(t, tracetest.Copy(t, dataset), name) })
		}
	}
}

// TestGrowingFileYieldsCompleteSteps lets each file grow byte by byte under one
// reader. At every length the reader returns exactly the complete steps, equal to
// those of the undamaged dataset, and then an error with the file and a place in it.
// (TestTruncatedClosedIndexIsError cuts the index at every byte.)
func TestGrowingFileYieldsCompleteSteps(t *testing.T) {
	forEachFile(t, damagedRuns, datasetFiles[1:], func(t *testing.T, dir, name string) {
		t.Parallel()
		whole := readSteps(t, dir)
		path := filepath.Join(dir, name)
		good := readFile(t, path)
		writeFile(t, path, nil)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // what is written is read by the test
		r, err := Open(dir, Default())
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		v := visitor{quick: true}
		steps, chunk := 0, 1
		if testing.Short() {
			chunk = 16
		}
		for n := 0; ; n = min(n+chunk, len(good)) {
			s, err := r.poll()
			for ; err == nil; s, err = r.poll() {
				if steps == len(whole) || !bytes.Equal(v.step(t, s), whole[steps].text) {
					t.Fatalf("%d bytes of %s: step %d is not that of the whole dataset", n, name, steps)
				}
				steps++
			}
			if steps == len(whole) {
				return
			}
			if needs := whole[steps].needs(name); needs >= 0 && needs <= int64(n) {
				t.Fatalf("%d bytes of %s: step %d needs %d, but it is not there: %v", n, name, steps, needs, err)
			}
			if pending, ok := errors.AsType[*pendingError](err); !ok || pending.file != path || pending.have < 0 || pending.have > int64(n) {
				t.Fatalf("%d bytes of %s: got %v, want an error that names the file and a place in it", n, name, err)
			}
			if _, err := f.Write(good[n:min(n+chunk, len(good))]); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// wholeStep is a step of an undamaged dataset.
type wholeStep struct {
	text       []byte
	meta, data int64 // where it ends in md.0 and in data.0
}

// needs returns the least size of the file that includes the step, or -1 if it is
// unknown.
func (s *wholeStep) needs(file string) int64 {
	switch file {
	case "md.0":
		return s.meta
	case "data.0":
		return s.data
	}
	return -1
}

func readSteps(t *testing.T, dir string) (steps []wholeStep) {
	t.Helper()
	metaEnds := metadataEnds(readFile(t, filepath.Join(dir, "md.idx")))
	r, err := Open(dir, Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v := visitor{quick: true}
	for {
		s, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) && len(steps) == len(metaEnds) && len(steps) > 1 {
			return steps
		}
		if err != nil {
			t.Fatalf("the whole dataset: %d steps of %d, %v", len(steps), len(metaEnds), err)
		}
		step := wholeStep{text: slices.Clone(v.step(t, s)), meta: metaEnds[len(steps)]}
		for i := range s.Variables {
			for j := range s.Variables[i].Blocks {
				b := &s.Variables[i].Blocks[j]
				step.data = max(step.data, b.pos+b.size)
			}
		}
		steps = append(steps, step)
	}
}

// metadataEnds returns the positions in md.0 at which the steps of an index end.
func metadataEnds(idx []byte) (ends []int64) {
	u64 := binary.LittleEndian.Uint64
	for rec := idx[64:]; len(rec) > 0; {
		if idx[37] == 4 {
			ends = append(ends, int64(u64(rec[40:])))
			rec = rec[64:]
			continue
		}
		if rec[0] == 's' {
			ends = append(ends, int64(u64(rec[9:])+u64(rec[17:])))
		}
		rec = rec[9+u64(rec[1:]):]
	}
	return ends
}

// TestTruncatedFileYieldsStepsBeforeCut reads truncated files from the beginning:
// mmd.0 at every length, the others at many.
func TestTruncatedFileYieldsStepsBeforeCut(t *testing.T) {
	forEachFile(t, damagedRuns, datasetFiles[1:], func(t *testing.T, dir, name string) {
		t.Parallel()
		stride := int64(53)
		if name == "mmd.0" {
			stride = int64(reduction())
		} else if testing.Short() {
			stride *= 10
		}
		checkCuts(t, dir, name, stride, func(n int64, got *reading, steps int) {
			if (got.err != nil) != (got.steps < steps) {
				t.Fatalf("cut at %d: %d of %d steps, but the error is %v", n, got.steps, steps, got.err)
			}
			if got.err != nil {
				wantCorrupt(t, got.err, dir, name)
			}
		})
	})
}

func TestTruncatedClosedIndexIsError(t *testing.T) {
	for _, run := range damagedRuns {
		dir := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
		ends := recordEnds(t, dir)
		checkCuts(t, dir, "md.idx", 1, func(n int64, got *reading, _ int) {
			steps, boundary := ends[n]
			switch {
			case n < headerSize: // not even a header: nothing was written yet
				if got.err != nil || got.steps != 0 || !got.active || got.tally.Count(tally.NotClosed) != 1 {
					t.Fatalf("%s: %d bytes of index: %d steps, active %v, %v", run, n, got.steps, got.active, got.err)
				}
			case boundary:
				if got.err != nil || got.steps != steps || got.active {
					t.Fatalf("%s: cut behind a record at %d: %d steps, active %v, %v; want %d", run, n, got.steps, got.active, got.err, steps)
				}
				if got.tally.Count(tally.MetadataUnindexed) == 0 {
					t.Fatalf("%s: cut behind a record at %d: missing steps were not counted", run, n)
				}
			default:
				wantCorrupt(t, got.err, dir, "md.idx")
			}
		})
	}
}

func TestTruncatedActiveIndexHasFewerSteps(t *testing.T) {
	for _, run := range damagedRuns {
		dir := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
		idx := filepath.Join(dir, "md.idx")
		activeByte := headerBP4Active
		if run != "ring-BP4" {
			activeByte = headerBP5Active
		}
		patchFile(t, idx, int64(activeByte), 1)
		ends := recordEnds(t, dir)
		checkCuts(t, dir, "md.idx", 1, func(n int64, got *reading, _ int) {
			want, torn, last := 0, int64(1), int64(-1)
			for end, steps := range ends {
				if end <= n && end > last {
					want, last = steps, end
				}
			}
			if last == n || n < headerSize {
				torn = 0
			}
			if got.err != nil || got.steps != want || !got.active || got.tally.Count(tally.IndexTorn) != torn ||
				got.tally.Count(tally.NotClosed) != 1 {
				t.Fatalf("%s: cut at %d: %d steps, active %v, %d torn records, %v; want %d steps, %d torn",
					run, n, got.steps, got.active, got.tally.Count(tally.IndexTorn), got.err, want, torn)
			}
		})
	}
}

// A record of the index that is there twice is one step. One that refers to other metadata that were read before is damage.
func TestRepeatedIndexRecord(t *testing.T) {
	for _, run := range damagedRuns {
		dir := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
		good := readFile(t, filepath.Join(dir, "md.idx"))
		var ends []int64
		for end, steps := range recordEnds(t, dir) {
			if steps > 0 {
				ends = append(ends, end)
			}
		}
		slices.Sort(ends)
		last := ends[len(ends)-1]
		insert := func(from, to, at int64) (got reading) {
			bad := slices.Concat(good[:at], good[from:to], good[at:])
			if err := os.WriteFile(filepath.Join(dir, "md.idx"), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			var v visitor
			return v.read(t, dir, func(int, []byte) {})
		}
		if got := insert(ends[0], ends[1], ends[1]); got.err != nil || got.steps != len(ends) || got.tally.Count(tally.IndexRepeated) != 1 {
			t.Errorf("%s: a repeated record: %d of %d steps, %v", run, got.steps, len(ends), got.err)
		}
		if got := insert(ends[0], ends[1], last); len(ends) > 2 {
			wantCorrupt(t, got.err, dir, "md.idx")
		}
	}
}

// recordEnds returns the positions at which the header and the records of md.idx end,
// and the number of steps up to there.
func recordEnds(t *testing.T, dir string) map[int64]int {
	t.Helper()
	b := readFile(t, filepath.Join(dir, "md.idx"))
	ends := map[int64]int{headerSize: 0}
	for at, steps := headerSize, 0; at < len(b); ends[int64(at)] = steps {
		if b[37] == 4 {
			at += 64
			steps++
			continue
		}
		if b[at] == 's' {
			steps++
		}
		at += 9 + int(binary.LittleEndian.Uint64(b[at+1:]))
	}
	return ends
}

// checkCuts repeatedly shortens the file by stride bytes, compares the steps with those of
// the undamaged dataset and calls check.
func checkCuts(t *testing.T, dir, name string, stride int64, check func(n int64, got *reading, steps int)) {
	t.Helper()
	whole := readSteps(t, dir)
	path := filepath.Join(dir, name)
	v := visitor{quick: true}
	before := len(whole)
	for n := int64(len(readFile(t, path))) - 1; n >= 0; n -= stride {
		if err := os.Truncate(path, n); err != nil {
			t.Fatal(err)
		}
		got := v.read(t, dir, func(i int, step []byte) {
			if i >= before || !bytes.Equal(step, whole[i].text) {
				t.Fatalf("%s cut at %d: step %d is not that of the whole dataset", name, n, i)
			}
		})
		before = got.steps
		check(n, &got, len(whole))
	}
	if before == len(whole) {
		t.Errorf("all %d steps were read with next to nothing of %s", before, name)
	}
}

// TestRandomDamageIsBounded overwrites a few bytes at a time and checks that reading
// neither panics nor allocates too much. It must run alone, because it measures the
// memory of the process.
func TestRandomDamageIsBounded(t *testing.T) {
	rounds := 4000 / reduction()
	forEachFile(t, damagedRuns[:2], datasetFiles, func(t *testing.T, dir, name string) {
		path := filepath.Join(dir, name)
		good := readFile(t, path)
		size := sizeOf(t, dir)
		rng := rand.New(rand.NewPCG(1, uint64(len(good))))
		var v visitor
		failed := 0
		for range rounds {
			bad := slices.Clone(good)
			for range 1 + rng.IntN(4) {
				bad[rng.IntN(len(bad))] = byte(rng.Uint32())
			}
			writeFile(t, path, bad)
			if err := v.bounded(t, dir, size); err != nil {
				failed++
			}
		}
		if name != "data.0" && failed < rounds/100 {
			t.Errorf("only %d of %d damaged files were noticed", failed, rounds)
		}
	})
}

// BP3 describes arrays almost as BP4 does, so that tests can convert BP4 to BP3.
func TestBP3YieldsSameStepsAsBP4(t *testing.T) {
	for _, run := range []string{"ring-BP4", "ring-onefile-BP4"} {
		var want [][]byte
		v := visitor{noTime: true}
		keep := func(_ int, step []byte) { want = append(want, slices.Clone(step)) }
		if got := v.read(t, tracetest.Recorded(t, run)[0], keep); got.err != nil {
			t.Fatal(got.err)
		}
		got := v.read(t, writeBP3(t, run), func(i int, step []byte) {
			if i >= len(want) || !bytes.Equal(step, want[i]) {
				t.Errorf("%s: step %d of BP3 is not that of BP4", run, i)
			}
		})
		if got.err != nil || got.steps != len(want) {
			t.Errorf("%s: %d steps, %v; want %d", run, got.steps, got.err, len(want))
		}
	}
}

func TestTruncatedBP3IsRefused(t *testing.T) {
	path := writeBP3(t, "ring-BP4")
	for n := int64(len(readFile(t, path))) - 1; n > 0; n -= int64(reduction()) {
		if err := os.Truncate(path, n); err != nil {
			t.Fatal(err)
		}
		var v visitor
		got := v.read(t, path, nil)
		if refused, ok := errors.AsType[*UnsupportedError](got.err); !ok || refused.Path != path {
			t.Fatalf("cut at %d: %d steps, %v; want it to be refused", n, got.steps, got.err)
		}
	}
}

func TestRandomDamageToBP3IsBounded(t *testing.T) {
	path := writeBP3(t, "ring-BP4")
	good := readFile(t, path)
	size := int64(len(good)) + sizeOf(t, path+".dir")
	rng := rand.New(rand.NewPCG(3, 3))
	var v visitor
	failed, rounds := 0, 1000
	if testing.Short() {
		rounds = 100
	}
	for range rounds {
		bad := slices.Clone(good)
		bad[len(bad)-1-rng.IntN(bp3FooterSize)] ^= byte(rng.IntN(2)) // every other time the footer
		for range 1 + rng.IntN(4) {
			bad[rng.IntN(len(bad))] = byte(rng.Uint32())
		}
		writeFile(t, path, bad)
		if err := v.bounded(t, path, size); err != nil {
			failed++
		}
	}
	if failed < rounds/10 {
		t.Errorf("only %d of %d damaged files were noticed", failed, rounds)
	}
}

// reduction divides the work of the longest tests, with -short and with the race
// detector, which makes everything take ten times as long.
func reduction() int {
	if testing.Short() {
		return 40
	}
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return 7
	}
	return 1
}

// huge are lengths and positions that exceed any file; sums and products of some with
// small numbers wrap around.
var huge = []uint64{
	math.MaxUint64, math.MaxUint64 - 1, math.MaxUint64 - 7, math.MaxUint64 - 15, math.MaxUint64 - 63,
	1 << 63, math.MaxInt64, math.MaxInt64 - 63, 1 << 62, 1 << 61, 1 << 60, 1 << 48,
}

// TestImpossibleLengthsAreErrors replaces the lengths and positions of the formats by
// huge numbers.
func TestImpossibleLengthsAreErrors(t *testing.T) {
	f := func(run, file, what string, at int64) {
		t.Helper()
		dir := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
		path := filepath.Join(dir, file)
		good, size := readFile(t, path), sizeOf(t, dir)
		var v visitor
		for _, n := range huge {
			bad := slices.Clone(good)
			binary.LittleEndian.PutUint64(bad[at:], n)
			writeFile(t, path, bad)
			err := v.bounded(t, dir, size)
			if _, ok := errors.AsType[*CorruptError](err); !ok {
				t.Errorf("%s of %s, %s = %d: got %v, want a CorruptError", file, run, what, n, err)
			}
		}
	}
	f("ring-BP4", "md.idx", "position of the groups", 64+16)
	f("ring-BP4", "md.idx", "position of the variables", 64+24)
	f("ring-BP4", "md.idx", "position of the attributes", 64+32)
	f("ring-BP4", "md.idx", "end", 64+40)
	f("ring-BP4", "md.idx", "end of the second step", 128+40)
	idx := readFile(t, filepath.Join(tracetest.Recorded(t, "ring-BP4")[0], "md.idx"))
	f("ring-BP4", "md.0", "length of the groups", 64+8)
	f("ring-BP4", "md.0", "length of the variables", int64(binary.LittleEndian.Uint64(idx[64+24:]))+4)
	f("ring-BP4", "md.0", "length of the attributes", int64(binary.LittleEndian.Uint64(idx[64+32:]))+4)

	f("ring-BP5", "md.idx", "length of the map of writers", 65)
	f("ring-BP5", "md.idx", "number of writers", 73)
	f("ring-BP5", "md.idx", "data file of the writer", 73+24)
	f("ring-BP5", "md.idx", "length of the step record", 105+1)
	f("ring-BP5", "md.idx", "position of the metadata", 105+9)
	f("ring-BP5", "md.idx", "size of the metadata", 105+17)
	f("ring-BP5", "md.idx", "number of flushes", 105+25)
	f("ring-BP5", "md.idx", "position of the data", 105+33)
	f("ring-BP5", "md.0", "size of all", 0)
	f("ring-BP5", "md.0", "size of the variables", 8)
	f("ring-BP5", "md.0", "size of the attributes", 16)
	f("ring-BP5", "md.0", "length of the record", 24+12)
	f("ring-BP5", "mmd.0", "length of the id", 0)
	f("ring-BP5", "mmd.0", "length of the description", 8)
}

// TestHugeNumbersAreHarmless writes huge numbers at every byte of the index and of the
// first variables, and so over every kind of length, position and dimension.
func TestHugeNumbersAreHarmless(t *testing.T) {
	for _, run := range []string{"ring-BP4", "ring-BP5"} {
		dir := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
		for _, name := range datasetFiles[:3] {
			path := filepath.Join(dir, name)
			good, err := os.ReadFile(path)
			if err != nil {
				continue // BP4 has no mmd.0
			}
			var v visitor
			size, failed := sizeOf(t, dir), 0
			for at := 0; at < min(len(good)-8, 1300); at += reduction() {
				bad := slices.Clone(good)
				binary.LittleEndian.PutUint64(bad[at:], huge[at/reduction()%len(huge)])
				writeFile(t, path, bad)
				if v.bounded(t, dir, size) != nil {
					failed++
				}
			}
			if failed == 0 {
				t.Errorf("%s of %s: no huge number was noticed", name, run)
			}
			writeFile(t, path, good)
		}
	}
}

// Many blocks that refer to the same bytes of data.0 would need more memory than the
// file has bytes.
func TestOverlappingArraysAreError(t *testing.T) {
	const name, rows = "event_timestamps", 100
	var blocks []byte
	for range 50 {
		set := slices.Concat([]byte{4, 2, 48, 0}, u64s(rows, rows, 0, 6, 6, 0), []byte{6}, u64s(64))
		blocks = append(blocks, 2)
		blocks = binary.LittleEndian.AppendUint32(blocks, uint32(len(set)))
		blocks = append(blocks, set...)
	}
	dir := writeBP4Variable(t, name, 54, blocks, make([]byte, 64+rows*48))
	var v visitor
	err := v.bounded(t, dir, sizeOf(t, dir))
	wantCorrupt(t, err, dir, "data.0")
	if err != nil && !strings.Contains(err.Error(), name) {
		t.Errorf("the error does not name the variable: %v", err)
	}
}

// The blocks of a variable that changes its type would not have the size of its type.
func TestVariableWithTwoTypesIsError(t *testing.T) {
	one := slices.Concat([]byte{4, 1, 24, 0}, u64s(1, 1, 0), []byte{6}, u64s(64))
	set := append(binary.LittleEndian.AppendUint32([]byte{2}, uint32(len(one))), one...)
	twice := writeBP4Elements(t, slices.Concat(bp4Element("twice", 54, set), bp4Element("twice", 50, set)), make([]byte, 128))
	// In BP5 two fields of a record get the same name.
	twiceBP5 := replaced("ring-BP5", "BPg_timer_count\x00", "BPg_comm_count\x00\x00")(t)
	for _, dir := range []string{twice, twiceBP5} {
		var v visitor
		got := v.read(t, dir, nil)
		wantCorrupt(t, got.err, dir, "md.0")
		if got.err != nil && !strings.Contains(got.err.Error(), "uint64") {
			t.Errorf("the error does not name the type: %v", got.err)
		}
	}
}

func TestContradictoryDescriptionIsError(t *testing.T) {
	f := func(what string, set ...[]byte) {
		t.Helper()
		b := slices.Concat(set...)
		block := append(binary.LittleEndian.AppendUint32([]byte{1}, uint32(len(b))), b...)
		dir := writeBP4Variable(t, "odd", 54, block, make([]byte, 256))
		var v visitor
		if err := v.read(t, dir, nil).err; err == nil {
			t.Errorf("%s: no error", what)
		} else {
			wantCorrupt(t, err, dir, "md.0")
		}
	}
	place := append([]byte{6}, u64s(64)...)
	f("two dimensions in the bytes of one", []byte{4, 2, 24, 0}, u64s(1, 1, 0), place)
	f("dimensions longer than the block", []byte{4, 9, 216, 0}, u64s(1, 1, 0))
	f("a value of 2^64 bytes", []byte{4, 1, 24, 0}, u64s(1<<61, 0, 0), []byte{0}, u64s(7))
	f("an array of 2^64 bytes", []byte{4, 2, 48, 0}, u64s(1<<31, 1<<31, 0, 1<<30, 1<<30, 0), place)
	f("an array of 2^63 bytes", []byte{4, 1, 24, 0}, u64s(1<<60, 1<<60, 0), place)
	f("an array that begins at 2^63", []byte{4, 1, 24, 0}, u64s(1, 1, 0), []byte{6}, u64s(1<<63))
	f("an array that ends at 2^63", []byte{4, 1, 24, 0}, u64s(1, 1, 0), []byte{6}, u64s(math.MaxInt64-7))
	f("a characteristic without its value", []byte{6, 1, 2, 3})
}

func TestUnsupportedInputIsNamed(t *testing.T) {
	f := func(what string, make func(t *testing.T) string, want ...string) {
		t.Run(what, func(t *testing.T) {
			var v visitor
			path := make(t)
			err := v.read(t, path, nil).err
			if err == nil && len(v.refused) > 0 {
				err = v.refused[0] // not the dataset but a variable
			}
			if _, ok := errors.AsType[*UnsupportedError](err); !ok {
				t.Fatalf("got %v, want an UnsupportedError", err)
			}
			for _, text := range append(want, "not supported", filepath.Base(path)) {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("got %q, want %q in it", err, text)
				}
			}
		})
	}
	text := func(name, content string) func(*testing.T) string {
		return func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), name)
			writeFile(t, path, []byte(content))
			return path
		}
	}
	inFile := func(run, file string, at int64, value byte) func(*testing.T) string {
		return func(t *testing.T) string {
			dir := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
			patchFile(t, filepath.Join(dir, file), at, value)
			return dir
		}
	}
	f("an HDF5 file", text("trace.h5", "\x89HDF\r\n\x1a\n and so on"), "HDF5", "BP4 or BP5")
	f("an SST contact file", text("trace.bp.sst", "#ADIOS2-SST v0\n0x1:AAMA"), "SST", "TAU_ADIOS2_ENGINE")
	f("the dataset of an SST contact file", func(t *testing.T) string {
		return strings.TrimSuffix(text("trace.bp.sst", "#ADIOS2-SST v0\n0x1:AAMA")(t), ".sst")
	}, "SST", "TAU_ADIOS2_ENGINE")
	f("a DAOS directory", func(t *testing.T) string { return filepath.Dir(text("data_oids.txt", "")(t)) }, "DAOS")
	f("a text file", text("notes.txt", strings.Repeat("a text of more than 56 bytes\n", 9)), "not an ADIOS2 dataset")
	f("a short text file", text("notes.txt", "short"), "not an ADIOS2 dataset")
	f("an empty directory", func(t *testing.T) string { return t.TempDir() }, "not an ADIOS2 dataset", "md.idx")
	f("an index by itself", func(t *testing.T) string {
		return filepath.Join(tracetest.Recorded(t, "ring-BP5")[0], "md.idx")
	}, "directory", "tau-metrics-ring-0.bp")
	f("the data directory of BP3", func(t *testing.T) string {
		path := text("trace.bp", "")(t) + ".dir"
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}, "BP3", "; open "+string(filepath.Separator))
	f("BP4 of a big-endian machine", inFile("ring-BP4", "md.idx", 36, 1), "big-endian")
	f("BP5 of a big-endian machine", inFile("ring-BP5", "md.idx", 36, 1), "big-endian")
	f("BP3 of a big-endian machine", func(t *testing.T) string {
		b := tracetest.AsBP3(t, tracetest.Recorded(t, "ring-BP4")[0])
		b[len(b)-4] = 1
		return text("trace.bp", string(b))(t)
	}, "big-endian")
	f("BP3 of ADIOS 1", func(t *testing.T) string {
		b := tracetest.AsBP3(t, tracetest.Recorded(t, "ring-BP4")[0])
		b[len(b)-2] = 0
		return text("trace.bp", string(b))(t)
	}, "BP3", "ADIOS 1")
	f("BP6", inFile("ring-BP5", "md.idx", 37, 6), "BP version 6", "BP3, BP4 or BP5")
	f("BP5 of ADIOS 2.8 by its header", inFile("ring-BP5", "md.idx", 38, 1), "ADIOS 2.8", "2.9 or newer")
	f("BP5 of ADIOS 2.8 by its description", inFile("ring-BP5", "mmd.0", 28+3, 1), "ADIOS 2.8", "2.9 or newer")
	f("BP5 of ADIOS 2.8 by its fields", replaced("ring-BP5", "MetaArrayMM8", "NoArrayAtAll"), "ADIOS 2.8", "2.9 or newer", "event_timestamps")
	f("column-major BP5", inFile("ring-BP5", "md.idx", 40, 'y'), "column-major")
	f("column-major BP4", inFile("ring-BP4", "md.0", 64+16+2+2+14, 'y'), "column-major")
	f("big-endian description", inFile("ring-BP5", "mmd.0", 28+2, 1), "big-endian")
	f("compressed BP5", replaced("ring-BP5", "MetaArrayMM8", "MetaArrayOpM"), "operator", "event_timestamps")
	f("joined BP5", replaced("ring-BP5", "BPG_", "BPJ_"), "joined", "event_timestamps")
	f("compressed BP4", func(t *testing.T) string {
		set := slices.Concat([]byte{4, 1, 24, 0}, u64s(3, 3, 0), []byte{6}, u64s(64), []byte{11, 4, 'z', 's', 't', 'd', 54, 0, 0, 0, 0, 0})
		block := append(binary.LittleEndian.AppendUint32([]byte{3}, uint32(len(set))), set...)
		return writeBP4Variable(t, "packed", 54, block, make([]byte, 128))
	}, "zstd", `"packed"`)
	f("joined BP4", func(t *testing.T) string {
		set := slices.Concat([]byte{4, 1, 24, 0}, u64s(3, math.MaxUint64-1, 0), []byte{6}, u64s(64))
		block := append(binary.LittleEndian.AppendUint32([]byte{2}, uint32(len(set))), set...)
		return writeBP4Variable(t, "parts", 54, block, make([]byte, 128))
	}, "joined", `"parts"`)
}

// replaced returns a function that copies a recording and replaces a string in its
// formats by another of the same length.
func replaced(run, old, new string) func(t *testing.T) string {
	return func(t *testing.T) string {
		dir := tracetest.Copy(t, tracetest.Recorded(t, run)[0])
		path := filepath.Join(dir, "mmd.0")
		b := readFile(t, path)
		if len(old) != len(new) || !bytes.Contains(b, []byte(old)) {
			t.Fatalf("%q cannot be replaced by %q", old, new)
		}
		writeFile(t, path, bytes.ReplaceAll(b, []byte(old), []byte(new)))
		return dir
	}
}

func TestMissingDatasetIsNotReady(t *testing.T) {
	f := func(what, path string) {
		t.Helper()
		r, err := Open(path, Default())
		if err == nil {
			r.Close()
		}
		if !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %v and its path", what, err, ErrNotReady)
		}
	}
	dir := filepath.Join(t.TempDir(), "trace.bp")
	f("nothing", dir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f("a dataset's directory without its index", dir)
}

// ---- reading datasets ----

// visitor reads datasets to their end and calls all methods of their steps.
type visitor struct {
	noData  bool // there are no data files
	noTime  bool // omit the time, which some formats lack
	quick   bool // do not try invalid calls
	refused []error
	buf     []byte
}

// reading is the result of reading a dataset.
type reading struct {
	steps  int
	active bool
	tally  tally.Tally
	err    error // nil at the proper end
}

// read reads the dataset at path and calls each with a complete encoding of every
// step, which is valid until each returns.
func (v *visitor) read(tb testing.TB, path string, each func(i int, step []byte)) (got reading) {
	tb.Helper()
	v.refused = v.refused[:0]
	opt := Default()
	opt.Tally = &got.tally
	r, err := Open(path, opt)
	if err != nil {
		got.err = err
		return got
	}
	defer r.Close()
	for {
		s, err := r.Next(tb.Context())
		if err != nil {
			if _, again := r.Next(tb.Context()); !errors.Is(again, err) {
				tb.Fatalf("the error %v became %v", err, again)
			}
			if !errors.Is(err, io.EOF) {
				got.err = err
			}
			break
		}
		if s.Reread() {
			tb.Fatal("a finished dataset wants to be read again")
		}
		text := v.step(tb, s)
		if each != nil {
			each(got.steps, text)
		}
		got.steps++
	}
	got.active = r.Active()
	if !strings.HasPrefix(r.Engine(), "BP") || r.Path() != filepath.Clean(path) || r.Modified().IsZero() {
		tb.Fatalf("engine %q, version %q, path %q, modified %v", r.Engine(), r.Version(), r.Path(), r.Modified())
	}
	return got
}

// bounded reads the dataset at path, whose files have size bytes, and fails if that
// takes too much memory or ends with an implausible error.
func (v *visitor) bounded(tb testing.TB, path string, size int64) error {
	tb.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := v.read(tb, path, nil)
	runtime.ReadMemStats(&after)
	limit := uint64(got.steps+1)*64*uint64(size) + 8<<20
	if used := after.TotalAlloc - before.TotalAlloc; used > limit {
		tb.Fatalf("%d bytes of memory to read %d steps from %d bytes", used, got.steps, size)
	}
	wantPlausible(tb, got.err)
	return got.err
}

// wantPlausible fails unless err is nil, names an unsupported feature or names a place
// within its file.
func wantPlausible(tb testing.TB, err error) {
	tb.Helper()
	if err == nil {
		return
	}
	if refused, ok := errors.AsType[*UnsupportedError](err); ok && refused.Path != "" && refused.What != "" {
		return
	}
	bad, ok := errors.AsType[*CorruptError](err)
	if !ok || bad.File == "" || bad.Reason == "" {
		tb.Fatalf("got the error %v (%T), want one that names a file", err, err)
	}
	size := int64(0)
	if info, err := os.Stat(bad.File); err == nil {
		size = info.Size()
	}
	if bad.Offset < 0 || bad.Offset > size {
		tb.Fatalf("the error points outside its file of %d bytes: %v", size, err)
	}
}

// wantCorrupt fails unless err names a place in that file of the dataset.
func wantCorrupt(tb testing.TB, err error, dir, name string) {
	tb.Helper()
	bad, ok := errors.AsType[*CorruptError](err)
	if !ok || bad.File != filepath.Join(dir, name) {
		tb.Fatalf("got %v, want a CorruptError that names %s", err, name)
	}
	wantPlausible(tb, err)
}

// step calls every accessor of a step and returns the encoded results.
func (v *visitor) step(tb testing.TB, s *Step) []byte {
	tb.Helper()
	b := appendNumbers(v.buf[:0], uint64(s.Index))
	if !v.noTime {
		b = appendNumbers(b, uint64(s.Time))
	}
	for i := range s.Variables {
		vr := &s.Variables[i]
		if s.Variable(vr.Name) != vr {
			tb.Fatalf("variable %q is not found by its name", vr.Name)
		}
		b = appendTexts(b, vr.Name, vr.Type.String(), vr.Shape.String())
		if _, ok := vr.Text(len(vr.Blocks)); ok || len(vr.Blocks) == 0 {
			tb.Fatalf("variable %q has %d blocks, and one more", vr.Name, len(vr.Blocks))
		}
		for j := range vr.Blocks {
			blk := &vr.Blocks[j]
			b = appendNumbers(b, uint64(blk.Writer))
			b = appendNumbers(b, blk.Shape...)
			b = appendNumbers(b, blk.Start...)
			b = appendNumbers(b, blk.Count...)
			text, isText := vr.Text(j)
			number, isNumber := vr.Uint64(j)
			b = appendTexts(b, string(blk.Value), text)
			b = appendNumbers(b, number)
			if isNumber && len(blk.Value) < vr.Type.Size() || isText && len(blk.Value) < vr.Type.Size() {
				tb.Fatalf("variable %q: a value of type %v came from %d bytes", vr.Name, vr.Type, len(blk.Value))
			}
			b = v.array(tb, s, vr, blk, b)
		}
	}
	for i := range s.Attributes {
		a := &s.Attributes[i]
		b = appendTexts(b, a.Name, a.Type.String(), a.Text())
		b = appendTexts(b, a.Values...)
		b = appendNumbers(b, uint64(a.Block))
		b = strconv.AppendBool(b, a.Array)
	}
	v.buf = b
	return b
}

// array appends the bytes of a block's array.
func (v *visitor) array(tb testing.TB, s *Step, vr *Variable, blk *Block, b []byte) []byte {
	if err := s.ReadAt(vr, blk, nil, 0); err != nil {
		if _, ok := errors.AsType[*UnsupportedError](err); !ok || !strings.Contains(err.Error(), fmt.Sprintf("%q", vr.Name)) {
			tb.Fatalf("variable %q is refused with %v", vr.Name, err)
		}
		v.refused = append(v.refused, err)
		return b
	}
	n := int(blk.Size())
	var one [1]byte
	if !v.quick && (s.ReadAt(vr, blk, one[:], blk.Size()) == nil || s.ReadAt(vr, blk, one[:], -1) == nil ||
		s.ReadAt(vr, blk, one[:], math.MaxInt64) == nil) {
		tb.Fatalf("variable %q: bytes outside its block of %d were read", vr.Name, n)
	}
	if v.noData || n == 0 {
		return b
	}
	b = slices.Grow(b, n)
	if err := s.ReadAt(vr, blk, b[len(b):len(b)+n], 0); err != nil {
		tb.Fatalf("variable %q: %v", vr.Name, err)
	}
	return b[:len(b)+n]
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(numbers)))
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func appendTexts(b []byte, texts ...string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(texts)))
	for _, t := range texts {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(t)))
		b = append(b, t...)
	}
	return b
}

// ---- files ----

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func writeFile(tb testing.TB, path string, b []byte) {
	tb.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		tb.Fatal(err)
	}
}

func patchFile(tb testing.TB, path string, at int64, value byte) {
	tb.Helper()
	b := readFile(tb, path)
	b[at] = value
	writeFile(tb, path, b)
}

// sizeOf returns the total size of the files of a dataset.
func sizeOf(tb testing.TB, dir string) (n int64) {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			tb.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

func u64s(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// ---- artificial datasets ----

// bp4Element returns the BP4 encoding of a variable with the code of its type and the
// descriptions of its blocks.
func bp4Element(name string, code byte, sets []byte) []byte {
	body := make([]byte, 6) // member id, group
	body = binary.LittleEndian.AppendUint16(body, uint16(len(name)))
	body = append(append(body, name...), 'K', 0, code)
	body = append(append(body, u64s(1)...), sets...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func writeBP4Variable(t *testing.T, name string, code byte, sets, data []byte) string {
	t.Helper()
	return writeBP4Elements(t, bp4Element(name, code, sets), data)
}

// writeBP4Elements writes a closed dataset of one step with the variables.
func writeBP4Elements(t *testing.T, elements, data []byte) string {
	t.Helper()
	header := make([]byte, 64)
	copy(header, "ADIOS-BP v2.<.0 Index Table")
	copy(header[32:], "2<0\x00\x00\x04")
	groups := u64s(0, 0)
	section := func(b []byte) []byte { return slices.Concat(make([]byte, 4), u64s(uint64(len(b))), b) }
	md := slices.Concat(header, groups, section(elements), section(nil))
	variables := uint64(64 + len(groups))
	idx := append(slices.Clone(header), u64s(1, 0, 64, variables, uint64(len(md)-12), uint64(len(md)), 0, 0)...)
	dir := filepath.Join(t.TempDir(), "made-up.bp")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"md.idx": idx, "md.0": md, "data.0": data} {
		writeFile(t, filepath.Join(dir, name), b)
	}
	return dir
}

// writeBP3 writes a BP4 recording as BP3 and returns its path.
func writeBP3(t *testing.T, run string) string {
	t.Helper()
	dataset := tracetest.Recorded(t, run)[0]
	path := filepath.Join(t.TempDir(), "made-up.bp")
	if err := os.Mkdir(path+".dir", 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, tracetest.AsBP3(t, dataset))
	writeFile(t, filepath.Join(path+".dir", "made-up.bp.0"), readFile(t, filepath.Join(dataset, "data.0")))
	return path
}

package chrome_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// line is an event and where it begins.
type line struct {
	text   string
	offset int64
}

// events reads everything and returns the events, or an error if the reader breaks a rule.
func events(in io.Reader, size int64) (lines []line, err error) {
	var counts tally.Tally
	r := chrome.NewReader(in, wanted, &counts)
	last := int64(-1)
	for {
		e, err := r.Next()
		if err != nil {
			if e, ok := errors.AsType[*chrome.Error](err); ok && (size < 0 || e.Offset == size) || errors.Is(err, io.EOF) {
				return lines, check(r, &counts, size)
			}
			return nil, fmt.Errorf("ends with %w", err)
		}
		if e.Offset <= last || r.Offset() <= e.Offset || e.Phase == 0 {
			return nil, fmt.Errorf("event %+v after one at %d", e, last)
		}
		last = e.Offset
		for _, b := range [][]byte{e.Name, e.Category, e.ID, e.PID.Text, e.TID.Text} {
			if !utf8.Valid(b) {
				return nil, fmt.Errorf("%q is not UTF-8", b)
			}
		}
		for _, a := range e.Args {
			if !utf8.Valid(a.Value) {
				return nil, fmt.Errorf("%q is not UTF-8", a.Value)
			}
		}
		lines = append(lines, line{strings.TrimPrefix(show(e, wanted), "new "), e.Offset})
	}
}

// check checks the gaps.
func check(r *chrome.Reader, counts *tally.Tally, size int64) error {
	n := int64(0)
	for _, count := range counts.All() {
		n += count
	}
	if n != int64(len(r.Gaps())) && (n < chrome.MaxGaps || len(r.Gaps()) != chrome.MaxGaps) {
		return fmt.Errorf("%d counts but %d gaps", n, len(r.Gaps()))
	}
	for _, g := range r.Gaps() {
		if g.Offset < 0 || g.Length < 0 || size >= 0 && g.Offset+g.Length > size {
			return fmt.Errorf("gap %+v in %d bytes", g, size)
		}
	}
	return nil
}

// TestDamagedFilesYieldUndamagedEvents damages plain files. Events before the damage are
// unchanged, and so are those after it, except for the first two: the damage may have
// opened a string.
func TestDamagedFilesYieldUndamagedEvents(t *testing.T) {
	for _, path := range recorded(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			good := unzip(t, path)
			want, err := events(bytes.NewReader(good), int64(len(good)))
			if err != nil {
				t.Fatal(err)
			}
			damage.Run(t, damage.Format{Files: damage.Files{"trace": good}, Sample: 100, Read: func(files damage.Files) error {
				b := files["trace"]
				got, err := events(bytes.NewReader(b), int64(len(b)))
				if err != nil {
					return err
				}
				return survive(good, b, want, got)
			}})
		})
	}
}

// survive compares the events before and after damage.
func survive(good, b []byte, want, got []line) error {
	same := 0
	for same < min(len(good), len(b)) && good[same] == b[same] {
		same++
	}
	for i := 0; i+1 < len(want) && want[i+1].offset < int64(same); i++ { // the next one begins before the damage
		if i >= len(got) || got[i] != want[i] {
			return fmt.Errorf("byte %d: event %d before the damage at %d is missing: %v", want[i].offset, i, same, want[i])
		}
	}
	after := 0
	for after < min(len(good), len(b))-same && good[len(good)-1-after] == b[len(b)-1-after] {
		after++
	}
	shift := int64(len(b) - len(good))
	for i := len(want) - 1; i >= 2; i-- {
		if want[i-2].offset < int64(len(good)-after) {
			break
		}
		at := len(got) - (len(want) - i)
		if at < 0 || got[at].text != want[i].text || got[at].offset != want[i].offset+shift {
			return fmt.Errorf("byte %d: event %d after the damage is missing: %v", want[i].offset+shift, i, want[i])
		}
	}
	return nil
}

// TestDamagedGzip damages compressed files.
func TestDamagedGzip(t *testing.T) {
	for _, path := range recorded(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			files := damage.Files{"trace": readFile(t, path)}
			damage.Run(t, damage.Format{Files: files, Sample: 50, Read: func(files damage.Files) error {
				_, err := events(bytes.NewReader(files["trace"]), -1)
				return err
			}})
		})
	}
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestCutFiles cuts a file at many places: all whole events are there, then an error with
// the place of the cut, also if it is compressed.
func TestCutFiles(t *testing.T) {
	good := unzip(t, filepath.Join("testdata", "mi300.json.gz"))
	want, err := events(bytes.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		n := rng.IntN(len(good) - 100)
		got, err := events(bytes.NewReader(good[:n]), int64(n))
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		whole := 0
		for whole+1 < len(want) && want[whole+1].offset < int64(n) {
			whole++
		}
		if len(got) < whole || len(got) > whole+1 {
			t.Fatalf("cut at %d: %d events, want %d", n, len(got), whole)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("cut at %d: event %d is %v, want %v", n, i, got[i], want[i])
			}
		}
	}
	packed := readFile(t, filepath.Join("testdata", "mi300.json.gz"))
	for _, n := range []int{5, 100, len(packed) / 2, len(packed) - 4} {
		r := chrome.NewReader(bytes.NewReader(packed[:n]), nil, nil)
		count, err := 0, error(nil)
		for err == nil {
			_, err = r.Next()
			count++
		}
		e, ok := errors.AsType[*chrome.Error](err)
		if !ok || e.Compressed != int64(n) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: got %v", n, err)
		}
		if n > 1000 && (count < 300 || e.Offset < 100_000) {
			t.Errorf("cut at %d: %d events, %v", n, count, err)
		}
	}
}

func TestReadErrorIsReturnedAfterEvents(t *testing.T) {
	broken := errors.New("disk on fire")
	in := io.MultiReader(strings.NewReader(`[{"ph":"X","name":"a"},{"ph":"X","na`), iotest.ErrReader(broken))
	if got := read(in); !strings.HasPrefix(got, "new X \"a\"\n") || !strings.HasSuffix(got, "byte 36: disk on fire\n") {
		t.Errorf("got %s", got)
	}
}

// repeat is a text n times.
func repeat(s string, n int) io.Reader {
	return &repeater{s: s, left: int64(n) * int64(len(s))}
}

type repeater struct {
	s    string
	at   int
	left int64
}

func (r *repeater) Read(b []byte) (n int, err error) {
	for n < len(b) && r.left > 0 {
		m := copy(b[n:], r.s[r.at:])
		m = int(min(int64(m), r.left))
		n += m
		r.at = (r.at + m) % len(r.s)
		r.left -= int64(m)
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestLargeEventsAndPropertiesAreSkipped(t *testing.T) {
	f := func(parts []io.Reader, want string) {
		t.Helper()
		if got := read(io.MultiReader(parts...)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	text := strings.NewReader
	f([]io.Reader{
		text(`[{"ph":"X","name":"a"},{"ph":"X","name":"large","args":{"x":[`), repeat(`"0123456789", `, 2<<20),
		text(`1]}},{"ph":"X","name":"b"}]`),
	}, "new X \"a\"\nX \"b\"\n1 event-too-large\nevent-too-large at 23+29360171\n")
	f([]io.Reader{
		text(`{"stackFrames":{`), repeat(`"1":{"name":"x","parent":"}"},`, 200_000),
		text(`"2":{}},"samples": "`), repeat("0123456789", 200_000), text(`", "traceEvents":[{"ph":"X","name":"b"}]}`),
	}, "new X \"b\"\n2 property-ignored\nproperty-ignored at 1+6000022\nproperty-ignored at 6000024+2000013\n")
	// A string that never ends.
	f([]io.Reader{text(`[{"ph":"X","name":"a"},{"ph":"X","name":"`), repeat("0123456789", 4<<20), text(`,{"ph":"X","name":"b"}]`)},
		"new X \"a\"\nX \"b\"\n1 event-too-large\nevent-too-large at 23+41943059\n")
}

// TestHostileInputTakesLinearTime reads inputs that invite parsing the same bytes again.
func TestHostileInputTakesLinearTime(t *testing.T) {
	tracetest.SkipShort(t, "reads large files")
	for _, s := range []string{
		`{`, `[`, `"`, `{"`, `{"a":`, `{"ph":`, `[{"ph":"`, `{"ph":"X","name":"`, `{"ph":"X","args":{"a":"`, `\`, `{"name":["`, `{"ph":"X","name":[{`,
		`{"traceEvents":`, `{"traceEvents":[`, `"traceEvents":`, `{"ph":"X","name":"a",`, `{"ph":"X","name":"a"`, `{"ph":"X","cat":"\"`, "{\"ph\" ",
		`{"name":{`, `{"name":{"name":`, `{"a":[`,
	} {
		n := (1 << 19) / len(s)
		damage.Run(t, damage.Format{Files: damage.Files{"trace": []byte(strings.Repeat(s, n))}, Sample: 1, Read: func(files damage.Files) error {
			b := files["trace"]
			_, err := events(bytes.NewReader(b), int64(len(b)))
			return err
		}})
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	event := `{"ph": "X", "cat": "cpu_op", "name": "aten::\"add\" é", "pid": 12, "tid": "Spans", "ts": 5.25, "dur": 1e3,
	"args": {"External id": 3, "Input Dims": [[1, 2], []], "x": "y", "name": "a\tb"}}, {"ph": "C", "name": "m", "ts": 1, "args": {"a": 1, "b": 2}}, `
	r := chrome.NewReader(io.MultiReader(strings.NewReader("["), repeat(event, 1<<20)), wanted, nil)
	next := func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	next()
	next()
	if n := testing.AllocsPerRun(20_000, next); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

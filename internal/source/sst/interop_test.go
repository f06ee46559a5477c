package sst_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// writer is a program in which ADIOS2 itself writes a stream; see
// testdata/interop/stream.py.
type writer struct {
	t       testing.TB
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	lines   *bufio.Scanner
	errors  *strings.Builder
	contact string
	truth   string
}

func startWriter(t testing.TB, shape string, options ...string) *writer {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "tau-metrics-app-0.bp")
	w := &writer{t: t, contact: path + ".sst", truth: filepath.Join(dir, "truth.jsonl"), errors: new(strings.Builder)}
	w.cmd = tracetest.Stream(t, append([]string{"write", shape, path, w.truth}, options...)...)
	var err error
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.lines = bufio.NewScanner(out)
	w.cmd.Stderr = w.errors
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // if it still runs
		_ = w.cmd.Wait()         // tests that need the result have waited before
	})
	return w
}

// step lets a waiting writer do its next step, and waits for its end.
func (w *writer) step() {
	w.t.Helper()
	if _, err := io.WriteString(w.stdin, "go\n"); err != nil {
		w.t.Fatal(err)
	}
	w.stepped()
}

// stepped waits until the writer has ended another step, and returns its line.
func (w *writer) stepped() string {
	w.t.Helper()
	if !w.lines.Scan() {
		w.t.Fatalf("the writer ended: %s", w.errors)
	}
	return w.lines.Text()
}

// finish waits for the writer to end by itself.
func (w *writer) finish() error {
	w.t.Helper()
	_, _ = io.WriteString(w.stdin, "go\n") // if it waits
	for w.lines.Scan() {
	}
	err := w.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, w.errors)
	}
	return err
}

// truthStep is a line of the truth file.
type truthStep struct {
	Step       int
	Blocks     []truthBlock
	Attributes [][2]any // name, values
	End        bool
}

type truthBlock struct {
	name, typ string
	count     []uint64
	sum       uint32 // CRC-32 of the data
}

func (b *truthBlock) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&b.name, &b.typ, &b.count, &b.sum})
}

// written returns the output of the writer as lines of text for each step, and whether it
// closed the stream.
func (w *writer) written() (steps [][]string, closed bool) {
	w.t.Helper()
	f, err := os.Open(w.truth)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	for d := json.NewDecoder(f); ; {
		var s truthStep
		err := d.Decode(&s)
		if s.End || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return steps, s.End
		}
		if err != nil {
			w.t.Fatal(err)
		}
		lines := []string{fmt.Sprintf("step %d", s.Step)}
		for _, b := range s.Blocks {
			lines = append(lines, fmt.Sprintf("%s: %s %v %d", b.name, b.typ, b.count, b.sum))
		}
		for _, a := range s.Attributes {
			lines = append(lines, fmt.Sprintf("attribute %s: %q", a[0], a[1]))
		}
		slices.Sort(lines)
		steps = append(steps, lines)
	}
}

// numpyTypes are the names of types in the truth file. ADIOS2's bindings for
// Python call arrays of int8 arrays of characters.
var numpyTypes = map[bp.Type]string{
	bp.Float: "float32", bp.Double: "float64", bp.ComplexFloat: "complex64", bp.ComplexDouble: "complex128", bp.Char: "int8",
}

// linesOf returns the content of a step in the format of written.
func linesOf(t testing.TB, s *bp.Step) []string {
	t.Helper()
	lines := []string{fmt.Sprintf("step %d", s.Index)}
	for i := range s.Variables {
		v := &s.Variables[i]
		name := v.Type.String()
		if n, ok := numpyTypes[v.Type]; ok {
			name = n
		}
		for j := range v.Blocks {
			b := &v.Blocks[j]
			data := b.Value
			if b.Count != nil {
				data = make([]byte, b.Size())
				if err := s.ReadAt(v, b, data, 0); err != nil {
					t.Errorf("step %d: %v", s.Index, err)
				}
				again, err := s.Bytes(v, b, make([]byte, b.Size()), 0)
				if err != nil || crc32.ChecksumIEEE(again) != crc32.ChecksumIEEE(data) {
					t.Errorf("step %d: Bytes of %q gives others than ReadAt, or %v", s.Index, v.Name, err)
				}
			}
			lines = append(lines, fmt.Sprintf("%s: %s %v %d", v.Name, name, b.Count, crc32.ChecksumIEEE(data)))
		}
	}
	for i := range s.Attributes {
		a := &s.Attributes[i]
		lines = append(lines, fmt.Sprintf("attribute %s: %q", a.Name, pythonic(a)))
	}
	slices.Sort(lines)
	return lines
}

// pythonic returns an attribute's values as Python writes them.
func pythonic(a *bp.Attribute) []string {
	values := slices.Clone(a.Values)
	for i, v := range values {
		switch a.Type {
		case bp.Float, bp.Double:
			if !strings.ContainsAny(v, ".e") {
				values[i] += ".0"
			}
		case bp.ComplexFloat, bp.ComplexDouble:
			re, im, _ := strings.Cut(strings.Trim(v, "()"), ",")
			values[i] = fmt.Sprintf("(%s+%sj)", re, im)
		}
	}
	return values
}

func open(t testing.TB, contact string, change func(*sst.Options)) *sst.Reader {
	t.Helper()
	opt := sst.Default()
	if change != nil {
		change(&opt)
	}
	r, err := sst.Open(contact, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // never fails
	return r
}

// readAll reads on to the error that ends the stream.
func readAll(t testing.TB, r *sst.Reader) (steps [][]string, err error) {
	t.Helper()
	for {
		s, err := r.Next(t.Context())
		if err != nil {
			return steps, err
		}
		steps = append(steps, linesOf(t, s))
	}
}

func compare(t testing.TB, got, want [][]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d steps, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if !slices.Equal(got[i], want[i]) {
			t.Fatalf("step %d:\n got %s\nwant %s", i, brief(without(got[i], want[i])), brief(without(want[i], got[i])))
		}
	}
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func brief(lines []string) string {
	s := strings.Join(lines, "\n     ")
	return s[:min(len(s), 3000)]
}

func TestReadsAllThatADIOS2Streams(t *testing.T) {
	f := func(name, shape string, change func(*sst.Options), options ...string) {
		t.Run(name, func(t *testing.T) {
			w := startWriter(t, shape, options...)
			var lost tally.Tally
			r := open(t, w.contact, func(o *sst.Options) {
				o.Tally = &lost
				if change != nil {
					change(o)
				}
			})
			got, err := readAll(t, r)
			if !errors.Is(err, io.EOF) {
				t.Errorf("the stream ended with %v, want io.EOF", err)
			}
			if r.Active() {
				t.Error("the stream is reported as active after its end")
			}
			if err := w.finish(); err != nil {
				t.Errorf("the writer: %v", err)
			}
			if said := w.errors.String(); said != "" {
				t.Errorf("the writer reports: %s", said)
			}
			want, closed := w.written()
			if !closed {
				t.Error("the writer did not close its stream")
			}
			compare(t, got, want)
			for kind, n := range lost.All() {
				t.Errorf("%d %s", n, kind.Sentence())
			}
		})
	}
	preload := func(o *sst.Options) { o.Preload = true }
	f("one step", "tau", nil, "steps=1")
	f("several steps, attributes late", "tau", nil, "steps=12", "rows=500")
	f("the same, sent unasked", "tau", preload, "steps=12", "rows=500")
	f("attributes once", "tau", nil, "steps=12", "UseOneTimeAttributes=true")
	f("all types, attributes once", "types", nil, "steps=4", "UseOneTimeAttributes=true")
	f("all types", "types", nil, "steps=4")
	f("steps without arrays", "nothing", nil, "steps=6")
	f("no steps", "tau", nil, "steps=0")
	f("200 fast steps", "tau", nil, "steps=200", "rows=64")
	f("200 fast steps, sent unasked", "tau", preload, "steps=200", "rows=64")
	f("200 fast steps through a small queue", "tau", func(o *sst.Options) { o.Queue = 1 }, "steps=200", "rows=64")
	f("200 fast steps, sent unasked, through a small queue", "tau", func(o *sst.Options) { o.Queue, o.Preload = 1, true }, "steps=200",
		"rows=64")
	f("steps of 100 MB", "tau", nil, "steps=4", "rows=1700000")
	f("steps of 100 MB, sent unasked", "tau", preload, "steps=3", "rows=1700000")
	f("one step in the writer at most", "tau", nil, "steps=30", "rows=5000", "QueueLimit=1")
}

func TestTwoStreamsInParallel(t *testing.T) {
	a, b := startWriter(t, "tau", "steps=40", "rows=2000"), startWriter(t, "tau", "steps=30", "rows=3000")
	ra, rb := open(t, a.contact, nil), open(t, b.contact, nil)
	var steps [2][][]string
	ended := make(chan error, 1)
	go func() {
		var err error
		steps[1], err = readAll(t, rb)
		ended <- err
	}()
	var err error
	steps[0], err = readAll(t, ra)
	for i, err := range []error{err, <-ended} {
		if !errors.Is(err, io.EOF) {
			t.Errorf("stream %d ended with %v", i, err)
		}
	}
	for i, w := range []*writer{a, b} {
		if err := w.finish(); err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
		want, _ := w.written()
		compare(t, steps[i], want)
	}
}

func TestReaderWaitsForSlowWriter(t *testing.T) {
	w := startWriter(t, "tau", "steps=3", "ask=1")
	r := open(t, w.contact, func(o *sst.Options) { o.Idle = bp.NoWait })
	var got [][]string
	for len(got) < 3 {
		if s, err := r.Next(t.Context()); !errors.Is(err, bp.ErrIdle) {
			t.Fatalf("before step %d: got %v and the error %v, want bp.ErrIdle", len(got), s, err)
		}
		w.step()
		for have := len(got); len(got) == have; {
			s, err := r.Next(t.Context())
			if err == nil {
				got = append(got, linesOf(t, s))
			} else if !errors.Is(err, bp.ErrIdle) {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended, Next gives %v", err)
	}
	if err := w.finish(); err != nil {
		t.Error(err)
	}
	want, _ := w.written()
	compare(t, got, want)
}

func TestSlowReaderDoesNotStopProgram(t *testing.T) {
	w := startWriter(t, "tau", "steps=60", "rows=20000")
	r := open(t, w.contact, func(o *sst.Options) { o.Queue = 1 << 20 })
	for range 60 { // the writer gets through all of them before one is looked at
		w.stepped()
	}
	got, err := readAll(t, r)
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := w.finish(); err != nil {
		t.Error(err)
	}
	want, _ := w.written()
	compare(t, got, want)
}

func TestDiscardedStepsAreCounted(t *testing.T) {
	const steps = 40
	w := startWriter(t, "tau", fmt.Sprintf("steps=%d", steps), "rows=20000", "QueueLimit=1", "QueueFullPolicy=Discard")
	var lost tally.Tally
	r := open(t, w.contact, func(o *sst.Options) { o.Queue, o.Tally = 1<<20, &lost })
	for range steps {
		w.stepped()
	}
	got, err := readAll(t, r)
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := w.finish(); err != nil {
		t.Error(err)
	}
	if missed := lost.Count(tally.StepsMissed); missed == 0 || len(got)+int(missed) != steps {
		t.Errorf("%d steps came and %d are counted as missed, of %d", len(got), missed, steps)
	}
	// Attributes of discarded steps come with the next one, so that none are missing.
	want, _ := w.written()
	var known, names []string
	next := 0
	for _, g := range got {
		var number int
		if _, err := fmt.Sscanf(g[slices.IndexFunc(g, func(s string) bool { return strings.HasPrefix(s, "step ") })], "step %d",
			&number); err != nil {
			t.Fatal(err)
		}
		for ; next <= number; next++ {
			names = append(names, attributesOf(want[next])...)
		}
		known = append(known, attributesOf(g)...)
		slices.Sort(known)
		slices.Sort(names)
		if !slices.Equal(known, names) {
			t.Fatalf("at step %d:\n got %s\nwant %s", number, brief(without(known, names)), brief(without(names, known)))
		}
		if g, w := blocksOf(g), blocksOf(want[number]); !slices.Equal(g, w) {
			t.Fatalf("step %d:\n got %s\nwant %s", number, brief(g), brief(w))
		}
	}
}

func attributesOf(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return !strings.HasPrefix(s, "attribute ") })
}

func blocksOf(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.HasPrefix(s, "attribute ") })
}

func TestReaderMayConnectLate(t *testing.T) {
	const steps = 30
	w := startWriter(t, "tau", fmt.Sprintf("steps=%d", steps), "rows=50", "ask=1", "RendezvousReaderCount=0", "QueueLimit=1",
		"QueueFullPolicy=Discard")
	for range 4 {
		w.step()
	}
	connected := make(chan string, 1)
	var lost tally.Tally
	r := open(t, w.contact, func(o *sst.Options) {
		o.Tally, o.Connected = &lost, func(address string) { connected <- address }
	})
	if address := <-connected; !strings.Contains(address, ":") {
		t.Errorf("the address of the program is %q", address)
	}
	var got [][]string
	first, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			s, err := r.Next(t.Context())
			if err != nil {
				ended <- err
				return
			}
			if got = append(got, linesOf(t, s)); len(got) == 1 {
				close(first)
			}
		}
	}()
	// The writer accepts the reader when it ends a step, but only after it has handled the
	// request, which may take several steps.
	for range steps - 4 {
		w.step()
		select {
		case <-first:
		case <-time.After(time.Second):
		}
	}
	if err := w.finish(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	want, _ := w.written()
	before, discarded := int(lost.Count(tally.StepsUnattended)), int(lost.Count(tally.StepsMissed))
	if before < 4-1 || len(got) == 0 || len(got)+before+discarded != steps {
		t.Errorf("received %d of %d steps, and counted %d before the connection and %d as discarded", len(got), steps, before, discarded)
	}
	for _, g := range got {
		g = blocksOf(g)
		if !slices.ContainsFunc(want, func(w []string) bool { return slices.Equal(blocksOf(w), g) }) {
			t.Errorf("received but not written: %s", brief(g))
		}
	}
}

func TestKilledProgramEndsStream(t *testing.T) {
	w := startWriter(t, "tau", "steps=5", "rows=2000", "ask=1", "kill=1")
	r := open(t, w.contact, nil)
	var got [][]string
	for range 5 {
		w.step()
		s, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, linesOf(t, s))
	}
	if err := w.finish(); err == nil {
		t.Error("the writer was not killed")
	}
	for range 2 {
		if _, err := r.Next(t.Context()); !errors.Is(err, sst.ErrCut) || !strings.Contains(err.Error(), w.contact) {
			t.Errorf("after the writer was killed: %v, want sst.ErrCut with the name of the stream", err)
		}
	}
	want, _ := w.written()
	compare(t, got, want)
}

// TestMain runs the reader that is killed when the test has started itself as
// that.
func TestMain(m *testing.M) {
	if contact := os.Getenv("SST_TEST_READ"); contact != "" {
		r, err := sst.Open(contact, sst.Default())
		if err == nil {
			_, err = r.Next(context.Background())
		}
		fmt.Println("one step:", err)
		select {} // until it is killed
	}
	os.Exit(m.Run())
}

func TestKilledReaderLetsProgramFinish(t *testing.T) {
	w := startWriter(t, "tau", "steps=20", "rows=100000", "QueueLimit=1", "QueueFullPolicy=Block")
	reader := exec.CommandContext(t.Context(), os.Args[0])
	reader.Env = append(os.Environ(), "SST_TEST_READ="+w.contact)
	out, err := reader.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "one step: <nil>\n" {
		t.Fatalf("the reader prints %q", line)
	}
	if err := reader.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = reader.Wait() // killed
	if err := w.finish(); err != nil {
		t.Errorf("the writer: %v", err)
	}
	if steps, closed := w.written(); len(steps) != 20 || !closed {
		t.Errorf("the writer wrote %d steps, closed %v; want all 20", len(steps), closed)
	}
}

func TestClosedReaderLetsProgramFinish(t *testing.T) {
	w := startWriter(t, "tau", "steps=20", "rows=100000", "QueueLimit=1", "QueueFullPolicy=Block")
	r := open(t, w.contact, nil)
	if _, err := r.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Next(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close, Next gives %v", err)
	}
	if err := w.finish(); err != nil {
		t.Errorf("the writer: %v", err)
	}
	if steps, closed := w.written(); len(steps) != 20 || !closed {
		t.Errorf("the writer wrote %d steps, closed %v; want all 20", len(steps), closed)
	}
}

func TestDocumentedSettings(t *testing.T) {
	text, err := os.ReadFile(tracetest.Root("docs", "sst.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```xml\n")
	xml, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/sst.md shows no XML")
	}
	file := filepath.Join(t.TempDir(), "adios2.xml")
	if err := os.WriteFile(file, []byte(xml), 0o644); err != nil {
		t.Fatal(err)
	}
	w := startWriter(t, "tau", "config="+file)
	got, err := readAll(t, open(t, w.contact, nil))
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := w.finish(); err != nil {
		t.Error(err)
	}
	want, _ := w.written()
	compare(t, got, want)
}

func TestContactFileOfKilledProgramIsStale(t *testing.T) {
	w := startWriter(t, "tau", "ask=1", "steps=1")
	r := open(t, w.contact, nil)
	w.step()
	if _, err := r.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(w.contact)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close() // never fails
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.contact); err == nil {
		t.Error("the writer left its contact file")
	}
	stale := filepath.Join(t.TempDir(), "stale.sst")
	if err := os.WriteFile(stale, text, 0o644); err != nil {
		t.Fatal(err)
	}
	r = open(t, stale, func(o *sst.Options) { o.ConnectTimeout = 3 * time.Second })
	if _, err := r.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "stale contact file") {
		t.Errorf("got the error %v, want one that identifies the file", err)
	}
}

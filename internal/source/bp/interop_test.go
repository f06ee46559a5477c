package bp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestReadsAllThatADIOS2Writes runs all scenarios of testdata/interop/write.py, which
// write with ADIOS2, and compares every value. The slow scenarios are in
// interop_follow_test.go.
func TestReadsAllThatADIOS2Writes(t *testing.T) {
	list, err := tracetest.ADIOS2(t, "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		scenario := words[0]
		if scenario == "grow" || scenario == "killed" {
			continue
		}
		for _, engine := range words[1:] {
			t.Run(scenario+"/"+engine, func(t *testing.T) {
				t.Parallel()
				dataset, truth := tracetest.WriteADIOS2(t, scenario, engine)
				want, ended := readTruth(t, truth)
				if !ended {
					t.Fatalf("write.py ended before the dataset was closed; its truth has %d steps", len(want))
				}
				if want[0].ColumnMajor {
					expectRefusal(t, dataset, "column-major")
				} else {
					expectTruth(t, dataset, engine, asStored(scenario, engine, want), false)
				}
			})
		}
	}
}

// expectRefusal reads a dataset and fails unless it is refused for that reason.
func expectRefusal(t *testing.T, dataset, reason string) {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err == nil {
		defer r.Close()
		_, err = r.Next(t.Context())
	}
	if _, ok := errors.AsType[*bp.UnsupportedError](err); !ok || !strings.Contains(err.Error(), reason) {
		t.Errorf("got the error %T %v, want an UnsupportedError with %q", err, err, reason)
	}
}

// expectTruth reads a dataset in its present state and compares all of it.
func expectTruth(t *testing.T, dataset, engine string, want []truthStep, active bool) {
	t.Helper()
	opt := bp.Default()
	opt.Tally = new(tally.Tally)
	r, err := bp.Open(dataset, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := readLines(t.Context(), t, r, nil)
	if !errors.Is(err, io.EOF) {
		t.Errorf("reading ended with %v, want io.EOF", err)
	}
	compareLines(t, got, linesOfTruth(want))
	if r.Engine() != engine || r.Active() != active {
		t.Errorf("the dataset is %s, active %v; want %s, active %v", r.Engine(), r.Active(), engine, active)
	}
	counts := maps.Collect(opt.Tally.All())
	if active == (counts[tally.NotClosed] == 0) {
		t.Errorf("active %v, but %d datasets that were not closed", active, counts[tally.NotClosed])
	}
	if delete(counts, tally.NotClosed); len(counts) != 0 {
		t.Errorf("something was skipped or repaired: %v", counts)
	}
}

// readLines reads to the error that ends the dataset and returns the steps as lines.
// It calls each, if it is not nil, after each step.
func readLines(ctx context.Context, t *testing.T, r *bp.Reader, each func(step int)) (lines []string, err error) {
	t.Helper()
	for {
		s, err := r.Next(ctx)
		if err != nil {
			return lines, err
		}
		lines = append(lines, linesOf(t, s, r.Engine())...)
		if each != nil {
			each(s.Index)
		}
	}
}

// The truth file, as testdata/interop/README.md describes it.
type (
	truthStep struct {
		Step        int
		Vars        []truthVariable
		Attrs       []truthAttribute
		ColumnMajor bool
		End         bool // the last line, which is not a step
		Steps       int
	}
	truthVariable struct {
		Name, Type, Kind, Operator string
		Blocks                     []truthBlock
	}
	truthBlock struct {
		Shape, Start, Count []uint64
		FNV                 string `json:"fnv1a64"`
		Sum, Value          string
	}
	truthAttribute struct {
		Name, Type string
		Array      bool
		Values     []string
	}
)

// readTruth returns the steps of a truth file and whether the writer closed
// the dataset.
func readTruth(t *testing.T, path string) (steps []truthStep, ended bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	for d := json.NewDecoder(f); ; {
		var s truthStep
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return steps, false
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if s.End {
			if s.Steps != len(steps) {
				t.Fatalf("the truth has %d steps but declares %d", len(steps), s.Steps)
			}
			return steps, true
		}
		steps = append(steps, s)
	}
}

// asStored reduces the written values to those that the format can express.
func asStored(scenario, engine string, written []truthStep) (stored []truthStep) {
	isBP5 := engine == "BP5"
	for _, s := range written {
		// BP4 has no record for a step without anything in it.
		if engine == "BP4" && len(s.Vars)+len(s.Attrs) == 0 {
			continue
		}
		for i := range s.Vars {
			v := &s.Vars[i]
			// BP5 stores single characters as numbers.
			if isBP5 && v.Type == "char" && strings.HasSuffix(v.Kind, "value") {
				v.Type = "int8"
			}
			// BP4 stores a position for each block, even if it has no meaning.
			if !isBP5 && v.Kind == "joined array" {
				for j := range v.Blocks {
					v.Blocks[j].Start = make([]uint64, len(v.Blocks[j].Count))
				}
			}
		}
		for i := range s.Attrs {
			a := &s.Attrs[i]
			// BP3 and BP4 do not distinguish a numeric array of one from a number.
			if !isBP5 && a.Type != "string" && len(a.Values) == 1 {
				a.Array = false
			}
			// This form of attributes of BP5 also stores characters in arrays as
			// numbers.
			if scenario == "attrs1" && a.Array && a.Type == "char" {
				a.Type = "int8"
			}
		}
		s.Step = len(stored)
		stored = append(stored, s)
	}
	return stored
}

// Steps are compared as lines of text, one for the step and each variable, block and
// attribute, so that differences are readable.

func stepLine(step int) string { return fmt.Sprintf("step %d", step) }

func variableLine(step int, name string, typ, kind any, blocks int) string {
	return fmt.Sprintf("step %d: variable %q is a %v of %v in %d blocks", step, name, kind, typ, blocks)
}

func blockLine(step int, name string, block int, shape, start, count []uint64, content string) string {
	return fmt.Sprintf("step %d: variable %q block %d: shape %v start %v count %v: %s", step, name, block, shape, start, count, content)
}

func attributeLine(step int, name string, typ any, array bool, values []string) string {
	return fmt.Sprintf("step %d: attribute %q is %v, array %v, %d values: %s", step, name, typ, array, len(values),
		brief(fmt.Sprintf("%q", values)))
}

func valueContent(text, hash string) string {
	return fmt.Sprintf("value %q hash %s", brief(text), hash)
}

func arrayContent(hash, sum string) string {
	return fmt.Sprintf("array hash %s sum %s", hash, sum)
}

const (
	refusedOperator = "refused because of its operator"
	refusedJoined   = "refused as a joined array"
)

// brief shortens a long text to its beginning and a hash.
func brief(text string) string {
	if len(text) <= 300 {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes, hash %s)", text[:100], len(text), hash([]byte(text)))
}

// linesOfTruth returns the expected lines.
func linesOfTruth(steps []truthStep) (lines []string) {
	for _, s := range steps {
		lines = append(lines, stepLine(s.Step))
		for _, v := range s.Vars {
			lines = append(lines, variableLine(s.Step, v.Name, v.Type, v.Kind, len(v.Blocks)))
			for i, b := range v.Blocks {
				lines = append(lines, blockLine(s.Step, v.Name, i, b.Shape, b.Start, b.Count, v.content(&b)))
			}
		}
		for _, a := range s.Attrs {
			lines = append(lines, attributeLine(s.Step, a.Name, a.Type, a.Array, goTexts(a.Type, a.Values)))
		}
	}
	return lines
}

func (v *truthVariable) content(b *truthBlock) string {
	switch {
	case v.Operator != "":
		return refusedOperator
	case v.Kind == "joined array":
		return refusedJoined
	case strings.HasSuffix(v.Kind, "array"):
		return arrayContent(b.FNV, b.Sum)
	}
	return valueContent(goTexts(v.Type, []string{b.Value})[0], b.FNV)
}

// goTexts converts numbers from Python's format into that of package bp: the shortest
// text that reads back exactly.
func goTexts(typ string, values []string) []string {
	bits := 64
	if strings.HasSuffix(typ, "float") {
		bits = 32
	}
	float := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, bits) }
	texts := slices.Clone(values)
	for i, v := range values {
		switch typ {
		case "float", "double":
			f, err := strconv.ParseFloat(v, bits)
			if err == nil {
				texts[i] = float(f)
			}
		case "complex float", "complex double":
			c, err := strconv.ParseComplex(v, 2*bits)
			if err == nil {
				texts[i] = "(" + float(real(c)) + "," + float(imag(c)) + ")"
			}
		}
	}
	return texts
}

// linesOf returns the lines of a step.
func linesOf(t *testing.T, s *bp.Step, engine string) (lines []string) {
	t.Helper()
	if timed := engine == "BP4"; timed != (s.Time != 0) {
		t.Errorf("step %d was written at %d; only BP4 stores the time", s.Index, s.Time)
	}
	wantWriter := -1 // BP3 and BP4 do not store it
	if engine == "BP5" {
		wantWriter = 0
	}
	lines = append(lines, stepLine(s.Index))
	for i := range s.Variables {
		v := &s.Variables[i]
		if s.Variable(v.Name) != v {
			t.Errorf("step %d: Variable(%q) returns another variable", s.Index, v.Name)
		}
		lines = append(lines, variableLine(s.Index, v.Name, v.Type, v.Shape, len(v.Blocks)))
		for j := range v.Blocks {
			b := &v.Blocks[j]
			if b.Writer != wantWriter {
				t.Errorf("step %d variable %q block %d: from writer %d, want %d", s.Index, v.Name, j, b.Writer, wantWriter)
			}
			lines = append(lines, blockLine(s.Index, v.Name, j, b.Shape, b.Start, b.Count, contentOf(t, s, v, j)))
		}
	}
	for i := range s.Attributes {
		a := &s.Attributes[i]
		lines = append(lines, attributeLine(s.Index, a.Name, a.Type, a.Array, a.Values))
	}
	return lines
}

// contentOf reads a block.
func contentOf(t *testing.T, s *bp.Step, v *bp.Variable, block int) string {
	t.Helper()
	b := &v.Blocks[block]
	if v.Shape == bp.GlobalValue || v.Shape == bp.LocalValue {
		text, ok := v.Text(block)
		if !ok {
			return "no value"
		}
		return valueContent(text, hash(b.Value))
	}
	data := make([]byte, b.Size())
	if err := s.ReadAt(v, b, data, 0); err != nil {
		return refusalOf(err, v)
	}
	if again := readInPieces(t, s, v, b); !bytes.Equal(again, data) {
		t.Errorf("step %d variable %q block %d: differs when it is read in pieces", s.Index, v.Name, block)
	}
	if err := s.ReadAt(v, b, make([]byte, 2), b.Size()-1); err == nil {
		t.Errorf("step %d variable %q block %d: one byte beyond its %d could be read", s.Index, v.Name, block, b.Size())
	}
	sum := ""
	if v.Type == bp.Uint64 {
		n := uint64(0)
		for rest := data; len(rest) > 0; rest = rest[8:] {
			n += binary.LittleEndian.Uint64(rest)
		}
		sum = strconv.FormatUint(n, 10)
	}
	return arrayContent(hash(data), sum)
}

// refusalOf returns the reason why a variable was refused, if the error names it.
func refusalOf(err error, v *bp.Variable) string {
	if _, ok := errors.AsType[*bp.UnsupportedError](err); ok && strings.Contains(err.Error(), strconv.Quote(v.Name)) {
		switch {
		case strings.Contains(err.Error(), "operator"):
			return refusedOperator
		case strings.Contains(err.Error(), "joined array"):
			return refusedJoined
		}
	}
	return fmt.Sprintf("%T %v", err, err)
}

// readInPieces reads a block again, last piece first, in pieces that end within
// elements.
func readInPieces(t *testing.T, s *bp.Step, v *bp.Variable, b *bp.Block) []byte {
	t.Helper()
	data := make([]byte, b.Size())
	piece := b.Size()/6 | 1
	for end := b.Size(); end > 0; {
		start := max(0, end-piece)
		if err := s.ReadAt(v, b, data[start:end], start); err != nil {
			t.Errorf("step %d variable %q: %v", s.Index, v.Name, err)
		}
		end = start
	}
	return data
}

func hash(b []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(b) // never fails
	return fmt.Sprintf("%016x", h.Sum64())
}

// compareLines reports the lines that are in only one of the lists. It ignores their
// order, because variables and attributes have none.
func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	const most = 20
	extra, missing := difference(got, want), difference(want, got)
	if len(extra)+len(missing) > 0 {
		t.Errorf("got %d lines that were not written, such as\n  %s\nwant %d that were not read, such as\n  %s",
			len(extra), strings.Join(extra[:min(most, len(extra))], "\n  "),
			len(missing), strings.Join(missing[:min(most, len(missing))], "\n  "))
	}
}

// difference returns the lines that occur more often in a than in b.
func difference(a, b []string) (rest []string) {
	count := make(map[string]int)
	for _, line := range b {
		count[line]++
	}
	for _, line := range a {
		if count[line]--; count[line] < 0 {
			rest = append(rest, line)
		}
	}
	return rest
}

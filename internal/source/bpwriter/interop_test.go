package bpwriter_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestADIOS2ReadsRewrittenTrace compares all variables and attributes that ADIOS2 reads
// from the rewritten dataset with those that package bp reads from the recorded one.
func TestADIOS2ReadsRewrittenTrace(t *testing.T) {
	for _, run := range []string{"ring-BP4", "ring-monitoring-BP4", "ring-BP5", "burst", "gpu-BP5"} {
		t.Run(run, func(t *testing.T) {
			t.Parallel()
			dataset := tracetest.Recorded(t, run)[0]
			compareLines(t, adios2Reads(t, rewrite(t, dataset)), weRead(t, dataset))
		})
	}
}

// TestADIOS2ReadsAllTypes writes every type and every shape.
func TestADIOS2ReadsAllTypes(t *testing.T) {
	dataset := filepath.Join(t.TempDir(), "all.bp")
	w, err := bpwriter.Create(dataset)
	if err != nil {
		t.Fatal(err)
	}
	var s bpwriter.Step
	for step := range 4 {
		w.Begin(&s, 1_700_000_000+int64(step))
		putAll(&s, step)
		if err := w.Write(&s); err != nil {
			t.Fatal(err)
		}
		// A follower sees the steps before the dataset is closed.
		if got := weRead(t, dataset); !slices.Contains(got, stepLine(step)) {
			t.Errorf("step %d cannot be read after it was written", step)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := adios2Reads(t, dataset)
	compareLines(t, got, weRead(t, dataset))
	for _, want := range []string{`step 3: variable "text" is a string []: value "step 3"`, `attribute "empty" is ""`} {
		if !slices.Contains(got, want) {
			t.Errorf("ADIOS2 does not read %s", want)
		}
	}
}

// putAll puts single values and arrays of all types; some vanish and return.
func putAll(s *bpwriter.Step, step int) {
	for name, typ := range map[string]bpwriter.Type{
		"int8": bpwriter.Int8, "int16": bpwriter.Int16, "int32": bpwriter.Int32, "int64": bpwriter.Int64, "float": bpwriter.Float,
		"double": bpwriter.Double, "uint8": bpwriter.Uint8, "uint16": bpwriter.Uint16, "uint32": bpwriter.Uint32, "uint64": bpwriter.Uint64,
	} {
		size := map[string]int{"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "float": 4}[name]
		if size == 0 {
			size = 8
		}
		value := make([]byte, size)
		value[size-1], value[0] = byte(0xc0), byte(step)
		s.Value(name+" value", typ, value)
		b := s.Array(name+" array", typ, bpwriter.Dims{Shape: []uint64{2, 3, 4}, Start: []uint64{0, 1, 0}, Count: []uint64{2, 2, 4}})
		for i := range b {
			switch {
			case size == 1: // ADIOS2's Python returns no other minimum
				b[i] = byte('A' + i)
			case i%size == size-1: // finite and of both signs
				b[i] = byte(0x3f + 0x80*(i/size%2))
			default:
				b[i] = byte(i*37 + step)
			}
		}
	}
	s.Value("text", bpwriter.String, fmt.Appendf(nil, "step %d", step))
	if step != 1 {
		s.Table("table", 6, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, uint64(1700000000000000 + step)})
	}
	fill := s.Array("local", bpwriter.Uint64, bpwriter.Dims{Count: []uint64{uint64(7 + step)}})
	for i := range fill {
		fill[i] = byte(i)
	}
	s.Table("no rows", 6, nil)
	s.Int32("number", int32(-step))
	s.Attribute(fmt.Sprintf("attribute %d", step), "value")
	if step == 1 {
		s.Attribute("empty", "")
		s.Attribute("ünïcödé \"quoted\"", "käse\n\t\\ \u2028")
		s.Attribute("long", strings.Repeat("x", 65535))
	}
}

// The lines that both readers return.

func stepLine(step int) string { return fmt.Sprintf("step %d", step) }

func variableLine(step int, name, typ string, shape []uint64, blocks []string) string {
	return fmt.Sprintf("step %d: variable %q is a %s %v: %s", step, name, typ, slices.Concat([]uint64{}, shape), strings.Join(blocks, "; "))
}

func blockText(start, count []uint64, hash string) string {
	return fmt.Sprintf("block %v %v %s", slices.Concat([]uint64{}, start), slices.Concat([]uint64{}, count), hash)
}

func attributeLines(attrs map[string]string) (lines []string) {
	for name, value := range attrs {
		lines = append(lines, fmt.Sprintf("attribute %q is %q", name, value))
	}
	return lines
}

// weRead returns the lines of package bp.
func weRead(t *testing.T, dataset string) (lines []string) {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	attrs := make(map[string]string)
	for {
		s, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return append(lines, attributeLines(attrs)...)
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, stepLine(s.Index))
		for i := range s.Variables {
			lines = append(lines, ourVariable(t, s, &s.Variables[i]))
		}
		for i := range s.Attributes {
			attrs[s.Attributes[i].Name] = s.Attributes[i].Text()
		}
	}
}

func ourVariable(t *testing.T, s *bp.Step, v *bp.Variable) string {
	t.Helper()
	var blocks []string
	for j := range v.Blocks {
		b := &v.Blocks[j]
		if text, ok := v.Text(j); ok {
			blocks = append(blocks, fmt.Sprintf("value %q", text))
			continue
		}
		data := make([]byte, b.Size())
		if err := s.ReadAt(v, b, data, 0); err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, blockText(b.Start, b.Count, fmt.Sprintf("%x", sha256.Sum256(data))))
	}
	return variableLine(s.Index, v.Name, v.Type.String(), v.Blocks[0].Shape, blocks)
}

// adios2Reads returns the lines of ADIOS2.
func adios2Reads(t *testing.T, dataset string) (lines []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tracetest.Python(t, "adios2", "numpy"), filepath.Join("testdata", "read.py"), dataset)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("read.py: %v\n%s", err, stderr.String())
	}
	attrs := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var s struct {
			Step int
			Vars map[string]struct {
				Type   string
				Shape  []uint64
				Blocks []struct {
					Start, Count []uint64
					Hash         string
					Value        *string
				}
			}
			Attrs map[string]string
		}
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return append(lines, attributeLines(attrs)...)
		} else if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, stepLine(s.Step))
		for name, v := range s.Vars {
			var blocks []string
			for _, b := range v.Blocks {
				if b.Value != nil {
					blocks = append(blocks, fmt.Sprintf("value %q", numberText(v.Type, *b.Value)))
				} else {
					blocks = append(blocks, blockText(b.Start, b.Count, b.Hash))
				}
			}
			lines = append(lines, variableLine(s.Step, name, v.Type, v.Shape, blocks))
		}
		maps.Copy(attrs, s.Attrs)
	}
}

// numberText writes a number of Python as package bp writes it.
func numberText(typ, text string) string {
	bits := map[string]int{"float": 32, "double": 64}[typ]
	if f, err := strconv.ParseFloat(text, bits); bits > 0 && err == nil {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	return text
}

// compareLines reports lines that are in only one of both, in any order.
func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("ADIOS2 read what is not there: %.300s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("ADIOS2 did not read %.300s", line)
		}
	}
	t.Errorf("ADIOS2 gave %d lines, want %d", len(got), len(want))
}

package bp_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestArraysEqualThoseOfADIOS2 compares large recordings with the values that the
// ADIOS2 library read from them.
func TestArraysEqualThoseOfADIOS2(t *testing.T) {
	for _, run := range []string{"heat2d-BP4", "heat2d-BP5", "heat2d-large-BP4", "heat2d-large-BP5"} {
		t.Run(run, func(t *testing.T) {
			if testing.Short() {
				t.Skip("SKIP: reads large recordings")
			}
			archive := tracetest.Shared(t, "traces", "expected", "adios2-reference.tar.zst")
			for rank, dataset := range tracetest.Large(t, run) {
				compareWithReference(t, dataset, tracetest.Unpack(t, archive, fmt.Sprintf("%s-heat2d-%d.ref.jsonl", run, rank)))
			}
		})
	}
}

// referenceLine is a line of a reference: a step, or at the end all attributes.
type referenceLine struct {
	Step    int
	Scalars map[string]uint64
	Arrays  map[string]struct {
		Shape   []uint64
		FNV1a64 string
		Sum     string
	}
	Attributes map[string]string
}

func compareWithReference(t *testing.T, dataset, reference string) {
	t.Helper()
	f, err := os.Open(reference)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	attributes := make(map[string]string)
	lines := json.NewDecoder(bufio.NewReader(f))
	for {
		var want referenceLine
		if err := lines.Decode(&want); err != nil {
			t.Fatal(err)
		}
		s, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			if !maps.Equal(attributes, want.Attributes) {
				t.Errorf("%s: got attributes %v, want %v", dataset, attributes, want.Attributes)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range s.Attributes {
			attributes[a.Name] = a.Text()
		}
		compareStep(t, s, want)
	}
}

func compareStep(t *testing.T, s *bp.Step, want referenceLine) {
	t.Helper()
	if len(s.Variables) != len(want.Scalars)+len(want.Arrays) {
		t.Errorf("step %d: got %d variables, want %d", s.Index, len(s.Variables), len(want.Scalars)+len(want.Arrays))
	}
	for name, n := range want.Scalars {
		v := s.Variable(name)
		if v == nil {
			t.Errorf("step %d: no scalar %q", s.Index, name)
			continue
		}
		if got, ok := v.Uint64(0); !ok || got != n {
			t.Errorf("step %d: %s = %d, want %d", s.Index, name, got, n)
		}
	}
	for name, a := range want.Arrays {
		v := s.Variable(name)
		if v == nil || len(v.Blocks) != 1 {
			t.Errorf("step %d: no array %q of one block", s.Index, name)
			continue
		}
		b := &v.Blocks[0]
		data := make([]byte, b.Size())
		if err := s.ReadAt(v, b, data, 0); err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		_, _ = h.Write(data) // never fails
		sum := uint64(0)
		for p := data; len(p) >= 8; p = p[8:] {
			sum += binary.LittleEndian.Uint64(p)
		}
		hash := fmt.Sprintf("%016x", h.Sum64())
		if !slices.Equal(b.Shape, a.Shape) || hash != a.FNV1a64 || strconv.FormatUint(sum, 10) != a.Sum {
			t.Errorf("step %d: %s is %v %s %d, want %v %s %s", s.Index, name, b.Shape, hash, sum, a.Shape, a.FNV1a64, a.Sum)
		}
	}
}

// TestDumpsEqualReferenceDecoders compares byte by byte with decoders that share no
// code with this package.
func TestDumpsEqualReferenceDecoders(t *testing.T) {
	runs := map[string]func(testing.TB, string) []string{
		"ring-BP4": tracetest.Recorded, "ring-BP5": tracetest.Recorded, "ring-default": tracetest.Recorded,
		"ring-monitoring-BP4": tracetest.Recorded, "ring-onefile-BP4": tracetest.Recorded, "ring-onefile-BP5": tracetest.Recorded,
		"burst": tracetest.Recorded, "gpu-BP5": tracetest.Recorded, "gpu-late-BP4": tracetest.Large,
	}
	for run, datasets := range runs {
		t.Run(run, func(t *testing.T) {
			if testing.Short() && run != "ring-BP4" && run != "ring-BP5" {
				t.Skip("SKIP: the small recordings suffice")
			}
			decoder := tracetest.Shared(t, "tools", "canon.py")
			python, err := exec.LookPath("python3")
			if err != nil {
				t.Skip("SKIP: there is no python3")
			}
			for _, dataset := range datasets(t, run) {
				cmd := exec.CommandContext(t.Context(), python, "-B", decoder, dataset)
				cmd.Stderr = os.Stderr
				want, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				if got := canon(t, dataset); !bytes.Equal(got, want) {
					g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
					for i := range min(len(g), len(w)) {
						if !bytes.Equal(g[i], w[i]) {
							t.Fatalf("%s: line %d is\n%.300s\nwant\n%.300s", dataset, i+1, g[i], w[i])
						}
					}
					t.Fatalf("%s: %d lines, want %d", dataset, len(g), len(w))
				}
			}
		})
	}
}

// canon prints a dataset as the reference decoder does: all attributes of BP4 with the
// first step, and only the last of several values of an attribute in a step.
func canon(t *testing.T, dataset string) []byte {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var steps [][]string
	var attributes []map[string]string
	for {
		s, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, canonVariables(t, s))
		if r.Engine() == "BP5" || s.Index == 0 {
			attributes = append(attributes, make(map[string]string))
		}
		for _, a := range s.Attributes {
			attributes[len(attributes)-1][a.Name] = fmt.Sprintf("A %s %s \"%s\"", a.Name, a.Type, a.Text())
		}
	}
	var b bytes.Buffer
	seen := make(map[string]bool)
	for i, lines := range steps {
		fmt.Fprintf(&b, "STEP %d\n%s", i, strings.Join(lines, ""))
		if i >= len(attributes) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(attributes[i])) {
			if !seen[name] {
				seen[name] = true
				fmt.Fprintln(&b, attributes[i][name])
			}
		}
	}
	b.WriteString("END 2\n")
	return b.Bytes()
}

func canonVariables(t *testing.T, s *bp.Step) (lines []string) {
	t.Helper()
	names := make([]string, 0, len(s.Variables))
	for _, v := range s.Variables {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		v := s.Variable(name)
		for i := range v.Blocks {
			b := &v.Blocks[i]
			if text, ok := v.Text(i); ok {
				lines = append(lines, fmt.Sprintf("V %s %s_t scalar %s\n", name, v.Type, text))
				break
			}
			data := make([]byte, b.Size())
			if err := s.ReadAt(v, b, data, 0); err != nil {
				t.Fatal(err)
			}
			line := fmt.Appendf(nil, "V %s %s_t start[%s] count[%s] data", name, v.Type, numbers(b.Start), numbers(b.Count))
			for ; len(data) >= 8; data = data[8:] {
				line = strconv.AppendUint(append(line, ' '), binary.LittleEndian.Uint64(data), 10)
			}
			lines = append(lines, string(append(line, '\n')))
		}
	}
	return lines
}

func numbers(v []uint64) string {
	var b strings.Builder
	for _, n := range v {
		fmt.Fprintf(&b, "%d,", n)
	}
	return b.String()
}

func TestAcceptsRelativePathAndTrailingSlash(t *testing.T) {
	dataset := tracetest.Recorded(t, "ring-BP4")[0]
	t.Chdir(filepath.Dir(dataset))
	for _, path := range []string{filepath.Base(dataset), "./" + filepath.Base(dataset) + "/"} {
		if got := readAll(t, path); len(got) != 2 {
			t.Errorf("%s: got %d steps, want 2", path, len(got))
		}
	}
}

package replay_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// adios2Step is a step as read.py prints it.
type adios2Step struct {
	Vars map[string]struct {
		Blocks []struct{ Hash, Value string }
	}
	Attrs map[string]string
}

// TestADIOS2ReadsRewrittenDatasets compares what ADIOS2 and package bp read.
func TestADIOS2ReadsRewrittenDatasets(t *testing.T) {
	s := newStage(t)
	s.cfg.Ranks, s.cfg.ShiftTime = 8, true
	_, written := s.run(tracetest.Recorded(t, "ring-BP5"))
	python := tracetest.Python(t, "adios2", "numpy")
	for _, dataset := range written {
		cmd := exec.CommandContext(t.Context(), python, tracetest.Root("internal", "source", "bpwriter", "testdata", "read.py"), dataset)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("read.py: %v", err)
		}
		compareADIOS2(t, dataset, json.NewDecoder(bytes.NewReader(out)))
	}
}

func compareADIOS2(t *testing.T, dataset string, lines *json.Decoder) {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	attributes, readAttributes := 0, 0
	for {
		s, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var seen adios2Step
		if err := lines.Decode(&seen); err != nil {
			t.Fatalf("%s step %d: ADIOS2: %v", dataset, s.Index, err)
		}
		if len(seen.Vars) != len(s.Variables) {
			t.Errorf("%s step %d: ADIOS2 reads %d variables, want %d", dataset, s.Index, len(seen.Vars), len(s.Variables))
		}
		for i := range s.Variables {
			v := &s.Variables[i]
			got := seen.Vars[v.Name].Blocks
			if len(got) != 1 || got[0].Hash+got[0].Value != contentOf(t, s, v) {
				t.Errorf("%s step %d variable %s: ADIOS2 reads %v", dataset, s.Index, v.Name, got)
			}
		}
		attributes += len(s.Attributes)
		for _, a := range s.Attributes {
			if seen.Attrs[a.Name] != a.Text() {
				t.Errorf("%s attribute %s: ADIOS2 reads %q, want %q", dataset, a.Name, seen.Attrs[a.Name], a.Text())
			}
		}
		readAttributes = len(seen.Attrs)
	}
	if readAttributes != attributes {
		t.Errorf("%s: ADIOS2 reads %d attributes, want %d", dataset, readAttributes, attributes)
	}
	if lines.More() {
		t.Errorf("%s: ADIOS2 reads more steps", dataset)
	}
}

// contentOf is the value, or the hash of the array, of a variable's only block.
func contentOf(t *testing.T, s *bp.Step, v *bp.Variable) string {
	t.Helper()
	if text, ok := v.Text(0); ok {
		return text
	}
	b := make([]byte, v.Blocks[0].Size())
	if err := s.ReadAt(v, &v.Blocks[0], b, 0); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

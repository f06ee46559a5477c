package sqlitetest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/sqlitetrace"
)

// Open opens a trace.
func Open(t testing.TB, path string, formats ...sqlitetrace.Format) []*profile.File {
	t.Helper()
	files, err := sqlitetrace.Open(path, profile.Options{Temp: t.TempDir()}, formats...)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Cleanup(f.Close)
	}
	return files
}

// Content is the content of a file.
type Content struct {
	Lines    []string // thread, time since the first event, kind and name
	First    trace.Ticks
	Metadata map[string]string // of thread 0
	GPUs     []trace.GPU
	Works    map[string]trace.Work
	Tally    tally.Tally
	Err      error
}

// Read reads a file.
func Read(t testing.TB, f *profile.File) *Content {
	t.Helper()
	c := &Content{Metadata: make(map[string]string), Works: make(map[string]trace.Work)}
	r, err := f.Steps(&c.Tally)
	if err != nil {
		t.Fatal(err)
	}
	threads := make(map[trace.Thread][]trace.Event)
	for {
		s, err := r.Next(t.Context())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.Err = err
			}
			break
		}
		for _, m := range s.Metadata {
			if m.Thread == 0 {
				c.Metadata[m.Key] = m.Value
			}
		}
		for _, b := range s.Batches {
			threads[b.Thread] = append(threads[b.Thread], b.Events...)
			if first := b.Events[0].Time; c.First == 0 || first < c.First {
				c.First = first
			}
		}
	}
	for _, thread := range slices.Sorted(maps.Keys(threads)) {
		for _, e := range threads[thread] {
			name, _ := r.Names().Func(f.Ranks[0], e.Func())
			if e.Kind == trace.Count {
				name, _ = r.Names().Counter(f.Ranks[0], e.Counter())
				name += fmt.Sprintf(" = %d", e.Value)
			}
			c.Lines = append(c.Lines, fmt.Sprintf("%d %d %v %s", thread, e.Time-c.First, e.Kind, name))
		}
		if gpu, ok := r.Names().GPU(f.Ranks[0], thread); ok {
			c.GPUs = append(c.GPUs, gpu)
		}
	}
	for id, name := range r.Names().Funcs() {
		c.Works[name] = r.Names().Work(id)
	}
	return c
}

// Check compares a file with the program that it is of.
func Check(t *testing.T, f *profile.File, p *Program, want []string, format, gpu string) *Content {
	t.Helper()
	c := Read(t, f)
	if a, b := strings.Join(c.Lines, "\n"), strings.Join(want, "\n"); a != b || c.Err != nil {
		t.Errorf("got\n%s\nwant\n%s\nerror %v", a, b, c.Err)
	}
	if !slices.Equal(f.Ranks, []trace.Rank{trace.Rank(p.Rank)}) || !f.RankKnown || f.Format != format {
		t.Errorf("%s of ranks %v, %v", f.Format, f.Ranks, f.RankKnown)
	}
	if !slices.Equal(c.GPUs, []trace.GPU{{Device: "0", Stream: "7"}, {Device: "0", Stream: "13"}}) {
		t.Errorf("GPUs are %v", c.GPUs)
	}
	if c.Metadata["GPU 0"] != gpu || c.Metadata["Process name"] != "./train" || c.Metadata["Hostname"] != p.Host() {
		t.Errorf("metadata is %v", c.Metadata)
	}
	if c.Works["gemm(float*) [grid 8×2×1, block 128×1×1]"] != trace.Compute || c.Works["train"] != trace.HostWork ||
		c.Works["ncclDevKernel_AllReduce_Sum_f32(args) [grid 8×2×1, block 128×1×1]"] != trace.Communication {
		t.Errorf("kinds of work are %v", c.Works)
	}
	return c
}

// OpenProgram writes a program in one generation of a format and opens it.
func OpenProgram(
	t *testing.T, write func(testing.TB, string, int, ...*Program), generation int, format sqlitetrace.Format,
) (*profile.File, *Program) {
	t.Helper()
	p := &Program{Rank: 3, World: 4, Steps: 3, Slow: map[int]bool{1: true}}
	path := filepath.Join(t.TempDir(), "trace.sqlite")
	write(t, path, generation, p)
	if !sqlitetrace.IsTrace(path, format) {
		t.Error("the trace is not recognized")
	}
	files := Open(t, path, format)
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	return files[0], p
}

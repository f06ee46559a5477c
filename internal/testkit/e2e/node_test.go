package e2e

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnalyzerWithoutLibraries runs chimbuko-ad, the analyzer alone, beside the services of chimbuko.
func TestAnalyzerWithoutLibraries(t *testing.T) {
	t.Parallel()
	s, r := newScene(t), threeRanks(t)
	program := s.path("chimbuko-ad")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program,
		"github.com/chimbuko/chimbuko/cmd/chimbuko-ad")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	checkStatic(t, program)

	serve := s.serve("--ranks", "3", "--save-model", s.path("model"))
	var ads []*process
	for i, trace := range r.traces {
		ads = append(ads, startAs(t, filepath.Base(program), nil, []string{
			program, "--run-dir", s.run, s.live(trace), "--node", fmt.Sprintf("n%d", i), "--exchange", "100ms",
		}))
	}
	succeed(s.replay(r, "max"))
	succeed(append(ads, serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))

	wrong := startAs(t, filepath.Base(program), nil, []string{program, "--engine", "bp6", "traces"})
	if code := wrong.wait(); code != 2 || !strings.Contains(wrong.stderr.String(), `unknown --engine "bp6"`) {
		t.Errorf("exit code %d\n%s", code, wrong.stderr.String())
	}
}

// checkStatic checks that a program needs no libraries and is small.
func checkStatic(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 || f.Section(".interp") != nil {
		t.Errorf("the program needs libraries %q, %v", libraries, err)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > 20e6 {
		t.Errorf("the program has %d bytes, want less than 20 MB", info.Size())
	}
}

package tracetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// findPython returns the interpreter of scripts/test-setup, and why it cannot
// be used.
var findPython = sync.OnceValues(func() (string, error) {
	python := Root(".venv", "bin", "python3")
	out, err := exec.Command(python, "-c", "import adios2, numpy").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w %s", err, out)
	}
	return python, nil
})

// Python returns the path of a Python that has the packages adios2 and numpy.
// Where there is none the test is skipped; with CI=true it fails.
func Python(tb testing.TB) string {
	tb.Helper()
	python, err := findPython()
	if err != nil {
		lost := tb.Skipf
		if os.Getenv("CI") == "true" {
			lost = tb.Fatalf
		}
		lost("SKIP: NOT COMPARED WITH ADIOS2: .venv has no Python with adios2 and numpy; run scripts/test-setup: %v", err)
	}
	return python
}

// ADIOS2 returns the command that runs write.py, with which ADIOS2 itself
// writes datasets; see internal/bp/testdata/interop. It ends with the test.
func ADIOS2(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	script := Root("internal", "bp", "testdata", "interop", "write.py")
	return exec.CommandContext(tb.Context(), Python(tb), append([]string{script}, args...)...)
}

// WriteADIOS2 has ADIOS2 write a scenario and returns the paths of the dataset
// and of the truth about it. A combination that cannot be written skips the
// test.
func WriteADIOS2(tb testing.TB, scenario, engine string) (dataset, truth string) {
	tb.Helper()
	dir := tb.TempDir()
	dataset, truth = filepath.Join(dir, scenario+".bp"), filepath.Join(dir, "truth.jsonl")
	cmd := ADIOS2(tb, scenario, engine, dataset, truth)
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState.ExitCode() == 3:
		tb.Skipf("%s: %s", engine, strings.TrimSpace(string(out)))
	case err != nil:
		tb.Fatalf("write.py %s %s: %v\n%s", scenario, engine, err, out)
	}
	return dataset, truth
}

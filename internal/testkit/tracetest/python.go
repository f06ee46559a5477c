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

// imports caches the results of importing lists of packages.
var imports = struct {
	sync.Mutex
	errs map[string]error
}{errs: map[string]error{}}

// Python returns the path of the Python of scripts/test-setup with these packages. If it
// is missing, it skips the test, or fails it with CI=true.
func Python(tb testing.TB, packages ...string) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: needs Python")
	}
	python := Root(".venv", "bin", "python3")
	names := strings.Join(packages, ", ")
	if err := tryImport(python, names); err != nil {
		report := tb.Skipf
		if os.Getenv("CI") == "true" {
			report = tb.Fatalf
		}
		report("SKIP: NOT COMPARED WITH %s: .venv has no Python with %s; run scripts/test-setup: %v",
			strings.ToUpper(names), names, err)
	}
	return python
}

func tryImport(python, names string) error {
	imports.Lock()
	defer imports.Unlock()
	if err, ok := imports.errs[names]; ok {
		return err
	}
	out, err := exec.Command(python, "-c", "import "+names).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w %s", err, out)
	}
	imports.errs[names] = err
	return err
}

// ADIOS2 returns the command that runs write.py, which writes datasets with ADIOS2; see
// internal/source/bp/testdata/interop. It ends with the test.
func ADIOS2(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	script := Root("internal", "source", "bp", "testdata", "interop", "write.py")
	return exec.CommandContext(tb.Context(), Python(tb, "adios2", "numpy"), append([]string{script}, args...)...)
}

// Stream returns the command that runs stream.py, which writes and reads SST streams with
// ADIOS2; see internal/source/sst/testdata/interop. It ends with the test.
func Stream(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	script := Root("internal", "source", "sst", "testdata", "interop", "stream.py")
	return exec.CommandContext(tb.Context(), Python(tb, "adios2", "numpy"), append([]string{script}, args...)...)
}

// WriteADIOS2 writes a scenario with ADIOS2, and returns the paths of the dataset and its
// truth. It skips the test if the engine cannot write the scenario.
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

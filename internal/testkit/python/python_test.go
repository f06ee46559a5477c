package python

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/release"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var update = flag.Bool("update", false, "write the outputs of docs/notebook.ipynb")

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

var temporary string // directory of all tests

func runTests(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "chimbuko-python-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	temporary = dir
	return pgtest.Main(m)
}

var buildProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(temporary, "chimbuko")
	out, err := exec.Command("go", "build", tracetest.LinkFlags(), "-o", path, "github.com/chimbuko/chimbuko/cmd/chimbuko").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// command returns a command of Python with the packages of scripts/test-setup, the source tree of the package, and the
// program.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	python := tracetest.Python(t, "ipykernel", "mypy", "nbclient", "pandas", "polars", "pyarrow", "pytest")
	program, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, args...)
	cmd.Dir = tracetest.Root("python")
	cmd.Env = append(os.Environ(), "CHIMBUKO="+program, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "PYTHONPATH="+filepath.Join(cmd.Dir, "src"),
		"PYTHONDONTWRITEBYTECODE=1", "IPYTHONDIR="+t.TempDir(), "JUPYTER_RUNTIME_DIR="+t.TempDir())
	return cmd
}

// pytest runs some tests of python/tests.
func pytest(t *testing.T, environ []string, args ...string) {
	t.Helper()
	cmd := command(t, append([]string{"-m", "pytest", "--quiet", "--basetemp", filepath.Join(t.TempDir(), "pytest")}, args...)...)
	cmd.Env = append(cmd.Env, environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pytest: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func TestPackage(t *testing.T) { pytest(t, nil, "-m", "not postgres and not notebook") }

func TestPackageWithPostgreSQL(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	pytest(t, []string{"TEST_POSTGRES=" + url}, "-m", "postgres")
}

func TestNotebook(t *testing.T) {
	args := []string{"-m", "notebook"}
	if *update {
		args = append(args, "--update")
	}
	pytest(t, nil, args...)
}

func TestTypes(t *testing.T) {
	cmd := command(t, "-m", "mypy", "--cache-dir", t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("mypy: %v\n%s", err, out)
	}
}

// Lines of Python have the maximum length of those of Go.
func TestLinesAreShort(t *testing.T) {
	files, err := filepath.Glob(tracetest.Root("python", "*", "*.py"))
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob(tracetest.Root("python", "src", "chimbuko", "*.py"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	for _, path := range append(append(files, sources...), tracetest.Root("scripts", "wheel")) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(content), "\n") {
			if len([]rune(line)) > 140 {
				t.Errorf("%s:%d has %d columns (want at most 140)", path, i+1, len([]rune(line)))
			}
		}
	}
}

// scripts/wheel builds a manylinux wheel only of a program that runs on all its systems.
func TestWheelPlatform(t *testing.T) {
	python := tracetest.Python(t, "tomllib")
	program, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, tracetest.Root("scripts", "wheel"), program, t.TempDir()).CombinedOutput()
	if _, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit {
		t.Fatal(err)
	}
	needs, failure := release.Missing(program, release.Glibc)
	if failure != nil {
		t.Fatal(failure)
	}
	if (err != nil) != (len(needs) > 0) {
		t.Errorf("scripts/wheel: %v\n%s\nthe program needs %q", err, out, needs)
	}
	for _, name := range needs {
		if !strings.Contains(string(out), "needs "+name) {
			t.Errorf("the message does not name %s:\n%s", name, out)
		}
	}
}

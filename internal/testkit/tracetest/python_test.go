package tracetest

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

func TestPythonHasPackages(t *testing.T) {
	for _, name := range []string{"adios2", "numpy", "duckdb", "pyarrow"} {
		t.Run(name, func(t *testing.T) {
			python := Python(t, name)
			out, err := exec.CommandContext(t.Context(), python, "-c", "import "+name).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A verdict is a test that notes how it ended.
type verdict struct {
	testing.TB
	got string
}

func (v *verdict) Helper() {}

func (v *verdict) Fatalf(format string, args ...any) { v.end("fail: " + fmt.Sprintf(format, args...)) }

func (v *verdict) Skipf(format string, args ...any) { v.end("skip: " + fmt.Sprintf(format, args...)) }

func (v *verdict) end(how string) {
	v.got = how
	runtime.Goexit()
}

func TestMissingPackageSkipsLocallyAndFailsInCI(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs Python")
	}
	f := func(ci, want string) {
		t.Helper()
		t.Setenv("CI", ci)
		v := &verdict{TB: t, got: "pass"}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Python(v, "sys", "no_such_package")
		}()
		<-done
		if !strings.HasPrefix(v.got, want) {
			t.Errorf("CI=%s: got %q, want %q", ci, v.got, want)
		}
	}
	f("", "skip: SKIP: NOT COMPARED WITH SYS, NO_SUCH_PACKAGE")
	f("true", "fail: SKIP: NOT COMPARED WITH SYS, NO_SUCH_PACKAGE")
}

package doctor_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/cli/doctor"
)

// machine returns options for a machine without programs and variables.
func machine(t *testing.T) *doctor.Options {
	t.Helper()
	return &doctor.Options{
		Version: "1.2", Dir: t.TempDir(), LookPath: func(string) (string, error) { return "", errors.New("not found") },
		Output: func(string, ...string) string { return "" },
	}
}

// text returns the checks of a name.
func text(checks []doctor.Check, name string) string {
	var all strings.Builder
	for _, c := range checks {
		if c.Name == name {
			all.WriteString(string(c.Result) + ": " + c.Text + " → " + c.Do + "\n")
		}
	}
	return all.String()
}

func TestMachineWithoutTAU(t *testing.T) {
	checks := doctor.Examine(machine(t))
	for name, want := range map[string]string{
		"version": "ok: chimbuko 1.2 for ", "disk": "ok: ", "ports": "ok: services can listen on this machine", "TAU": "note: tau_exec is not in PATH",
		"settings": "note: no variable", "ADIOS2": "note: ",
	} {
		if got := text(checks, name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if doctor.Worst(checks) == doctor.Failure {
		t.Errorf("a failure in %v", checks)
	}
}

func TestSettingsOfTAU(t *testing.T) {
	dir := t.TempDir()
	file := "TAU_ADIOS2_FILENAME=" + filepath.Join(dir, "tau-metrics")
	good := []string{"TAU_ADIOS2_ENGINE=BP5", "TAU_ADIOS2_PERIODIC=1", "TAU_ADIOS2_PERIOD=1000000", file}
	for _, c := range []struct{ variable, want string }{
		{"", "ok: "},
		{"TAU_ADIOS2_ENGINE=HDF5", "failure: TAU_ADIOS2_ENGINE is HDF5"},
		{"TAU_ADIOS2_ENGINE=sst", "ok: "},
		{"TAU_ADIOS2_PERIODIC=maybe", "warning: TAU writes all events at the end"},
		{"TAU_ADIOS2_PERIODIC=On", "ok: "},
		{"TAU_ADIOS2_PERIOD=1s", `failure: TAU_ADIOS2_PERIOD is "1s"`},
		{"TAU_ADIOS2_PERIOD=1000", "warning: TAU writes a step every 1000 µs"},
		{"TAU_ADIOS2_ONE_FILE=true", "note: all ranks share one dataset"},
		{"TAU_ADIOS2_FILENAME=" + filepath.Join(dir, "missing", "tau-metrics"), "failure: the directory of TAU_ADIOS2_FILENAME"},
		{"TAU_ADIOS2_FILENAME=", "warning: TAU writes its traces where each program starts"},
		{"TAU_ADIOS2_SELECTION_FILE=x", "warning: TAU's traces ignore TAU_ADIOS2_SELECTION_FILE"},
		{"TAU_ADIOS2_ENGIN=BP5", "warning: TAU's traces ignore TAU_ADIOS2_ENGIN "},
		{"TAU_ADIOS2_SELECT_FILE=" + filepath.Join(dir, "none"), "failure: TAU_ADIOS2_SELECT_FILE"},
	} {
		o := machine(t)
		o.Environ = append(append([]string{"HOME=/"}, good...), c.variable)
		if got := text(doctor.Examine(o), "settings"); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: got %s, want %s", c.variable, got, c.want)
		}
	}
}

func TestInstallationsOfTAU(t *testing.T) {
	dir := t.TempDir()
	o := machine(t)
	program := filepath.Join(dir, "bin", "tau_exec")
	o.LookPath = func(name string) (string, error) {
		switch name {
		case "tau_exec":
			return program, nil
		case "bpls":
			return "/opt/bin/bpls", nil
		}
		return "", errors.New("not found")
	}
	o.Output = func(name string, args ...string) string { return strings.Join(append(args, name, "2.10.2\nmore"), " ") }
	write := func(name string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ file, want string }{
		{"bin/tau_exec", "warning: " + program + " has no configuration"},
		{"lib/Makefile.tau-mpi", "failure: " + program + " has 1 configurations, but none writes ADIOS2 traces"},
		{"lib/shared-mpi-adios2/libTAU-adios2-trace-plugin.so", "ok: " + program + " writes ADIOS2 traces (mpi-adios2)"},
	} {
		write(step.file)
		if got := text(doctor.Examine(o), "TAU"); !strings.HasPrefix(got, step.want) {
			t.Errorf("with %s: got %s, want %s", step.file, got, step.want)
		}
	}
	if got := text(doctor.Examine(o), "ADIOS2"); got != "ok: /opt/bin/bpls: --version /opt/bin/bpls 2.10.2 → \n" {
		t.Errorf("ADIOS2: %s", got)
	}
}

func TestBadDirectoryAndPort(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	o := machine(t)
	o.Dir, o.Services = filepath.Join(o.Dir, "missing"), []string{l.Addr().String()}
	checks := doctor.Examine(o)
	if got := text(checks, "disk"); !strings.HasPrefix(got, "failure: ") || !strings.Contains(got, "missing") {
		t.Errorf("disk: %s", got)
	}
	if got := text(checks, "ports"); !strings.Contains(got, "failure: cannot listen on "+l.Addr().String()) {
		t.Errorf("ports: %s", got)
	}
	if doctor.Worst(checks) != doctor.Failure {
		t.Error("no failure")
	}
	var b strings.Builder
	if err := doctor.Print(&b, checks); err != nil || !strings.Contains(b.String(), "→ choose a directory") {
		t.Errorf("%v: %s", err, b.String())
	}
}

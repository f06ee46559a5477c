package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUpgradeReportsWhatItConverts(t *testing.T) {
	dir, _ := analyze(t, "testdata/traces/ring-BP4")
	file := filepath.Join(dir, "run.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(format string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"format": 1,`, format, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := func(want string, args ...string) {
		t.Helper()
		if got := must(t, append([]string{"upgrade"}, args...)...); got != want {
			t.Errorf("upgrade %v: got %q, want %q", args, got, want)
		}
	}
	f(dir+" is up to date\n", dir)
	replace("")
	for _, command := range []string{"findings", "report", "finish"} {
		fails(t, 1, []string{command, dir}, file+": written by an earlier chimbuko: it has format 0", "chimbuko upgrade")
	}
	f("would convert "+file+" from format 0 to 1\n", "--dry-run", dir)
	f("converted "+file+" from format 0 to 1\n", dir)
	f(dir+" is up to date\n"+dir+" is up to date\n", dir, dir)
	must(t, "findings", dir)
	replace(`"format": 99,`)
	want := file + ": written by a newer chimbuko: it has format 99, this program reads format 1 (install a newer chimbuko)"
	for _, args := range [][]string{
		{"upgrade", dir},
		{"findings", dir},
		{"top", dir, "--live"},
		{"query", dir, "SELECT 1"},
		{"runs", dir},
		{"report", dir},
		{"view", dir},
		{"diff", dir, dir},
		{"baseline", dir, filepath.Join(t.TempDir(), "b")},
		{"finish", dir},
		{"export", dir, t.TempDir(), "--to", "csv"},
	} {
		fails(t, 1, args, want)
	}
	must(t, "analyze", "testdata/traces/ring-BP4", "--out", dir, "--force")
	fails(t, 2, []string{"upgrade"}, "RUN is missing")
}

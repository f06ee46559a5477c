package rundir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(run, "provenance.duckdb")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(where, want string) {
		t.Helper()
		if got := rundir.Find(where); got != want {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
	}
	f(run, "")
	f(file, "")
	if err := os.WriteFile(filepath.Join(run, "run.json"), []byte(`{"format":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f(run, run)
	f(file, run)
	f(filepath.Join(run, "other.duckdb"), "")
	f(filepath.Join(dir, "nothing"), "")
	f("postgres://server/chimbuko", "")
}

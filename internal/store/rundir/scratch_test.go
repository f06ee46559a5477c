package rundir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

func TestScratchPrecedesTheRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	temp, discard, err := rundir.Scratch(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(temp); err != nil || !info.IsDir() || filepath.Dir(temp) != path {
		t.Errorf("%s is not a directory in the run directory: %v", temp, err)
	}
	discard()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of a run that did not start is still there: %v", err)
	}

	if temp, _, err = rundir.Scratch(path, false); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(temp, "left-by-a-killed-process")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := rundir.Create(path, false)
	if err != nil {
		t.Fatalf("temporary files prevent the run: %v", err)
	}
	if err := d.RemoveSpool(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the end of the run keeps temporary files: %v", err)
	}

	if err := os.WriteFile(filepath.Join(path, "run.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rundir.Scratch(path, false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("got %v for a directory with a run", err)
	}
	if _, _, err := rundir.Scratch(path, true); err != nil {
		t.Errorf("cannot replace a run: %v", err)
	}
}

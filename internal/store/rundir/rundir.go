// Package rundir writes and finds the directory of a run: settings and totals in run.json,
// records in a database, or as JSON files in records/ and global/. The directory can be
// copied and read elsewhere.
package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Dir is a run directory that is being written. It writes records as JSON files.
type Dir struct {
	*recordfile.Writer
	path string
}

// spoolDir holds temporary files of the run.
const spoolDir = "spool"

// runFiles are the files and directories of an earlier run.
var runFiles = append([]string{
	runfiles.Info, "records", "global", spoolDir, duckstore.FileName, duckstore.FileName + ".wal", ownerFile,
}, runfiles.OfServices...)

// Create creates a run directory at path, which must not exist or be empty. With overwrite
// it replaces the run in the directory.
func Create(path string, overwrite bool) (*Dir, error) {
	occupied, err := check(path, overwrite)
	if err != nil {
		return nil, err
	}
	if occupied {
		for _, name := range runFiles {
			if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
				return nil, err
			}
		}
	}
	return Join(path)
}

// check returns an error if no run can be created at path, and whether it replaces another.
func check(path string, overwrite bool) (occupied bool, err error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if entries = slices.DeleteFunc(entries, isLeftover); len(entries) == 0 {
		return false, nil
	}
	if _, err := os.Stat(filepath.Join(path, runfiles.Info)); err != nil {
		return true, fmt.Errorf("%s: the directory is not empty and has no run (choose another with --out)", path)
	}
	if !overwrite {
		return true, fmt.Errorf("%s: the directory already has a run (choose another with --out, or replace it with --force)", path)
	}
	return true, nil
}

// Scratch returns a directory for temporary files before Create creates the run at path; it fails if Create would. The end
// of the run removes the directory; call discard if no run follows. Create removes the leftovers of a killed process.
func Scratch(path string, overwrite bool) (dir string, discard func(), err error) {
	if _, err := check(path, overwrite); err != nil {
		return "", nil, err
	}
	dir = filepath.Join(path, spoolDir)
	_, missing := os.Stat(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	return dir, func() {
		_ = os.Remove(dir) // unless another process uses it
		if missing != nil {
			_ = os.Remove(path)
		}
	}, nil
}

// isLeftover reports whether an entry of a run directory may be the only leftover of a process that was
// killed before it wrote run.json.
func isLeftover(e fs.DirEntry) bool {
	return e.Name() == spoolDir || strings.HasPrefix(e.Name(), runfiles.Info+".")
}

func newDir(path string) *Dir { return &Dir{recordfile.NewWriter(path), path} }

// Database returns the path of the database in the run directory.
func (d *Dir) Database() string { return filepath.Join(d.path, duckstore.FileName) }

const ownerFile = "owner.json"

// Owner returns the path of the file by which the process that writes the run at path
// announces itself to remotestore.
func Owner(path string) string { return filepath.Join(path, ownerFile) }

// Spool returns the directory of temporary files of the run.
func (d *Dir) Spool() string { return filepath.Join(d.path, spoolDir) }

// WriteInfo replaces run.json, in the current format.
func (d *Dir) WriteInfo(info *provdb.Info) error {
	info.Format = provdb.InfoFormat.Number
	b, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(d.path, runfiles.Info), append(b, '\n'), 0o644)
}

// Discard removes the files of a new run that could not start.
func (d *Dir) Discard() error {
	errs := []error{d.RemoveSpool()}
	for _, name := range []string{ownerFile, duckstore.FileName, duckstore.FileName + ".wal", runfiles.Info} { // run.json last
		errs = append(errs, os.RemoveAll(filepath.Join(d.path, name)))
	}
	_ = os.Remove(d.path) // unless it has other files
	return errors.Join(errs...)
}

// RemoveSpool removes the temporary files of the run.
func (d *Dir) RemoveSpool() error { return os.RemoveAll(d.Spool()) }

// Join returns the run directory at path, where services may have started before the run
// was created.
func Join(path string) (*Dir, error) {
	if err := os.MkdirAll(filepath.Join(path, spoolDir), 0o755); err != nil {
		return nil, err
	}
	return newDir(path), nil
}

// HasOnlyServices reports whether the directory at path has files, but only of services that
// started before the store created the run.
func HasOnlyServices(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 {
		return false
	}
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !isLeftover(e) && !slices.ContainsFunc(runfiles.OfServices, func(name string) bool {
			return e.Name() == name || strings.HasPrefix(e.Name(), name+".")
		})
	})
}

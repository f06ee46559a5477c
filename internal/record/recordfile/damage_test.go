package recordfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	damaged "github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedRecordFiles reads mutations of files of the original. Each record is read, or an
// error names the file and the byte, or notes count it.
func TestDamagedRecordFiles(t *testing.T) {
	files, err := damaged.ReadDir("testdata/original/0/1")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	read := func(files damaged.Files) (records, notes int, errs []error) {
		if err := files.Write(filepath.Join(dir, "0", "1")); err != nil {
			t.Fatal(err)
		}
		var n Notes
		for s, err := range Steps(t.Context(), dir, &n) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			records += len(s.Anomalies) + len(s.Typical) + len(s.Metadata)
		}
		for range n.All() {
			notes++
		}
		return records, notes, errs
	}
	present, before, errs := read(files)
	if len(errs) > 0 || present == 0 {
		t.Fatalf("the undamaged files: %d records, %v", present, errs)
	}
	damaged.Run(t, damaged.Format{Files: files, Read: func(bad damaged.Files) error {
		got, notes, errs := read(bad)
		for _, err := range errs {
			e, ok := errors.AsType[*Error](err)
			if !ok || !strings.HasPrefix(e.Path, dir) {
				return fmt.Errorf("the error %w names no file", err)
			}
		}
		// A shorter file may be valid: it does not announce the number of its records.
		if got < present && len(errs) == 0 && notes <= before && bad.Size() >= files.Size() {
			return fmt.Errorf("%d of %d records, without a reported loss", got, present)
		}
		return nil
	}})
}

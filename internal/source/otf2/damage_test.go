package otf2_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedArchives reads mutations of archives. Fewer calls and messages than before need an error, or a count of losses or
// skipped records. The number of values of a metric is only in its record.
func TestDamagedArchives(t *testing.T) {
	for _, name := range []string{calls, records} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir := t.TempDir()
			files := make(damage.Files)
			for _, sub := range []string{"", "traces"} {
				part, err := damage.ReadDir(filepath.Join(name, sub))
				if err != nil {
					t.Fatal(err)
				}
				for file, b := range part {
					files[filepath.Join(sub, file)] = b
				}
			}
			present, n := 0, 0
			count := func(into *int) func(e event) {
				*into = 0
				return func(e event) {
					if e.kind != trace.Count {
						*into++
					}
				}
			}
			_, whole, err := read(t, name, count(&present))
			if err != nil || present == 0 {
				t.Fatalf("the undamaged archive: %d events, %v", present, err)
			}
			skipped := whole.Count(tally.RecordsSkipped)
			lost := func(counts *tally.Tally) bool {
				for kind := range counts.All() {
					if kind.Severity() == tally.DataLoss {
						return true
					}
				}
				return counts.Count(tally.RecordsSkipped) > skipped
			}
			damage.Run(t, damage.Format{Files: files, Read: func(bad damage.Files) error {
				if err := bad.Write(dir); err != nil {
					return err
				}
				_, got, err := read(t, dir, count(&n))
				if err != nil {
					if !strings.Contains(err.Error(), dir) {
						return fmt.Errorf("the error names no file: %w", err)
					}
					return nil
				}
				if n < present && !lost(got) {
					return fmt.Errorf("%d of %d events without a reported loss: %v", n, present, got.Notes())
				}
				if n > bad.Size() { // each takes a byte at least
					return fmt.Errorf("%d events in %d bytes", n, bad.Size())
				}
				return nil
			}})
		})
	}
}

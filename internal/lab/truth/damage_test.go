package truth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestDamagedTruth reads mutations of a file of planted anomalies. Errors name the file.
func TestDamagedTruth(t *testing.T) {
	b, err := os.ReadFile(tracetest.Root("testdata", "truth", "openmp_cpu-BP5", "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "truth.jsonl")
	damage.Run(t, damage.Format{Files: damage.Files{"truth.jsonl": b}, Read: func(files damage.Files) error {
		if err := os.WriteFile(path, files["truth.jsonl"], 0o600); err != nil {
			return err
		}
		if _, err := Read([]string{path}); err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error %v names no file", err)
		}
		return nil
	}})
}

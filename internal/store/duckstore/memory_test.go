package duckstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func openTest(t *testing.T, o Options) (*Store, provdb.RunID) {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), FileName), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	id, err := s.CreateRun(t.Context(), provdb.Run{Name: "run", State: provdb.Running})
	if err != nil {
		t.Fatal(err)
	}
	return s, id
}

func TestWriterHasMemoryLimit(t *testing.T) {
	s, _ := openTest(t, Options{})
	var limit string
	if err := s.conn.QueryRowContext(t.Context(), "SELECT current_setting('memory_limit')").Scan(&limit); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%.1f MiB", float64(writerMemory())/(1<<20))
	if gib := float64(writerMemory()) / (1 << 30); gib >= 1 {
		want = fmt.Sprintf("%.1f GiB", gib)
	}
	if limit != want {
		t.Errorf("limit %s, want %s", limit, want)
	}
}

func TestQueryOfWriterBeyondItsLimitUsesTemporaryFiles(t *testing.T) {
	s, _ := openTest(t, Options{memory: 48 << 20})
	const groups = 2_000_000 // of more than 48 bytes
	rows, err := s.Query(t.Context(), "SELECT count(*) AS n FROM (SELECT hash(range) AS h, max(range), min(range), sum(range) FROM range($1) GROUP BY h)",
		int64(groups))
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range rows.All {
		if err != nil || row[0] != int64(groups) {
			t.Fatalf("got %v, %v, want %d groups", row, err, groups)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.path + spillSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory of temporary files after Close: %v", err)
	}
}

func TestOpenRemovesTemporaryFilesOfKilledWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.Mkdir(path+spillSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(path+spillSuffix, "duckdb_temp_storage_DEFAULT-0.tmp")
	if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("temporary file after Open: %v", err)
	}
}

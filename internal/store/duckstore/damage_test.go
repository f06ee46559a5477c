package duckstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// sample returns a file of 15 records in the database and 15 more in the log, its
// documents, and a file with all of them in the database.
func sample(t *testing.T) (database, log []byte, docs []string, closed []byte) {
	t.Helper()
	path := file(t)
	s := open(t, path, false)
	id := createRun(t, s, "run")
	all := storetest.Records(30, 1)
	write(t, s, id, all[:15]...)
	closeStore(t, s)
	s = open(t, path, false)
	write(t, s, id, all[15:]...)
	docs = documents(t, s)
	database, log = content(t, path), content(t, path+".wal")
	closeStore(t, s)
	return database, log, docs, content(t, path)
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// writeDamaged writes a file and its log to a new directory.
func writeDamaged(t *testing.T, database, log []byte) string {
	t.Helper()
	path := file(t)
	if err := os.WriteFile(path, database, 0o600); err != nil {
		t.Fatal(err)
	}
	if log != nil {
		if err := os.WriteFile(path+".wal", log, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// readable opens a file and returns all documents.
func readable(t *testing.T, path string, readOnly bool) (docs []string, err error) {
	t.Helper()
	s, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: readOnly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // fails for a damaged file
	rows, err := query(s, t, "SELECT doc::VARCHAR FROM anomalies_json ORDER BY run, ev_step, rid, ev_row")
	for _, row := range rows {
		docs = append(docs, row[0].(string))
	}
	return docs, err
}

// wantDamage reports whether an error names the file and the damage.
func wantDamage(t *testing.T, what, path string, err error) {
	t.Helper()
	reported := errors.Is(err, provdb.ErrForeign) || strings.Contains(err.Error(), "the file is damaged (restore it from a copy")
	if !reported || !strings.Contains(err.Error(), path) {
		t.Errorf("%s: got error %v", what, err)
	}
}

func TestTruncatedFileIsReadOrReportedAsDamaged(t *testing.T) {
	t.Parallel()
	_, _, docs, closed := sample(t)
	n := len(closed)
	failed := 0
	lengths := []int{0, 1, 100, 4095, 4096, 8192, 12287, 12288, 12289, 70_000, n / 4, n / 2, 3 * n / 4, n - 65536, n - 1, n}
	for _, length := range tracetest.Sample(lengths, 5) {
		for _, readOnly := range []bool{false, true} {
			path := writeDamaged(t, closed[:length], nil)
			got, err := readable(t, path, readOnly)
			what := fmt.Sprintf("%d of %d bytes, read only %v", length, n, readOnly)
			if err != nil {
				wantDamage(t, what, path, err)
				failed++
			} else if !slices.Equal(got, docs) {
				t.Errorf("%s: got %d documents instead of %d, and no error", what, len(got), len(docs))
			}
			if length == n && err != nil || length < n/2 && err == nil {
				t.Errorf("%s: error %v", what, err)
			}
		}
	}
	t.Logf("%d could not be read", failed)
}

func TestCorruptFileIsReadOrReportedAsDamaged(t *testing.T) {
	t.Parallel()
	_, _, docs, closed := sample(t)
	failed := 0
	parts := 24
	if testing.Short() {
		parts = 4
	}
	for i := range parts {
		at := i * (len(closed) - 64) / (parts - 1)
		bad := slices.Clone(closed)
		for j := range 64 {
			bad[at+j] ^= 0xa5
		}
		path := writeDamaged(t, bad, nil)
		got, err := readable(t, path, i%2 == 0)
		if err != nil {
			wantDamage(t, fmt.Sprintf("bytes %d to %d", at, at+64), path, err)
			failed++
		} else if !slices.Equal(got, docs) {
			t.Errorf("bytes %d to %d: got %d other documents and no error", at, at+64, len(got))
		}
	}
	t.Logf("%d could not be read", failed)
}

// Check finds damage in data that no query of the run reads.
func TestCheckFindsDamageAnywhere(t *testing.T) {
	t.Parallel()
	_, _, _, closed := sample(t)
	check := func(database []byte) (string, error) {
		path := writeDamaged(t, database, nil)
		s, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: true})
		if err != nil {
			return path, err
		}
		defer func() { _ = s.Close() }() // fails for a damaged file
		return path, s.Check(t.Context())
	}
	if _, err := check(closed); err != nil {
		t.Errorf("an intact file: %v", err)
	}
	failed := 0
	block := tracetest.Cases(64<<10, 320<<10)
	for at := 3*4096 + 100; at < len(closed); at += block { // in each block
		bad := slices.Clone(closed)
		bad[at] ^= 0xa5
		if path, err := check(bad); err != nil {
			wantDamage(t, fmt.Sprint("byte ", at), path, err)
			failed++
		}
	}
	if all := (len(closed) - 3*4096) / block; failed < all/2 { // free blocks do not matter
		t.Errorf("%d of %d damaged blocks were noticed", failed, all)
	}
}

func TestTruncatedLogKeepsCompleteTransactions(t *testing.T) {
	t.Parallel()
	database, log, docs, _ := sample(t)
	for _, length := range tracetest.Sample([]int{len(log) - 1, 0, 1, len(log), 100, len(log) / 2}, 3) {
		for _, readOnly := range []bool{true, false} {
			path := writeDamaged(t, database, log[:length])
			want := docs[:15]
			if length == len(log) {
				want = docs
			}
			got, err := readable(t, path, readOnly)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d of %d bytes, read only %v: got %d documents, want %d; error %v", length, len(log), readOnly, len(got), len(want), err)
			}
		}
	}
}

func TestForeignFilesAreRejectedUnchanged(t *testing.T) {
	t.Parallel()
	f := func(what, path string) {
		t.Helper()
		before := content(t, path)
		for _, readOnly := range []bool{false, true} {
			_, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: readOnly})
			if !errors.Is(err, provdb.ErrForeign) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, read only %v: got error %v", what, readOnly, err)
			}
		}
		if !slices.Equal(content(t, path), before) {
			t.Errorf("%s was changed", what)
		}
	}
	f("a text", writeDamaged(t, []byte(strings.Repeat("This is not a database.\n", 1000)), nil))
	f("SQLite", writeDamaged(t, append([]byte("SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20"), make([]byte, 8192)...), nil))
	f("an empty file", writeDamaged(t, nil, nil))
	f("a database with a table", raw(t, "CREATE TABLE mine (i INTEGER)"))
	f("a database with tables of these names", raw(t, "CREATE TABLE schema_version (version INTEGER)",
		"INSERT INTO schema_version VALUES (1)", "CREATE TABLE runs (i INTEGER)"))
	f("a database with another schema_version", raw(t, "CREATE TABLE schema_version (text VARCHAR)", "CREATE TABLE runs (i INTEGER)",
		"CREATE TABLE executions (i INTEGER)"))
}

// raw creates or changes a database with DuckDB alone.
func raw(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raw.duckdb")
	rawAt(t, path, statements...)
	return path
}

func rawAt(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("duckdb", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range statements {
		if _, err := db.ExecContext(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOtherSchemaVersionsAreNotChanged(t *testing.T) {
	t.Parallel()
	path, schema := filepath.Join(t.TempDir(), "other.duckdb"), provdb.Schema.Number
	closeStore(t, open(t, path, false))
	for version, want := range map[int]string{
		schema + 1: fmt.Sprintf("written by a newer chimbuko: it has format %d, this program reads format %d", schema+1, schema),
		1:          "written by an earlier chimbuko: it has format 1",
	} {
		rawAt(t, path, fmt.Sprintf("UPDATE schema_version SET version = %d", version))
		for _, readOnly := range []bool{false, true} {
			_, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: readOnly})
			if err == nil || errors.Is(err, fileformat.ErrNewer) != (version > schema) || !strings.Contains(err.Error(), path+": open: "+want) {
				t.Errorf("schema %d: got error %v, want %q", version, err, want)
			}
		}
	}
	rawAt(t, path, fmt.Sprintf("UPDATE schema_version SET version = %d", schema)) // the file is not open
	open(t, path, false)
}

func TestOpenErrorsNamePath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none", "x.duckdb")} {
		for _, readOnly := range []bool{false, true} {
			_, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: readOnly})
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: got error %v", path, err)
			}
		}
	}
}

package duckstore

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

var update = flag.Bool("update", false, "generate sql/template.duckdb.gz")

// Settings of the template. Most runs store little, so blocks are as small as the compression of wide
// integers permits. DuckDB 1.2 and newer read the format.
const (
	blockSize     = 64 << 10
	storageFormat = "v1.2.0"
)

//go:embed sql/schema.sql
var schema string

//go:embed sql/views.sql
var views string

// attached returns a connection to a database that uses the file at path.
func attached(t *testing.T, path, options string) *sql.Conn {
	t.Helper()
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), db.Close() })
	execute(t, conn, "ATTACH "+quote(path)+" AS prov (TYPE duckdb"+options+")", "USE prov")
	return conn
}

func execute(t *testing.T, conn *sql.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// createFromStatements creates a database with the statements of sql.
func createFromStatements(t *testing.T, path string) {
	t.Helper()
	conn := attached(t, path, fmt.Sprintf(", BLOCK_SIZE %d, ROW_GROUP_SIZE %d, STORAGE_VERSION '%s'", blockSize, groupSize, storageFormat))
	version := fmt.Sprintf("CREATE TABLE schema_version AS SELECT %d::INTEGER AS version", provdb.Schema.Number)
	execute(t, conn, "BEGIN", schema, views, version, "COMMIT", "CHECKPOINT prov", "USE memory", "DETACH prov")
}

// texts returns the rows of a query with one column.
func texts(t *testing.T, conn *sql.Conn, query string) (all []string) {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err is checked
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// description returns all that a file defines.
func description(t *testing.T, path string) (lines []string) {
	t.Helper()
	conn := attached(t, path, ", READ_ONLY")
	for _, query := range []string{
		"SELECT sql FROM duckdb_tables() WHERE database_name = 'prov'",
		"SELECT sql FROM duckdb_views() WHERE database_name = 'prov' AND NOT internal",
		`SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) FROM duckdb_columns()
			WHERE database_name = 'prov' AND NOT internal`,
		"SELECT database_name || ' has blocks of ' || block_size FROM pragma_database_size() WHERE database_name = 'prov'",
		"SELECT tags::VARCHAR FROM duckdb_databases() WHERE database_name = 'prov'",
		"SELECT 'format ' || version FROM schema_version",
		`SELECT concat_ws(' ', database_name, function_name, index_name) FROM (
			SELECT database_name, function_name, NULL AS index_name FROM duckdb_functions() WHERE database_name = 'prov' AND NOT internal
			UNION ALL SELECT database_name, NULL, index_name FROM duckdb_indexes() WHERE database_name = 'prov')`,
	} {
		lines = append(lines, texts(t, conn, query)...)
	}
	return lines
}

func generateTemplate(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "template.duckdb")
	createFromStatements(t, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	template = packed.Bytes()
	if err := os.WriteFile("sql/template.duckdb.gz", template, 0o644); err != nil { //nolint:gosec // a source file
		t.Fatal(err)
	}
}

// TestTemplateEqualsStatements compares new files with ones that the statements of sql create.
func TestTemplateEqualsStatements(t *testing.T) {
	if *update {
		generateTemplate(t)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "new.duckdb")
	if created, err := create(path); err != nil || !created {
		t.Fatalf("created: %v, %v", created, err)
	}
	fromStatements := filepath.Join(dir, "statements.duckdb")
	createFromStatements(t, fromStatements)
	got, want := description(t, path), description(t, fromStatements)
	for i, line := range want {
		if i >= len(got) || got[i] != line {
			t.Fatalf("sql/template.duckdb.gz has no %s (run go test -run TestTemplate ./internal/store/duckstore -update)", line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("sql/template.duckdb.gz has more than sql/schema.sql and sql/views.sql: %s", strings.Join(got[len(want):], "\n"))
	}
	if len(want) < 100 {
		t.Errorf("the description has only %d lines", len(want))
	}
}

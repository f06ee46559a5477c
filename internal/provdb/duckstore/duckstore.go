// Package duckstore keeps provenance in one DuckDB file, which can be copied
// and opened by DuckDB's own tools. One process owns the file while it is
// written. It is the only package that knows DuckDB.
package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provdb/catalog"
)

// FileName is that of the database in a run directory.
const FileName = "provenance.duckdb"

// blockSize is that of the file: the smallest, for most runs keep little.
const blockSize = 64 << 10

// checkpointSize is how long the log may grow before it is merged into the file.
const checkpointSize = "64MB"

//go:embed sql/*.sql
var migrations embed.FS

// Options say how to open a store.
type Options struct {
	// ReadOnly opens a file that exists. Any number of processes can, while no
	// other writes it.
	ReadOnly bool
}

// Store is a provdb.Store in a file.
type Store struct {
	path     string
	readOnly bool
	db       *sql.DB
	attached atomic.Bool

	mu       sync.Mutex // one writer at a time
	conn     *sql.Conn  // of the writer; nil when closed
	enc      encoder
	catalogs map[provdb.RunID]*catalog.Catalog
}

var _ provdb.Store = (*Store)(nil)

// Open opens the database at path, which is made if it is not there.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	_, err := os.Stat(path)
	if o.ReadOnly && err != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	made := err != nil
	s := &Store{path: path, readOnly: o.ReadOnly, catalogs: make(map[provdb.RunID]*catalog.Catalog)}
	connector, err := duckdb.NewConnector("", func(c driver.ExecerContext) error {
		if !s.attached.Load() {
			return nil
		}
		_, err := c.ExecContext(context.Background(), "USE prov", nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("duckdb: %w", err)
	}
	s.db = sql.OpenDB(connector)
	if err := s.prepare(ctx, made); err != nil {
		return nil, errors.Join(s.explain("open", err), s.db.Close())
	}
	return s, nil
}

// prepare attaches the file, brings its tables up to date, and closes all ways
// to other files.
func (s *Store) prepare(ctx context.Context, made bool) (err error) {
	s.conn, err = s.db.Conn(ctx)
	if err != nil {
		return err
	}
	how := fmt.Sprintf("BLOCK_SIZE %d", blockSize)
	if s.readOnly {
		how = "READ_ONLY"
	}
	if !made {
		how = strings.TrimPrefix(how, fmt.Sprintf("BLOCK_SIZE %d", blockSize))
	}
	attach := "ATTACH '" + strings.ReplaceAll(s.path, "'", "''") + "' AS prov (TYPE duckdb"
	if how != "" {
		attach += ", " + how
	}
	for _, statement := range []string{
		"SET checkpoint_threshold = '" + checkpointSize + "'",
		attach + ")", "USE prov",
		"SET temp_directory = ''", "SET enable_external_access = false", "SET lock_configuration = true",
	} {
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	s.attached.Store(true)
	return s.migrate(ctx)
}

// migrate brings the tables to this program's schema.
func (s *Store) migrate(ctx context.Context) error {
	var tables, versions int
	count := "SELECT count(*), count(*) FILTER (table_name = 'schema_version') FROM duckdb_tables() WHERE database_name = 'prov'"
	if err := s.conn.QueryRowContext(ctx, count).Scan(&tables, &versions); err != nil {
		return err
	}
	version := 0
	switch {
	case tables == 0 && s.readOnly, tables > 0 && versions == 0:
		return provdb.ErrForeign
	case versions > 0:
		if err := s.conn.QueryRowContext(ctx, "SELECT version FROM schema_version").Scan(&version); err != nil {
			return err
		}
	}
	switch {
	case version == provdb.Schema:
		return nil
	case version > provdb.Schema:
		return provdb.NewerError(s.path, version)
	}
	if s.readOnly {
		return fmt.Errorf("its schema is %d, and it can only be read: write to it once with this program", version)
	}
	return s.transaction(ctx, func(conn *sql.Conn) error {
		files, err := fs.Glob(migrations, fmt.Sprintf("sql/%03d_*.sql", provdb.Schema))
		if err != nil {
			return err
		}
		for _, name := range files {
			text, err := migrations.ReadFile(name)
			if err != nil {
				return err
			}
			if _, err := conn.ExecContext(ctx, string(text)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		_, err = conn.ExecContext(ctx, "CREATE TABLE schema_version AS SELECT $1::INTEGER AS version", provdb.Schema)
		return err
	})
}

// transaction does all of f, or nothing. The caller holds mu, or nobody else
// knows the store yet.
func (s *Store) transaction(ctx context.Context, f func(conn *sql.Conn) error) error {
	if s.conn == nil {
		return provdb.ErrClosed
	}
	if _, err := s.conn.ExecContext(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	err := f(s.conn)
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// An error of COMMIT has rolled back already.
		_, _ = s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

// Close merges the log into the file and gives the file up.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	return errors.Join(err, s.db.Close())
}

// explain says what an error of DuckDB means and what to do.
func (s *Store) explain(doing string, err error) error {
	if err == nil || errors.Is(err, provdb.ErrNewer) || errors.Is(err, provdb.ErrClosed) {
		return err
	}
	text := err.Error()
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.Is(err, provdb.ErrForeign):
		err = fmt.Errorf("%w; choose another file or directory", err)
	case has("Could not set lock", "Conflicting lock"):
		err = fmt.Errorf("%w; wait for it to end, or ask through it: %w", provdb.ErrInUse, err)
	case has("not a valid DuckDB database", "The file exists, but"):
		err = fmt.Errorf("%w: %w", provdb.ErrForeign, err)
	case has("newer version of DuckDB", "version number"):
		err = fmt.Errorf("%w: %w", provdb.ErrNewer, err)
	case has("No space left", "disk is full", "Could not write", "Could not truncate"):
		err = fmt.Errorf("the disk is full or cannot be written: make room and do it again; what was stored before is safe: %w", err)
	case has("Corrupt", "corrupt", "checksum", "Could not read", "unexpected end"):
		err = fmt.Errorf("the file is damaged; restore it from a copy, or make it anew with analyze or import: %w", err)
	}
	return fmt.Errorf("%s: %s: %w", s.path, doing, err)
}

// Size returns the bytes of the database in a directory or file, with its log.
func Size(path string) (bytes int64) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, FileName)
	}
	for _, p := range []string{path, path + ".wal"} {
		if info, err := os.Stat(p); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

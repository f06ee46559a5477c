// Package duckstore stores provenance in one DuckDB file, which can be copied and opened
// with DuckDB's own tools. One process owns the file while it is written. It is the only
// package that uses DuckDB.
package duckstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// FileName is the name of the database in a run directory.
const FileName = "provenance.duckdb"

// threadMemory is the part of the memory limit that each thread beyond the first requires.
const threadMemory = 128 << 20

// threadSize is the size of a file from which several threads read it. Threads divide the row groups of a table. Smaller
// files have one or two of these, and their threads would keep a processor busy while they wait for each other.
const threadSize = 16 << 20

// maxWriterMemory is the largest memory limit of a writer.
const maxWriterMemory = 2 << 30

// writerMemory returns the memory limit of a writer in bytes. Without a limit, DuckDB would cache all blocks of the file that
// fit in most of the machine's memory. Beyond the limit, it uses temporary files.
func writerMemory() int64 { return min(maxWriterMemory, machineMemory()/2) }

// spillSuffix is the end of the name of the directory for temporary files of a writer.
const spillSuffix = ".tmp"

// checkpointSize is the size of the log at which DuckDB merges it into the file. Until then DuckDB keeps the data of the log
// in memory, twice while it merges.
const checkpointSize = "64MB"

// Options are the options of Open.
type Options struct {
	// ReadOnly opens an existing file. Any number of processes can do so while no process
	// writes it.
	ReadOnly bool
	// Small is set if the store will get few records. It then uses one thread and tries fewer compressions.
	Small bool

	memory    int64 // limit in bytes; 0 means DuckDB's default
	anySchema bool  // open tables of any schema
}

// Store is a provdb.Store in a file.
type Store struct {
	path     string
	readOnly bool
	memory   int64
	any      bool   // opens tables of any schema
	small    bool   // see Options
	claim    string // key in inUse
	db       *sql.DB
	slots    provdb.Slots // for statements with limits

	queriesMu sync.Mutex
	queries   map[running]bool // queries that have not ended; nil after Close

	mu       sync.Mutex // one writer at a time
	conn     *sql.Conn  // connection of the writer; nil after Close
	enc      encoder
	stale    int // number of replaced rows since the last checkpoint
	catalogs map[provdb.RunID]*catalog.Catalog
	created  provdb.RunID // last run that this store created, while it has no rows in other tables; or 0
}

var _ provdb.Store = (*Store)(nil)

// Open opens the database at path, and creates it if it does not exist.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	_, err := os.Stat(path)
	created := false
	if !o.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		created, err = create(path)
	}
	if err != nil {
		return nil, err
	}
	return open(ctx, path, o, created)
}

// open opens an existing file. created is true if the caller has created it.
func open(ctx context.Context, path string, o Options, created bool) (*Store, error) {
	s := &Store{
		path: path, readOnly: o.ReadOnly, memory: o.memory, any: o.anySchema, small: o.Small, claim: resolvePath(path),
		slots: provdb.NewSlots(), queries: make(map[running]bool), catalogs: make(map[provdb.RunID]*catalog.Catalog),
	}
	if _, claimed := inUse.LoadOrStore(s.claim, true); claimed {
		return nil, s.explain("open", fmt.Errorf("%w: this process has already opened it", provdb.ErrInUse))
	}
	connector, err := duckdb.NewConnector("?"+s.settings().Encode(), nil)
	if err != nil {
		inUse.Delete(s.claim)
		return nil, fmt.Errorf("duckdb: %w", err)
	}
	s.db = sql.OpenDB(connector)
	s.db.SetMaxIdleConns(-1) // each query has its own connection
	err = s.attach(ctx)
	if err == nil && !created && !s.any {
		err = s.checkVersion(ctx)
	}
	if err != nil {
		_ = s.release() // err is the cause
		return nil, s.explain("open", err)
	}
	if !s.readOnly {
		removeLeftovers(path)
	}
	return s, nil
}

// inUse contains the files that this process has open. File locks belong to a process: they do not prevent a second DuckDB in
// this process, which would corrupt the file.
var inUse sync.Map

// resolvePath returns the path without symbolic links, as far as it exists.
func resolvePath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}

// rareCompressions are compressions that save little in small tables, and take half of the time of writing these.
const rareCompressions = "dictionary,dict_fsst,fsst,zstd,alp,alprd,chimp,patas,roaring"

// settings returns settings of DuckDB as parameters of the connection. Otherwise each would need a statement.
func (s *Store) settings() url.Values {
	limit, spill := s.memory, ""
	if !s.readOnly {
		limit, spill = cmp.Or(limit, writerMemory()), s.path+spillSuffix
	}
	v := url.Values{}
	threads := int64(runtime.NumCPU())
	if limit > 0 {
		threads = min(threads, limit/threadMemory)
		v.Set("memory_limit", fmt.Sprintf("%dB", limit))
	}
	if s.readOnly {
		threads = min(threads, 1+Size(s.path)/threadSize)
	}
	if s.small {
		threads = 1
	}
	v.Set("threads", strconv.FormatInt(max(1, threads), 10))
	v.Set("checkpoint_threshold", checkpointSize)
	v.Set("allocator_background_threads", "true") // return memory soon
	v.Set("temp_directory", spill)
	return v
}

// attach attaches the file, and disables access to other files.
func (s *Store) attach(ctx context.Context) (err error) {
	s.conn, err = s.db.Conn(ctx)
	if err != nil {
		return err
	}
	mode, small := "", ""
	if s.readOnly {
		mode = ", READ_ONLY"
	}
	if s.small { // connections ignore this setting
		small = "; SET GLOBAL disabled_compression_methods = " + quote(rareCompressions)
	}
	_, err = s.conn.ExecContext(ctx, "ATTACH "+quote(s.path)+" AS prov (TYPE duckdb"+mode+"); USE prov"+small+
		"; SET enable_external_access = false; SET lock_configuration = true")
	return err
}

// checkVersion checks the version of the tables.
func (s *Store) checkVersion(ctx context.Context) error {
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	return provdb.Schema.Check(version)
}

// quote returns a text as an SQL literal.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// version returns the schema version of the tables.
func (s *Store) version(ctx context.Context) (version int, err error) {
	const count = `SELECT count(*) FROM duckdb_tables()
		WHERE database_name = 'prov' AND table_name IN ('schema_version', 'runs', 'executions')`
	var ours int
	err = s.conn.QueryRowContext(ctx, "SELECT ("+count+"), (SELECT version FROM schema_version)").Scan(&ours, &version)
	if err != nil { // a foreign file may lack the table
		if err := s.conn.QueryRowContext(ctx, count).Scan(&ours); err != nil {
			return 0, err
		}
	}
	switch {
	case ours != 3:
		return 0, provdb.ErrForeign
	case err != nil:
		return 0, fmt.Errorf("%w: %w", provdb.ErrForeign, err)
	}
	return version, nil
}

// running is a query that has not ended.
type running interface {
	// abort ends the query with a cause.
	abort(cause error) error
}

// register adds a query that Close ends. It returns false after Close.
func (s *Store) register(q running) bool {
	s.queriesMu.Lock()
	defer s.queriesMu.Unlock()
	if s.queries != nil {
		s.queries[q] = true
	}
	return s.queries != nil
}

func (s *Store) unregister(q running) {
	s.queriesMu.Lock()
	defer s.queriesMu.Unlock()
	delete(s.queries, q)
}

// transaction runs f in a transaction. The caller holds mu, unless the store is still being
// opened.
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
		// A failed COMMIT has already rolled back.
		_, _ = s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

// Close ends all queries, waits for the current write, merges the log into the file and
// releases it.
func (s *Store) Close() error {
	s.queriesMu.Lock()
	open := s.queries
	s.queries = nil
	s.queriesMu.Unlock()
	var errs []error
	for q := range open { // without the lock, for which a query may wait
		errs = append(errs, q.abort(provdb.ErrClosed))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	return errors.Join(append(errs, s.release())...)
}

// release releases the file. DuckDB does so when the last connection is closed.
func (s *Store) release() error {
	defer inUse.Delete(s.claim)
	var err error
	if s.conn != nil {
		err = s.conn.Close()
		s.conn = nil
	}
	return errors.Join(err, s.db.Close())
}

// Size returns the size in bytes of the database in a directory or file, with its log.
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

// Package pgstore stores provenance in a PostgreSQL server, version 14 or later, where
// several processes can write one run at once. All tables are in the schema chimbuko, which
// it creates. It is the only package that uses PostgreSQL.
package pgstore

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Options are the options of Open.
type Options struct {
	// ReadOnly opens an existing store for queries only.
	ReadOnly bool
	// RetryTime is how long a write waits for an unreachable server; 0 is DefaultRetryTime,
	// a negative value disables waiting.
	RetryTime time.Duration
}

// DefaultRetryTime is longer than the restart of a server.
const DefaultRetryTime = 30 * time.Second

const (
	connectTimeout = 10 * time.Second // unless the URL sets it
	leastConns     = 8                // connections of the pool, unless the URL sets it
	endTimeout     = 5 * time.Second  // for the rollback of a failed transaction
)

// Store is a provdb.Store on a server.
type Store struct {
	name      string // of server and database, for errors
	pool      *pgxpool.Pool
	readOnly  bool
	retryTime time.Duration
	reader    bool // queries run as readerRole
	slots     provdb.Slots

	life   sync.RWMutex // held for reading by running writes
	closed bool

	mu      sync.Mutex
	runs    map[provdb.RunID]*numbers
	answers map[*answer]bool // that have not ended; nil after Close
}

var _ provdb.Store = (*Store)(nil)

// Open connects to the database of a URL (postgres://user@host:port/database) and creates missing
// tables. As in libpq, missing parts of the URL come from environment variables and files.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	s, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.pool.Close()
		return nil, s.explain(ctx, "open", err)
	}
	return s, nil
}

// connect returns a store whose tables have not been checked.
func connect(ctx context.Context, url string, o Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%s: invalid address: %s (want postgres://USER@HOST:PORT/DATABASE)", redact(url), redact(err.Error()))
	}
	s := &Store{
		name: serverName(config.ConnConfig), readOnly: o.ReadOnly, retryTime: o.RetryTime,
		runs: make(map[provdb.RunID]*numbers), answers: make(map[*answer]bool),
		slots: provdb.NewSlots(),
	}
	if s.retryTime == 0 {
		s.retryTime = DefaultRetryTime
	}
	configure(config, url)
	s.pool, err = pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, s.explain(ctx, "open", err)
	}
	return s, nil
}

// settings are the settings of every connection. Rows are read as text, so its form is
// fixed. Compiling queries costs more than it gains. Groups of a large run should fit into
// memory.
const settings = `SELECT set_config('search_path', 'chimbuko', false), set_config('timezone', 'UTC', false),
	set_config('datestyle', 'ISO', false), set_config('bytea_output', 'hex', false), set_config('extra_float_digits', '1', false),
	set_config('standard_conforming_strings', 'on', false), set_config('jit', 'off', false),
	set_config('work_mem', greatest(pg_size_bytes(current_setting('work_mem')) / 1024, 16384) || 'kB', false)`

func configure(config *pgxpool.Config, url string) {
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "chimbuko"
	}
	// Detect a server that vanished within half a minute.
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	c.DialFunc = dialer.DialContext
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = max(config.MaxConns, leastConns)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, settings)
		return err
	}
}

// transaction runs f in a transaction.
func (s *Store) transaction(ctx context.Context, f func(tx pgx.Tx) error) error {
	conn, tx, err := s.beginTx(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err = f(tx); err == nil {
		err = tx.Commit(ctx)
	} else {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_ = tx.Rollback(end) // err is the cause
	}
	return lostIf(ctx, conn, err)
}

// beginTx begins a transaction. It replaces a connection that was lost since its last use.
func (s *Store) beginTx(ctx context.Context) (*pgxpool.Conn, pgx.Tx, error) {
	for again := true; ; again = false {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err == nil {
			return conn, tx, nil
		}
		err = lostIf(ctx, conn, err)
		conn.Release()
		if !again || !isLost(err) {
			return nil, nil, err
		}
		s.pool.Reset()
	}
}

// lostIf marks an error that ended the connection.
func lostIf(ctx context.Context, conn *pgxpool.Conn, err error) error {
	if err != nil && ctx.Err() == nil && conn.Conn().IsClosed() {
		return &lostError{err}
	}
	return err
}

// Close waits for running writes and ends all queries.
func (s *Store) Close() error {
	s.mu.Lock()
	answers := s.answers
	s.answers = nil
	s.mu.Unlock()
	for a := range answers {
		a.stop(provdb.ErrClosed)
	}
	s.life.Lock()
	defer s.life.Unlock()
	if !s.closed {
		s.closed = true
		s.pool.Close()
	}
	return nil
}

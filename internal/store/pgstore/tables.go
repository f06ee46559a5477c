package pgstore

import (
	"context"
	_ "embed" // schema, views and privileges
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

//go:embed sql/schema.sql
var schema string

//go:embed sql/blocks.sql
var blockTables string

//go:embed sql/views.sql
var views string

//go:embed sql/reader.sql
var privileges string

// Schema is the format of the tables and views.
var Schema = fileformat.Format{Number: 13, Oldest: provdb.Schema.Oldest, Renew: provdb.Schema.Renew}

const (
	oldestServer = 140000     // as PostgreSQL numbers versions
	createLock   = 0x43686d62 // advisory lock held while tables are created
	readerRole   = "chimbuko_reader"
)

// prepare checks the server, creates missing tables and determines whether queries can run as
// readerRole.
func (s *Store) prepare(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var server int
	var version, encoding string
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::integer, current_setting('server_version'), "+
		"current_setting('server_encoding')").
		Scan(&server, &version, &encoding)
	switch {
	case err != nil:
		return err
	case server < oldestServer:
		return fmt.Errorf("the server is PostgreSQL %s (want 14 or later)", version)
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s (create one with UTF8)", encoding)
	}
	has, err := s.version(ctx, conn)
	switch {
	case err != nil:
	case has != 0:
		err = Schema.Check(has)
	case !s.readOnly:
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error { return s.createTables(ctx, tx) })
	}
	if err != nil {
		return err
	}
	s.reader = canRead(ctx, conn)
	return nil
}

// querier is a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version returns the schema version of the tables, or 0 without tables.
func (s *Store) version(ctx context.Context, q querier) (version int, err error) {
	var relations, versions int
	err = q.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE relname = 'schema_version' AND relkind = 'r')
		FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('chimbuko')
			AND relkind IN ('r', 'p', 'v', 'm', 'f')`).Scan(&relations, &versions)
	switch {
	case err != nil:
		return 0, err
	case relations == 0 && s.readOnly:
		return 0, fmt.Errorf("it has no tables of chimbuko: %w (check the name of the database)", provdb.ErrForeign)
	case relations == 0:
		return 0, nil
	case versions == 0:
		return 0, fmt.Errorf("its schema chimbuko has other tables: %w (choose another database, or rename that schema)", provdb.ErrForeign)
	}
	err = q.QueryRow(ctx, "SELECT version FROM schema_version").Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) || state(err) == undefinedColumn {
		err = fmt.Errorf("its schema chimbuko has another schema_version: %w (choose another database, or rename that schema)",
			provdb.ErrForeign)
	}
	return version, err
}

// createTables creates the tables, unless another process has just done so.
func (s *Store) createTables(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(createLock)); err != nil {
		return err
	}
	has, err := s.version(ctx, tx)
	if err == nil && has != 0 {
		err = Schema.Check(has)
	}
	if err != nil || has != 0 {
		return err
	}
	var exists bool
	if err := tx.QueryRow(ctx, "SELECT to_regnamespace('chimbuko') IS NOT NULL").Scan(&exists); err != nil {
		return err
	}
	if !exists { // IF NOT EXISTS requires the privilege to create schemas even where one exists
		if _, err := tx.Exec(ctx, "CREATE SCHEMA chimbuko"); err != nil {
			return err
		}
	}
	statements := []string{
		schema, blockTables, views,
		"CREATE TABLE schema_version (version INTEGER NOT NULL)",
		fmt.Sprintf("INSERT INTO schema_version VALUES (%d)", Schema.Number),
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	createReader(ctx, tx)
	return nil
}

// createReader creates the role of queries, as far as the user is allowed to: roles belong
// to the server, not to the database. canRead checks the result.
func createReader(ctx context.Context, tx pgx.Tx) {
	const createRole = "DO $$ BEGIN IF to_regrole('" + readerRole + "') IS NULL THEN CREATE ROLE " + readerRole + " NOLOGIN; END IF; END $$"
	const join = "DO $$ BEGIN IF NOT pg_has_role('" + readerRole + "', 'MEMBER') THEN GRANT " + readerRole + " TO CURRENT_USER; END IF; END $$"
	for _, statements := range []string{createRole, privileges, join} {
		_ = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
			_, err := tx.Exec(ctx, statements)
			return err
		})
	}
}

// canRead reports whether the user can take the role of queries, and whether the role can
// read all tables but has no more rights.
func canRead(ctx context.Context, conn *pgxpool.Conn) (reads bool) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback(ctx) }() // changed nothing
	if _, err := tx.Exec(ctx, "SET LOCAL ROLE "+readerRole); err != nil {
		return false
	}
	err = tx.QueryRow(ctx, `SELECT NOT rolsuper AND has_schema_privilege('chimbuko', 'USAGE')
		AND has_table_privilege('chimbuko.executions', 'SELECT')
		AND has_table_privilege('chimbuko.execution_documents', 'SELECT') FROM pg_catalog.pg_roles WHERE rolname = current_user`).Scan(&reads)
	return err == nil && reads
}

package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
)

// steps are the statements that convert tables to the next schema, the last one to Schema. Each leaves the views that
// the next one expects.
var steps = []string{
	// Records keep their details as JSON; those of new records are in blocks.
	`ALTER TABLE executions ALTER COLUMN detail DROP NOT NULL,
		ADD COLUMN block INTEGER, ADD COLUMN slot SMALLINT, ADD COLUMN why TEXT COLLATE "C";
	ALTER TABLE executions DROP CONSTRAINT executions_pkey;
	CREATE INDEX executions_rank ON executions (run, rid, ev_step);
	DROP INDEX executions_step;
	CREATE INDEX executions_step ON executions USING brin (run, io_step, block) WITH (pages_per_range = 32, autosummarize = on);` +
		blockTables + views,
}

// ErrConnected means that other processes use a database that is to be converted.
var ErrConnected = errors.New("other processes are connected (end live runs and pages of this database)")

// Upgrade converts the tables of all runs in the database of a URL to the current schema, unless dryRun, and returns the schema that
// they had. All steps are one transaction, so an interrupted conversion changes nothing. No other chimbuko may be connected.
func Upgrade(ctx context.Context, url string, dryRun bool) (from int, err error) {
	return upgrade(ctx, url, dryRun, Schema, steps)
}

func upgrade(ctx context.Context, url string, dryRun bool, to fileformat.Format, steps []string) (from int, err error) {
	s, err := connect(ctx, url, Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer s.pool.Close()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		if from, err = s.version(ctx, tx); err != nil {
			return err
		}
		if !to.Converts(from) {
			return to.Check(from)
		}
		if dryRun {
			return nil
		}
		return convert(ctx, tx, fileformat.Steps(to, steps, from), from, to.Number)
	})
	return from, s.explain(ctx, "upgrade", err)
}

// convert takes the steps. It keeps other conversions out until the transaction ends.
func convert(ctx context.Context, tx pgx.Tx, steps []string, from, to int) error {
	if _, err := tx.Exec(ctx, "LOCK TABLE schema_version IN ACCESS EXCLUSIVE MODE"); err != nil {
		return err
	}
	var others int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database()
		AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()`).Scan(&others)
	if err == nil && others > 0 {
		err = ErrConnected
	}
	if err != nil {
		return err
	}
	for _, statements := range steps {
		if _, err := tx.Exec(ctx, statements); err != nil {
			return err
		}
	}
	changed, err := tx.Exec(ctx, "UPDATE schema_version SET version = $1 WHERE version = $2", to, from)
	if err == nil && changed.RowsAffected() != 1 { // before this transaction had the lock
		err = errors.New("another process has just converted it")
	}
	if err != nil {
		return err
	}
	createReader(ctx, tx) // the privileges of new tables
	return nil
}

package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// update runs a write, which Close waits for.
func (s *Store) update(ctx context.Context, doing string, f func() error) error {
	s.life.RLock()
	defer s.life.RUnlock()
	switch {
	case s.closed:
		return provdb.ErrClosed
	case s.readOnly:
		return fmt.Errorf("%s: opened for reading: %w", s.name, provdb.ErrReadOnly)
	}
	return s.explain(ctx, doing, f())
}

// CreateRun creates a run. It does not try again after a lost connection, because the run
// may have been created.
func (s *Store) CreateRun(ctx context.Context, run provdb.Run) (id provdb.RunID, err error) {
	name := provenance.Text(run.Name)
	create := func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "INSERT INTO runs (state, started, finished, info, name) VALUES ($1, $2, $3, $4, $5) RETURNING run",
			append(run.Values(), name)...).Scan(&id)
		if state(err) == uniqueViolation {
			return fmt.Errorf("%q: %w", run.Name, provdb.ErrRunExists)
		}
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO numbering VALUES ($1, 0)", int32(id))
		}
		return err
	}
	err = s.update(ctx, "create a run", func() error { return s.transaction(ctx, create) })
	return id, err
}

// UpdateRun replaces state, times and info of a run.
func (s *Store) UpdateRun(ctx context.Context, run provdb.Run) error {
	replace := func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, "UPDATE runs SET state = $1, started = $2, finished = $3, info = $4 WHERE run = $5",
			append(run.Values(), int32(run.ID))...)
		if err == nil && done.RowsAffected() == 0 {
			err = run.ID.NotFound()
		}
		if err == nil {
			err = rollUp(ctx, tx, &run)
		}
		return err
	}
	return s.update(ctx, "update a run", func() error {
		return s.retry(ctx, func() error { return s.transaction(ctx, replace) })
	})
}

// rollUp computes the sums of a run that has ended. It waits for batches that are being
// written; later ones remove the sums.
func rollUp(ctx context.Context, tx pgx.Tx, run *provdb.Run) error {
	if err := tx.QueryRow(ctx, "SELECT FROM runs WHERE run = $1 FOR UPDATE", int32(run.ID)).Scan(); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM rollups WHERE run = $1", int32(run.ID)); err != nil || run.State == provdb.Running {
		return err
	}
	if run.State == provdb.Finished {
		_, err := tx.Exec(ctx, `UPDATE executions SET status = $2, why = replace(why, $4, $5),
				detail = jsonb_set_lax(detail, '{why}', to_jsonb(replace(detail ->> 'why', $4, $5)), false, 'return_target')
			WHERE run = $1 AND status = $3`,
			int32(run.ID), string(provenance.Withdrawn), string(provenance.Provisional), provenance.Provisional.Words(),
			provenance.Withdrawn.Words())
		if err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, catalog.FillRollups, int32(run.ID))
	return err
}

// hasRun keeps a run from being deleted until the transaction ends. It fails if there is
// no such run.
func hasRun(ctx context.Context, tx pgx.Tx, id provdb.RunID) error {
	err := tx.QueryRow(ctx, "SELECT FROM runs WHERE run = $1 FOR KEY SHARE", int32(id)).Scan()
	if errors.Is(err, pgx.ErrNoRows) {
		return id.NotFound()
	}
	return err
}

// runTables are all tables with rows of a run. Deleting the run itself first waits for
// batches that are being written and prevents later ones; numbering prevents new entries.
var runTables = append([]string{"runs", "numbering", "blocks"}, catalog.RunTables...)

// DeleteRun removes a run.
func (s *Store) DeleteRun(ctx context.Context, id provdb.RunID) error {
	remove := func(tx pgx.Tx) error {
		for i, table := range runTables {
			done, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE run = $1", int32(id))
			if err != nil {
				return err
			}
			if i == 0 && done.RowsAffected() == 0 {
				return id.NotFound()
			}
		}
		return nil
	}
	return s.update(ctx, "delete a run", func() error {
		err := s.transaction(ctx, remove)
		s.mu.Lock()
		delete(s.runs, id)
		s.mu.Unlock()
		return err
	})
}

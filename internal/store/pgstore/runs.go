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

// begin starts a write, which Close waits for until end is called.
func (s *Store) begin() (end func(), err error) {
	s.life.RLock()
	switch {
	case s.closed:
		err = provdb.ErrClosed
	case s.readOnly:
		err = fmt.Errorf("%s: opened for reading: %w", s.name, provdb.ErrReadOnly)
	}
	if err != nil {
		s.life.RUnlock()
		return nil, err
	}
	return s.life.RUnlock, nil
}

// CreateRun creates a run. It does not try again after a lost connection, because the run
// may have been created.
func (s *Store) CreateRun(ctx context.Context, run provdb.Run) (id provdb.RunID, err error) {
	end, err := s.begin()
	if err != nil {
		return 0, err
	}
	defer end()
	name := provenance.Text(run.Name)
	err = s.transaction(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "INSERT INTO runs (state, started, finished, info, name) VALUES ($1, $2, $3, $4, $5) RETURNING run",
			append(run.Values(), name)...).Scan(&id)
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO numbering VALUES ($1, 0)", int32(id))
		}
		return err
	})
	if state(err) == uniqueViolation {
		err = fmt.Errorf("%s: %q: %w", s.name, run.Name, provdb.ErrRunExists)
		return 0, err
	}
	return id, s.explain(ctx, "create a run", err)
}

// UpdateRun replaces state, times and info of a run.
func (s *Store) UpdateRun(ctx context.Context, run provdb.Run) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	err = s.retry(ctx, func() error {
		return s.transaction(ctx, func(tx pgx.Tx) error {
			done, err := tx.Exec(ctx, "UPDATE runs SET state = $1, started = $2, finished = $3, info = $4 WHERE run = $5",
				append(run.Values(), int32(run.ID))...)
			if err == nil && done.RowsAffected() == 0 {
				err = run.ID.NotFound()
			}
			if err == nil {
				err = rollUp(ctx, tx, &run)
			}
			return err
		})
	})
	return s.explain(ctx, "update a run", err)
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
		_, err := tx.Exec(ctx, `UPDATE executions SET status = $2,
				detail = jsonb_set_lax(detail, '{why}', to_jsonb(replace(detail ->> 'why', $4, $5)), false, 'return_target')
			WHERE run = $1 AND status = $3`,
			int32(run.ID), string(provenance.Withdrawn), string(provenance.Provisional), provenance.Provisional.Words(),
			provenance.Withdrawn.Words())
		if err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "INSERT INTO rollups SELECT * FROM live_rollups WHERE run = $1", int32(run.ID))
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
var runTables = append([]string{"runs", "numbering"}, catalog.RunTables...)

// DeleteRun removes a run.
func (s *Store) DeleteRun(ctx context.Context, id provdb.RunID) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	err = s.transaction(ctx, func(tx pgx.Tx) error {
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
	})
	s.mu.Lock()
	delete(s.runs, id)
	s.mu.Unlock()
	return s.explain(ctx, "delete a run", err)
}

package duckstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// CreateRun makes a run.
func (s *Store) CreateRun(ctx context.Context, run provdb.Run) (id provdb.RunID, err error) {
	name := provenance.Text(run.Name)
	err = s.locked(ctx, "make a run", func(conn *sql.Conn) error {
		var same int
		if err := conn.QueryRowContext(ctx, "SELECT coalesce(max(run), 0) + 1, count(*) FILTER (name = $1) FROM runs", name).Scan(&id,
			&same); err != nil {
			return err
		}
		if same > 0 {
			return fmt.Errorf("%q: %w", name, provdb.ErrRunExists)
		}
		finished, info := optional(run)
		_, err := conn.ExecContext(ctx, "INSERT INTO runs VALUES ($1, $2, $3, $4, $5, $6::JSON)",
			int32(id), name, string(run.State), run.Started.UTC(), finished, info)
		return err
	})
	if err != nil {
		return 0, err
	}
	return id, nil
}

// optional are the columns that may be null.
func optional(run provdb.Run) (finished, info any) {
	if !run.Finished.IsZero() {
		finished = run.Finished.UTC()
	}
	if run.Info != nil {
		info = string(provdb.CleanJSON(run.Info))
	}
	return finished, info
}

// UpdateRun replaces state, times and info of a run.
func (s *Store) UpdateRun(ctx context.Context, run provdb.Run) error {
	return s.locked(ctx, "update a run", func(conn *sql.Conn) error {
		if err := hasRun(ctx, conn, run.ID); err != nil {
			return err
		}
		finished, info := optional(run)
		_, err := conn.ExecContext(ctx, "UPDATE runs SET state = $2, started = $3, finished = $4, info = $5::JSON WHERE run = $1",
			int32(run.ID), string(run.State), run.Started.UTC(), finished, info)
		if err == nil {
			err = dropRollups(ctx, conn, run.ID)
		}
		if err == nil && run.State == provdb.Finished {
			_, err = conn.ExecContext(ctx, "UPDATE executions SET status = $2, why = replace(why, $4, $5) WHERE run = $1 AND status = $3",
				int32(run.ID), string(provenance.Withdrawn), string(provenance.Provisional), provenance.Provisional.Words(),
				provenance.Withdrawn.Words())
		}
		if err == nil && run.State != provdb.Running {
			_, err = conn.ExecContext(ctx, "INSERT INTO rollups SELECT * FROM live_rollups WHERE run = $1", int32(run.ID))
		}
		return err
	})
}

// dropRollups removes sums that hold no longer. They are made when a run ends.
func dropRollups(ctx context.Context, conn *sql.Conn, id provdb.RunID) error {
	_, err := conn.ExecContext(ctx, "DELETE FROM rollups WHERE run = $1", int32(id))
	return err
}

func hasRun(ctx context.Context, conn *sql.Conn, id provdb.RunID) error {
	var n int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE run = $1", int32(id)).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("run %d: %w", id, provdb.ErrNotFound)
	}
	return nil
}

// DeleteRun removes a run.
func (s *Store) DeleteRun(ctx context.Context, id provdb.RunID) error {
	return s.locked(ctx, "delete a run", func(conn *sql.Conn) error {
		if err := hasRun(ctx, conn, id); err != nil {
			return err
		}
		delete(s.catalogs, id)
		for _, table := range []string{
			"runs", "functions", "paths", "models", "samples", "final_models", "executions", "metadata", "profiles",
			"counter_stats", "rollups", "path_profiles", "issues", "links",
		} {
			if _, err := conn.ExecContext(ctx, "DELETE FROM "+table+" WHERE run = $1", int32(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

package duckstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// CreateRun creates a run.
func (s *Store) CreateRun(ctx context.Context, run provdb.Run) (id provdb.RunID, err error) {
	name := provenance.Text(run.Name)
	err = s.locked(ctx, "create a run", func(conn *sql.Conn) error {
		var same int
		err := conn.QueryRowContext(ctx, "SELECT coalesce(max(run), 0) + 1, count(*) FILTER (name = $1) FROM runs", name).Scan(&id, &same)
		if err != nil {
			return err
		}
		if same > 0 {
			return fmt.Errorf("%q: %w", name, provdb.ErrRunExists)
		}
		_, err = conn.ExecContext(ctx, "INSERT INTO runs VALUES ($1, $2, $3, $4, $5, $6::JSON)",
			append([]any{int32(id), name}, run.Values()...)...)
		s.created, s.catalogs[id] = id, catalog.New() // locked removes it after an error
		return err
	})
	if err != nil {
		return 0, err
	}
	return id, nil
}

// UpdateRun replaces state, times and info of a run.
func (s *Store) UpdateRun(ctx context.Context, run provdb.Run) error {
	return s.locked(ctx, "update a run", func(conn *sql.Conn) error {
		result, err := conn.ExecContext(ctx, "UPDATE runs SET state = $2, started = $3, finished = $4, info = $5::JSON WHERE run = $1",
			append([]any{int32(run.ID)}, run.Values()...)...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err == nil && n == 0 {
			return run.ID.NotFound()
		}
		_, err = conn.ExecContext(ctx, "DELETE FROM rollups WHERE run = $1", int32(run.ID))
		if err == nil && run.State == provdb.Finished {
			_, err = conn.ExecContext(ctx, "UPDATE executions SET status = $2, why = replace(why, $4, $5) WHERE run = $1 AND status = $3",
				int32(run.ID), string(provenance.Withdrawn), string(provenance.Provisional), provenance.Provisional.Words(),
				provenance.Withdrawn.Words())
		}
		if err == nil && run.State != provdb.Running {
			_, err = conn.ExecContext(ctx, catalog.FillRollups, int32(run.ID))
		}
		return err
	})
}

func hasRun(ctx context.Context, conn *sql.Conn, id provdb.RunID) error {
	var n int
	err := conn.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE run = $1", int32(id)).Scan(&n)
	if err == nil && n == 0 {
		err = id.NotFound()
	}
	return err
}

// DeleteRun removes a run.
func (s *Store) DeleteRun(ctx context.Context, id provdb.RunID) error {
	return s.locked(ctx, "delete a run", func(conn *sql.Conn) error {
		if err := hasRun(ctx, conn, id); err != nil {
			return err
		}
		delete(s.catalogs, id)
		for _, table := range append([]string{"runs"}, catalog.RunTables...) {
			if _, err := conn.ExecContext(ctx, "DELETE FROM "+table+" WHERE run = $1", int32(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// catalog returns the catalog of a run. It reads the catalog from the file the first time.
func (s *Store) catalog(ctx context.Context, conn *sql.Conn, id provdb.RunID) (*catalog.Catalog, error) {
	if c := s.catalogs[id]; c != nil {
		return c, nil
	}
	if err := hasRun(ctx, conn, id); err != nil {
		return nil, err
	}
	c := catalog.New()
	for _, l := range catalog.Loaders {
		if err := load(ctx, conn, id, c, &l); err != nil {
			return nil, err
		}
	}
	s.catalogs[id] = c
	return c, nil
}

func load(ctx context.Context, conn *sql.Conn, id provdb.RunID, c *catalog.Catalog, l *catalog.Loader) error {
	rows, err := conn.QueryContext(ctx, l.SQL, int32(id))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err reports the error
	for rows.Next() {
		if err := l.Read(c, rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

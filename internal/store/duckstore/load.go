package duckstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// catalog returns the catalog of a run, read from the file the first time.
func (s *Store) catalog(ctx context.Context, conn *sql.Conn, id provdb.RunID) (*catalog.Catalog, error) {
	if c := s.catalogs[id]; c != nil {
		return c, nil
	}
	if err := hasRun(ctx, conn, id); err != nil {
		return nil, err
	}
	var known catalog.Entries
	err := each(ctx, conn, "SELECT pid, fn, fid, name FROM functions WHERE run = $1", id, func(rows *sql.Rows) error {
		var f catalog.Function
		defer func() { known.Functions = append(known.Functions, f) }()
		return rows.Scan(&f.Program, &f.N, &f.FID, &f.Name)
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, conn, "SELECT pid, path, to_json(fns)::VARCHAR FROM paths WHERE run = $1", id, func(rows *sql.Rows) error {
		var p catalog.Path
		var fns string
		if err := rows.Scan(&p.Program, &p.N, &fns); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(fns), &p.Funcs)
		known.Paths = append(known.Paths, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, conn, "SELECT pid, fn, model, params::VARCHAR FROM models WHERE run = $1", id, func(rows *sql.Rows) error {
		var m catalog.Model
		var params string
		err := rows.Scan(&m.Program, &m.Func, &m.N, &params)
		m.Params = json.RawMessage(params)
		known.Models = append(known.Models, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, conn, fmt.Sprintf(`SELECT pid, sample, "timestamp", to_json(state)::VARCHAR FROM samples x
		WHERE run = $1 AND sample > (SELECT max(sample) - %d FROM samples m WHERE m.run = x.run AND m.pid = x.pid)`,
		catalog.MaxSamples), id, func(rows *sql.Rows) error {
		var x catalog.Sample
		var state string
		if err := rows.Scan(&x.Program, &x.N, &x.State.Timestamp, &state); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(state), &x.State.Data)
		known.Samples = append(known.Samples, x)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := catalog.New(known)
	s.catalogs[id] = c
	return c, nil
}

func each(ctx context.Context, conn *sql.Conn, query string, id provdb.RunID, f func(*sql.Rows) error) error {
	rows, err := conn.QueryContext(ctx, query, int32(id))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err tells
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

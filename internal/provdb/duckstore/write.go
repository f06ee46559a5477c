package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provdb/catalog"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/stats"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// locked does f in a transaction, as the only writer.
func (s *Store) locked(ctx context.Context, doing string, f func(conn *sql.Conn) error) error {
	if s.readOnly {
		return s.explain(doing, provdb.ErrReadOnly)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.explain(doing, s.transaction(ctx, f))
}

// CreateRun makes a run.
func (s *Store) CreateRun(ctx context.Context, run provdb.Run) (provdb.RunID, error) {
	var id provdb.RunID
	err := s.locked(ctx, "make a run", func(conn *sql.Conn) error {
		var same int
		if err := conn.QueryRowContext(ctx, "SELECT coalesce(max(run), 0) + 1, count(*) FILTER (name = $1) FROM runs", run.Name).Scan(&id, &same); err != nil {
			return err
		}
		if same > 0 {
			return fmt.Errorf("%q: %w", run.Name, provdb.ErrRunExists)
		}
		run.ID = id
		return insertRun(ctx, conn, run)
	})
	return id, err
}

func insertRun(ctx context.Context, conn *sql.Conn, run provdb.Run) error {
	var finished, info any
	if !run.Finished.IsZero() {
		finished = run.Finished.UTC()
	}
	if run.Info != nil {
		info = string(run.Info)
	}
	_, err := conn.ExecContext(ctx, "INSERT INTO runs VALUES ($1, $2, $3, $4, $5, $6::JSON)",
		int32(run.ID), run.Name, string(run.State), run.Started.UTC(), finished, info)
	return err
}

// UpdateRun replaces what is known of a run.
func (s *Store) UpdateRun(ctx context.Context, run provdb.Run) error {
	return s.locked(ctx, "update a run", func(conn *sql.Conn) error {
		if err := hasRun(ctx, conn, run.ID); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, "DELETE FROM runs WHERE run = $1", int32(run.ID)); err != nil {
			return err
		}
		return insertRun(ctx, conn, run)
	})
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
		for _, table := range []string{"runs", "functions", "paths", "models", "samples", "final_models", "executions", "metadata", "profiles", "counter_stats"} {
			if _, err := conn.ExecContext(ctx, "DELETE FROM "+table+" WHERE run = $1", int32(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Write stores a batch.
func (s *Store) Write(ctx context.Context, id provdb.RunID, batch *provdb.Batch) error {
	err := s.locked(ctx, "write a batch", func(conn *sql.Conn) error {
		cat, err := s.catalog(ctx, conn, id)
		if err != nil {
			return err
		}
		s.enc.cat, s.enc.run = cat, id
		w := &writer{ctx: ctx, conn: conn, run: id, cat: cat}
		return errors.Join(w.write(&s.enc, batch))
	})
	if err != nil {
		s.mu.Lock()
		delete(s.catalogs, id) // it knows what was not stored
		s.mu.Unlock()
	}
	return err
}

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
	err = each(ctx, conn, `SELECT pid, sample, "timestamp", to_json(state)::VARCHAR FROM samples WHERE run = $1`, id, func(rows *sql.Rows) error {
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

// writer writes one batch within a transaction.
type writer struct {
	ctx  context.Context //nolint:containedctx // lives for one call
	conn *sql.Conn
	run  provdb.RunID
	cat  *catalog.Catalog
}

func (w *writer) write(enc *encoder, b *provdb.Batch) error {
	w.cat.Add(b)
	if err := w.replaceRecords(b); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return w.append("executions", func(add adder) error { return addRecords(enc, b, add) }) },
		func() error { return w.metadata(b.Metadata) },
		func() error { return w.profiles(b.Functions) },
		func() error { return w.counters(b.Counters) },
		func() error { return w.models(b.Models) },
		w.fresh,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// adder appends a row.
type adder func(values ...driver.Value) error

// append appends rows to a table.
func (w *writer) append(table string, rows func(add adder) error) error {
	return w.conn.Raw(func(raw any) error {
		a, err := duckdb.NewAppender(raw.(driver.Conn), "prov", "main", table)
		if err != nil {
			return err
		}
		if err := rows(a.AppendRow); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", table, err), a.Clear(), a.Close())
		}
		return a.Close()
	})
}

func addRecords(enc *encoder, b *provdb.Batch, add adder) error {
	for i, records := range [][]*provenance.Record{b.Typical, b.Anomalies} {
		for _, r := range records {
			row, err := enc.record(r, i == 1)
			if err == nil {
				err = add(row...)
			}
			if err != nil {
				return fmt.Errorf("record %s: %w", r.EventID, err)
			}
		}
	}
	return nil
}

type eventKey struct {
	program trace.Program
	id      string
}

// replaceRecords removes records that the batch replaces, and from the batch
// those that it replaces itself. Few are, so it looks first.
func (w *writer) replaceRecords(b *provdb.Batch) error {
	seen := make(map[eventKey]bool, len(b.Anomalies)+len(b.Typical))
	latest := func(records []*provenance.Record) []*provenance.Record {
		kept := make([]*provenance.Record, 0, len(records))
		for _, r := range slices.Backward(records) {
			key := eventKey{r.PID, r.EventID}
			if !seen[key] {
				seen[key] = true
				kept = append(kept, r)
			}
		}
		slices.Reverse(kept)
		return kept
	}
	b.Anomalies, b.Typical = latest(b.Anomalies), latest(b.Typical)
	if len(seen) == 0 {
		return nil
	}
	lowest, highest := int64(-1), int64(-1)
	ranks := make(map[trace.Rank]bool)
	for _, records := range [][]*provenance.Record{b.Anomalies, b.Typical} {
		for _, r := range records {
			ranks[r.RID] = true
			step, _, ok := parseID(r.EventID, r.RID)
			if !ok {
				step = -1
			}
			if lowest < 0 && highest < 0 {
				lowest, highest = step, step
			}
			lowest, highest = min(lowest, step), max(highest, step)
		}
	}
	old, err := w.stored(ranks, lowest, highest, seen)
	if err != nil || len(old) == 0 {
		return err
	}
	if _, err := w.conn.ExecContext(w.ctx, "CREATE OR REPLACE TEMP TABLE replaced (id BIGINT)"); err != nil {
		return err
	}
	err = w.conn.Raw(func(raw any) error {
		a, err := duckdb.NewAppender(raw.(driver.Conn), "temp", "main", "replaced")
		if err != nil {
			return err
		}
		for _, id := range old {
			if err := a.AppendRow(id); err != nil {
				return errors.Join(err, a.Close())
			}
		}
		return a.Close()
	})
	if err != nil {
		return err
	}
	_, err = w.conn.ExecContext(w.ctx, "DELETE FROM executions WHERE rowid IN (SELECT id FROM temp.replaced)")
	return err
}

// stored returns the row numbers of records that are there already.
func (w *writer) stored(ranks map[trace.Rank]bool, lowest, highest int64, seen map[eventKey]bool) (old []int64, err error) {
	first, last := trace.Rank(0), trace.Rank(0)
	for r := range ranks {
		first, last = min(first, r), max(last, r)
	}
	rows, err := w.conn.QueryContext(w.ctx, `SELECT rowid, pid, rid, coalesce(ev_text, rid || ':' || ev_step || ':' || ev_row)
		FROM executions WHERE run = $1 AND ev_step BETWEEN $2 AND $3 AND rid BETWEEN $4 AND $5`,
		int32(w.run), lowest, highest, int32(first), int32(last))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells
	for rows.Next() {
		var row int64
		var key eventKey
		var rank trace.Rank
		if err := rows.Scan(&row, &key.program, &rank, &key.id); err != nil {
			return nil, err
		}
		if seen[key] {
			old = append(old, row)
		}
	}
	return old, rows.Err()
}

func (w *writer) metadata(steps []provdb.StepMetadata) error {
	if len(steps) == 0 {
		return nil
	}
	for i := range steps {
		m := &steps[i]
		_, err := w.conn.ExecContext(w.ctx, "DELETE FROM metadata WHERE run = $1 AND pid = $2 AND rid = $3 AND io_step = $4",
			int32(w.run), int32(m.Program), int32(m.Rank), int32(m.Step))
		if err != nil {
			return err
		}
	}
	return w.append("metadata", func(add adder) error {
		for i := range steps {
			for _, f := range steps[i].Facts {
				if err := add(int32(w.run), int32(f.PID), int32(f.RID), int64(f.TID), int32(steps[i].Step), f.Descr, f.Value); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// replace removes rows of a table by run and two columns, then appends.
func (w *writer) replace(table, where string, n int, key func(i int) []any, rows func(add adder) error) error {
	if n == 0 {
		return nil
	}
	for i := range n {
		if _, err := w.conn.ExecContext(w.ctx, "DELETE FROM "+table+" WHERE run = $1 AND "+where, append([]any{int32(w.run)}, key(i)...)...); err != nil {
			return err
		}
	}
	return w.append(table, rows)
}

func (w *writer) profiles(funcs []provenance.FuncStats) error {
	return w.replace("profiles", "pid = $2 AND fn = $3", len(funcs), func(i int) []any {
		return []any{int32(funcs[i].App), w.cat.Func(funcs[i].App, funcs[i].FID, funcs[i].Name)}
	}, func(add adder) error {
		for i := range funcs {
			f := &funcs[i]
			row := []driver.Value{int32(w.run), int32(f.App), w.cat.Func(f.App, f.FID, f.Name), int32(f.FID), f.Name, f.AnomalyMetrics != nil}
			m := f.AnomalyMetrics
			if m == nil {
				row = append(row, make([]driver.Value, 4+3*8)...)
			} else {
				row = append(row, m.FirstStep, m.LastStep, int64(m.First), int64(m.Last))
				row = summary(summary(summary(row, &m.Count), &m.Score), &m.Severity)
			}
			row = summary(summary(row, &f.RuntimeProfile.Exclusive), &f.RuntimeProfile.Inclusive)
			if err := add(row...); err != nil {
				return err
			}
		}
		return nil
	})
}

// summary appends the columns of a summary.
func summary(row []driver.Value, s *stats.Summary) []driver.Value {
	return append(row, s.Accumulate, s.Count, s.Kurtosis, s.Maximum, s.Mean, s.Minimum, s.Skewness, s.Stddev)
}

func (w *writer) counters(counters []provenance.CounterStats) error {
	return w.replace("counter_stats", "app = $2 AND counter = $3", len(counters), func(i int) []any {
		return []any{int32(counters[i].App), counters[i].Name}
	}, func(add adder) error {
		for i := range counters {
			c := &counters[i]
			if err := add(summary([]driver.Value{int32(w.run), int32(c.App), c.Name}, &c.Stats)...); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *writer) models(models []provenance.ADModel) error {
	fn := func(i int) int32 { return w.cat.Func(models[i].PID, models[i].FID, models[i].Name) }
	return w.replace("final_models", "pid = $2 AND fn = $3", len(models), func(i int) []any {
		return []any{int32(models[i].PID), fn(i)}
	}, func(add adder) error {
		for i := range models {
			m := &models[i]
			if err := add(int32(w.run), int32(m.PID), fn(i), zeroNull(w.cat.Model(m.PID, fn(i), m.Model))); err != nil {
				return err
			}
		}
		return nil
	})
}

// fresh stores what the catalog numbered for this batch.
func (w *writer) fresh() error {
	f := w.cat.Fresh()
	run := int32(w.run)
	type table struct {
		name string
		n    int
		row  func(i int) []driver.Value
	}
	tables := []table{
		{"functions", len(f.Functions), func(i int) []driver.Value {
			return []driver.Value{run, int32(f.Functions[i].Program), f.Functions[i].N, int32(f.Functions[i].FID), f.Functions[i].Name}
		}},
		{"paths", len(f.Paths), func(i int) []driver.Value {
			return []driver.Value{run, int32(f.Paths[i].Program), f.Paths[i].N, f.Paths[i].Funcs}
		}},
		{"models", len(f.Models), func(i int) []driver.Value {
			return []driver.Value{run, int32(f.Models[i].Program), f.Models[i].Func, f.Models[i].N, f.Models[i].Params}
		}},
	}
	tables = append(tables, table{"samples", len(f.Samples), func(i int) []driver.Value {
		x := &f.Samples[i]
		state := make([]any, 0, len(x.State.Data))
		for _, e := range x.State.Data {
			state = append(state, map[string]any{"field": e.Field, "value": e.Value})
		}
		return []driver.Value{run, int32(x.Program), x.N, int64(x.State.Timestamp), state}
	}})
	for _, t := range tables {
		if t.n == 0 {
			continue
		}
		err := w.append(t.name, func(add adder) error {
			for i := range t.n {
				if err := add(t.row(i)...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

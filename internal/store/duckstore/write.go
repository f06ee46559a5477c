package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// locked runs f in a transaction as the only writer.
func (s *Store) locked(ctx context.Context, operation string, f func(conn *sql.Conn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly && s.conn != nil {
		return s.explain(operation, fmt.Errorf("%w: it was opened for reading", provdb.ErrReadOnly))
	}
	err := s.transaction(ctx, f)
	if err != nil {
		clear(s.catalogs) // they may have entries that were not stored
		s.created = 0
	}
	return s.explain(operation, err)
}

// Write stores a batch.
func (s *Store) Write(ctx context.Context, id provdb.RunID, batch *provdb.Batch) error {
	if err := batch.Validate(); err != nil {
		return s.explain("write a batch", err)
	}
	batch = batch.Clean()
	err := s.locked(ctx, "write a batch", func(conn *sql.Conn) error {
		cat, err := s.catalog(ctx, conn, id)
		if err != nil {
			return err
		}
		s.enc.cat, s.enc.run = cat, id
		w := &writer{ctx: ctx, conn: conn, run: id, first: id == s.created}
		s.created = 0
		return w.write(&s.enc, batch)
	})
	if err == nil && (batch.HasPeers() || batch.Breakdown.Len() > 0) {
		s.reclaim(ctx, batch)
	}
	return err
}

// maxStale is the number of replaced rows after which a checkpoint makes their space available again. Live runs replace the
// windows of all ranks and the collective operations many times.
const maxStale = 4 * groupSize

// reclaim keeps the file from growing with replaced comparisons of peers and of collective operations.
func (s *Store) reclaim(ctx context.Context, b *provdb.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.HasPeers() {
		for i := range b.Peers.Loads {
			s.stale += len(b.Peers.Loads[i].Windows)
		}
	}
	s.stale += b.Breakdown.Len()
	if s.stale < maxStale || s.conn == nil {
		return
	}
	if _, err := s.conn.ExecContext(ctx, "CHECKPOINT prov"); err == nil { // otherwise after a later write
		s.stale = 0
	}
}

// writer writes one batch within a transaction.
type writer struct {
	ctx  context.Context //nolint:containedctx // lives for one call
	conn *sql.Conn
	run  provdb.RunID

	first bool // the run has no rows that the batch could replace
}

func (w *writer) write(enc *encoder, b *provdb.Batch) error {
	if err := w.replaceRecords(b); err != nil {
		return err
	}
	if err := w.appendRecords(enc, b); err != nil {
		return err
	}
	for _, t := range enc.cat.Tables(w.run, b) {
		if err := w.replaceRows(&t); err != nil {
			return err
		}
		if err := w.appendTable(&t); err != nil {
			return err
		}
	}
	entries := enc.cat.TakeNew()
	for _, t := range entries.Tables(w.run) {
		if err := w.appendTable(&t); err != nil {
			return err
		}
	}
	return nil
}

// replaceRows removes the rows that those of the table replace.
func (w *writer) replaceRows(t *catalog.Table) error {
	if w.first {
		return nil
	}
	sql, args := t.Delete(w.run)
	if _, err := w.conn.ExecContext(w.ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// adder appends a row.
type adder func(values ...driver.Value) error

// appendTo appends rows to a table of a database, "" for the default one.
func appendTo(ctx context.Context, conn *sql.Conn, database, table string, rows func(add adder) error) error {
	return conn.Raw(func(raw any) error {
		a, err := duckdb.NewAppender(raw.(driver.Conn), database, "", table)
		if err != nil {
			return err
		}
		if err := rows(a.AppendRow); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", table, err), a.Clear(), a.Close())
		}
		return a.CloseWithCancel(ctx)
	})
}

func (w *writer) appendTable(t *catalog.Table) error {
	if t.Len == 0 {
		return nil
	}
	return appendTo(w.ctx, w.conn, "prov", t.Name, func(add adder) error {
		var values []driver.Value
		for i := range t.Len {
			values = values[:0]
			for _, v := range t.Row(i) {
				if state, ok := v.([]provenance.StateEntry); ok {
					v = structs(state)
				}
				values = append(values, v)
			}
			if err := add(values...); err != nil {
				return err
			}
		}
		return nil
	})
}

// structs returns the state of a node as a list of STRUCTs.
func structs(state []provenance.StateEntry) []any {
	all := make([]any, len(state))
	for i, e := range state {
		all[i] = map[string]any{"field": e.Field, "value": e.Value}
	}
	return all
}

// appendRecords appends the executions of a batch.
func (w *writer) appendRecords(enc *encoder, b *provdb.Batch) error {
	if len(b.Typical)+len(b.Anomalies) == 0 {
		return nil
	}
	return w.conn.Raw(func(raw any) (err error) {
		columns := enc.columns()
		for _, c := range columns {
			c.reset() // there are rows after an error
		}
		to, err := newChunks(raw.(*duckdb.Conn), "executions", columns)
		if err != nil {
			return fmt.Errorf("executions: %w", err)
		}
		defer func() { err = errors.Join(err, to.close()) }()
		if err := addRecords(w.ctx, enc, b, to); err != nil {
			return errors.Join(fmt.Errorf("executions: %w", err), to.discard())
		}
		return to.flush()
	})
}

func addRecords(ctx context.Context, enc *encoder, b *provdb.Batch, to *chunks) error {
	rows, most := 0, duckdb.GetDataChunkCapacity()
	for i, records := range [][]*provenance.Record{b.Typical, b.Anomalies} {
		for _, r := range records {
			if err := enc.add(r, i == 1); err != nil {
				return fmt.Errorf("record %s: %w", r.EventID, err)
			}
			if rows++; rows < most {
				continue
			}
			if err := errors.Join(ctx.Err(), to.append(rows)); err != nil {
				return err
			}
			rows = 0
		}
	}
	if rows == 0 {
		return nil
	}
	return to.append(rows)
}

// replaceRecords removes the records that the batch replaces. With bounds of ranks and steps, DuckDB need not read the others.
func (w *writer) replaceRecords(b *provdb.Batch) error {
	if w.first {
		return nil
	}
	var pids []int32
	var ids []string
	firstRank, lastRank, firstStep, lastStep := int32(math.MaxInt32), int32(math.MinInt32), int32(math.MaxInt32), int32(-1)
	hasText := false // some IDs are not rank:step:row
	for _, records := range b.Replaced() {
		for _, r := range records {
			pids, ids = append(pids, int32(r.PID)), append(ids, r.EventID)
			firstRank, lastRank = min(firstRank, int32(r.RID)), max(lastRank, int32(r.RID))
			if step, _, ok := catalog.ParseID(r.EventID, r.RID); ok {
				firstStep, lastStep = min(firstStep, step), max(lastStep, step)
			} else {
				hasText = true
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := w.conn.ExecContext(w.ctx, `DELETE FROM executions e
		USING (SELECT unnest($2::INTEGER[]) AS pid, unnest($3::VARCHAR[]) AS id) AS replaced
		WHERE e.run = $1 AND e.rid BETWEEN $4 AND $5 AND (e.ev_step BETWEEN $6 AND $7 OR $8 AND e.ev_text IS NOT NULL)
			AND e.pid = replaced.pid AND coalesce(e.ev_text, e.rid || ':' || e.ev_step || ':' || e.ev_row) = replaced.id`,
		int32(w.run), pids, ids, firstRank, lastRank, firstStep, lastStep, hasText)
	return err
}

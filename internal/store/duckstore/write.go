package duckstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// locked does f in a transaction, as the only writer.
func (s *Store) locked(ctx context.Context, doing string, f func(conn *sql.Conn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly && s.conn != nil {
		return s.explain(doing, fmt.Errorf("%w: it was opened to be read", provdb.ErrReadOnly))
	}
	err := s.transaction(ctx, f)
	if err != nil {
		clear(s.catalogs) // they may know what was not stored
	}
	return s.explain(doing, err)
}

// Write stores a batch.
func (s *Store) Write(ctx context.Context, id provdb.RunID, batch *provdb.Batch) error {
	if err := batch.Validate(); err != nil {
		return s.explain("write a batch", err)
	}
	batch = batch.Clean()
	return s.locked(ctx, "write a batch", func(conn *sql.Conn) error {
		cat, err := s.catalog(ctx, conn, id)
		if err != nil {
			return err
		}
		s.enc.cat, s.enc.run = cat, id
		w := &writer{ctx: ctx, conn: conn, run: id, cat: cat}
		return w.write(&s.enc, batch)
	})
}

// writer writes one batch within a transaction.
type writer struct {
	ctx  context.Context //nolint:containedctx // lives for one call
	conn *sql.Conn
	run  provdb.RunID
	cat  *catalog.Catalog
}

func (w *writer) write(enc *encoder, b *provdb.Batch) error {
	if err := w.replaceRecords(b); err != nil {
		return err
	}
	if err := dropRollups(w.ctx, w.conn, w.run); err != nil {
		return err
	}
	if b.VoidsFindings() {
		for _, table := range []string{"issues", "links"} {
			if _, err := w.conn.ExecContext(w.ctx, "DELETE FROM "+table+" WHERE run = $1", int32(w.run)); err != nil {
				return err
			}
		}
	}
	steps := []func() error{
		func() error { return w.append("executions", func(add adder) error { return addRecords(enc, b, add) }) },
		func() error { return w.metadata(b.Metadata) },
		func() error { return w.profiles(b.Functions) },
		func() error { return w.counters(b.Counters) },
		func() error { return w.models(b.Models) },
		func() error { return w.paths(b.Paths) },
		func() error { return w.findings(b) },
		w.fresh, // after all that gives numbers
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
	return w.appendTo("prov", table, rows)
}

func (w *writer) appendTo(database, table string, rows func(add adder) error) error {
	return w.conn.Raw(func(raw any) error {
		a, err := duckdb.NewAppender(raw.(driver.Conn), database, "main", table)
		if err != nil {
			return err
		}
		if err := rows(a.AppendRow); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", table, err), a.Clear(), a.Close())
		}
		return a.CloseWithCancel(w.ctx)
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

// remove removes rows of a table: those of the query, which begins with rowid,
// that old picks. Few are ever replaced, so it looks first.
func (w *writer) remove(table, query string, args []any, old func(scan func(...any) error) (bool, error)) error {
	ids, err := w.pick(query, args, old)
	if err != nil || len(ids) == 0 {
		return err
	}
	if _, err := w.conn.ExecContext(w.ctx, "CREATE OR REPLACE TEMP TABLE replaced (id BIGINT)"); err != nil {
		return err
	}
	err = w.appendTo("temp", "replaced", func(add adder) error {
		for _, id := range ids {
			if err := add(id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = w.conn.ExecContext(w.ctx, "DELETE FROM "+table+" WHERE rowid IN (SELECT id FROM temp.replaced)")
	return err
}

// pick returns the first column of the rows that old picks by the others.
func (w *writer) pick(query string, args []any, old func(scan func(...any) error) (bool, error)) (ids []int64, err error) {
	rows, err := w.conn.QueryContext(w.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells
	for rows.Next() {
		var id int64
		picked, err := old(func(targets ...any) error { return rows.Scan(append([]any{&id}, targets...)...) })
		if err != nil {
			return nil, err
		}
		if picked {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}

// replaceRecords removes records that the batch replaces.
func (w *writer) replaceRecords(b *provdb.Batch) error {
	in := spanOf(b)
	if len(in.events) == 0 {
		return nil
	}
	return w.remove("executions", `SELECT rowid, pid, coalesce(ev_text, rid || ':' || ev_step || ':' || ev_row)
		FROM executions WHERE run = $1 AND rid BETWEEN $2 AND $3 AND (ev_step BETWEEN $4 AND $5 OR $6 AND ev_text IS NOT NULL)`,
		[]any{int32(w.run), int32(in.firstRank), int32(in.lastRank), in.firstStep, in.lastStep, in.odd},
		func(scan func(...any) error) (bool, error) {
			var key eventKey
			err := scan(&key.program, &key.id)
			return in.events[key], err
		})
}

// span is where the records of a batch lie.
type span struct {
	events              map[eventKey]bool
	firstRank, lastRank trace.Rank
	firstStep, lastStep int64
	odd                 bool // some have ids without steps
}

func spanOf(b *provdb.Batch) span {
	in := span{
		events:    make(map[eventKey]bool, len(b.Anomalies)+len(b.Typical)),
		firstRank: math.MaxInt32, lastRank: math.MinInt32, firstStep: math.MaxInt32, lastStep: -1,
	}
	for _, records := range [][]*provenance.Record{b.Anomalies, b.Typical} {
		for _, r := range records {
			in.events[eventKey{r.PID, r.EventID}] = true
			in.firstRank, in.lastRank = min(in.firstRank, r.RID), max(in.lastRank, r.RID)
			if step, _, ok := parseID(r.EventID, r.RID); ok {
				in.firstStep, in.lastStep = min(in.firstStep, step), max(in.lastStep, step)
			} else {
				in.odd = true
			}
		}
	}
	return in
}

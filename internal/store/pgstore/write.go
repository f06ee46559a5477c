package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Write stores a batch. After a lost connection it writes the batch again, which replaces
// what was stored.
func (s *Store) Write(ctx context.Context, id provdb.RunID, batch *provdb.Batch) error {
	return s.update(ctx, "write a batch", func() error {
		if err := batch.Validate(); err != nil {
			return err
		}
		b := batch.Clean()
		n := s.numbersOf(id)
		return s.retry(ctx, func() error {
			d, err := s.number(ctx, id, n, b)
			if err != nil {
				return err
			}
			err = s.transaction(ctx, func(tx pgx.Tx) error {
				w := &writer{tx: tx, run: id, n: n}
				return w.write(ctx, d)
			})
			if state(err) == uniqueViolation {
				n.replaces.Store(true)
			}
			return err
		})
	})
}

// writer writes one batch within a transaction.
type writer struct {
	tx  pgx.Tx
	run provdb.RunID
	n   *numbers
}

func (w *writer) write(ctx context.Context, d *numbered) error {
	if err := hasRun(ctx, w.tx, w.run); err != nil {
		return err
	}
	if err := w.records(ctx, d); err != nil {
		return err
	}
	for _, t := range d.tables {
		sql, args := t.Delete(w.run)
		if _, err := w.tx.Exec(ctx, sql, args...); err != nil {
			return err
		}
		if err := appendTable(ctx, w.tx, &t); err != nil {
			return err
		}
	}
	return nil
}

// records stores executions. Most are new, so it removes replaced ones only after
// PostgreSQL has reported one.
func (w *writer) records(ctx context.Context, d *numbered) error {
	if len(d.refs) > 0 && w.n.replaces.Load() || len(d.Removed) > 0 {
		if err := w.removeRecords(ctx, d); err != nil {
			return err
		}
	}
	if len(d.refs) == 0 {
		return nil
	}
	enc := &encoder{run: w.run}
	return appendRows(ctx, w.tx, "executions", executionColumns, len(d.refs), func(i int) ([]any, error) {
		records, anomalous := d.Typical, false
		k := i
		if k >= len(records) {
			k -= len(records)
			records, anomalous = d.Anomalies, true
		}
		row, err := enc.row(records[k], anomalous, d.refs[i])
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", records[k].EventID, err)
		}
		return row, nil
	})
}

// removeRecords removes the records that a batch replaces.
func (w *writer) removeRecords(ctx context.Context, d *numbered) error {
	var pids []int32
	var ids []string
	for _, records := range d.Replaced() {
		for _, r := range records {
			pids, ids = append(pids, int32(r.PID)), append(ids, storedID(r))
		}
	}
	done, err := w.tx.Exec(ctx, `DELETE FROM executions e USING unnest($2::integer[], $3::text[]) AS k(pid, id)
		WHERE e.run = $1 AND e.pid = k.pid AND
			CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END = k.id`,
		int32(w.run), pids, ids)
	if err == nil && done.RowsAffected() == 0 {
		w.n.replaces.Store(false)
	}
	return err
}

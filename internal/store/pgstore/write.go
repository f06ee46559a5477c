package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Write stores a batch. After a lost connection it writes the batch again, which replaces the part
// that was stored.
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
			if err == nil && batch.HasFindings() {
				err = s.analyze(ctx)
			}
			return err
		})
	})
}

// analyze updates the statistics of PostgreSQL, which would do so within minutes. Without them, it takes tables for tiny, and
// compares each execution with each link.
func (s *Store) analyze(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Exec(ctx, "ANALYZE executions, links")
	return lostIf(ctx, conn, err)
}

// writer writes one batch within a transaction.
type writer struct {
	tx  pgx.Tx
	run provdb.RunID
	n   *numbers
}

func (w *writer) write(ctx context.Context, d *numberedBatch) error {
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
func (w *writer) records(ctx context.Context, d *numberedBatch) error {
	if len(d.refs) > 0 && w.n.replaces.Load() || len(d.Removed) > 0 {
		if err := w.removeRecords(ctx, d); err != nil {
			return err
		}
	}
	if len(d.refs) == 0 {
		return nil
	}
	free, err := w.blockNumbers(ctx, (len(d.refs)+blockSize-1)/blockSize)
	if err != nil {
		return err
	}
	enc, fns := &encoder{run: w.run, free: free}, d.fns
	err = appendRows(ctx, w.tx, "executions", executionColumns, len(d.refs), func(i int) ([]any, error) {
		records, anomalous := d.Typical, false
		k := i
		if k >= len(records) {
			k -= len(records)
			records, anomalous = d.Anomalies, true
		}
		r := records[k]
		calls := len(r.CallStack) + len(r.EventWindow.Execs)
		row, err := enc.row(r, anomalous, d.refs[i], fns[:calls])
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.EventID, err)
		}
		fns = fns[calls:]
		return row, nil
	})
	if err != nil {
		return err
	}
	return copyBlocks(ctx, w.tx, w.run, enc.blocks)
}

// blockNumbers returns n numbers for new blocks.
func (w *writer) blockNumbers(ctx context.Context, n int) ([]int32, error) {
	rows, err := w.tx.Query(ctx, "SELECT nextval('block_numbers')::integer FROM generate_series(1, $1::integer)", n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int32])
}

// removeRecords removes the records that a batch replaces.
func (w *writer) removeRecords(ctx context.Context, d *numberedBatch) error {
	var pids []int32
	var ids []string
	for _, records := range d.Replaced() {
		for _, r := range records {
			pids, ids = append(pids, int32(r.PID)), append(ids, storedID(r))
		}
	}
	rows, err := w.tx.Query(ctx, `WITH gone AS (
			DELETE FROM executions e USING unnest($2::integer[], $3::text[]) AS k(pid, id)
			WHERE e.run = $1 AND e.pid = k.pid AND
				CASE WHEN e.ev_text = '' THEN e.rid::text || ':' || e.ev_step::text || ':' || e.ev_row::text ELSE e.ev_text END = k.id
			RETURNING e.block)
		SELECT DISTINCT coalesce(block, 0) FROM gone`, int32(w.run), pids, ids)
	if err != nil {
		return err
	}
	blocks, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return err
	}
	if len(blocks) == 0 {
		w.n.replaces.Store(false)
		return nil
	}
	// Blocks go with their last execution.
	_, err = w.tx.Exec(ctx, `DELETE FROM blocks b WHERE b.run = $1 AND b.block = ANY($2)
		AND NOT EXISTS (SELECT FROM executions e WHERE e.run = $1 AND e.block = b.block)`, int32(w.run), blocks)
	return err
}

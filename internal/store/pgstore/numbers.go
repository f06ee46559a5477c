package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// numbers is the part of the catalog of a run that this process has read. A process that
// adds entries locks the run's row of the table numbering until they are stored.
type numbers struct {
	// replaces is true while the batches of the run replace records.
	replaces atomic.Bool

	mu      sync.Mutex
	cat     *catalog.Catalog // nil until it is read
	changes int64            // of the table numbering when cat was complete
}

// numberedBatch is a batch with the numbers of all entries that it refers to.
type numberedBatch struct {
	*provdb.Batch
	refs   []catalog.Refs // of Typical, then of Anomalies
	fns    []int32        // of the functions of their call stacks and windows
	tables []catalog.Table
}

func (s *Store) numbersOf(id provdb.RunID) *numbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.runs[id]
	if n == nil {
		n = new(numbers)
		s.runs[id] = n
	}
	return n
}

// number returns a batch with its numbers. It stores new entries first, in a separate
// transaction, so that other writers need not wait for the batch.
func (s *Store) number(ctx context.Context, id provdb.RunID, n *numbers, b *provdb.Batch) (*numberedBatch, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cat == nil || !n.cat.HasNumbers(b) {
		if err := s.extend(ctx, id, n, b); err != nil {
			n.cat = nil // it may have entries that were not stored
			return nil, err
		}
	}
	d := &numberedBatch{Batch: b, refs: make([]catalog.Refs, 0, len(b.Anomalies)+len(b.Typical)), tables: n.cat.Tables(id, b)}
	for _, records := range [][]*provenance.Record{b.Typical, b.Anomalies} {
		for _, r := range records {
			d.refs = append(d.refs, n.cat.Refs(r))
			for i := range r.CallStack {
				d.fns = append(d.fns, n.cat.Func(r.PID, r.CallStack[i].FID, r.CallStack[i].Func))
			}
			for i := range r.EventWindow.Execs {
				d.fns = append(d.fns, n.cat.Func(r.PID, r.EventWindow.Execs[i].FID, r.EventWindow.Execs[i].Func))
			}
		}
	}
	return d, nil
}

// extend numbers and stores the new entries of a batch.
func (s *Store) extend(ctx context.Context, id provdb.RunID, n *numbers, b *provdb.Batch) error {
	var changes int64
	err := s.transaction(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "UPDATE numbering SET changes = changes + 1 WHERE run = $1 RETURNING changes", int32(id)).Scan(&changes)
		if errors.Is(err, pgx.ErrNoRows) {
			return id.NotFound()
		}
		if err != nil {
			return err
		}
		if n.cat == nil {
			n.cat, n.changes = catalog.New(), 0
		}
		if changes != n.changes+1 { // other processes have numbered entries
			if err := load(ctx, tx, id, n.cat); err != nil {
				return err
			}
		}
		n.cat.Add(b)
		entries := n.cat.TakeNew()
		for _, t := range entries.Tables(id) {
			if err := appendTable(ctx, tx, &t); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		n.changes = changes
	}
	return err
}

// appendTable appends rows to a table.
func appendTable(ctx context.Context, tx pgx.Tx, t *catalog.Table) error {
	return appendRows(ctx, tx, t.Name, t.Columns, t.Len, func(i int) ([]any, error) { return t.Row(i), nil })
}

// appendRows appends n rows to a table.
func appendRows(ctx context.Context, tx pgx.Tx, table string, columns []string, n int, row func(i int) ([]any, error)) error {
	if n == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, row))
	return err
}

// load reads the entries that a catalog does not have yet.
func load(ctx context.Context, tx pgx.Tx, id provdb.RunID, cat *catalog.Catalog) error {
	for _, l := range catalog.Loaders {
		var pids, fns, ns []int32
		for _, m := range cat.Marks(l.Kind) {
			pids, fns, ns = append(pids, int32(m.Program)), append(fns, m.Func), append(ns, m.N)
		}
		sql := fmt.Sprintf(`%s AND NOT EXISTS (SELECT FROM unnest($2::integer[], $3::integer[], $4::integer[]) AS mark(pid, fn, n)
			WHERE mark.pid = x.pid AND mark.fn = %s AND mark.n >= x.%s)`, l.SQL, l.Func, l.Number)
		rows, err := tx.Query(ctx, sql, int32(id), pids, fns, ns)
		if err != nil {
			return err
		}
		for err == nil && rows.Next() {
			err = l.Read(cat, rows.Scan)
		}
		rows.Close()
		if err := errors.Join(err, rows.Err()); err != nil {
			return err
		}
	}
	return nil
}

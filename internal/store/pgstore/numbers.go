package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// numbers are those of a run's functions, call paths, models and states of nodes
// as far as this process knows them. Other processes number, too: who does holds
// the row of the run in the table numbering until it has stored what is new.
type numbers struct {
	// replaces is set while the batches of the run replace records.
	replaces atomic.Bool

	mu      sync.Mutex
	cat     *catalog.Catalog // nil until it is read
	changes int64            // of the table numbering, when cat knew all
}

// numbered is a batch with the numbers of all that it refers to.
type numbered struct {
	*provdb.Batch
	refs      []refs  // of Typical, then of Anomalies
	functions []int32 // of Functions
	finals    []refs  // of Models

	paths, pathFunctions []int32 // of Paths
}

// refs are the numbers that a record refers to; 0 is none.
type refs struct{ fn, path, model, sample int32 }

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

// number looks all numbers of a batch up. What has none is numbered and stored
// first, in a transaction of its own, so that other writers need not wait for the
// batch.
func (s *Store) number(ctx context.Context, id provdb.RunID, n *numbers, b *provdb.Batch) (*numbered, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cat == nil || !n.cat.Knows(b) {
		if err := s.extend(ctx, id, n, b); err != nil {
			n.cat = nil // it may know what is not stored
			return nil, err
		}
	}
	d := &numbered{Batch: b, refs: make([]refs, 0, len(b.Anomalies)+len(b.Typical))}
	for _, records := range [][]*provenance.Record{b.Typical, b.Anomalies} {
		for _, r := range records {
			fn := n.cat.Func(r.PID, r.FID, r.Func)
			d.refs = append(d.refs, refs{fn, n.cat.Path(r.PID, r.CallStack), n.cat.Model(r.PID, fn, r.AlgoParams), n.cat.Sample(r.PID, r.NodeState)})
		}
	}
	for i := range b.Functions {
		d.functions = append(d.functions, n.cat.Func(b.Functions[i].App, b.Functions[i].FID, b.Functions[i].Name))
	}
	d.paths, d.pathFunctions = n.cat.Paths(b.Paths)
	for i := range b.Models {
		m := &b.Models[i]
		fn := n.cat.Func(m.PID, m.FID, m.Name)
		d.finals = append(d.finals, refs{fn: fn, model: n.cat.Model(m.PID, fn, m.Model)})
	}
	return d, nil
}

// extend numbers what is new in a batch.
func (s *Store) extend(ctx context.Context, id provdb.RunID, n *numbers, b *provdb.Batch) error {
	var changes int64
	err := s.transaction(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "UPDATE numbering SET changes = changes + 1 WHERE run = $1 RETURNING changes", int32(id)).Scan(&changes)
		if errors.Is(err, pgx.ErrNoRows) {
			return noRun(id)
		}
		if err != nil {
			return err
		}
		if n.cat == nil {
			n.cat, n.changes = catalog.New(catalog.Entries{}), 0
		}
		if changes != n.changes+1 { // others have numbered
			if err := load(ctx, tx, id, n.cat); err != nil {
				return err
			}
		}
		n.cat.Add(b)
		return storeFresh(ctx, tx, id, n.cat.Fresh())
	})
	if err == nil {
		n.changes = changes
	}
	return err
}

// storeFresh stores new entries of a catalog.
func storeFresh(ctx context.Context, tx pgx.Tx, id provdb.RunID, f catalog.Entries) error {
	run := int32(id)
	for _, t := range []struct {
		name    string
		columns []string
		n       int
		row     func(i int) []any
	}{
		{"functions", []string{"run", "pid", "fn", "fid", "name"}, len(f.Functions), func(i int) []any {
			x := &f.Functions[i]
			return []any{run, int32(x.Program), x.N, int64(x.FID), x.Name}
		}},
		{"paths", []string{"run", "pid", "path", "fns"}, len(f.Paths), func(i int) []any {
			x := &f.Paths[i]
			return []any{run, int32(x.Program), x.N, append([]int32{}, x.Funcs...)}
		}},
		{"models", []string{"run", "pid", "fn", "model", "params"}, len(f.Models), func(i int) []any {
			x := &f.Models[i]
			return []any{run, int32(x.Program), x.Func, x.N, []byte(x.Params)}
		}},
		{"samples", []string{"run", "pid", "sample", "timestamp", "state"}, len(f.Samples), func(i int) []any {
			x := &f.Samples[i]
			return []any{run, int32(x.Program), x.N, int64(x.State.Timestamp), appendState(nil, x.State.Data)}
		}},
	} {
		if err := appendRows(ctx, tx, t.name, t.columns, t.n, func(i int) ([]any, error) { return t.row(i), nil }); err != nil {
			return err
		}
	}
	return nil
}

// appendRows appends n rows to a table.
func appendRows(ctx context.Context, tx pgx.Tx, table string, columns []string, n int, row func(i int) ([]any, error)) error {
	if n == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, row))
	return err
}

// load reads what a catalog does not know yet. Functions come first: their models
// are looked for one by one.
func load(ctx context.Context, tx pgx.Tx, id provdb.RunID, cat *catalog.Catalog) error {
	marks := cat.Marks()
	const ofProgram = " LEFT JOIN unnest($2::integer[], $3::integer[]) AS known(pid, n) ON known.pid = x.pid WHERE x.run = $1 AND "
	programs := func(marks []catalog.Mark) []any {
		pids, _, ns := arrays(marks)
		return []any{int32(id), pids, ns}
	}
	err := each(ctx, tx, "SELECT x.pid, x.fn, x.fid, x.name FROM functions x"+ofProgram+"x.fn > coalesce(known.n, 0)",
		programs(marks.Functions), func(rows pgx.Rows) (e catalog.Entries, err error) {
			var pid int32
			var x catalog.Function
			err = rows.Scan(&pid, &x.N, &x.FID, &x.Name)
			x.Program = trace.Program(pid)
			return catalog.Entries{Functions: []catalog.Function{x}}, err
		}, cat)
	if err != nil {
		return err
	}
	err = each(ctx, tx, "SELECT x.pid, x.path, x.fns FROM paths x"+ofProgram+"x.path > coalesce(known.n, 0)",
		programs(marks.Paths), func(rows pgx.Rows) (e catalog.Entries, err error) {
			var pid int32
			var x catalog.Path
			err = rows.Scan(&pid, &x.N, &x.Funcs)
			x.Program = trace.Program(pid)
			return catalog.Entries{Paths: []catalog.Path{x}}, err
		}, cat)
	if err != nil {
		return err
	}
	err = each(ctx, tx, `SELECT x.pid, x.sample, x."timestamp", x.state FROM samples x`+ofProgram+fmt.Sprintf(`x.sample > coalesce(known.n, 0)
		AND x.sample > (SELECT max(sample) - %d FROM samples m WHERE m.run = x.run AND m.pid = x.pid)`, catalog.MaxSamples),
		programs(marks.Samples), func(rows pgx.Rows) (e catalog.Entries, err error) {
			var pid int32
			var state []byte
			var x catalog.Sample
			if err = rows.Scan(&pid, &x.N, &x.State.Timestamp, &state); err == nil {
				err = json.Unmarshal(state, &x.State.Data)
			}
			x.Program = trace.Program(pid)
			return catalog.Entries{Samples: []catalog.Sample{x}}, err
		}, cat)
	if err != nil {
		return err
	}
	pids, fns, ns := arrays(cat.Marks().Models)
	return each(ctx, tx, `SELECT x.pid, x.fn, x.model, x.params FROM unnest($2::integer[], $3::integer[], $4::integer[]) AS known(pid, fn, n)
		JOIN models x ON x.run = $1 AND x.pid = known.pid AND x.fn = known.fn AND x.model > known.n`,
		[]any{int32(id), pids, fns, ns}, func(rows pgx.Rows) (e catalog.Entries, err error) {
			var pid int32
			var params []byte
			var x catalog.Model
			err = rows.Scan(&pid, &x.Func, &x.N, &params)
			x.Program, x.Params = trace.Program(pid), params
			return catalog.Entries{Models: []catalog.Model{x}}, err
		}, cat)
}

// arrays are marks, column by column.
func arrays(marks []catalog.Mark) (pids, fns, ns []int32) {
	pids, fns, ns = make([]int32, len(marks)), make([]int32, len(marks)), make([]int32, len(marks))
	for i, m := range marks {
		pids[i], fns[i], ns[i] = int32(m.Program), m.Func, m.N
	}
	return pids, fns, ns
}

// each loads the rows of an answer into a catalog, one by one.
func each(ctx context.Context, tx pgx.Tx, sql string, args []any, entry func(pgx.Rows) (catalog.Entries, error),
	cat *catalog.Catalog,
) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := entry(rows)
		if err != nil {
			return err
		}
		cat.Load(e)
	}
	return rows.Err()
}

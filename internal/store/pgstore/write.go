package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Write stores a batch. A batch whose connection was lost is written again: what
// was stored of it is replaced then.
func (s *Store) Write(ctx context.Context, id provdb.RunID, batch *provdb.Batch) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	if err := batch.Validate(); err != nil {
		return fmt.Errorf("%s: write a batch: %w", s.name, err)
	}
	b := batch.Clean()
	n := s.numbersOf(id)
	err = s.patiently(ctx, func() error {
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
	return s.explain(ctx, "write a batch", err)
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
	if err := dropRollups(ctx, w.tx, w.run); err != nil {
		return err
	}
	if d.VoidsFindings() {
		for _, table := range []string{"issues", "links"} {
			if _, err := w.tx.Exec(ctx, "DELETE FROM "+table+" WHERE run = $1", int32(w.run)); err != nil {
				return err
			}
		}
	}
	steps := []func(context.Context, *numbered) error{w.records, w.metadata, w.profiles, w.counters, w.models, w.paths, w.findings}
	for _, step := range steps {
		if err := step(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// records stores executions. They are usually new, so it does not look for those
// that they replace before PostgreSQL has found one.
func (w *writer) records(ctx context.Context, d *numbered) error {
	if len(d.refs) == 0 {
		return nil
	}
	if w.n.replaces.Load() {
		if err := w.removeRecords(ctx, d); err != nil {
			return err
		}
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

// removeRecords removes those that a batch replaces.
func (w *writer) removeRecords(ctx context.Context, d *numbered) error {
	var pids []int32
	var ids []string
	for _, records := range [][]*provenance.Record{d.Typical, d.Anomalies} {
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

// replace removes rows of a table by the run and keys, then appends.
func (w *writer) replace(ctx context.Context, table, remove string, keys []any, columns []string, n int,
	row func(i int) ([]any, error),
) error {
	if _, err := w.tx.Exec(ctx, "DELETE FROM "+table+" x USING "+remove, append([]any{int32(w.run)}, keys...)...); err != nil {
		return err
	}
	return appendRows(ctx, w.tx, table, columns, n, row)
}

var metadataColumns = []string{"run", "pid", "rid", "tid", "io_step", "descr", "value"}

func (w *writer) metadata(ctx context.Context, d *numbered) error {
	if len(d.Metadata) == 0 {
		return nil
	}
	var pids, rids, steps []int32
	var rows [][]any
	for i := range d.Metadata {
		m := &d.Metadata[i]
		pids, rids, steps = append(pids, int32(m.Program)), append(rids, int32(m.Rank)), append(steps, int32(m.Step))
		for _, f := range m.Facts {
			rows = append(rows, []any{int32(w.run), int32(f.PID), int32(f.RID), int64(f.TID), int32(m.Step), f.Descr, f.Value})
		}
	}
	return w.replace(ctx, "metadata", `unnest($2::integer[], $3::integer[], $4::integer[]) AS k(pid, rid, io_step)
		WHERE x.run = $1 AND x.pid = k.pid AND x.rid = k.rid AND x.io_step = k.io_step`, []any{pids, rids, steps},
		metadataColumns, len(rows), func(i int) ([]any, error) { return rows[i], nil })
}

// removeByFunction is what replace wants for tables with a row for each function.
const removeByFunction = "unnest($2::integer[], $3::integer[]) AS k(pid, fn) WHERE x.run = $1 AND x.pid = k.pid AND x.fn = k.fn"

var profileColumns = summaryColumns([]string{
	"run", "pid", "fn", "fid", "fname", "anomalies", "first_io_step", "last_io_step", "min_timestamp", "max_timestamp",
}, "anomaly_", "score_", "severity_", "exclusive_", "inclusive_")

func summaryColumns(columns []string, prefixes ...string) []string {
	for _, p := range prefixes {
		for _, name := range []string{"accumulate", "count", "kurtosis", "maximum", "mean", "minimum", "skewness", "stddev"} {
			columns = append(columns, p+name)
		}
	}
	return columns
}

// summary appends the columns of a summary.
func summary(row []any, s *stats.Summary) []any {
	return append(row, s.Accumulate, s.Count, s.Kurtosis, s.Maximum, s.Mean, s.Minimum, s.Skewness, s.Stddev)
}

func (w *writer) profiles(ctx context.Context, d *numbered) error {
	if len(d.Functions) == 0 {
		return nil
	}
	var pids []int32
	for i := range d.Functions {
		pids = append(pids, int32(d.Functions[i].App))
	}
	return w.replace(ctx, "profiles", removeByFunction, []any{pids, d.functions}, profileColumns, len(d.Functions),
		func(i int) ([]any, error) {
			f := &d.Functions[i]
			row := []any{int32(w.run), int32(f.App), d.functions[i], int64(f.FID), f.Name, f.AnomalyMetrics != nil}
			if m := f.AnomalyMetrics; m != nil {
				row = append(row, m.FirstStep, m.LastStep, int64(m.First), int64(m.Last))
				row = summary(summary(summary(row, &m.Count), &m.Score), &m.Severity)
			} else {
				row = append(row, make([]any, 4+3*8)...)
			}
			return summary(summary(row, &f.RuntimeProfile.Exclusive), &f.RuntimeProfile.Inclusive), nil
		})
}

var counterColumns = summaryColumns([]string{"run", "app", "counter"}, "")

func (w *writer) counters(ctx context.Context, d *numbered) error {
	if len(d.Counters) == 0 {
		return nil
	}
	var apps []int32
	var names []string
	for i := range d.Counters {
		apps, names = append(apps, int32(d.Counters[i].App)), append(names, d.Counters[i].Name)
	}
	return w.replace(ctx, "counter_stats", "unnest($2::integer[], $3::text[]) AS k(app, counter) WHERE x.run = $1 AND x.app = k.app AND "+
		"x.counter = k.counter",
		[]any{apps, names}, counterColumns, len(d.Counters), func(i int) ([]any, error) {
			c := &d.Counters[i]
			return summary([]any{int32(w.run), int32(c.App), c.Name}, &c.Stats), nil
		})
}

func (w *writer) models(ctx context.Context, d *numbered) error {
	if len(d.Models) == 0 {
		return nil
	}
	var pids, fns []int32
	for i := range d.Models {
		pids, fns = append(pids, int32(d.Models[i].PID)), append(fns, d.finals[i].fn)
	}
	return w.replace(ctx, "final_models", removeByFunction, []any{pids, fns}, []string{"run", "pid", "fn", "model"}, len(d.Models),
		func(i int) ([]any, error) {
			return []any{int32(w.run), pids[i], fns[i], zeroNull(d.finals[i].model)}, nil
		})
}

// paths stores all calls by call path.
func (w *writer) paths(ctx context.Context, d *numbered) error {
	if len(d.Paths) == 0 {
		return nil
	}
	if _, err := w.tx.Exec(ctx, "DELETE FROM path_profiles WHERE run = $1", int32(w.run)); err != nil {
		return err
	}
	return appendRows(ctx, w.tx, "path_profiles", provdb.PathColumns, len(d.Paths), func(i int) ([]any, error) {
		return provdb.PathRow(w.run, &d.Paths[i], d.paths, d.pathFunctions), nil
	})
}

// findings stores what is wrong with the run.
func (w *writer) findings(ctx context.Context, d *numbered) error {
	err := appendRows(ctx, w.tx, "issues", provdb.IssueColumns, len(d.Issues), func(i int) ([]any, error) {
		return provdb.IssueRow(w.run, &d.Issues[i])
	})
	if err != nil {
		return err
	}
	return appendRows(ctx, w.tx, "links", provdb.LinkColumns, len(d.Links), func(i int) ([]any, error) {
		return provdb.LinkRow(w.run, &d.Links[i]), nil
	})
}

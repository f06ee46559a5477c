package duckstore

import (
	"database/sql/driver"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func (w *writer) metadata(steps []provdb.StepMetadata) error {
	if len(steps) == 0 {
		return nil
	}
	keys := make(map[stepKey]bool, len(steps))
	first, last := steps[0].Step, steps[0].Step
	for i := range steps {
		m := &steps[i]
		keys[stepKey{m.Program, m.Rank, m.Step}] = true
		first, last = min(first, m.Step), max(last, m.Step)
	}
	err := w.remove("metadata", "SELECT rowid, pid, rid, io_step FROM metadata WHERE run = $1 AND io_step BETWEEN $2 AND $3",
		[]any{int32(w.run), first, last},
		func(scan func(...any) error) (bool, error) {
			var key stepKey
			err := scan(&key.program, &key.rank, &key.step)
			return keys[key], err
		})
	if err != nil {
		return err
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

// numberKey is the number of a function of a program.
type numberKey struct {
	program trace.Program
	fn      int32
}

// replace removes the rows of a table that are of these functions, and appends.
func (w *writer) replace(table string, functions []numberKey, rows func(add adder) error) error {
	if len(functions) == 0 {
		return nil
	}
	keys := make(map[numberKey]bool, len(functions))
	for _, k := range functions {
		keys[k] = true
	}
	err := w.remove(table, "SELECT rowid, pid, fn FROM "+table+" WHERE run = $1", []any{int32(w.run)},
		func(scan func(...any) error) (bool, error) {
			var key numberKey
			err := scan(&key.program, &key.fn)
			return keys[key], err
		})
	if err != nil {
		return err
	}
	return w.append(table, rows)
}

func (w *writer) profiles(funcs []provenance.FuncStats) error {
	numbers := make([]numberKey, len(funcs))
	for i := range funcs {
		numbers[i] = numberKey{funcs[i].App, w.cat.Func(funcs[i].App, funcs[i].FID, funcs[i].Name)}
	}
	return w.replace("profiles", numbers, func(add adder) error {
		for i := range funcs {
			f := &funcs[i]
			row := []driver.Value{int32(w.run), int32(f.App), numbers[i].fn, int64(f.FID), f.Name, f.AnomalyMetrics != nil}
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
	if len(counters) == 0 {
		return nil
	}
	keys := make(map[counterKey]bool, len(counters))
	for i := range counters {
		keys[counterKey{counters[i].App, counters[i].Name}] = true
	}
	err := w.remove("counter_stats", "SELECT rowid, app, counter FROM counter_stats WHERE run = $1", []any{int32(w.run)},
		func(scan func(...any) error) (bool, error) {
			var key counterKey
			err := scan(&key.program, &key.name)
			return keys[key], err
		})
	if err != nil {
		return err
	}
	return w.append("counter_stats", func(add adder) error {
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
	numbers := make([]numberKey, len(models))
	for i := range models {
		numbers[i] = numberKey{models[i].PID, w.cat.Func(models[i].PID, models[i].FID, models[i].Name)}
	}
	return w.replace("final_models", numbers, func(add adder) error {
		for i := range models {
			m, fn := &models[i], numbers[i].fn
			if err := add(int32(w.run), int32(m.PID), fn, zeroNull(w.cat.Model(m.PID, fn, m.Model))); err != nil {
				return err
			}
		}
		return nil
	})
}

// paths stores all calls by call path.
func (w *writer) paths(all []provenance.PathStats) error {
	if len(all) == 0 {
		return nil
	}
	if _, err := w.conn.ExecContext(w.ctx, "DELETE FROM path_profiles WHERE run = $1", int32(w.run)); err != nil {
		return err
	}
	paths, functions := w.cat.Paths(all)
	return w.append("path_profiles", func(add adder) error {
		for i := range all {
			if err := add(driverValues(provdb.PathRow(w.run, &all[i], paths, functions))...); err != nil {
				return err
			}
		}
		return nil
	})
}

// findings stores what is wrong with the run.
func (w *writer) findings(b *provdb.Batch) error {
	if !b.HasFindings() {
		return nil
	}
	err := w.append("issues", func(add adder) error {
		for i := range b.Issues {
			row, err := provdb.IssueRow(w.run, &b.Issues[i])
			if err == nil {
				err = add(driverValues(row)...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.append("links", func(add adder) error {
		for i := range b.Links {
			if err := add(driverValues(provdb.LinkRow(w.run, &b.Links[i]))...); err != nil {
				return err
			}
		}
		return nil
	})
}

func driverValues(row []any) []driver.Value {
	values := make([]driver.Value, len(row))
	for i, v := range row {
		values[i] = v
	}
	return values
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
			return []driver.Value{run, int32(f.Functions[i].Program), f.Functions[i].N, int64(f.Functions[i].FID), f.Functions[i].Name}
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

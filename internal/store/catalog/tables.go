package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// RunTables are the tables with rows of a run, except runs itself.
var RunTables = []string{
	"functions", "paths", "models", "samples", "final_models", "executions", "metadata", "profiles", "counter_stats", "rollups",
	"path_profiles", "findings", "links", "rank_loads", "load_windows", "efficiency", "slow_peers",
	"gpu_times", "collectives", "clocks", "activity",
}

// FillRollups is the statement that fills rollups for the run in its argument.
const FillRollups = `INSERT INTO rollups
	SELECT run, pid, fn, path, rid, hostname, anomalies, lost_us, anomalous_us, severity, score, first_us, last_us, kind
	FROM live_rollups WHERE run = $1`

// Table contains the rows that a store appends to one of its tables.
type Table struct {
	Name    string
	Columns []string
	// Keys select the rows of the run to replace. If there are none, all rows are replaced.
	Keys []Key
	Len  int
	// Row returns row i: nil, bool, int32, int64, float64, string, json.RawMessage, []int32 and []provenance.StateEntry.
	Row func(i int) []any
}

// Key is a column of a table and its values in the replaced rows, of type []int32 or []string.
type Key struct {
	Column string
	Values any
}

// Delete returns the statement that removes the replaced rows, and its arguments.
func (t *Table) Delete(run provdb.RunID) (sql string, args []any) {
	args = []any{int32(run)}
	if len(t.Keys) == 0 {
		return "DELETE FROM " + t.Name + " WHERE run = $1", args
	}
	var columns, conditions []string
	for i, k := range t.Keys {
		kind := "INTEGER"
		if _, ok := k.Values.([]string); ok {
			kind = "VARCHAR"
		}
		columns = append(columns, fmt.Sprintf("unnest($%d::%s[]) AS %s", i+2, kind, k.Column))
		conditions = append(conditions, fmt.Sprintf("%s.%s = replaced.%[2]s", t.Name, k.Column))
		args = append(args, k.Values)
	}
	return fmt.Sprintf("DELETE FROM %s USING (SELECT %s) AS replaced WHERE %[1]s.run = $1 AND %[3]s",
		t.Name, strings.Join(columns, ", "), strings.Join(conditions, " AND ")), args
}

// Tables returns the rows of a batch, except those of its records, and numbers its new entries.
func (c *Catalog) Tables(run provdb.RunID, b *provdb.Batch) []Table {
	tables := []Table{{Name: "rollups"}} // removes the sums, which do not include the batch
	if b.VoidsFindings() {
		tables = append(tables, findingTable(run, b.Findings), linkTable(run, b.Links))
	}
	if len(b.Metadata) > 0 {
		tables = append(tables, metadataTable(run, b.Metadata))
	}
	if len(b.Functions) > 0 {
		tables = append(tables, c.profileTable(run, b.Functions))
	}
	if len(b.Counters) > 0 {
		tables = append(tables, counterTable(run, b.Counters))
	}
	if len(b.Models) > 0 {
		tables = append(tables, c.finalModelTable(run, b.Models))
	}
	if len(b.Paths) > 0 {
		tables = append(tables, c.pathTable(run, b.Paths))
	}
	if b.HasPeers() {
		tables = append(tables, peerTables(run, b.Peers)...)
	}
	if b.Breakdown.Len() > 0 {
		tables = append(tables, breakdownTables(run, b.Breakdown)...)
	}
	return tables
}

func findingTable(run provdb.RunID, findings []provenance.Finding) Table {
	return Table{
		Name: "findings", Len: len(findings),
		Columns: []string{
			"run", "finding", "kind", "form", "status", "severity", "program", "function", "call_path", "role", "cause", "ranks", "hosts",
			"from_s", "to_s", "calls", "of_calls", "expected_us", "actual_us", "period_s", "lost_own_us", "lost_caused_us", "lost_us",
			"share", "confidence", "summary", "reason", "examples", "longest_us", "worst_rank", "worst_rank_lost_us", "first_us",
			"last_us", "trend", "over_time", "waits", "wait_ranks", "late",
		},
		Row: func(n int) []any {
			x := &findings[n]
			var worst, worstTime any = int32(x.WorstRank), int64(x.WorstTime)
			if x.IsChange() {
				worst, worstTime = nil, nil
			}
			return []any{
				int32(run), int32(x.Number), string(x.Kind), provdb.OrNull(string(x.Form)), string(x.Status), string(x.Severity), int32(x.PID), x.Func,
				x.Path, provdb.OrNull(string(x.Role)), provdb.OrNull(int32(x.Cause)), list(x.Ranks), list(x.Hosts), x.From, valueOf(x.To), x.Calls,
				x.OfCalls, x.Expected, x.Actual, valueOf(x.Period), int64(x.LostOwn), int64(x.LostCaused), int64(x.Lost), x.Share, x.Confidence,
				x.Summary, provdb.OrNull(x.Reason), list(x.Examples), int64(x.Longest), worst, worstTime, int64(x.First), int64(x.Last),
				provdb.OrNull(string(x.Trend)), list(x.OverTime), x.Waits, x.WaitRanks, provdb.OrNull(string(x.Late)),
			}
		},
	}
}

// valueOf returns the value of a pointer, or nil.
func valueOf[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func linkTable(run provdb.RunID, links []provenance.Link) Table {
	return Table{
		Name: "links", Len: len(links),
		Columns: []string{
			"run", "pid", "rid", "event_id", "finding", "role", "culprit_pid", "culprit_event_id", "late_rid", "hops", "waits", "wait_ranks",
			"waits_lost_us",
		},
		Row: func(i int) []any {
			l := &links[i]
			var culprit, late any
			if l.Culprit != "" {
				culprit = int32(l.CulpritPID)
			}
			if l.LateRank != nil {
				late = int32(*l.LateRank)
			}
			return []any{
				int32(run), int32(l.PID), int32(l.RID), l.EventID, int32(l.Finding), provdb.OrNull(string(l.Role)), culprit, provdb.OrNull(l.Culprit),
				late, int32(l.Hops), l.Waits, l.WaitRanks, int64(l.WaitTime),
			}
		},
	}
}

func metadataTable(run provdb.RunID, all []provdb.StepMetadata) Table {
	var pids, rids, steps []int32
	var rows [][]any
	for i := range all {
		m := &all[i]
		pids, rids, steps = append(pids, int32(m.Program)), append(rids, int32(m.Rank)), append(steps, int32(m.Step))
		for _, f := range m.Facts {
			rows = append(rows, []any{int32(run), int32(f.PID), int32(f.RID), int64(f.TID), int32(m.Step), f.Descr, f.Value})
		}
	}
	return Table{
		Name: "metadata", Columns: []string{"run", "pid", "rid", "tid", "io_step", "descr", "value"},
		Keys: []Key{{"pid", pids}, {"rid", rids}, {"io_step", steps}},
		Len:  len(rows), Row: func(i int) []any { return rows[i] },
	}
}

var profileColumns = summaryColumns([]string{
	"run", "pid", "fn", "fid", "fname", "anomalies", "first_io_step", "last_io_step", "min_timestamp", "max_timestamp",
}, "anomaly_", "score_", "severity_", "exclusive_", "inclusive_")

func (c *Catalog) profileTable(run provdb.RunID, funcs []provenance.FuncStats) Table {
	var pids, fns []int32
	for i := range funcs {
		f := &funcs[i]
		pids, fns = append(pids, int32(f.App)), append(fns, c.Func(f.App, f.FID, f.Name))
	}
	return Table{
		Name: "profiles", Columns: profileColumns, Keys: []Key{{"pid", pids}, {"fn", fns}}, Len: len(funcs),
		Row: func(i int) []any {
			f := &funcs[i]
			row := []any{int32(run), pids[i], fns[i], int64(f.FID), f.Name, f.AnomalyMetrics != nil}
			if m := f.AnomalyMetrics; m != nil {
				row = append(row, m.FirstStep, m.LastStep, int64(m.First), int64(m.Last))
				row = appendSummary(appendSummary(appendSummary(row, &m.Count), &m.Score), &m.Severity)
			} else {
				row = append(row, make([]any, 4+3*len(summaryFields))...)
			}
			return appendSummary(appendSummary(row, &f.RuntimeProfile.Exclusive), &f.RuntimeProfile.Inclusive)
		},
	}
}

var counterColumns = summaryColumns([]string{"run", "app", "counter"}, "")

func counterTable(run provdb.RunID, counters []provenance.CounterStats) Table {
	var apps []int32
	var names []string
	for i := range counters {
		apps, names = append(apps, int32(counters[i].App)), append(names, counters[i].Name)
	}
	return Table{
		Name: "counter_stats", Columns: counterColumns, Keys: []Key{{"app", apps}, {"counter", names}}, Len: len(counters),
		Row: func(i int) []any { return appendSummary([]any{int32(run), apps[i], names[i]}, &counters[i].Stats) },
	}
}

func (c *Catalog) finalModelTable(run provdb.RunID, models []provenance.ADModel) Table {
	var pids, fns, versions []int32
	for i := range models {
		m := &models[i]
		fn := c.Func(m.PID, m.FID, m.Name)
		pids, fns, versions = append(pids, int32(m.PID)), append(fns, fn), append(versions, c.Model(m.PID, fn, m.Model))
	}
	return Table{
		Name: "final_models", Columns: []string{"run", "pid", "fn", "model"}, Keys: []Key{{"pid", pids}, {"fn", fns}}, Len: len(models),
		Row: func(i int) []any { return []any{int32(run), pids[i], fns[i], provdb.OrNull(versions[i])} },
	}
}

func (c *Catalog) pathTable(run provdb.RunID, all []provenance.PathStats) Table {
	paths, functions := c.Paths(all)
	return Table{
		Name: "path_profiles", Columns: []string{"run", "pid", "path", "parent", "fn", "calls", "exclusive_us"}, Len: len(all),
		Row: func(i int) []any {
			p := &all[i]
			var parent any
			if p.Parent > 0 {
				parent = paths[p.Parent-1]
			}
			return []any{int32(run), int32(p.PID), paths[i], parent, functions[i], p.Calls, int64(p.Exclusive)}
		},
	}
}

// Tables returns the rows of the entries, which replace no other rows.
func (e *Entries) Tables(run provdb.RunID) []Table {
	return []Table{
		{
			Name: "functions", Columns: []string{"run", "pid", "fn", "fid", "name"}, Len: len(e.Functions),
			Row: func(i int) []any {
				x := &e.Functions[i]
				return []any{int32(run), int32(x.Program), x.N, int64(x.FID), x.Name}
			},
		},
		{
			Name: "paths", Columns: []string{"run", "pid", "path", "fns"}, Len: len(e.Paths),
			Row: func(i int) []any {
				x := &e.Paths[i]
				return []any{int32(run), int32(x.Program), x.N, append([]int32{}, x.Funcs...)}
			},
		},
		{
			Name: "models", Columns: []string{"run", "pid", "fn", "model", "params"}, Len: len(e.Models),
			Row: func(i int) []any {
				x := &e.Models[i]
				return []any{int32(run), int32(x.Program), x.Func, x.N, x.Params}
			},
		},
		{
			Name: "samples", Columns: []string{"run", "pid", "sample", "timestamp", "state"}, Len: len(e.Samples),
			Row: func(i int) []any {
				x := &e.Samples[i]
				return []any{int32(run), int32(x.Program), x.N, int64(x.State.Timestamp), x.State.Data}
			},
		},
	}
}

var summaryFields = []string{"accumulate", "count", "kurtosis", "maximum", "mean", "minimum", "skewness", "stddev"}

// summaryColumns appends the columns of a summary for each prefix.
func summaryColumns(columns []string, prefixes ...string) []string {
	for _, p := range prefixes {
		for _, name := range summaryFields {
			columns = append(columns, p+name)
		}
	}
	return columns
}

// appendSummary appends the values of a summary in the order of summaryFields.
func appendSummary(row []any, s *stats.Summary) []any {
	return append(row, s.Accumulate, s.Count, s.Kurtosis, s.Maximum, s.Mean, s.Minimum, s.Skewness, s.Stddev)
}

// list returns a list of numbers or text as JSON.
func list[T any](all []T) json.RawMessage {
	text, _ := json.Marshal(append([]T{}, all...)) // cannot fail
	return text
}

package query

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Collections are the names of the six collections of the schema.
var Collections = []string{"anomalies", "normalexecs", "metadata", "func_stats", "counter_stats", "ad_model"}

// allTables are the tables and views that together hold all data of a run.
var allTables = []string{
	"anomalies", "normalexecs", "metadata", "func_stats", "counter_stats", "ad_model", "call_paths", "path_stats",
	"frames", "window_calls", "messages", "counter_events", "node_states", "findings", "links",
	"rank_loads", "load_windows", "efficiency", "slow_peers", "gpu_times", "collectives", "clocks", "activity",
}

// table describes how to read a table or view in order.
type table struct {
	order   string
	ofRanks bool // large, so read a few ranks at a time
}

// ofSteps reports whether the table can be read a few steps of a rank at a time.
func (t table) ofSteps() bool { return strings.HasPrefix(t.order, "pid, rid, ev_step") }

var tables = map[string]table{
	"anomalies":          {"pid, rid, ev_step, ev_row", true},
	"normalexecs":        {"pid, rid, ev_step, ev_row", true},
	"metadata":           {"pid, rid, io_step, tid, descr", true},
	"func_stats":         {"app, fid", false},
	"counter_stats":      {"app, counter", false},
	"ad_model":           {"pid, fid", false},
	"call_paths":         {"pid, path", false},
	"path_stats":         {"pid, path", false},
	"frames":             {"pid, rid, event_id, depth", true},
	"window_calls":       {`pid, rid, event_id, "position"`, true},
	"messages":           {`pid, rid, event_id, "position"`, true},
	"counter_events":     {`pid, rid, event_id, "position"`, true},
	"node_states":        {"pid, rid, event_id, field", true},
	"findings":           {"finding", false},
	"links":              {"pid, rid, event_id", true},
	"rank_loads":         {"pid, rid, tid, device", false},
	"load_windows":       {"pid, rid, tid, device, from_s", false},
	"efficiency":         {"pid, entire DESC, from_s", false},
	"slow_peers":         {"slow_peer", false},
	"gpu_times":          {"pid, rid, step NULLS FIRST, start_us", false},
	"collectives":        {"collective", false},
	"clocks":             {"pid, rid", false},
	"activity":           {"packed", false},
	"anomalies_json":     {"pid, rid, ev_step, ev_row", true},
	"normalexecs_json":   {"pid, rid, ev_step, ev_row", true},
	"metadata_json":      {"pid, rid, io_step, tid, doc ->> 'descr'", true},
	"func_stats_json":    {"pid, fid", false},
	"counter_stats_json": {"pid, doc ->> 'counter'", false},
	"ad_model_json":      {"pid, fid", false},
}

// TableNames returns the tables and views that together hold all data of a run.
func TableNames() []string { return slices.Clone(allTables) }

// Table returns all rows of one of TableNames, in order. It reads large tables a few ranks at a time to
// bound memory.
func (a *Queries) Table(ctx context.Context, name string) (*provdb.Rows, error) {
	return a.readTable(ctx, name, "*")
}

func (a *Queries) readTable(ctx context.Context, name, columns string) (*provdb.Rows, error) {
	t, ok := tables[name]
	if !ok {
		return nil, fmt.Errorf("unknown table %q (want %s)", name, strings.Join(allTables, ", "))
	}
	if !t.ofRanks {
		return a.Query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE run = $1 ORDER BY %s", columns, name, t.order), int32(a.Run.ID))
	}
	spans, err := a.spans(ctx, name)
	if err != nil {
		return nil, err
	}
	where := "run = $1 AND pid = $2 AND rid BETWEEN $3 AND $4"
	if t.ofSteps() {
		where += " AND ev_step BETWEEN $5 AND $6"
	}
	sql := fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %s", columns, name, where, t.order)
	query := func(s span) (*provdb.Rows, error) {
		args := []any{int32(a.Run.ID), s.program, s.first, s.last}
		if t.ofSteps() {
			args = append(args, s.firstStep, s.lastStep)
		}
		return a.Query(ctx, sql, args...)
	}
	rows, err := query(spans[0])
	if err != nil {
		return nil, err
	}
	first := *rows
	rows.All = func(yield func([]any, error) bool) {
		part := &first
		for i := range spans {
			if i > 0 {
				next, err := query(spans[i])
				if err != nil {
					yield(nil, err)
					return
				}
				part = next
			}
			for row, err := range part.All {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
	return rows, nil
}

// span is a range of ranks of a program, or of steps of one rank.
type span struct{ program, first, last, firstStep, lastStep int64 }

// spanSize bounds the executions of a span, unless one rank has more, in tables of steps one step. The
// document of an execution takes up to 20 kB of memory while DuckDB sorts it.
const (
	spanSize     = 20_000
	documentSpan = 4_000
)

// spans divides the ranks of the run into at least one span.
func (a *Queries) spans(ctx context.Context, name string) ([]span, error) {
	from := "executions"
	if strings.HasPrefix(name, "metadata") {
		from = "metadata"
	}
	type row struct {
		Program int64 `sql:"pid"`
		Rank    int64 `sql:"rid"`
		N       int64 `sql:"executions"`
	}
	sql := "SELECT pid, rid, count(*) AS executions FROM " + from + " WHERE run = $1 GROUP BY pid, rid ORDER BY pid, rid"
	rows, err := executions.ReadAll[row](ctx, a, sql)
	if err != nil {
		return nil, err
	}
	most := int64(spanSize)
	if strings.HasSuffix(name, "_json") {
		most = documentSpan
	}
	spans, size := []span{}, int64(0)
	for _, r := range rows {
		if tables[name].ofSteps() && r.N > most {
			parts, err := a.stepSpans(ctx, r.Program, r.Rank, most)
			if err != nil {
				return nil, err
			}
			spans, size = append(spans, parts...), most
			continue
		}
		if k := len(spans) - 1; k >= 0 && spans[k].program == r.Program && size+r.N <= most {
			spans[k].last = r.Rank
			size += r.N
			continue
		}
		spans, size = append(spans, span{r.Program, r.Rank, r.Rank, math.MinInt32, math.MaxInt32}), r.N
	}
	if len(spans) == 0 {
		spans = append(spans, span{0, 1, 0, 0, 0})
	}
	return spans, nil
}

// stepSpans divides the steps of a rank. The spans have all steps, also those that are stored meanwhile.
func (a *Queries) stepSpans(ctx context.Context, program, rank, most int64) (spans []span, err error) {
	type row struct {
		Step int64 `sql:"ev_step"`
		N    int64 `sql:"executions"`
	}
	sql := "SELECT ev_step, count(*) AS executions FROM executions WHERE run = $1 AND pid = $2 AND rid = $3 GROUP BY ev_step ORDER BY ev_step"
	size := most
	err = executions.ReadEach(ctx, a, sql, func(r *row) {
		k := len(spans) - 1
		if size += r.N; size <= most {
			spans[k].lastStep = r.Step
			return
		}
		if size = r.N; k >= 0 {
			spans[k].lastStep = r.Step - 1
		}
		spans = append(spans, span{program, rank, rank, r.Step, r.Step})
	}, program, rank)
	if len(spans) > 0 {
		spans[0].firstStep, spans[len(spans)-1].lastStep = math.MinInt32, math.MaxInt32
	}
	return spans, err
}

// Documents yields the documents of a collection as JSON of the schema, then at most one error.
func (a *Queries) Documents(ctx context.Context, collection string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		rows, err := a.readTable(ctx, collection+"_json", "doc::VARCHAR AS doc")
		if err != nil {
			yield(nil, err)
			return
		}
		if u := a.Unit.Canonical(); u != 0 && strings.HasSuffix(tables[collection].order, "ev_row") {
			with := fmt.Sprintf(`{"tick_ns":%d,`, u)
			yieldDocuments(rows, func(doc json.RawMessage, err error) bool {
				return yield(bytes.Replace(doc, []byte("{"), []byte(with), 1), err)
			})
			return
		}
		yieldDocuments(rows, yield)
	}
}

// yieldDocuments yields the values of the only column of rows.
func yieldDocuments(rows *provdb.Rows, yield func(json.RawMessage, error) bool) {
	for row, err := range rows.All {
		if err != nil {
			yield(nil, err)
			return
		}
		doc, _ := row[0].(string)
		if !yield(json.RawMessage(doc), nil) {
			return
		}
	}
}

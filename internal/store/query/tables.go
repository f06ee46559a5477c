package query

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
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
	"rank_loads", "load_windows", "efficiency", "slow_peers",
}

// table describes how to read a table or view in order.
type table struct {
	order   string
	ofRanks bool // large, so read a few ranks at a time
}

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
	"anomalies_json":     {"pid, rid, ev_step, ev_row", true},
	"normalexecs_json":   {"pid, rid, ev_step, ev_row", true},
	"metadata_json":      {"pid, rid, io_step, tid, doc ->> 'descr'", true},
	"func_stats_json":    {"pid, fid", false},
	"counter_stats_json": {"pid, doc ->> 'counter'", false},
	"ad_model_json":      {"pid, fid", false},
}

// TableNames returns the tables and views that together hold all data of the run.
func (a *Queries) TableNames(ctx context.Context) ([]string, error) {
	has, err := a.hasPeerTables(ctx)
	if err != nil || has {
		return allTables, err
	}
	return slices.DeleteFunc(slices.Clone(allTables), func(name string) bool { return slices.Contains(peerTables, name) }), nil
}

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
	sql := fmt.Sprintf("SELECT %s FROM %s WHERE run = $1 AND pid = $2 AND rid BETWEEN $3 AND $4 ORDER BY %s", columns, name, t.order)
	query := func(s span) (*provdb.Rows, error) {
		return a.Query(ctx, sql, int32(a.Run.ID), s.program, s.first, s.last)
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

// span is a range of ranks of a program.
type span struct{ program, first, last int64 }

// spanSize bounds the executions of a span, unless one rank has more.
const spanSize = 20_000

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
	spans, size := []span{}, int64(0)
	for _, r := range rows {
		if k := len(spans) - 1; k >= 0 && spans[k].program == r.Program && size+r.N <= spanSize {
			spans[k].last = r.Rank
			size += r.N
			continue
		}
		spans, size = append(spans, span{r.Program, r.Rank, r.Rank}), r.N
	}
	if len(spans) == 0 {
		spans = append(spans, span{0, 1, 0})
	}
	return spans, nil
}

// Documents yields the documents of a collection as JSON of the schema, then at most one error.
func (a *Queries) Documents(ctx context.Context, collection string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		rows, err := a.readTable(ctx, collection+"_json", "doc::VARCHAR AS doc")
		if err != nil {
			yield(nil, err)
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

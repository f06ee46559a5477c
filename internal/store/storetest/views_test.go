package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

var viewTests = []test{
	{"executions have the values of documents", func(f *fixture) {
		b := viewed(f)
		columns := `rid, tid, fid, func, hostname, entry, "exit", runtime_exclusive, runtime_total, lost_time, outlier_score,
			outlier_severity, status, io_step, io_step_tstart, io_step_tend, is_gpu_event, version, kind, why`
		f.wantRows("anomalies", columns, "rid", b.Anomalies, executionRow)
		f.wantRows("normalexecs", columns, "rid", b.Typical, executionRow)
	}},
	{"frames run from the execution to the outermost call", func(f *fixture) {
		b := viewed(f)
		columns := `rid, tid, depth, fid, func, frame_event_id, entry, "exit", is_anomaly`
		row := func(r *provenance.Record) (rows [][]any) {
			for i, e := range r.CallStack {
				rows = append(rows, []any{
					int64(r.RID), int64(r.TID), int64(i), int64(e.FID), e.Func, e.EventID, int64(e.Entry), int64(e.Exit),
					e.IsAnomaly,
				})
			}
			return rows
		}
		f.wantRows("frames", columns, "depth", append(b.Anomalies, b.Typical...), row)
		f.want([][]any{{int64(len(b.Typical) * stackDepth)}}, "SELECT count(*) FROM frames WHERE NOT anomalous")
	}},
	{"window_calls are sorted", func(f *fixture) {
		b := viewed(f)
		columns := `"position", fid, func, call_event_id, parent_event_id, entry, "exit", is_anomaly`
		f.wantRows("window_calls", columns, `"position"`, append(b.Anomalies, b.Typical...), func(r *provenance.Record) (rows [][]any) {
			for i, e := range r.EventWindow.Execs {
				rows = append(rows, []any{int64(i + 1), int64(e.FID), e.Func, e.EventID, e.ParentID, int64(e.Entry), int64(e.Exit), e.IsAnomaly})
			}
			return rows
		})
	}},
	{"messages have the values of documents", func(f *fixture) {
		b := viewed(f)
		columns := `"position", type, src, tar, bytes, tag, "timestamp", execdata_key`
		f.wantRows("messages", columns, `"position"`, append(b.Anomalies, b.Typical...), func(r *provenance.Record) (rows [][]any) {
			for i, c := range r.EventWindow.Comms {
				var size any
				if c.Bytes != nil {
					size = integer(*c.Bytes)
				}
				rows = append(rows, []any{
					int64(i + 1), c.Type, int64(c.Source), int64(c.Target), size, int64(c.Tag), int64(c.Timestamp),
					c.Exec,
				})
			}
			return rows
		})
	}},
	{"counter_events have the values of documents", func(f *fixture) {
		b := viewed(f)
		columns := `"position", counter_idx, counter_name, counter_value, ts`
		f.wantRows("counter_events", columns, `"position"`, append(b.Anomalies, b.Typical...), func(r *provenance.Record) (rows [][]any) {
			for i, c := range r.CounterEvents {
				rows = append(rows, []any{int64(i + 1), int64(c.Index), c.Name, integer(c.Value), int64(c.Timestamp)})
			}
			return rows
		})
	}},
	{"node_states have a row for each value", func(f *fixture) {
		b := viewed(f)
		f.wantRows("node_states", `"timestamp", field, "value"`, `"value" DESC`, append(b.Anomalies, b.Typical...),
			func(r *provenance.Record) (rows [][]any) {
				if r.NodeState == nil {
					return nil
				}
				data := slices.Clone(r.NodeState.Data)
				slices.SortFunc(data, func(a, b provenance.StateEntry) int { return cmp.Compare(b.Value, a.Value) })
				for _, e := range data {
					rows = append(rows, []any{int64(r.NodeState.Timestamp), e.Field, integer(e.Value)})
				}
				return rows
			})
	}},
	{"call_paths have the names from the outermost", func(f *fixture) {
		b := viewed(f)
		paths := "(SELECT a.run, a.pid, a.event_id, p.call_path, p.depth FROM anomalies a JOIN call_paths p ON p.run = a.run AND p.pid = " +
			"a.pid AND p.path = a.path) AS x"
		f.wantRows(paths, "call_path, depth", "depth", b.Anomalies, func(r *provenance.Record) [][]any {
			names := make([]string, len(r.CallStack))
			for i, e := range r.CallStack {
				names[len(names)-1-i] = e.Func
			}
			return [][]any{{strings.Join(names, " > "), int64(len(names))}}
		})
	}},
	{"views have the rank under that name, too", func(f *fixture) {
		viewed(f)
		for _, view := range []string{
			"all_executions", "anomalies", "normalexecs", "live_rollups", "frames", "window_calls", "messages", "counter_events", "node_states",
			"execution_documents", "anomalies_json", "normalexecs_json", "metadata_json",
		} {
			f.want([][]any{{true, true}}, "SELECT count(*) > 0, coalesce(bool_and(rank = rid), false) FROM "+view+" WHERE run = $1", int64(f.run))
		}
	}},
	{"func_stats have the values of documents", funcStatsView},
	{"ad_model has the model of each function", func(f *fixture) {
		for _, m := range viewed(f).Models {
			row := f.query("SELECT model FROM ad_model WHERE run = $1 AND pid = $2 AND fid = $3 AND func_name = $4", int64(f.run), int64(m.PID),
				int64(m.FID), m.Name)
			switch {
			case len(row) != 1:
				f.Errorf("%s: got %d rows, want 1", m.Name, len(row))
			case string(m.Model) == "null":
				if row[0][0] != nil {
					f.Errorf("%s: got %s, want no model", m.Name, row[0][0])
				}
			default:
				if d := difference("", decode(f, row[0][0].(json.RawMessage)), decode(f, m.Model)); d != "" {
					f.Errorf("%s: %s", m.Name, d)
				}
			}
		}
	}},
	{"counter_stats and metadata have the values of documents", func(f *fixture) {
		b := viewed(f)
		for _, c := range b.Counters {
			f.want([][]any{toAny(values(c.Stats))}, `SELECT accumulate, "count", kurtosis, maximum, mean, minimum, skewness, stddev
				FROM counter_stats WHERE run = $1 AND app = $2 AND counter = $3`, int64(f.run), int64(c.App), c.Name)
		}
		for _, m := range b.Metadata {
			for _, fact := range m.Facts {
				f.want([][]any{{int64(fact.TID), fact.Value}},
					`SELECT tid, "value" FROM metadata WHERE run = $1 AND pid = $2 AND rid = $3 AND io_step = $4 AND descr = $5`,
					int64(f.run), int64(fact.PID), int64(fact.RID), int64(m.Step), fact.Descr)
			}
		}
	}},
}

// viewed stores a batch with some unusual records that columns can represent.
func viewed(f *fixture) *provdb.Batch {
	f.Helper()
	b := full(8, 1)
	plain := map[string]bool{
		"a kernel with its parent": true, "no stack, no window, no counters": true, "calls that are open": true, "calls without a parent": true,
		"messages from and to no rank": true, "the largest counters and messages": true, "another program": true, "a rank below zero": true,
		"times that a float64 cannot hold": true, "scores of all sizes": true, "neither status nor lost time": true,
		"neither kind nor why": true, "the largest ids": true,
		"a function with the number of another": true, "a function with the name of another": true, "the event id an event": true,
	}
	for _, o := range unusualRecords(provenance.Text) {
		if plain[o.what] || strings.HasPrefix(o.what, "the name ") {
			r := o.record
			if o.what == "the event id an event" { // only its own id
				r.CallStack[0].EventID, r.EventWindow.Execs[10].EventID = "3:0:1", "3:0:1"
				rankOf(r, 3)
			}
			if o.what == "a rank below zero" {
				rankOf(r, -1)
			}
			b.Anomalies = append(b.Anomalies, r)
		}
	}
	f.write(b)
	return b
}

// rankOf sets the rank of all parts of a record.
func rankOf(r *provenance.Record, rank int32) {
	change := func(s *string) {
		if at := strings.IndexByte(*s, ':'); at > 0 {
			*s = fmt.Sprint(rank) + (*s)[at:]
		}
	}
	for i := range r.CallStack {
		change(&r.CallStack[i].EventID)
	}
	for i := range r.EventWindow.Execs {
		change(&r.EventWindow.Execs[i].EventID)
		change(&r.EventWindow.Execs[i].ParentID)
	}
	for i := range r.EventWindow.Comms {
		c := &r.EventWindow.Comms[i]
		change(&c.Exec)
		c.RID = r.RID
		if c.Type == "RECV" {
			c.Target = r.RID
		} else {
			c.Source = r.RID
		}
	}
	for i := range r.CounterEvents {
		r.CounterEvents[i].RID = r.RID
	}
}

// integer returns an integer as queries return it.
func integer(n uint64) any {
	if n > math.MaxInt64 {
		return json.Number(fmt.Sprint(n))
	}
	return int64(n)
}

// wantRows compares the rows of a view with those of records.
func (f *fixture) wantRows(view, columns, order string, all []*provenance.Record, rows func(*provenance.Record) [][]any) {
	f.Helper()
	got := make(map[string][][]any)
	total := 0
	for _, row := range f.query("SELECT pid, event_id, "+columns+" FROM "+view+" WHERE run = $1 ORDER BY pid, event_id, "+order,
		int64(f.run)) {
		key := fmt.Sprint(row[0], " ", row[1])
		got[key] = append(got[key], row[2:])
		total++
	}
	for _, r := range all {
		want := rows(r)
		key := fmt.Sprint(r.PID, " ", r.EventID)
		if g, w := fmt.Sprintf("%#v", got[key]), fmt.Sprintf("%#v", want); g != w && len(got[key])+len(want) > 0 {
			f.Errorf("%s of %s:\n got %s\nwant %s", view, key, shorten(g), shorten(w))
		}
		total -= len(want)
	}
	if total != 0 {
		f.Errorf("%s has %d unexpected rows", view, total)
	}
}

func executionRow(r *provenance.Record) [][]any {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	return [][]any{{
		int64(r.RID), int64(r.TID), int64(r.FID), r.Func, r.Hostname, int64(r.Entry), int64(r.Exit), int64(r.RuntimeExclusive),
		int64(r.RuntimeTotal), int64(r.LostTime), r.OutlierScore, r.OutlierSeverity, orNull(string(r.Status)), int64(r.IOStep),
		int64(r.IOStepStart),
		int64(r.IOStepEnd), r.IsGPUEvent, int64(r.Version), orNull(string(r.Kind)), orNull(r.Why),
	}}
}

func values(s stats.Summary) []float64 {
	return []float64{s.Accumulate, s.Count, s.Kurtosis, s.Maximum, s.Mean, s.Minimum, s.Skewness, s.Stddev}
}

func funcStatsView(f *fixture) {
	columns := func(names ...string) string {
		var all []string
		for _, name := range names {
			for _, field := range []string{"accumulate", "count", "kurtosis", "maximum", "mean", "minimum", "skewness", "stddev"} {
				all = append(all, name+"_"+field)
			}
		}
		return strings.Join(all, ", ")
	}
	for _, x := range viewed(f).Functions {
		where := fmt.Sprintf(" FROM func_stats WHERE run = %d AND app = %d AND fid = %d AND fname = $1", f.run, x.App, x.FID)
		f.want([][]any{toAny(append(values(x.RuntimeProfile.Exclusive), values(x.RuntimeProfile.Inclusive)...))},
			"SELECT "+columns("exclusive", "inclusive")+where, x.Name)
		f.want([][]any{{x.AnomalyMetrics != nil}}, "SELECT anomalies"+where, x.Name)
		if m := x.AnomalyMetrics; m != nil {
			f.want([][]any{toAny(append(append(values(m.Count), values(m.Score)...), values(m.Severity)...))},
				"SELECT "+columns("anomaly", "score", "severity")+where, x.Name)
			f.want([][]any{{m.FirstStep, m.LastStep, int64(m.First), int64(m.Last)}},
				"SELECT first_io_step, last_io_step, min_timestamp, max_timestamp"+where, x.Name)
		}
	}
}

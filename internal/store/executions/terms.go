package executions

import (
	"fmt"
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
)

// OfTerm returns the condition of a term; !ok if it is about details.
func (x *Columns) OfTerm(t *contrast.Term, begin trace.Micros) (c Condition, ok bool) {
	switch t.Field.Kind {
	case contrast.FieldFunction:
		return x.Named(t.Label), true
	case contrast.FieldHost:
		hosts := x.factsOf("Hostname", t.Label)
		ofMetadata := AllOf(
			oneOf(x.host, x.hosts, func(host string) bool { return host == "" || host == "Unknown" }, "coalesce(hostname, '') IN ('', 'Unknown')"),
			oneOf(x.place, x.places, func(k trace.RankKey) bool { return hosts[Fact{RankKey: k}] },
				`(pid, rid) IN (SELECT pid, rid FROM metadata WHERE run = $1 AND descr = 'Hostname' AND "value" = ?)`, t.Label))
		return AnyOf(oneOf(x.host, x.hosts, func(host string) bool { return host == t.Label }, "hostname = ?", t.Label), ofMetadata), true
	case contrast.FieldDevice, contrast.FieldStream:
		descr := "CUDA Stream"
		if t.Field.Kind == contrast.FieldDevice {
			descr = "CUDA Device"
		}
		devices := x.factsOf(descr, t.Label)
		return Condition{
			sql:    `(is_gpu_event AND (pid, rid, tid) IN (SELECT pid, rid, tid FROM metadata WHERE run = $1 AND descr = ? AND "value" = ?))`,
			values: []any{descr, t.Label},
			keep: func(row int32) bool {
				return x.onGPU[row] && devices[Fact{RankKey: x.places[x.place[row]], Thread: x.thread[row]}]
			},
		}, true
	case contrast.FieldPath:
		return Condition{
			sql:    "(pid, path) IN (SELECT pid, path FROM call_paths WHERE run = $1 AND call_path = ?)",
			values: []any{t.Label},
			keep:   func(row int32) bool { return x.Paths[x.pathOf(row)] != nil && x.Paths[x.pathOf(row)].Name == t.Label },
		}, true
	case contrast.FieldRank:
		return within("rid", x.rank, wholeNumber(t.From), wholeNumber(t.To)), true
	case contrast.FieldThread:
		onHost := Condition{sql: "NOT is_gpu_event", keep: func(row int32) bool { return !x.onGPU[row] }}
		return AllOf(onHost, within("tid", x.thread, wholeNumber(t.From), wholeNumber(t.To))), true
	case contrast.FieldStep:
		return within("io_step", x.ioStep, wholeNumber(t.From), wholeNumber(t.To)), true
	case contrast.FieldTime:
		from, to := int64(math.MinInt64), int64(math.MaxInt64)
		if !math.IsInf(t.From, 0) {
			from = int64(begin) + int64(math.Round(t.From*1e6))
		}
		if !math.IsInf(t.To, 0) {
			to = int64(begin) + int64(math.Round(t.To*1e6)) - 1
		}
		return within("entry", x.entry, from, to), true
	}
	return Condition{}, false
}

// wholeNumber returns the bound of a range of ranks, threads or steps.
func wholeNumber(v float64) int64 { return int64(min(max(v, 0), math.MaxInt32)) }

// Inside returns the conditions that executions are within a lasso: a line to the right of each
// crosses its edge an odd number of times.
func (x *Columns) Inside(lasso []contrast.Vertex, begin trace.Micros) []Condition {
	low, high := lasso[0], lasso[0]
	for _, v := range lasso {
		low = contrast.Vertex{Seconds: min(low.Seconds, v.Seconds), Micros: min(low.Micros, v.Micros)}
		high = contrast.Vertex{Seconds: max(high.Seconds, v.Seconds), Micros: max(high.Micros, v.Micros)}
	}
	list := []Condition{
		within("entry", x.entry, int64(begin)+int64(math.Floor(low.Seconds*1e6)), int64(begin)+int64(math.Ceil(high.Seconds*1e6))),
		within("runtime_exclusive", x.exclusive, int64(math.Floor(low.Micros)), int64(math.Ceil(high.Micros))),
	}
	height := func(micros float64) float64 { return math.Log(max(1, micros)) }
	type edge struct{ low, high, at, slope float64 } // at: seconds at height 0
	var edges []edge
	var crossings []string
	var values []any
	const seconds, logMicros = "(entry - ?::BIGINT)::DOUBLE PRECISION / 1e6", "ln(greatest(1, runtime_exclusive)::DOUBLE PRECISION)"
	for i, v := range lasso {
		w := lasso[(i+1)%len(lasso)]
		from, to := height(v.Micros), height(w.Micros)
		if from == to {
			continue
		}
		slope := (w.Seconds - v.Seconds) / (to - from)
		e := edge{min(from, to), max(from, to), v.Seconds - slope*from, slope}
		edges = append(edges, e)
		crossings = append(crossings, fmt.Sprintf(
			"CASE WHEN %s >= ?::DOUBLE PRECISION AND %s < ?::DOUBLE PRECISION AND %s < ?::DOUBLE PRECISION + ?::DOUBLE PRECISION * %s THEN 1 "+
				"ELSE 0 END", logMicros, logMicros, seconds, logMicros))
		values = append(values, e.low, e.high, int64(begin), e.at, e.slope)
	}
	if len(edges) == 0 { // it has no height
		return append(list, Condition{sql: "FALSE", keep: func(int32) bool { return false }})
	}
	return append(list, Condition{
		sql: "(" + strings.Join(crossings, " + ") + ") % 2 = 1", values: values,
		keep: func(row int32) bool {
			x, y, odd := float64(x.entry[row]-int64(begin))/1e6, height(float64(x.exclusive[row])), false
			for _, e := range edges {
				if y >= e.low && y < e.high && x < e.at+e.slope*y {
					odd = !odd
				}
			}
			return odd
		},
	})
}

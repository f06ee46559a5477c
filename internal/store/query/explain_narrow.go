package query

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
)

// closely reports whether executions have to be looked at closely to know which of them
// the terms choose.
func (q *Selection) closely() bool {
	deep := func(t contrast.Term) bool { return t.Field.Kind.Closely() }
	return slices.ContainsFunc(q.Only, deep) || slices.ContainsFunc(q.Without, deep)
}

// kinds are those of the fields that terms are about.
func (q *Selection) kinds() (kinds []contrast.FieldKind) {
	for _, t := range slices.Concat(q.Only, q.Without) {
		kinds = append(kinds, t.Field.Kind)
	}
	return kinds
}

// only reports whether terms of some kinds say what is left.
func (q *Selection) only(kinds ...contrast.FieldKind) bool {
	return slices.ContainsFunc(q.Only, func(t contrast.Term) bool { return slices.Contains(kinds, t.Field.Kind) })
}

// without reports whether terms leave an execution out that was looked at closely.
func (q *Selection) without(x *sampled, s *sampling) bool {
	return slices.ContainsFunc(q.Without, func(t contrast.Term) bool {
		if !t.Field.Kind.Closely() {
			return false // the store left it out
		}
		c, ok := s.cell(t.Field, x)
		return ok && t.Has(c)
	})
}

// has reports whether an execution that was looked at closely has one of the values that
// are left of each field.
func (q *Selection) has(x *sampled, s *sampling) bool {
	for i := range q.Only {
		field := q.Only[i].Field
		if !field.Kind.Closely() {
			continue // the store chose by it
		}
		c, ok := s.cell(field, x)
		if !ok || !slices.ContainsFunc(q.Only, func(t contrast.Term) bool { return t.Field == field && t.Has(c) }) {
			return false
		}
	}
	return true
}

// withoutConditions returns the conditions on all executions that are examined.
func (q *Selection) withoutConditions(x *columns, begin trace.Micros) (list []condition) {
	for i := range q.Without {
		if c, ok := x.ofTerm(&q.Without[i], begin); ok {
			list = append(list, not(c))
		}
	}
	return list
}

// onlyConditions returns the conditions on the selection: one of the values of each field, and
// inside the lasso.
func (q *Selection) onlyConditions(x *columns, begin trace.Micros) (list []condition) {
	for i := range q.Only {
		field := q.Only[i].Field
		if slices.ContainsFunc(q.Only[:i], func(t contrast.Term) bool { return t.Field == field }) {
			continue
		}
		var values []condition
		for _, t := range q.Only[i:] {
			if c, ok := x.ofTerm(&t, begin); ok && t.Field == field {
				values = append(values, c)
			}
		}
		if len(values) > 0 {
			list = append(list, anyOf(values...))
		}
	}
	if len(q.Lasso) > 0 {
		list = append(list, x.inside(q.Lasso, begin)...)
	}
	return list
}

// ofTerm returns the condition of a term; !ok if it is about details.
func (x *columns) ofTerm(t *contrast.Term, begin trace.Micros) (c condition, ok bool) {
	switch t.Field.Kind {
	case contrast.FieldFunction:
		return x.named(t.Label), true
	case contrast.FieldHost:
		hosts := x.factsOf("Hostname", t.Label)
		ofMetadata := allOf(
			oneOf(x.host, x.hosts, func(host string) bool { return host == "" || host == "Unknown" }, "coalesce(hostname, '') IN ('', 'Unknown')"),
			oneOf(x.place, x.places, func(k trace.RankKey) bool { return hosts[fact{RankKey: k}] },
				`(pid, rid) IN (SELECT pid, rid FROM metadata WHERE run = $1 AND descr = 'Hostname' AND "value" = ?)`, t.Label))
		return anyOf(oneOf(x.host, x.hosts, func(host string) bool { return host == t.Label }, "hostname = ?", t.Label), ofMetadata), true
	case contrast.FieldDevice, contrast.FieldStream:
		descr := "CUDA Stream"
		if t.Field.Kind == contrast.FieldDevice {
			descr = "CUDA Device"
		}
		devices := x.factsOf(descr, t.Label)
		return condition{
			sql:    `(is_gpu_event AND (pid, rid, tid) IN (SELECT pid, rid, tid FROM metadata WHERE run = $1 AND descr = ? AND "value" = ?))`,
			values: []any{descr, t.Label},
			keep: func(row int32) bool {
				return x.onGPU[row] && devices[fact{RankKey: x.places[x.place[row]], Thread: x.thread[row]}]
			},
		}, true
	case contrast.FieldPath:
		return condition{
			sql:    "(pid, path) IN (SELECT pid, path FROM call_paths WHERE run = $1 AND call_path = ?)",
			values: []any{t.Label},
			keep:   func(row int32) bool { return x.paths[x.pathOf(row)] != nil && x.paths[x.pathOf(row)].name == t.Label },
		}, true
	case contrast.FieldRank:
		return within("rid", x.rank, wholeNumber(t.From), wholeNumber(t.To)), true
	case contrast.FieldThread:
		onHost := condition{sql: "NOT is_gpu_event", keep: func(row int32) bool { return !x.onGPU[row] }}
		return allOf(onHost, within("tid", x.thread, wholeNumber(t.From), wholeNumber(t.To))), true
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
	return condition{}, false
}

// wholeNumber returns the bound of a range of ranks, threads or steps.
func wholeNumber(v float64) int64 { return int64(min(max(v, 0), math.MaxInt32)) }

// inside returns the conditions that executions are within a lasso: a line to the right of each
// crosses its edge an odd number of times.
func (x *columns) inside(lasso []contrast.Vertex, begin trace.Micros) []condition {
	low, high := lasso[0], lasso[0]
	for _, v := range lasso {
		low = contrast.Vertex{Seconds: min(low.Seconds, v.Seconds), Micros: min(low.Micros, v.Micros)}
		high = contrast.Vertex{Seconds: max(high.Seconds, v.Seconds), Micros: max(high.Micros, v.Micros)}
	}
	list := []condition{
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
		return append(list, condition{sql: "FALSE", keep: func(int32) bool { return false }})
	}
	return append(list, condition{
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

// narrow leaves those of the selection that terms choose of which a store knows nothing
// by itself: it looks closely at what there is. Of very many that is a part, and how
// many there are is then reckoned from it.
func (a *Asker) narrow(ctx context.Context, s *sampling) error {
	seen := s.atHand(s.selected)
	if err := a.lookInto(ctx, s, seen, s.q.kinds()...); err != nil {
		return err
	}
	var lost trace.Micros
	s.selected = nil
	for _, x := range seen {
		switch {
		case s.q.without(x, s):
		case s.q.has(x, s):
			s.selected = append(s.selected, x)
			lost += x.Lost
		default:
			s.others = append(s.others, x)
		}
	}
	s.reckoned = s.total > int64(len(seen))
	if !s.reckoned {
		s.total, s.lost = int64(len(s.selected)), lost
		return nil
	}
	part := float64(s.total) / float64(max(1, len(seen)))
	s.total, s.lost = int64(math.Round(part*float64(len(s.selected)))), trace.Micros(math.Round(part*float64(lost)))
	return nil
}

// leaveOutClosely removes from executions what terms leave out.
func (a *Asker) leaveOutClosely(ctx context.Context, s *sampling, list []*sampled) ([]*sampled, error) {
	if !slices.ContainsFunc(s.q.Without, func(t contrast.Term) bool { return t.Field.Kind.Closely() }) {
		return list, nil
	}
	list = s.closely(list)
	if err := a.lookInto(ctx, s, list, s.q.kinds()...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(x *sampled) bool { return s.q.without(x, s) }), nil
}

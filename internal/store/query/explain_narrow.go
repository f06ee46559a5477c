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

// leaveOut adds what nothing that is looked at may have.
func (q *Selection) leaveOut(c *conditions, begin trace.Micros) {
	for i := range q.Without {
		if sql, values := condition(&q.Without[i], begin); sql != "" {
			c.add("("+sql+") IS NOT TRUE", values...)
		}
	}
}

// leave adds what the selection must have: one of the values of each field.
func (q *Selection) leave(c *conditions, begin trace.Micros) {
	for i := range q.Only {
		field := q.Only[i].Field
		if slices.ContainsFunc(q.Only[:i], func(t contrast.Term) bool { return t.Field == field }) {
			continue
		}
		var ways []string
		var values []any
		for _, t := range q.Only[i:] {
			if t.Field != field {
				continue
			}
			if sql, v := condition(&t, begin); sql != "" {
				ways, values = append(ways, sql), append(values, v...)
			}
		}
		if len(ways) > 0 {
			c.add("("+strings.Join(ways, " OR ")+")", values...)
		}
	}
	if len(q.Lasso) > 0 {
		inside(c, q.Lasso, begin)
	}
}

// condition is the term for a store; empty: executions have to be looked at closely.
func condition(t *contrast.Term, begin trace.Micros) (sql string, values []any) {
	switch t.Field.Kind {
	case contrast.FieldFunction:
		return "(pid, fn) IN (SELECT pid, fn FROM functions WHERE run = $1 AND name = ?)", []any{t.Label}
	case contrast.FieldHost:
		return `(hostname = ? OR coalesce(hostname, '') IN ('', 'Unknown')
			AND (pid, rid) IN (SELECT pid, rid FROM metadata WHERE run = $1 AND descr = 'Hostname' AND "value" = ?))`, []any{t.Label, t.Label}
	case contrast.FieldDevice, contrast.FieldStream:
		descr := "CUDA Stream"
		if t.Field.Kind == contrast.FieldDevice {
			descr = "CUDA Device"
		}
		return `(is_gpu_event AND (pid, rid, tid) IN (SELECT pid, rid, tid FROM metadata WHERE run = $1 AND descr = ? AND "value" = ?))`,
			[]any{descr, t.Label}
	case contrast.FieldPath:
		return "(pid, path) IN (SELECT pid, path FROM call_paths WHERE run = $1 AND call_path = ?)", []any{t.Label}
	case contrast.FieldRank:
		return between(t, "rid")
	case contrast.FieldThread:
		sql, values = between(t, "tid")
		return "NOT is_gpu_event AND " + sql, values
	case contrast.FieldStep:
		return between(t, "io_step")
	case contrast.FieldTime:
		var parts []string
		if !math.IsInf(t.From, 0) {
			parts, values = append(parts, "entry >= ?"), append(values, int64(begin)+int64(math.Round(t.From*1e6)))
		}
		if !math.IsInf(t.To, 0) {
			parts, values = append(parts, "entry < ?"), append(values, int64(begin)+int64(math.Round(t.To*1e6)))
		}
		return "(" + strings.Join(parts, " AND ") + ")", values
	}
	return "", nil
}

// between is a range of whole numbers.
func between(t *contrast.Term, column string) (sql string, values []any) {
	return "(" + column + " BETWEEN ? AND ?)", []any{int64(max(t.From, 0)), int64(min(t.To, math.MaxInt32))}
}

// inside adds that executions are within a lasso: a line to the right of each crosses its
// edge an odd number of times.
func inside(c *conditions, lasso []contrast.Vertex, begin trace.Micros) {
	low, high := lasso[0], lasso[0]
	for _, v := range lasso {
		low = contrast.Vertex{Seconds: min(low.Seconds, v.Seconds), Micros: min(low.Micros, v.Micros)}
		high = contrast.Vertex{Seconds: max(high.Seconds, v.Seconds), Micros: max(high.Micros, v.Micros)}
	}
	c.add("entry BETWEEN ? AND ?", int64(begin)+int64(math.Floor(low.Seconds*1e6)), int64(begin)+int64(math.Ceil(high.Seconds*1e6)))
	c.add("runtime_exclusive BETWEEN ? AND ?", int64(math.Floor(low.Micros)), int64(math.Ceil(high.Micros)))
	height := func(v contrast.Vertex) float64 { return math.Log(max(1, v.Micros)) }
	const x, y = "(entry - ?::BIGINT)::DOUBLE PRECISION / 1e6", "ln(greatest(1, runtime_exclusive)::DOUBLE PRECISION)"
	var crossings []string
	var values []any
	for i, v := range lasso {
		w := lasso[(i+1)%len(lasso)]
		if height(v) == height(w) {
			continue
		}
		slope := (w.Seconds - v.Seconds) / (height(w) - height(v))
		crossings = append(crossings, fmt.Sprintf(
			"CASE WHEN %s >= ?::DOUBLE PRECISION AND %s < ?::DOUBLE PRECISION AND %s < ?::DOUBLE PRECISION + ?::DOUBLE PRECISION * %s THEN 1 "+
				"ELSE 0 END", y, y, x, y))
		values = append(values, min(height(v), height(w)), max(height(v), height(w)), int64(begin), v.Seconds-slope*height(v), slope)
	}
	if len(crossings) == 0 {
		c.add("FALSE") // it has no height
		return
	}
	c.add("("+strings.Join(crossings, " + ")+") % 2 = 1", values...)
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
			lost += x.lost
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

package query

import (
	"context"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/executions"
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
func (q *Selection) withoutConditions(begin trace.Micros) (list []executions.Condition) {
	for i := range q.Without {
		if c, ok := executions.OfTerm(&q.Without[i], begin); ok {
			list = append(list, executions.Not(c))
		}
	}
	return list
}

// onlyConditions returns the conditions on the selection: one of the values of each field, and
// inside the lasso.
func (q *Selection) onlyConditions(begin trace.Micros) (list []executions.Condition) {
	for i := range q.Only {
		field := q.Only[i].Field
		if slices.ContainsFunc(q.Only[:i], func(t contrast.Term) bool { return t.Field == field }) {
			continue
		}
		var values []executions.Condition
		for _, t := range q.Only[i:] {
			if c, ok := executions.OfTerm(&t, begin); ok && t.Field == field {
				values = append(values, c)
			}
		}
		if len(values) > 0 {
			list = append(list, executions.AnyOf(values...))
		}
	}
	if len(q.Lasso) > 0 {
		list = append(list, executions.Inside(q.Lasso, begin)...)
	}
	return list
}

// narrow leaves those of the selection that terms choose of which a store knows nothing
// by itself: it looks closely at what there is. Of very many that is a part, and how
// many there are is then reckoned from it.
func (a *Queries) narrow(ctx context.Context, s *sampling) error {
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
func (a *Queries) leaveOutClosely(ctx context.Context, s *sampling, list []*sampled) ([]*sampled, error) {
	if !slices.ContainsFunc(s.q.Without, func(t contrast.Term) bool { return t.Field.Kind.Closely() }) {
		return list, nil
	}
	list = s.closely(list)
	if err := a.lookInto(ctx, s, list, s.q.kinds()...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(x *sampled) bool { return s.q.without(x, s) }), nil
}

package query

import (
	"context"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// needsDetails reports whether the terms depend on messages, counters or node states.
func (q *Selection) needsDetails() bool {
	ofDetails := func(t contrast.Term) bool { return t.Field.Kind.NeedsDetails() }
	return slices.ContainsFunc(q.Only, ofDetails) || slices.ContainsFunc(q.Without, ofDetails)
}

// kinds returns the kinds of the fields of the terms.
func (q *Selection) kinds() (kinds []contrast.FieldKind) {
	for _, t := range slices.Concat(q.Only, q.Without) {
		kinds = append(kinds, t.Field.Kind)
	}
	return kinds
}

// only reports whether Only has terms of some kinds.
func (q *Selection) only(kinds ...contrast.FieldKind) bool {
	return slices.ContainsFunc(q.Only, func(t contrast.Term) bool { return slices.Contains(kinds, t.Field.Kind) })
}

// excludes reports whether Without excludes an execution by its details, which were read.
func (q *Selection) excludes(x *sampled, s *sampling) bool {
	return slices.ContainsFunc(q.Without, func(t contrast.Term) bool {
		if !t.Field.Kind.NeedsDetails() {
			return false // the store applied the term
		}
		c, ok := s.cell(t.Field, x)
		return ok && t.Has(c)
	})
}

// includes reports whether Only selects an execution by its details, which were read: it has one
// of the values of each field.
func (q *Selection) includes(x *sampled, s *sampling) bool {
	for i := range q.Only {
		field := q.Only[i].Field
		if !field.Kind.NeedsDetails() {
			continue // the store applied the term
		}
		c, ok := s.cell(field, x)
		if !ok || !slices.ContainsFunc(q.Only, func(t contrast.Term) bool { return t.Field == field && t.Has(c) }) {
			return false
		}
	}
	return true
}

// withoutConditions returns the conditions of Without, which hold for the baseline, too.
func (a *Queries) withoutConditions(q *Selection) (list []executions.Condition) {
	for i := range q.Without {
		if c, ok := a.OfTerm(&q.Without[i]); ok {
			list = append(list, executions.Not(c))
		}
	}
	return list
}

// onlyConditions returns the conditions on the selection: one of the values of each field, and
// inside the lasso.
func (a *Queries) onlyConditions(q *Selection) (list []executions.Condition) {
	for i := range q.Only {
		field := q.Only[i].Field
		if slices.ContainsFunc(q.Only[:i], func(t contrast.Term) bool { return t.Field == field }) {
			continue
		}
		var values []executions.Condition
		for _, t := range q.Only[i:] {
			if c, ok := a.OfTerm(&t); ok && t.Field == field {
				values = append(values, c)
			}
		}
		if len(values) > 0 {
			list = append(list, executions.AnyOf(values...))
		}
	}
	if len(q.Lasso) > 0 {
		list = append(list, a.Inside(q.Lasso)...)
	}
	return list
}

// narrow applies the terms that depend on details to the sample. If the sample is only a part of
// the selection, it extrapolates the number of anomalies and the lost time.
func (a *Queries) narrow(ctx context.Context, s *sampling) error {
	examined := s.preferCached(s.selected)
	if err := a.examine(ctx, s, examined, s.q.kinds()...); err != nil {
		return err
	}
	var lost trace.Ticks
	s.selected = nil
	for _, x := range examined {
		switch {
		case s.q.excludes(x, s):
		case s.q.includes(x, s):
			s.selected = append(s.selected, x)
			lost += x.Lost
		default:
			s.others = append(s.others, x)
		}
	}
	s.estimated = s.total > int64(len(examined))
	if !s.estimated {
		s.total, s.lost = int64(len(s.selected)), lost
		return nil
	}
	scale := float64(s.total) / float64(max(1, len(examined)))
	s.total, s.lost = int64(math.Round(scale*float64(len(s.selected)))), trace.Ticks(math.Round(scale*float64(lost)))
	return nil
}

// excludeByDetails returns the examined executions that Without does not exclude by their details.
func (a *Queries) excludeByDetails(ctx context.Context, s *sampling, list []*sampled) ([]*sampled, error) {
	if !slices.ContainsFunc(s.q.Without, func(t contrast.Term) bool { return t.Field.Kind.NeedsDetails() }) {
		return list, nil
	}
	list = s.toExamine(list)
	if err := a.examine(ctx, s, list, s.q.kinds()...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(x *sampled) bool { return s.q.excludes(x, s) }), nil
}

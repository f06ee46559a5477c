package query

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Groups is a selection broken down by a field.
type Groups struct {
	Field      contrast.FieldKey
	Name       string // of the field, in words
	Executions int64  // of the selection
	Lost       trace.Micros
	Reckoned   bool  // both are reckoned from a part
	Looked     int64 // executions that the rows are of; fewer if there are very many
	// Rows are the values that lost most first; of amounts and times ranges in their order.
	Rows   []Group
	Ranges bool  // that is what the rows are
	Values int   // how many values there are
	Rest   Group // those of further values
	None   Group // those that have no value
}

// Group is executions with one value, or with values of a range.
type Group struct {
	Label      string
	Term       contrast.Term
	Executions int64
	Lost       trace.Micros
}

func (g *Group) add(x *sampled) {
	g.Executions += x.count
	g.Lost += x.Lost
}

// MaxGroups is how many rows there are at most, and maxRanges how many ranges.
const (
	MaxGroups = 1000
	maxRanges = 12
)

// ofChange returns an error if a lasting change is narrowed: it is not a set of anomalies.
func (q *Selection) ofChange() error {
	if len(q.Only)+len(q.Without)+len(q.Lasso) == 0 {
		return nil
	}
	return &contrast.TermError{Text: q.Issue.Func, Reason: "it changed for all of its calls: that is no set of anomalies which could be " +
		"narrowed or grouped"}
}

// Group breaks a selection down by a field: the executions and the lost time of at most limit values.
func (a *Queries) Group(ctx context.Context, q Selection, by contrast.FieldKey, limit int) (*Groups, error) {
	if _, err := contrast.ParseField(by.String()); err != nil {
		return nil, err
	}
	if q.Issue != nil && q.Issue.IsChange() {
		q.Lasso = make([]contrast.Vertex, 1) // as if it were narrowed
		return nil, q.ofChange()
	}
	s := &sampling{q: &q, details: a.Details, begin: a.Begin}
	err := q.Filter.Check()
	if err == nil {
		err = a.whereAndHowLong(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	of, ok := executions.Groupings[by.Kind]
	if by.Kind == contrast.FieldTime {
		of, ok = executions.ByTime(a.Begin, s.bins().Width()), true
	}
	if ok && q.Member == nil && !q.closely() {
		err = a.grouped(ctx, s, of)
	} else {
		if _, _, err = a.choose(ctx, s); err == nil && by.Kind.Closely() {
			s.selected = s.atHand(s.selected)
			err = a.lookInto(ctx, s, s.selected, by.Kind)
		}
	}
	if err == nil && by.Kind == contrast.FieldPath {
		err = a.pathsOf(ctx, s)
	}
	if err == nil && (by.Kind == contrast.FieldDevice || by.Kind == contrast.FieldStream) {
		err = a.devicesOf(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	g := &Groups{Field: by, Name: by.Words(), Executions: s.total, Lost: s.lost, Reckoned: s.reckoned}
	g.fill(s, max(1, limit))
	return g, nil
}

// grouped divides the whole selection.
func (a *Queries) grouped(ctx context.Context, s *sampling, by executions.Grouping) error {
	all, selected, err := a.conditions(ctx, s.q)
	if err != nil {
		return err
	}
	groups, err := a.Sum(ctx, executions.AllOf(all, selected), by)
	for _, g := range groups {
		s.selected = append(s.selected, &sampled{count: g.Anomalies, Execution: executions.Execution{
			Program: g.Program, Rank: g.Rank, Thread: g.Thread, Function: g.Function, Path: g.Path, Step: g.Step, OnGPU: g.OnGPU,
			Entry: g.First, Lost: g.Lost,
		}})
		s.total += g.Anomalies
		s.lost += g.Lost
	}
	return err
}

// fill makes rows of the selection.
func (g *Groups) fill(s *sampling, limit int) {
	at := make(map[contrast.Cell]int)
	for _, x := range s.selected {
		g.Looked += x.count
		c, ok := s.cell(g.Field, x)
		if !ok {
			g.None.add(x)
			continue
		}
		i, seen := at[c]
		if !seen {
			i = len(g.Rows)
			at[c] = i
			row := Group{Label: contrast.Plain(c.Label), Term: contrast.Term{Field: g.Field, Label: c.Label, From: c.Number, To: c.Number}}
			if !g.Field.Kind.Named() {
				row.Label = s.bins().Text(g.Field, c.Number)
			}
			g.Rows = append(g.Rows, row)
		}
		g.Rows[i].add(x)
	}
	g.Values = len(g.Rows)
	g.Ranges = !g.Field.Kind.Named() && !g.Field.Kind.Whole()
	switch {
	case g.Ranges:
		slices.SortFunc(g.Rows, func(a, b Group) int { return cmp.Compare(a.Term.From, b.Term.From) })
		g.ranges(s)
	default:
		slices.SortFunc(g.Rows, func(a, b Group) int {
			return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Executions, a.Executions), cmp.Compare(a.Term.From, b.Term.From),
				cmp.Compare(a.Term.Label, b.Term.Label))
		})
	}
	for _, row := range g.Rows[min(limit, len(g.Rows)):] {
		g.Rest.Executions += row.Executions
		g.Rest.Lost += row.Lost
	}
	g.Rows = g.Rows[:min(limit, len(g.Rows))]
}

// ranges joins values that are in order to a few parts of equal width.
func (g *Groups) ranges(s *sampling) {
	isTime := g.Field.Kind == contrast.FieldTime
	var parts []Group
	if len(g.Rows) > 0 {
		low, high := g.Rows[0].Term.From, g.Rows[len(g.Rows)-1].Term.From
		width := (high - low) / maxRanges
		if isTime {
			low, width = 0, math.Ceil((s.bins().Last()+1)/maxRanges)
		}
		last := -1
		for _, row := range g.Rows {
			part := last + 1 // few values are shown as they are
			if isTime || len(g.Rows) > maxRanges {
				part = min(maxRanges-1, int((row.Term.From-low)/width))
			}
			if len(parts) == 0 || part != last {
				parts, last = append(parts, row), part
				continue
			}
			p := &parts[len(parts)-1]
			p.Term.To = row.Term.To
			p.Executions += row.Executions
			p.Lost += row.Lost
		}
		for i := range parts {
			g.label(s, &parts[i], low, width)
		}
	}
	g.Rows = parts
}

// label writes what a range is.
func (g *Groups) label(s *sampling, p *Group, low, width float64) {
	from, to := p.Term.From, p.Term.To
	switch {
	case g.Field.Kind == contrast.FieldTime:
		from = low + math.Floor((from-low)/width)*width
		to = min(from+width-1, s.bins().Last())
		p.Term = s.bins().TimeTerm(from, to)
		p.Label = s.bins().Text(g.Field, from) + " to " + s.bins().Text(g.Field, to+1)
	case from != to:
		p.Label = s.bins().Text(g.Field, from) + " to " + s.bins().Text(g.Field, to)
	}
}

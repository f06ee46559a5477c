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
	Name       string // of the field, for people
	Executions int64  // of the selection
	Lost       trace.Micros
	Reckoned   bool  // Executions and Lost are extrapolated from a sample
	Looked     int64 // executions in Rows, Rest and None: a sample of very many
	// Rows are sorted by lost time; ranges of amounts and times by value.
	Rows   []Group
	Ranges bool  // each row is a range of values
	Values int   // number of distinct values
	Rest   Group // values beyond Rows
	None   Group // executions without a value
}

// Group sums up executions with one value or a range of values.
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

// MaxGroups and maxRanges bound the rows of Groups.
const (
	MaxGroups = 1000
	maxRanges = 12
)

// checkChange returns an error if terms narrow a lasting change, which is not a set of anomalies.
func (q *Selection) checkChange() error {
	if len(q.Only)+len(q.Without)+len(q.Lasso) == 0 {
		return nil
	}
	return &contrast.TermError{Text: q.Issue.Func, Reason: "all of its calls changed, so there is no set of anomalies to narrow or group"}
}

// Group returns the executions and the lost time of a selection by the values of a field, at most limit of them.
func (a *Queries) Group(ctx context.Context, q Selection, by contrast.FieldKey, limit int) (*Groups, error) {
	if _, err := contrast.ParseField(by.String()); err != nil {
		return nil, err
	}
	if q.Issue != nil && q.Issue.IsChange() {
		q.Lasso = make([]contrast.Vertex, 1) // grouping counts as narrowing
		return nil, q.checkChange()
	}
	s := &sampling{q: &q, details: a.Details, begin: a.Begin}
	err := q.Filter.Check()
	if err == nil {
		err = a.readRanksAndExtent(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	of, ok := executions.Groupings[by.Kind]
	if by.Kind == contrast.FieldTime {
		of, ok = executions.ByTime(a.Begin, s.bins().Width()), true
	}
	if ok && q.Member == nil && !q.needsDetails() {
		err = a.sumGroups(ctx, s, of)
	} else {
		if _, _, err = a.readSelection(ctx, s); err == nil && by.Kind.NeedsDetails() {
			s.selected = s.preferCached(s.selected)
			err = a.examine(ctx, s, s.selected, by.Kind)
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
	g := &Groups{Field: by, Name: by.Words(), Executions: s.total, Lost: s.lost, Reckoned: s.estimated}
	g.fill(s, max(1, limit))
	return g, nil
}

// sumGroups sums up the whole selection by a grouping.
func (a *Queries) sumGroups(ctx context.Context, s *sampling, by executions.Grouping) error {
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

// fill sets the rows from the selection.
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

// ranges merges the sorted rows into at most maxRanges ranges of equal width.
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
			part := last + 1 // few values need no ranges
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

// label sets the label of a range, and its term for times.
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

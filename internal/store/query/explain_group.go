package query

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// breakdown is a selection that is being broken down by a field.
type breakdown struct {
	api.ExplainGroups // without rows
	field             contrast.FieldKey
	rows              []group
}

// group is the executions with one value, or in a range of values.
type group struct {
	api.ExplainGroup
	term contrast.Term
}

func (s *sampling) add(g *api.ExplainGroup, x *sampled) {
	g.Executions += x.count
	g.Lost += s.tick.Micros(x.Lost)
}

// MaxGroups and maxRanges bound the rows of a grouping.
const (
	MaxGroups = 1000
	maxRanges = 12
)

// checkChange returns an error if terms narrow a lasting change, which is not a set of anomalies.
func (q *Selection) checkChange() error {
	if len(q.Only)+len(q.Without)+len(q.Lasso) == 0 {
		return nil
	}
	return &contrast.TermError{Text: q.Finding.Func, Reason: "all of its calls changed, so there is no set of anomalies to narrow or group"}
}

// Group returns the executions and the lost time of a selection by the values of a field, at most limit of them.
func (a *Queries) Group(ctx context.Context, q Selection, by contrast.FieldKey, limit int) (*api.ExplainGroups, error) {
	if _, err := contrast.ParseField(by.String()); err != nil {
		return nil, err
	}
	if q.Finding != nil && q.Finding.IsChange() {
		q.Lasso = make([]contrast.Vertex, 1) // grouping counts as narrowing
		return nil, q.checkChange()
	}
	s := &sampling{q: &q, details: a.Details, begin: a.Begin, tick: a.Unit}
	err := q.Filter.Check()
	if err == nil {
		err = a.readRanksAndExtent(ctx, &q)
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
	g := &breakdown{field: by, ExplainGroups: api.ExplainGroups{
		Field: by.String(), Name: by.Words(), Selected: s.total, Lost: a.Unit.Micros(s.lost), Estimated: s.estimated, Rows: []api.ExplainGroup{},
	}}
	g.fill(s, max(1, limit))
	return &g.ExplainGroups, nil
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
func (g *breakdown) fill(s *sampling, limit int) {
	at := make(map[contrast.Cell]int)
	for _, x := range s.selected {
		g.Examined += x.count
		c, ok := s.cell(g.field, x)
		if !ok {
			s.add(&g.None, x)
			continue
		}
		i, seen := at[c]
		if !seen {
			i = len(g.rows)
			at[c] = i
			row := group{term: contrast.Term{Field: g.field, Label: c.Label, From: c.Number, To: c.Number}}
			row.Label = contrast.Plain(c.Label)
			if !g.field.Kind.Named() {
				row.Label = s.bins().Text(g.field, c.Number)
			}
			g.rows = append(g.rows, row)
		}
		s.add(&g.rows[i].ExplainGroup, x)
	}
	g.Values = len(g.rows)
	g.Ranges = !g.field.Kind.Named() && !g.field.Kind.Whole()
	switch {
	case g.Ranges:
		slices.SortFunc(g.rows, func(a, b group) int { return cmp.Compare(a.term.From, b.term.From) })
		g.ranges(s)
	default:
		slices.SortFunc(g.rows, func(a, b group) int {
			return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Executions, a.Executions), cmp.Compare(a.term.From, b.term.From),
				cmp.Compare(a.term.Label, b.term.Label))
		})
	}
	for i, row := range g.rows {
		if i < limit {
			row.Term = row.term.String()
			g.Rows = append(g.Rows, row.ExplainGroup)
			continue
		}
		g.Rest.Executions += row.Executions
		g.Rest.Lost += row.Lost
	}
}

// ranges merges the sorted rows into at most maxRanges ranges of equal width.
func (g *breakdown) ranges(s *sampling) {
	isTime := g.field.Kind == contrast.FieldTime
	var parts []group
	if len(g.rows) > 0 {
		low, high := g.rows[0].term.From, g.rows[len(g.rows)-1].term.From
		width := (high - low) / maxRanges
		if isTime {
			low, width = 0, math.Ceil((s.bins().Last()+1)/maxRanges)
		}
		last := -1
		for _, row := range g.rows {
			part := last + 1 // few values need no ranges
			if isTime || len(g.rows) > maxRanges {
				part = min(maxRanges-1, int((row.term.From-low)/width))
			}
			if len(parts) == 0 || part != last {
				parts, last = append(parts, row), part
				continue
			}
			p := &parts[len(parts)-1]
			p.term.To = row.term.To
			p.Executions += row.Executions
			p.Lost += row.Lost
		}
		for i := range parts {
			g.label(s, &parts[i], low, width)
		}
	}
	g.rows = parts
}

// label sets the label of a range, and its term for times.
func (g *breakdown) label(s *sampling, p *group, low, width float64) {
	from, to := p.term.From, p.term.To
	switch {
	case g.field.Kind == contrast.FieldTime:
		from = low + math.Floor((from-low)/width)*width
		to = min(from+width-1, s.bins().Last())
		p.term = s.bins().TimeTerm(from, to)
		p.Label = s.bins().Text(g.field, from) + " to " + s.bins().Text(g.field, to+1)
	case from != to:
		p.Label = s.bins().Text(g.field, from) + " to " + s.bins().Text(g.field, to)
	}
}

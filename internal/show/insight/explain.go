package insight

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// ExplainParams select anomalies.
type ExplainParams struct {
	Finding string // key; empty: of all findings
	Filter  executions.Filter
	Only    []contrast.Term
	Without []contrast.Term
	Lasso   string // an outline as contrast.ParseLasso reads it; empty: none
}

// Explain returns how the selected anomalies differ from other executions.
func (in *Insight) Explain(ctx context.Context, run string, of ExplainParams) (*api.Explained, error) {
	return inMemory(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.Explained, error) {
		selection, err := in.selection(ctx, q, of)
		if err != nil {
			return nil, err
		}
		e, err := q.Explain(ctx, *selection)
		if err != nil {
			return nil, err
		}
		page := pageExplanation(e)
		page.Command = in.explainCommand(q, selection)
		return page, nil
	})
}

// GroupParams select anomalies and the field to group them by.
type GroupParams struct {
	ExplainParams
	By    contrast.FieldKey
	Limit int
}

// Groups groups the selected anomalies by a field.
func (in *Insight) Groups(ctx context.Context, run string, of GroupParams) (*api.ExplainGroups, error) {
	return inMemory(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.ExplainGroups, error) { return in.groups(ctx, q, of) })
}

func (in *Insight) groups(ctx context.Context, q *runQuery, of GroupParams) (*api.ExplainGroups, error) {
	selection, err := in.selection(ctx, q, of.ExplainParams)
	if err != nil {
		return nil, err
	}
	g, err := q.Group(ctx, *selection, of.By, of.Limit)
	if err != nil {
		return nil, err
	}
	g.Command = in.explainCommand(q, selection) + " --group-by " + text.ShellWord(g.Field)
	return g, nil
}

// selection resolves the parameters and sets the cached details of the query.
func (in *Insight) selection(ctx context.Context, q *runQuery, of ExplainParams) (*query.Selection, error) {
	selection := query.Selection{Filter: of.Filter, Only: of.Only, Without: of.Without, Ranks: q.data.ranks, Extent: q.data.extent}
	var err error
	if of.Lasso != "" {
		if selection.Lasso, err = contrast.ParseLasso(of.Lasso); err != nil {
			return nil, api.Problemf(api.Invalid, api.ParamsHint, "parameter lasso: %v", err)
		}
	}
	if of.Finding != "" {
		x, err := q.data.finding(of.Finding)
		if err != nil {
			return nil, err
		}
		if err := q.ofFinding(ctx, &selection, x); err != nil {
			return nil, err
		}
	}
	q.Details, err = in.readDetails(ctx, q)
	return &selection, err
}

// readDetails returns the cached details of executions. It reads those of an ended run once, also if it
// is small: then they cover all executions, so explanations do not change. The caller must hold a slot.
func (in *Insight) readDetails(ctx context.Context, q *runQuery) (*query.Details, error) {
	a := *q.Queries
	least := int64(query.LeastDetailed)
	if !a.Run.State.Open() {
		least = 0
	}
	return in.details.Get(ctx, runKey(&q.Run), func(ctx context.Context) (*query.Details, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, slowFactor*in.Timeout)
		defer cancel()
		d, err := a.ReadDetails(ctx, least, query.MaxDetailed)
		return d, !a.Run.State.Open(), err
	})
}

// ofFinding selects the anomalies of a finding. If a live run has too many anomalies to link them
// to findings, it selects all anomalies of the same function.
func (q *runQuery) ofFinding(ctx context.Context, s *query.Selection, x *provenance.Finding) error {
	s.Finding = x
	switch {
	case q.data.stored || x.IsChange():
	case q.data.linkOf != nil:
		s.Member = func(program trace.Program, event string) bool {
			l := q.data.link(program, event)
			return l != nil && l.Finding == x.Number
		}
	default:
		f, err := q.functionOfFinding(ctx, x)
		if err != nil {
			return err
		}
		s.Finding, s.Filter.One = nil, f
	}
	return nil
}

var explainRoles = map[contrast.Role]string{contrast.Cause: "cause", contrast.When: "when", contrast.Chosen: "chosen"}

// maxExplainFunctions bounds the functions of a selection that are listed.
const maxExplainFunctions = 10

func pageExplanation(e *contrast.Explanation) *api.Explained {
	p := &e.Explained
	p.Functions, p.Fields = p.Functions[:min(len(p.Functions), maxExplainFunctions)], []api.ExplainField{}
	for i := range e.Fields {
		c := &e.Fields[i]
		f := api.ExplainField{
			Kind: string(c.Kind), Name: c.Name, Key: c.Key.String(), Terms: []string{}, Role: explainRoles[c.Role], Values: c.Values,
			Labels: append([]string{}, c.Labels...), Numbers: append([]float64{}, c.Numbers...),
			With: c.With, Of: c.Of, BaselineShare: c.BaselineShare, Rest: c.Rest, Support: c.Support(), Bits: c.Bits, Chance: c.Chance,
			Notable: c.Notable, Bars: c.Bars,
		}
		if c.Range || c.Least {
			f.From = &c.From
		}
		if c.Range || c.Most {
			f.To = &c.To
		}
		for _, t := range c.Terms {
			f.Terms = append(f.Terms, t.String())
		}
		p.Fields = append(p.Fields, f)
	}
	return p
}

// explainCommand returns the command line with the same answer.
func (in *Insight) explainCommand(q *runQuery, selection *query.Selection) string {
	parts := []string{"chimbuko explain", text.ShellWord(cmp.Or(in.Place, "RUN")), "--run", text.ShellWord(q.Run.Name)}
	x, f := selection.Finding, &selection.Filter
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, "--"+name, text.ShellWord(value))
		}
	}
	if x != nil {
		add("finding", strconv.Itoa(x.Number))
	}
	add("func", f.Function)
	add("kind", strings.Join(f.Kinds, ","))
	add("host", f.Host)
	var ranks []string
	for _, r := range f.Ranks {
		text := strconv.FormatInt(r.First, 10)
		if r.Last != r.First {
			text += fmt.Sprintf("-%d", r.Last)
		}
		ranks = append(ranks, text)
	}
	add("rank", strings.Join(ranks, ","))
	if f.Program != nil {
		add("program", strconv.Itoa(int(*f.Program)))
	}
	for _, t := range []struct {
		name string
		at   *time.Duration
	}{{"from", f.Since}, {"to", f.Until}} {
		if t.at != nil {
			add(t.name, strconv.FormatFloat(t.at.Seconds(), 'f', -1, 64))
		}
	}
	if f.Took != nil {
		add("min-us", strconv.FormatFloat(f.Took.First, 'f', -1, 64))
		if f.Took.Last > 0 {
			add("max-us", strconv.FormatFloat(f.Took.Last, 'f', -1, 64))
		}
	}
	add("lasso", contrast.LassoText(selection.Lasso))
	for _, t := range selection.Only {
		add("only", t.String())
	}
	for _, t := range selection.Without {
		add("without", t.String())
	}
	return strings.Join(parts, " ")
}

package insight

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// ExplainParams choose anomalies.
type ExplainParams struct {
	Issue   string // key; empty: of all issues
	Filter  query.Filter
	Only    []contrast.Term
	Without []contrast.Term
	Lasso   string // an outline as contrast.ParseLasso reads it; empty: none
}

// Explain tells what is different about some anomalies.
func (in *Insight) Explain(ctx context.Context, run string, of ExplainParams) (*api.Explained, error) {
	return cached(ctx, in, run, func(ctx context.Context, q *asked) (*api.Explained, error) {
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

// GroupParams choose anomalies and what they are broken down by.
type GroupParams struct {
	ExplainParams
	By    contrast.FieldKey
	Limit int
}

// Groups breaks some anomalies down by a field.
func (in *Insight) Groups(ctx context.Context, run string, of GroupParams) (*api.ExplainGroups, error) {
	return cached(ctx, in, run, func(ctx context.Context, q *asked) (*api.ExplainGroups, error) { return in.groups(ctx, q, of) })
}

func (in *Insight) groups(ctx context.Context, q *asked, of GroupParams) (*api.ExplainGroups, error) {
	selection, err := in.selection(ctx, q, of.ExplainParams)
	if err != nil {
		return nil, err
	}
	g, err := q.Group(ctx, *selection, of.By, of.Limit)
	if err != nil {
		return nil, err
	}
	page := &api.ExplainGroups{
		Field: of.By.String(), Name: g.Name, Selected: g.Executions, Lost: int64(g.Lost), Reckoned: g.Reckoned, Looked: g.Looked,
		Rows: []api.ExplainGroup{}, Ranges: g.Ranges,
		Values: g.Values, Rest: api.ExplainGroup{Executions: g.Rest.Executions, Lost: int64(g.Rest.Lost)},
		None:    api.ExplainGroup{Executions: g.None.Executions, Lost: int64(g.None.Lost)},
		Command: in.explainCommand(q, selection) + " --group-by " + quoted(of.By.String()),
	}
	for _, r := range g.Rows {
		page.Rows = append(page.Rows, api.ExplainGroup{Label: r.Label, Term: r.Term.String(), Executions: r.Executions, Lost: int64(r.Lost)})
	}
	return page, nil
}

// selection finds which anomalies are meant, and has what is cached of them looked at.
func (in *Insight) selection(ctx context.Context, q *asked, of ExplainParams) (*query.Selection, error) {
	selection := query.Selection{Filter: of.Filter, Only: of.Only, Without: of.Without, Ranks: q.known.ranks, Extent: q.known.extent}
	var err error
	if of.Lasso != "" {
		if selection.Lasso, err = contrast.ParseLasso(of.Lasso); err != nil {
			return nil, Problemf(api.Invalid, ParamsHint, "parameter lasso: %v", err)
		}
	}
	if of.Issue != "" {
		if q.known.wrong != nil {
			return nil, q.known.wrong
		}
		x, ok := q.known.issue(of.Issue)
		if !ok {
			return nil, noIssue(of.Issue)
		}
		if err := q.ofIssue(ctx, &selection, x); err != nil {
			return nil, err
		}
	}
	q.Details, err = in.detailed(ctx, q)
	return &selection, err
}

// leastDetailed is of how many executions of a run that has ended details are read. Of fewer
// than query.LeastDetailed they are of all, and explanations the same as without them.
const leastDetailed = 2000

// detailed returns what is at hand of executions that are looked at closely. It is read
// once for all that is asked of a run that has ended. The one who asks has a turn already.
func (in *Insight) detailed(ctx context.Context, q *asked) (*query.Details, error) {
	a := *q.Asker
	least := int64(query.LeastDetailed)
	if !a.Run.State.Open() {
		least = leastDetailed
	}
	return in.details.Get(ctx, runKey(&q.Run), func(ctx context.Context) (*query.Details, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, knownPatience*in.Timeout)
		defer cancel()
		d, err := a.ReadDetails(ctx, least, query.MaxDetailed)
		return d, !a.Run.State.Open(), err
	})
}

// ofIssue chooses the anomalies of an issue. Where it is not known which they are, as
// there are too many in a run that goes on, it is all of its function and kind.
func (q *asked) ofIssue(ctx context.Context, s *query.Selection, x *provenance.Issue) error {
	s.Issue = x
	switch {
	case q.known.stored || x.IsChange():
	case q.known.linkOf != nil:
		s.Member = func(program trace.Program, event string) bool {
			i, ok := q.known.linkOf[trace.EventKey{Program: program, ID: event}]
			return ok && q.known.links[i].Issue == x.Number
		}
	default:
		f, err := q.functionOfIssue(ctx, x)
		if err != nil {
			return err
		}
		s.Issue, s.Filter.One = nil, f
		if x.Kind != provenance.Burst {
			s.Filter.Kinds = []string{string(x.Kind)}
		}
	}
	return nil
}

var explainRoles = map[contrast.Role]string{contrast.Cause: "cause", contrast.When: "when", contrast.Chosen: "chosen"}

// maxExplainFunctions is how many functions of a selection are named.
const maxExplainFunctions = 10

func pageExplanation(e *contrast.Explanation) *api.Explained {
	p := &api.Explained{
		Sentence: e.Sentence, Selected: e.Selected, Lost: int64(e.Lost), Reckoned: e.Reckoned, Looked: e.Looked, Typical: e.Typical,
		Others:    e.Others,
		Functions: []api.ExplainFunction{}, Fields: []api.ExplainField{},
	}
	for _, c := range e.Functions[:min(len(e.Functions), maxExplainFunctions)] {
		term := ""
		if c.Name != "" {
			term = contrast.Term{Field: contrast.FieldKey{Kind: contrast.FieldFunction}, Label: c.Name}.String()
		}
		p.Functions = append(p.Functions, api.ExplainFunction{Program: int64(c.Program), Function: c.Name, Term: term, Executions: c.Executions})
	}
	for i := range e.Fields {
		c := &e.Fields[i]
		f := api.ExplainField{
			Kind: string(c.Kind), Name: c.Name, Key: c.Key.String(), Terms: []string{}, Role: explainRoles[c.Role], Values: c.Values,
			Labels: append([]string{}, c.Labels...), Numbers: append([]float64{}, c.Numbers...),
			With: c.With, Of: c.Of, BaselineShare: c.BaselineShare, Rest: c.Rest, Support: c.Support(), Bits: c.Bits, Chance: c.Chance,
			Notable: c.Notable, Bars: []api.ExplainBar{},
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
		for _, b := range c.Bars {
			f.Bars = append(f.Bars, api.ExplainBar(b))
		}
		p.Fields = append(p.Fields, f)
	}
	return p
}

// explainCommand is what gives the same in a terminal.
func (in *Insight) explainCommand(q *asked, selection *query.Selection) string {
	parts := []string{"chimbuko explain", quoted(cmp.Or(in.Place, "RUN")), "--run", quoted(q.Run.Name)}
	x, f := selection.Issue, &selection.Filter
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, "--"+name, quoted(value))
		}
	}
	if x != nil {
		add("issue", strconv.Itoa(x.Number))
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
		at   *trace.Micros
	}{{"from", f.Since}, {"to", f.Until}} {
		if t.at != nil {
			add(t.name, strconv.FormatFloat(float64(*t.at)/1e6, 'f', -1, 64))
		}
	}
	if f.Took != nil {
		add("min-us", strconv.FormatInt(f.Took.First, 10))
		if f.Took.Last != math.MaxInt64 {
			add("max-us", strconv.FormatInt(f.Took.Last, 10))
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

// quoted is a word of a command line.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Selection selects the anomalies of an explanation.
type Selection struct {
	// Filter selects anomalies that were not withdrawn. Normal, Withdrawn, order and
	// limits are ignored.
	Filter executions.Filter
	// Finding selects only the anomalies of a finding, if not nil.
	Finding *provenance.Finding
	// Member reports whether an anomaly belongs to Finding; if nil, the store has the members.
	Member func(program trace.Program, event string) bool
	// Only selects executions with one of the values of each of its fields. Without excludes
	// executions with any of its values, also from the baseline. Lasso selects executions inside
	// a polygon.
	Only, Without []contrast.Term
	Lasso         []contrast.Vertex
	// Ranks are all ranks of the run, and Extent is its duration. If nil or 0, they are read from the store.
	Ranks  []executions.RankHost
	Extent trace.Ticks
}

// Bounds of the samples of an explanation. Samples are spread over the whole run.
const (
	maxSelected = 2000
	maxTypical  = 1000
	maxOthers   = 1000
	maxStates   = 300 // executions of any function whose node states are read
	// Of each sample, the details of at most maxExamined executions are examined. If some details are
	// cached, those of at least minExamined executions are examined, from the store if necessary.
	maxExamined = 400
	minExamined = 25
)

// sampled is an execution of a sample, or a group of executions.
type sampled struct {
	executions.Execution
	marked, hasDetails bool // whether hasDetails is set; whether Details contains the execution
	message            *message
	counters           map[string]float64
	states             map[string]float64
	stateRead          any // time
	stateUnit          uint64
	count              int64 // executions in the group
}

// splitByDetails separates the executions whose details are cached from the others.
func (s *sampling) splitByDetails(list []*sampled) (cached, others []*sampled) {
	s.details.mark(list)
	for _, x := range list {
		if x.hasDetails {
			cached = append(cached, x)
		} else {
			others = append(others, x)
		}
	}
	return cached, others
}

// preferCached returns the executions whose details are cached, or all if fewer than minExamined are.
func (s *sampling) preferCached(list []*sampled) []*sampled {
	if s.details == nil {
		return list
	}
	if cached, _ := s.splitByDetails(list); len(cached) >= minExamined {
		return cached
	}
	return list
}

// toExamine returns the executions whose messages, counters and node states are examined. If some
// details are cached, it adds others only up to minExamined, because reading them is slow.
func (s *sampling) toExamine(list []*sampled) []*sampled {
	if s.details != nil {
		cached, others := s.splitByDetails(list)
		list = append(cached, others[:min(len(others), max(0, minExamined-len(cached)))]...)
	}
	return list[:min(len(list), maxExamined)]
}

func (s *sampled) key() trace.EventKey { return trace.EventKey{Program: s.Program, ID: s.Event} }

// message is the most informative message of an execution: the last that it received, else the
// last that it sent, else the nearest one around it.
type message struct {
	partner int64
	bytes   *float64 // nil if unknown
	own     bool
}

// sampling holds the samples of an explanation and the values of their fields.
type sampling struct {
	q                         *Selection
	details                   *Details
	begin                     trace.Ticks
	tick                      trace.Unit
	selected, typical, others []*sampled
	anywhere                  []*sampled // only for node states
	total                     int64
	lost                      trace.Ticks
	estimated                 bool                                           // total and lost are extrapolated from a sample
	read                      map[contrast.FieldKind]map[trace.EventKey]bool // executions whose details were read
	lastStep                  int64
	hosts                     map[trace.RankKey]string

	pathNames map[executions.PathID]string
	pathCalls map[executions.PathID]float64 // of the selected functions; empty if unknown
	devices   map[device][2]string          // device and stream
	threads   []int64                       // threads on CPUs
	readings  map[string]contrast.Moments
	units     map[unit]uint64
}

// unit is a rank during a two-hundredth of the run. Events of one unit mostly share a cause, so
// significance tests count them once.
type unit struct {
	program trace.Program
	rank    trace.Rank
	at      any
}

func (s *sampling) unit(x *sampled, at any) uint64 {
	if s.units == nil {
		s.units = make(map[unit]uint64)
	}
	key := unit{x.Program, x.Rank, at}
	n, ok := s.units[key]
	if !ok {
		n = uint64(len(s.units))
		s.units[key] = n
	}
	return n
}

type device struct {
	program trace.Program
	rank    trace.Rank
	thread  int64
}

// Explain returns the fields in which a selection of anomalies differs from typical executions of
// the same functions, from other anomalies of them, and from all calls.
func (a *Queries) Explain(ctx context.Context, q Selection) (*contrast.Explanation, error) {
	if q.Finding != nil && q.Finding.IsChange() {
		if err := q.checkChange(); err != nil {
			return nil, err
		}
		return contrast.ExplainChange(q.Finding, a.Unit, a.Begin), nil
	}
	s := &sampling{q: &q, details: a.Details, begin: a.Begin, tick: a.Unit}
	if err := q.Filter.Check(); err != nil {
		return nil, err
	}
	all, selected, err := a.readSelection(ctx, s)
	if err == nil && len(s.selected) > 0 {
		err = a.readBaseline(ctx, s, all, selected)
	}
	if err != nil {
		return nil, err
	}
	e := &contrast.Explanation{Explained: api.Explained{
		Selected: s.total, Lost: a.Unit.Micros(s.lost), Estimated: s.estimated, Examined: len(s.selected), Typical: len(s.typical),
		Others: len(s.others), Functions: s.functions(),
	}}
	if len(s.selected) == 0 {
		e.Sentence = "No anomaly is in the selection"
		return e, nil
	}
	if err := a.readFields(ctx, s); err != nil {
		return nil, err
	}
	e.Explain(s.fields(), s.bins())
	if slices.ContainsFunc(e.Fields, func(d contrast.Difference) bool { return d.Kind == contrast.FieldThread }) {
		x := s.selected[0]
		names, err := a.ThreadNames(ctx, trace.RankKey{Program: x.Program, Rank: x.Rank})
		if err != nil {
			return nil, err
		}
		if name := names[trace.Thread(x.Thread)]; name != "" {
			e.Thread = fmt.Sprintf("Thread %d of rank %d is named %q", x.Thread, x.Rank, name)
		}
	}
	return e, nil
}

// functions counts the selected executions by function, the most frequent first.
func (s *sampling) functions() []api.ExplainFunction {
	list := []api.ExplainFunction{}
	at := make(map[executions.FunctionID]int)
	for _, x := range s.selected {
		key := x.FunctionID()
		i, ok := at[key]
		if !ok {
			i = len(list)
			at[key] = i
			list = append(list, contrast.OfFunction(x.Program, x.Function, 0))
		}
		list[i].Executions++
	}
	slices.SortStableFunc(list, func(a, b api.ExplainFunction) int { return b.Executions - a.Executions })
	return list
}

// conditions returns the conditions of a selection: on all executions that are examined, and on
// the selected ones among them.
func (a *Queries) conditions(ctx context.Context, q *Selection) (all, selected executions.Condition, err error) {
	all = executions.AllOf(append(a.withoutConditions(q), executions.Flagged)...)
	f := q.Filter
	f.Normal, f.Withdrawn = false, true // all contains this condition
	filtered, err := f.Condition(ctx, &a.Reader)
	if err != nil {
		return all, selected, err
	}
	list := append(a.onlyConditions(q), filtered)
	if i := q.Finding; i != nil {
		list = append(list, executions.Program.In(int64(i.PID)))
		switch {
		case q.Member == nil:
			list = append(list, executions.Finding.Between(int64(i.Number), int64(i.Number)))
		case i.Func != "": // else it has several
			list = append(list, executions.Name.In(i.Func))
		}
	}
	return all, executions.AllOf(list...), nil
}

// readSelection reads a sample of the selection and returns its conditions.
func (a *Queries) readSelection(ctx context.Context, s *sampling) (all, selected executions.Condition, err error) {
	limit := maxSelected
	if s.q.Member != nil {
		limit = 10 * maxSelected // some belong to other findings
	}
	if all, selected, err = a.conditions(ctx, s.q); err != nil {
		return all, selected, err
	}
	where := executions.AllOf(all, selected)
	if s.selected, err = a.sample(ctx, where, limit); err != nil {
		return all, selected, err
	}
	total, err := a.Sum(ctx, where, nil)
	if err != nil {
		return all, selected, err
	}
	if len(total) > 0 {
		s.total, s.lost = total[0].Anomalies, total[0].Lost
	}
	if s.q.Member != nil {
		s.keepMembers()
	}
	if s.q.needsDetails() {
		err = a.narrow(ctx, s)
	}
	return all, selected, err
}

// readBaseline reads the executions that the selection is compared with.
func (a *Queries) readBaseline(ctx context.Context, s *sampling, all, selected executions.Condition) error {
	functions := executions.OfFunctions(s.functionIDs())
	where := []executions.Condition{all, functions}
	if s.q.Member == nil {
		where = append(where, executions.Not(selected))
	}
	others, err := a.sample(ctx, executions.AllOf(where...), maxOthers)
	if err != nil {
		return err
	}
	if s.q.Member != nil {
		others = slices.DeleteFunc(others, func(x *sampled) bool { return s.q.Member(x.Program, x.Event) })
	}
	where = append(a.withoutConditions(s.q), functions, executions.Typical)
	if s.typical, err = a.sample(ctx, executions.AllOf(where...), maxTypical); err != nil {
		return err
	}
	return a.exclude(ctx, s, others)
}

// exclude removes the executions that Without excludes by details from the baseline.
func (a *Queries) exclude(ctx context.Context, s *sampling, others []*sampled) (err error) {
	if others, err = a.excludeByDetails(ctx, s, others); err != nil {
		return err
	}
	s.others = append(others, s.others...)
	s.others = s.others[:min(len(s.others), maxOthers)]
	s.typical, err = a.excludeByDetails(ctx, s, s.typical)
	return err
}

// keepMembers removes the anomalies that do not belong to the finding.
func (s *sampling) keepMembers() {
	all := len(s.selected)
	s.selected = slices.DeleteFunc(s.selected, func(x *sampled) bool { return !s.q.Member(x.Program, x.Event) })
	if s.total <= int64(all) {
		s.total = int64(len(s.selected))
	} else {
		s.total = s.q.Finding.Calls
	}
	if s.total == s.q.Finding.Calls {
		s.lost = s.q.Finding.LostOwn
	} else {
		s.lost = 0
		for _, x := range s.selected {
			s.lost += x.Lost
		}
	}
	s.selected = s.selected[:min(len(s.selected), maxSelected)]
}

// functionIDs returns the functions of the selection in order of appearance, at most
// executions.MaxFunctions.
func (s *sampling) functionIDs() (ids []executions.FunctionID) {
	seen := make(map[executions.FunctionID]bool)
	for _, x := range s.selected {
		id := x.FunctionID()
		if !seen[id] && len(ids) < executions.MaxFunctions {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// sample returns the first limit executions that satisfy a condition, in sampling order.
func (a *Queries) sample(ctx context.Context, where executions.Condition, limit int) (list []*sampled, err error) {
	all, err := a.List(ctx, where, executions.InSamplingOrder, limit)
	for i := range all {
		list = append(list, &sampled{Execution: all[i], count: 1})
	}
	return list, err
}

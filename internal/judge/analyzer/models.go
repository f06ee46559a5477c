package analyzer

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Function has the statistics and the model of a function over all ranks.
type Function struct {
	summary.FunctionStats // numbered from 0 in order of appearance

	model   *scoped // of all ranks
	ignored bool
}

// scoped is a model and the judge made from it.
type scoped struct {
	function *Function
	model    outlier.Model
	judge    *outlier.Judge
	changed  bool
	document atomic.Pointer[json.RawMessage] // of judge; nil until it is needed
}

// params returns the model as JSON in the provenance schema, or nil if that fails.
func (s *scoped) params() json.RawMessage {
	if p := s.document.Load(); p != nil {
		return *p
	}
	b, err := json.Marshal(s.judge)
	if err != nil {
		return nil
	}
	p := json.RawMessage(b)
	s.document.Store(&p)
	return p
}

// Models are the functions of a run and their models. They change only while no rank
// is judging.
type Models struct {
	rules     *outlier.Rules
	functions []*Function
	byName    map[trace.FuncKey]*Function
	changed   []*scoped
}

// NewModels returns empty models.
func NewModels(rules *outlier.Rules) *Models {
	return &Models{rules: rules, byName: make(map[trace.FuncKey]*Function)}
}

// Functions returns all functions in order of their numbers.
func (m *Models) Functions() []*Function { return m.functions }

// Learned returns the model of a function.
func (f *Function) Learned() *outlier.Model { return &f.model.model }

// function returns the function of that name, added if it is new.
func (m *Models) function(key trace.FuncKey) *Function {
	f := m.byName[key]
	if f == nil {
		f = &Function{FunctionStats: summary.FunctionStats{ID: len(m.functions), FuncKey: key}, ignored: m.rules.Ignored(key.Name)}
		f.model = &scoped{function: f}
		m.functions = append(m.functions, f)
		m.byName[key] = f
	}
	return f
}

// Add adds a new function with its number and model.
func (m *Models) Add(f *summary.FunctionStats, model outlier.Model) {
	added := m.function(f.FuncKey)
	added.FunctionStats = *f
	added.model.model = model
	m.touch(added.model)
	m.settle()
}

// touch schedules the judge of a model to be created again.
func (m *Models) touch(s *scoped) {
	if !s.changed {
		s.changed = true
		m.changed = append(m.changed, s)
	}
}

// settle creates the judges of all changed models.
func (m *Models) settle() {
	for _, s := range m.changed {
		s.changed = false
		s.document.Store(nil)
		if !s.function.ignored {
			s.judge = m.rules.NewJudge(s.function.Name, &s.model)
		}
	}
	m.changed = m.changed[:0]
}

// Judge returns the judge of a function over all ranks.
func (m *Models) Judge(f *Function) *outlier.Judge {
	if f.model.judge == nil {
		return m.rules.NewJudge(f.Name, &f.model.model)
	}
	return f.model.judge
}

// Changes returns the functions whose usual time has changed, ordered by program and
// name.
func (m *Models) Changes() []summary.Change {
	changes := []summary.Change{}
	for _, f := range m.functions {
		if c, ok := f.change(); ok && !f.ignored {
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b summary.Change) int {
		return trace.FuncKey{Program: a.Program, Name: a.Function}.Compare(trace.FuncKey{Program: b.Program, Name: b.Function})
	})
	return changes
}

func (f *Function) change() (summary.Change, bool) {
	s, ok := f.model.model.Shift()
	kind := "shift"
	if s.Drift {
		kind = "drift"
	}
	return summary.Change{
		Program: f.Program, Function: f.Name, Kind: kind, Since: trace.Micros(s.Since), Before: s.Before, After: s.After, Calls: s.Calls,
	}, ok
}

// ADModels returns the models of all functions by number.
func (m *Models) ADModels() ([]provenance.ADModel, error) {
	all := make([]provenance.ADModel, 0, len(m.functions))
	for _, f := range m.functions {
		model, err := json.Marshal(m.Judge(f))
		if err != nil {
			return nil, fmt.Errorf("model of %q: %w", f.Name, err)
		}
		all = append(all, provenance.ADModel{PID: f.Program, FID: f.ID, Name: provenance.Text(f.Name), Model: model})
	}
	return all, nil
}

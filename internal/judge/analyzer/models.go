package analyzer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Function contains the statistics and the models of a function over all ranks.
type Function struct {
	summary.FunctionStats // numbered from 0 in order of appearance

	models     *group // over all ranks
	ignored    bool
	useful     bool // it works, rather than waiting or communicating
	collective bool // it waits for all ranks of a group
}

// group contains the models of a function over all ranks, or on one rank.
type group struct {
	function *Function
	allCalls scoped                    // all calls
	paths    callpath.Sample[*scoped]  // calls by call path and work
	joined   map[callpath.Hash]*scoped // calls by call path, for paths whose calls do different work
	changed  bool                      // it is in Models.changed
}

// scoped is a model of some calls and the judge created from it.
type scoped struct {
	path     callpath.Hash // path and work; 0 for all calls
	model    outlier.Model
	by       *scoped // judges these calls: itself, or the one of all calls
	judge    *outlier.Judge
	usual    int64                           // median when judge was created
	changed  bool                            // the model changed after judge was created
	dropped  bool                            // its function has too many paths
	anyWork  bool                            // calls on this path usually make more calls than usual
	group    *group                          // nil for the calls of a path with different work
	delta    *deltas.Delta                   // what ranks learned in this round, use Models.round; nil until needed
	inRound  bool                            // it is in Models.learned
	document atomic.Pointer[json.RawMessage] // JSON of judge; nil until needed
}

func newGroup(f *Function) *group {
	g := &group{function: f}
	g.allCalls.by, g.allCalls.group = &g.allCalls, g
	return g
}

// at returns the model of a call path. If there is none, it adds one if add is true, and otherwise returns the model of all calls.
func (g *group) at(path callpath.Hash, add bool) *scoped {
	s, ok := g.paths.Get(path)
	if !ok && add && path != 0 {
		s = &scoped{path: path, by: &g.allCalls, group: g}
		ok = g.paths.Put(path, s, g.drop)
	}
	if !ok {
		return &g.allCalls
	}
	return s
}

// drop makes the model of all calls judge those of a path.
func (g *group) drop(path callpath.Hash, s *scoped) {
	delete(g.joined, path.Path())
	s.model, s.by, s.judge, s.dropped = outlier.Model{}, &g.allCalls, nil, true
}

// join returns the model of all calls of a path.
func (g *group) join(path callpath.Hash, works []*scoped) *scoped {
	p := g.joined[path]
	if p == nil {
		if g.joined == nil {
			g.joined = make(map[callpath.Hash]*scoped)
		}
		p = new(scoped)
		g.joined[path] = p
	}
	p.model.Reset()
	for _, s := range works {
		p.model.Merge(&s.model)
	}
	p.changed = true
	return p
}

// learn adds a delta that was learned from calls of one of the group's models.
func (g *group) learn(s *scoped, delta *outlier.Model) {
	g.allCalls.model.Merge(delta)
	g.allCalls.changed = true
	if s != &g.allCalls {
		s.model.Merge(delta)
		s.changed = true
	}
}

// judges yields the models that judge some calls.
func (g *group) judges() iter.Seq[*scoped] {
	return func(yield func(*scoped) bool) {
		for s := range g.paths.Values() {
			if !yield(s) {
				return
			}
		}
		for _, s := range g.joined {
			if !yield(s) {
				return
			}
		}
	}
}

// params returns the model as JSON in the provenance schema, or nil if encoding fails.
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

// renew creates the judge.
func (s *scoped) renew(rules *outlier.Rules, name string) {
	s.judge, s.usual, s.changed = rules.NewJudge(name, &s.model), int64(s.model.Hist.Quantile(0.5)), false
	s.document.Store(nil)
}

// learner collects what a worker learns in a round.
type learner = deltas.Learner[*scoped]

// Models contains the functions of a run and their models. They change only while no rank is judging.
type Models struct {
	rules     *outlier.Rules
	functions []*Function
	names     []trace.FuncKey // names of functions; only extended, never changed
	byName    map[trace.FuncKey]*Function
	changed   []*group
	learned   []*scoped // models of which ranks learned in this round
	learners  deltas.Learners[*scoped]
	splitters sync.Pool
	workers   int // number of goroutines that may create judges; 0 means one
}

// NewModels returns empty models.
func NewModels(rules *outlier.Rules) *Models {
	return &Models{
		rules: rules, byName: make(map[trace.FuncKey]*Function),
		splitters: sync.Pool{New: func() any { return &splitter{least: uint64(rules.Config().MinSamples)} }},
	}
}

// Functions returns all functions in the order of their numbers.
func (m *Models) Functions() []*Function { return m.functions }

// Learned returns the model of all calls of a function.
func (f *Function) Learned() *outlier.Model { return &f.models.allCalls.model }

// Export returns copies of the models of a function.
func (f *Function) Export() summary.Learned {
	l := summary.Learned{Model: f.Learned().Clone(), Level: f.models.paths.Level()}
	for path, s := range f.models.paths.Sorted() {
		l.Set(path, s.model.Clone())
	}
	return l
}

// function returns the function with a name, and adds it if it is new.
func (m *Models) function(key trace.FuncKey) *Function {
	f := m.byName[key]
	if f == nil {
		f = &Function{FunctionStats: summary.FunctionStats{ID: len(m.functions), FuncKey: key}, ignored: m.rules.Ignored(key.Name)}
		f.useful, f.collective = provenance.Useful(key.Name), provenance.WaitOf(key.Name) == provenance.Collective
		f.models = newGroup(f)
		m.functions = append(m.functions, f)
		m.names = append(m.names, key)
		m.byName[key] = f
	}
	return f
}

// Add adds a new function with its number and models.
func (m *Models) Add(f *summary.FunctionStats, learned *summary.Learned) {
	added := m.function(f.FuncKey)
	added.FunctionStats = *f
	m.set(added, 0, learned.Level, learned.Model)
	for path, model := range learned.Paths {
		m.set(added, path, learned.Level, model)
	}
	m.settle()
}

// set replaces the model of a call path, or that of all calls if path is 0. level is the level of the sample of paths.
func (m *Models) set(f *Function, path callpath.Hash, level uint8, model outlier.Model) {
	g := f.models
	g.paths.Raise(level, g.drop)
	if s := g.at(path, true); path == 0 || s != &g.allCalls {
		s.model, s.changed = model, true
		m.touch(g)
	}
}

// touch schedules the judges of a group to be created again.
func (m *Models) touch(g *group) {
	if !g.changed {
		g.changed = true
		m.changed = append(m.changed, g)
	}
}

// settle creates the judges of all changed models, concurrently by function.
func (m *Models) settle() {
	var next atomic.Int64
	var g sync.WaitGroup
	for range max(1, min(m.workers, len(m.changed))) {
		g.Go(func() {
			split := m.splitters.Get().(*splitter)
			defer m.splitters.Put(split)
			for i := next.Add(1) - 1; i < int64(len(m.changed)); i = next.Add(1) - 1 {
				m.renew(m.changed[i], split)
			}
		})
	}
	g.Wait()
	m.changed = m.changed[:0]
}

// renew creates the judges of a group whose models have changed.
func (m *Models) renew(g *group, split *splitter) {
	g.changed = false
	if g.function.ignored {
		return
	}
	g.allCalls.renew(m.rules, g.function.Name)
	if m.rules.Config().ByPath() {
		split.choose(g)
	}
	for s := range g.judges() {
		if s.by == s && s.changed {
			s.renew(m.rules, g.function.Name)
		}
	}
}

// Judge returns the judge of all calls of a function over all ranks.
func (m *Models) Judge(f *Function) *outlier.Judge {
	if f.models.allCalls.judge == nil {
		return m.rules.NewJudge(f.Name, f.Learned())
	}
	return f.models.allCalls.judge
}

// all returns all functions with their models.
func (m *Models) all() []summary.FunctionModels {
	all := make([]summary.FunctionModels, 0, len(m.functions))
	for _, f := range m.functions {
		paths := func(yield func(callpath.Hash, *outlier.Model) bool) {
			for path, s := range f.models.paths.Sorted() {
				if !yield(path, &s.model) {
					return
				}
			}
		}
		all = append(all, summary.FunctionModels{
			FunctionStats: &f.FunctionStats, Ignored: f.ignored, Model: f.Learned(), Paths: paths, NumPaths: f.models.paths.Len(),
			Level: f.models.paths.Level(),
		})
	}
	return all
}

// AppendBinary appends the encoding of all models to b. Equal models have equal encodings.
func (m *Models) AppendBinary(b []byte) []byte {
	return summary.AppendModels(b, m.rules.Config().Unit, m.all())
}

// ReadModels decodes models whose judges follow rules. It numbers functions in the order of the encoding.
func ReadModels(b []byte, rules *outlier.Rules) (*Models, error) {
	functions, err := summary.ReadModels(b, rules.Config().Unit)
	if err != nil {
		return nil, err
	}
	m := NewModels(rules)
	for i := range functions {
		m.Add(&summary.FunctionStats{FuncKey: functions[i].FuncKey, ID: i}, &functions[i].Learned)
	}
	return m, nil
}

// Restart drops the timelines of the models, so that another run can continue with them.
func (m *Models) Restart() {
	for _, f := range m.functions {
		f.Learned().Times.Reset()
		for s := range f.models.paths.Values() {
			s.model.Times.Reset()
			s.changed = true
		}
		m.touch(f.models)
	}
	m.settle()
}

// Changes returns the functions whose usual time has changed, ordered by program and name.
func (m *Models) Changes() []summary.Change { return summary.FindChanges(m.all()) }

// Modes returns the slow modes of all functions, ordered by program, name and path.
func (m *Models) Modes() (modes []summary.Mode) {
	for _, f := range m.functions {
		var own []*outlier.Model                          // models of calls that the function does not judge
		works := make(map[callpath.Hash][]*outlier.Model) // models of calls that their path does not judge
		for path, s := range f.models.paths.Sorted() {
			if s.by != s {
				continue
			}
			modes = s.appendMode(modes, f, path, nil)
			if p := f.models.joined[path.Path()]; p != nil && p.by == p {
				works[path.Path()] = append(works[path.Path()], &s.model)
			} else {
				own = append(own, &s.model)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(f.models.joined)) {
			if p := f.models.joined[path]; p.by == p {
				own = append(own, &p.model)
				modes = p.appendMode(modes, f, path.With(callpath.AnyClass), works[path])
			}
		}
		modes = f.models.allCalls.appendMode(modes, f, 0, own)
	}
	slices.SortFunc(modes, func(a, b summary.Mode) int {
		return cmp.Or(trace.FuncKey{Program: a.Program, Name: a.Function}.Compare(trace.FuncKey{Program: b.Program, Name: b.Function}),
			cmp.Compare(a.Path, b.Path))
	})
	return modes
}

// appendMode appends the slow mode of the calls that s judges: all calls of its model except those of others.
func (s *scoped) appendMode(modes []summary.Mode, f *Function, path callpath.Hash, others []*outlier.Model) []summary.Mode {
	if s.judge == nil {
		return modes
	}
	n := s.judge.SlowMode(others)
	if n.Total() == 0 {
		return modes
	}
	mode := summary.Mode{
		Program: f.Program, Function: f.Name, Path: path, Kept: s.judge.Kept(), Usual: s.model.Hist.Quantile(0.5), Slow: n.Quantile(0.5),
		Parts: s.model.Parts(summary.ModeParts, others),
	}
	if f.Learned().Count() <= f.Exclusive.Count() {
		mode.Calls = n.Total()
		for bin, count := range n.Bins() {
			mode.Lost += float64(count) * (stats.BinMiddle(bin) - mode.Usual)
		}
	}
	return append(modes, mode)
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

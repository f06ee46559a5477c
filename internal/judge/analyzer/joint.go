package analyzer

import (
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// joins reports whether the deltas of a step may be merged with those of other ranks before they are shared.
func (a *Analyzer) joins(key trace.RankKey, step int) bool {
	return !a.cfg.RankScope && (a.online == nil || a.online.Sync.Joins(trace.StepKey{RankKey: key, Step: step}))
}

// joinStep lets ranks share the deltas of the step, which has a number of events. A rank whose paths may be folded learns alone,
// because that moves the calls of the step to other models.
func (r *rank) joinStep(l *learner, events int) {
	if r.joint = true; events <= r.builder.Paths().Room() {
		r.learner = l
	}
}

// touch makes the delta of a function part of the step.
func (r *rank) touch(f *localFunc) {
	f.touched = true
	r.touched = append(r.touched, f)
	if r.learner == nil || f.common == nil {
		if f.pending == nil && f.model != nil {
			f.delta().Model.Times.Follow(&f.model.model.Times)
		}
		return
	}
	if f.pending != nil { // left by an earlier step, and empty
		f.release()
	}
	f.pending, f.shared = r.learner.Delta(f.common), true
}

// round returns what ranks learned about the calls of a model in this round.
func (m *Models) round(s *scoped) *deltas.Delta {
	if s.delta == nil {
		s.delta = new(deltas.Delta)
	}
	if !s.inRound {
		s.inRound = true
		m.learned = append(m.learned, s)
	}
	return s.delta
}

// learn adds what ranks learned in this round to the models.
func (m *Models) learn(frozen, profile bool) {
	m.learners.Collect(func(s *scoped, d *deltas.Delta) (spare *deltas.Delta) {
		if s.inRound {
			s.delta.Merge(d)
			return d
		}
		spare = m.round(s)
		s.delta = d
		return spare
	})
	for i := 0; i < len(m.learned); i++ { // round adds groups
		if s := m.learned[i]; s != &s.group.allCalls {
			m.round(&s.group.allCalls).Merge(s.delta)
		}
	}
	for _, s := range m.learned {
		g := s.group
		if s == &g.allCalls && profile {
			g.function.Exclusive.Merge(&s.delta.Exclusive)
			g.function.Inclusive.Merge(&s.delta.Inclusive)
		}
		if !frozen && !s.dropped {
			s.model.Merge(&s.delta.Model)
			s.changed = true
			m.touch(g)
		}
	}
	m.learners.EndRound(func(s *scoped, d *deltas.Delta) bool {
		d.Model.Times.Follow(&s.model.Times)
		return !s.dropped
	})
}

// endRound drops what ranks learned in this round.
func (m *Models) endRound() {
	for _, s := range m.learned {
		s.inRound = false
		s.delta.Reset()
		s.delta.Model.Times.Follow(&s.model.Times)
	}
	clear(m.learned)
	m.learned = m.learned[:0]
}

// jointOf returns the joint contribution of the ranks of a program in this round.
func (a *Analyzer) jointOf(program trace.Program) *deltas.Joint {
	if a.joint[program] == nil {
		a.joint[program] = deltas.NewJoint(program, a.cfg.Unit)
	}
	return a.joint[program]
}

// join adds a step of a rank to the joint contribution, which has its load already. shareJoint adds its models.
func (a *Analyzer) join(s *source, r *rank) {
	j := a.jointOf(r.key.Program)
	j.AddStep(deltas.RankStep{
		StepKey: trace.StepKey{RankKey: r.key, Step: s.step}, Host: r.host, First: r.start, Last: r.end,
		Anomalies: r.reportAnomalies(a.models), Stream: a.streamProgress(s, r),
	})
	a.paths, _ = r.takePaths(a.paths[:0])
	j.AddPaths(r.builder.Paths().Depth(), a.paths)
	r.takeCounters(j.AddCounter)
	r.forget(true)
}

// reportAnomalies returns the anomalies of the step, and counts them in the deltas of the functions with calls.
func (r *rank) reportAnomalies(m *Models) (found []summary.FunctionStats) {
	r.mergePaths()
	for _, f := range r.merged {
		if f = f.allPaths; f.reported == r.steps {
			continue
		}
		f.reported = r.steps
		n := uint64(0)
		if f.pending != nil && !f.pending.Anomalies.Empty() {
			found = append(found, summary.FunctionStats{FuncKey: f.models.function.FuncKey, Anomalies: f.pending.Anomalies})
			n = uint64(f.pending.Anomalies.Score.N)
		}
		m.round(f.model).PerStep.Add(n)
	}
	return found
}

// shareJoint passes the joint contributions of the round to the ModelSync.
func (a *Analyzer) shareJoint() {
	for _, s := range a.models.learned {
		key := s.group.function.FuncKey // also of dropped paths, so that the receiver drops them at the same number of paths
		a.jointOf(key.Program).AddModel(callpath.Context{FuncKey: key, Path: s.path}, s.delta)
	}
	for _, program := range slices.Sorted(maps.Keys(a.joint)) {
		j := a.joint[program]
		if c := j.Contribution(a.models.names); c != nil {
			a.online.Sync.Add(c)
		}
		j.Reset()
	}
	a.models.endRound()
}

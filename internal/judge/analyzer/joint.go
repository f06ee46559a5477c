package analyzer

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// jointSteps gathers what ranks contribute to other analyzers in a round, besides the deltas in Models.learned.
type jointSteps struct {
	load     *workload.Load
	programs map[trace.Program]*jointProgram
	paths    []callpath.NamedEntry // scratch
	entries  []callpath.Entry      // scratch
}

// jointProgram is the contribution of the ranks of a program.
type jointProgram struct {
	Contribution
	profile  *callpath.Profile
	counters map[trace.FuncKey]*summary.Counter
}

func newJointSteps(unit trace.Unit) jointSteps {
	return jointSteps{load: workload.NewIn(unit), programs: make(map[trace.Program]*jointProgram)}
}

// joins reports whether the deltas of a step may be merged with those of other ranks before they are shared.
func (a *Analyzer) joins(key trace.RankKey, step int) bool {
	return !a.cfg.RankScope && (a.online == nil || a.online.Sync.Joins(StepKey{key, step}))
}

// join adds a step of a rank to the joint contribution. Its deltas and its load are part of it already.
func (a *Analyzer) join(s *source, r *rank) {
	p := a.joint.programs[r.key.Program]
	if p == nil {
		p = &jointProgram{profile: callpath.NewProfile(callpath.MaxPaths), counters: make(map[trace.FuncKey]*summary.Counter)}
		p.Program = r.key.Program
		a.joint.programs[p.Program] = p
	}
	p.Joined = append(p.Joined, RankStep{
		StepKey: StepKey{r.key, s.step}, Host: r.host, First: r.start, Last: r.end,
		Anomalies: r.reportAnomalies(a.models), Stream: a.streamProgress(s, r),
	})
	a.joint.paths, _ = r.takePaths(a.joint.paths[:0])
	p.profile.Merge(r.builder.Paths().Depth(), a.joint.paths)
	r.takeCounters(func(of *summary.Counter) {
		if sum := p.counters[of.FuncKey]; sum != nil {
			sum.Values.Merge(&of.Values)
		} else {
			p.counters[of.FuncKey] = of
			p.Counters = append(p.Counters, of)
		}
	})
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

// shareJoint passes the joint contributions to the ModelSync.
func (a *Analyzer) shareJoint() {
	for _, p := range a.joint.programs {
		if len(p.Joined) == 0 {
			continue
		}
		c := &p.Contribution
		c.Functions, c.Contexts, c.Load, c.Names = c.Functions[:0], c.Contexts[:0], nil, a.models.names
		for _, s := range a.models.learned {
			key := s.group.function.FuncKey
			switch {
			case key.Program != c.Program || s.dropped:
			case s.path == 0:
				s.delta.FuncKey = key
				c.Functions = append(c.Functions, FunctionDelta{&s.delta.FunctionStats, &s.delta.model})
			default:
				c.Contexts = append(c.Contexts, ContextDelta{callpath.Context{FuncKey: key, Path: s.path}, &s.delta.model})
			}
		}
		c.PathDepth = p.profile.Depth()
		a.joint.entries = p.profile.Append(a.joint.entries[:0])
		c.Paths = c.Paths[:0]
		for _, e := range a.joint.entries {
			c.Paths = append(c.Paths, callpath.NamedEntry{Parent: e.Parent, Name: p.profile.Name(e.Func), Sums: e.Sums})
		}
		if !a.joint.load.Empty() { // it has the ranks of all programs
			c.Load = a.joint.load
		}
		a.online.Sync.Add(c)
		a.joint.load.Reset()
		p.profile.Reset()
		clear(p.counters)
		clear(c.Joined)
		c.Joined, c.Counters = c.Joined[:0], c.Counters[:0]
	}
	a.models.endRound()
}

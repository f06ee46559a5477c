package deltas

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// Joint is a contribution of steps of several ranks of a program.
type Joint struct {
	Load         *workload.Load // of all steps
	contribution Contribution
	profile      *callpath.Profile
	counters     map[trace.FuncKey]*summary.Counter
	entries      []callpath.Entry // scratch
}

// NewJoint returns an empty contribution with times in ticks of a unit.
func NewJoint(program trace.Program, unit trace.Unit) *Joint {
	j := &Joint{
		Load: workload.NewIn(unit), profile: callpath.NewProfile(callpath.MaxPaths), counters: make(map[trace.FuncKey]*summary.Counter),
	}
	j.contribution.Program = program
	return j
}

// AddStep adds a step without its deltas.
func (j *Joint) AddStep(s RankStep) { j.contribution.Joined = append(j.contribution.Joined, s) }

// AddPaths adds calls by call path. depth is the greatest depth of call paths.
func (j *Joint) AddPaths(depth int, list []callpath.NamedEntry) { j.profile.Merge(depth, list) }

// AddCounter adds the values of a counter. The caller must not use it any more.
func (j *Joint) AddCounter(c *summary.Counter) {
	if sum := j.counters[c.FuncKey]; sum != nil {
		sum.Values.Merge(&c.Values)
		return
	}
	j.counters[c.FuncKey] = c
	j.contribution.Counters = append(j.contribution.Counters, c)
}

// AddModel adds the delta of all steps for a function, or for one of its call paths. It must not be added twice, and not
// change before Reset.
func (j *Joint) AddModel(of callpath.Context, d *Delta) {
	c := &j.contribution
	if of.Path != 0 {
		c.Contexts = append(c.Contexts, Context{of, &d.Model})
		return
	}
	d.FuncKey = of.FuncKey
	c.Functions = append(c.Functions, Function{&d.FunctionStats, &d.Model})
}

// Contribution returns the contribution, or nil if it has no steps. It is valid until Reset.
func (j *Joint) Contribution(names []trace.FuncKey) *Contribution {
	c := &j.contribution
	if len(c.Joined) == 0 {
		return nil
	}
	c.Names, c.PathDepth = names, j.profile.Depth()
	j.entries = j.profile.Append(j.entries[:0])
	for _, e := range j.entries {
		c.Paths = append(c.Paths, callpath.NamedEntry{Parent: e.Parent, Name: j.profile.Name(e.Func), Sums: e.Sums})
	}
	if c.Load = nil; !j.Load.Empty() {
		c.Load = j.Load
	}
	return c
}

// Reset empties the contribution and keeps its memory.
func (j *Joint) Reset() {
	c := &j.contribution
	j.Load.Reset()
	j.profile.Reset()
	clear(j.counters)
	clear(c.Joined)
	clear(c.Functions)
	clear(c.Contexts)
	clear(c.Counters)
	c.Joined, c.Functions, c.Contexts, c.Counters, c.Paths = c.Joined[:0], c.Functions[:0], c.Contexts[:0], c.Counters[:0], c.Paths[:0]
}

package summary

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// Delta holds the models, statistics and anomalies of some steps of some ranks,
// which an analyzer sends to the parameter server. Functions have their ids.
type Delta struct {
	Models    []ModelDelta
	Functions []FunctionStats // without anomalies: these are in Steps
	Ranks     []RankDelta
	Steps     []StepReport
	Counters  []Counter
	Paths     []PathDelta
	Load      *workload.Load // nil if there is none
}

// ModelDelta is the model of a function, or of one of its call paths, learned from the
// new calls.
type ModelDelta struct {
	ID    int
	Path  callpath.Hash // 0 for all paths
	Model outlier.Model
}

// Learned has the models of a function.
type Learned struct {
	Model outlier.Model // of all calls
	Paths map[callpath.Hash]outlier.Model
	Level uint8 // level of the callpath.Sample of these paths
}

// Set sets the model of a path, or that of all calls if path is 0.
func (l *Learned) Set(path callpath.Hash, m outlier.Model) {
	if path == 0 {
		l.Model = m
		return
	}
	if l.Paths == nil {
		l.Paths = make(map[callpath.Hash]outlier.Model)
	}
	l.Paths[path] = m
}

// RankDelta counts the anomalies of each step of a rank.
type RankDelta struct {
	trace.RankKey
	Anomalies stats.Sums
}

// PathDelta holds the calls of a program by call path, with ids of functions.
type PathDelta struct {
	Program trace.Program
	Depth   int // below which paths are folded
	List    []callpath.Entry
}

// Summarizes reports whether the delta holds statistics besides models.
func (d *Delta) Summarizes() bool {
	return len(d.Functions)+len(d.Ranks)+len(d.Steps)+len(d.Counters)+len(d.Paths) > 0 || d.Load != nil
}

// MaxID returns the greatest id of a function in the delta, or -1.
func (d *Delta) MaxID() int {
	most := -1
	for i := range d.Models {
		most = max(most, d.Models[i].ID)
	}
	for i := range d.Functions {
		most = max(most, d.Functions[i].ID)
	}
	for i := range d.Steps {
		for j := range d.Steps[i].Functions {
			most = max(most, d.Steps[i].Functions[j].ID)
		}
	}
	for i := range d.Paths {
		for _, e := range d.Paths[i].List {
			if e.Func != callpath.Other {
				most = max(most, int(e.Func))
			}
		}
	}
	if d.Load != nil {
		most = max(most, d.Load.MaxFunction())
	}
	return most
}

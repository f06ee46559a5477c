package summary

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
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
}

// ModelDelta is the model of a function, learned from the new calls.
type ModelDelta struct {
	ID    int
	Model outlier.Model
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

// Summarizes reports whether the delta holds more than models.
func (d *Delta) Summarizes() bool {
	return len(d.Functions)+len(d.Ranks)+len(d.Steps)+len(d.Counters)+len(d.Paths) > 0
}

// EachFunction calls f with the id of each function in the delta until it fails,
// and returns its error.
func (d *Delta) EachFunction(f func(id int) error) error {
	var err error
	visit := func(id int) {
		if err == nil {
			err = f(id)
		}
	}
	for i := range d.Models {
		visit(d.Models[i].ID)
	}
	for i := range d.Functions {
		visit(d.Functions[i].ID)
	}
	for i := range d.Steps {
		for j := range d.Steps[i].Functions {
			visit(d.Steps[i].Functions[j].ID)
		}
	}
	for i := range d.Paths {
		for _, e := range d.Paths[i].List {
			if e.Func != callpath.Other {
				visit(int(e.Func))
			}
		}
	}
	return err
}

// Package deltas contains what ranks learn from their steps before models and other analyzers know it: the delta of each
// function, learners, which merge the deltas of ranks, and contributions, which pass them to other analyzers.
package deltas

import (
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// Contribution contains the deltas of a rank in a step.
type Contribution struct {
	trace.StepKey
	Host        string
	First, Last trace.Ticks // limits of the times of the step's events
	Ended       bool        // the trace has no more steps
	Functions   []Function
	Contexts    []Context // of functions that are judged by call path
	Counters    []*summary.Counter
	Paths       []callpath.NamedEntry // calls that ended, by call path
	PathDepth   int                   // greatest depth of call paths
	Load        *workload.Load        // load of the step, with numbers of functions; may be nil
	Names       []trace.FuncKey       // names of functions by these numbers; later contributions extend it
	// Stream is the progress of the live stream with this rank, because a restarted analyzer cannot read the stream again;
	// nil for datasets.
	Stream *StreamProgress
	// Joined has the steps if the contribution is of several ranks of the program. The fields from Step to Ended and Stream are
	// then empty, and so are the anomalies in Functions, which have their numbers by step instead.
	Joined []RankStep
}

// RankStep is a step of a rank in a contribution of several ranks.
type RankStep struct {
	trace.StepKey
	Host        string
	First, Last trace.Ticks
	Anomalies   []summary.FunctionStats // of functions with anomalies, without anything else
	Stream      *StreamProgress
}

// StreamProgress is the part of a live stream that this process has read so far.
type StreamProgress struct {
	Totals summary.Totals // without ranks
	Tally  tally.Tally
	Bytes  int64
}

// Function is the delta of a function in a step. It may have no calls or no anomalies.
type Function struct {
	*summary.FunctionStats // without the number of anomalies by step
	Model                  *outlier.Model
}

// Context is the delta of the model of a function with a call path. The delta of the function includes it.
type Context struct {
	callpath.Context
	Model *outlier.Model
}

package analyzer

import (
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/judge/devices"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/sample"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/record/nodestate"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/spool"
)

// rank is the state of one rank.
type rank struct {
	cfg     *Config
	key     trace.RankKey
	names   *trace.Names
	host    string
	tally   *tally.Tally
	builder *callstack.Builder
	rules   *outlier.Rules
	byPath  bool         // calls are judged among those with the same path
	all     []*localFunc // by number
	funcs   []*localFunc // functions with all their paths, by id, for small ids
	others  map[trace.FuncID]*localFunc
	nodes   []*localFunc          // functions with one path, by node
	joint   bool                  // other ranks may share the deltas of the step
	learner *learner              // collects the deltas while the rank learns a step; nil if each function needs its own
	touched []*localFunc          // functions learned since the last merge
	merged  []*localFunc          // functions in the last merge, or flagged since
	first   map[firstCall]uint8   // number of calls excluded as set-up
	synced  map[trace.Thread]bool // threads that have taken part in a collective call
	outer   map[trace.Thread]int  // number of calls that are in no other call, up to several
	roles   map[trace.CounterID]callstack.CounterRole
	state   nodestate.History
	counter map[trace.CounterID]*workload.Series

	ended   []endedCalls // calls that ended in this step, by thread
	limits  []limit      // by number of the function
	recent  []*localFunc // functions with limits for this step
	profile bool         // profile of begin, for this step

	step            int // current step; -1 between steps
	steps           int
	rareCalls       uint64                        // number of calls on GPUs, without a caller, for which mayBeRare is true
	rareInside      map[callKey]uint32            // number of calls for which mayBeRare is true, by the call that made them directly
	unrecorded      map[callpath.Node]trace.Ticks // last time at which calls that a path made were recorded; set for the review
	start, end      trace.Ticks
	firstEvent      trace.Ticks
	delayLimit      int64             // time beyond the median from which calls of the step may be delays
	spool           *spool.Spool      // captures in the order of steps
	late            *spool.Spool      // captures that were held, in the order of judging
	promoted        map[callKey]bool  // delays for which others waited
	pending         []*pendingCapture // captures with windows that reach into the next step
	unjudged        []*pendingCapture // captures of functions with too few samples
	flagged         []suspect
	typicals        []*localFunc // functions with a typical call; scratch
	missingTypicals int          // number of functions on threads that need a typical execution
	counts          rankCounts
	paths           []callpath.Entry // scratch
	work            workCounter
	readings        workload.SeriesSums
	counters        int                       // number of counters with names
	cells           []workload.Reading        // scratch
	bins            []activity.CounterReading // scratch
	activities      *activity.Recorder
	devices         *devices.Times // nil without GPUs
	load            *workload.Load // load of all ranks, or of the step if online

	// For traces that are being written:
	online    bool
	shared    deltas.Contribution
	anomalies []*provenance.Record // anomalies flagged in this step
	alike     sample.Alike         // chooses them
	stored    int                  // steps whose provisional records earlier processes of this analyzer sent
	normal    []*provenance.Record // typical executions
}

// rankCounts counts the calls of a rank.
type rankCounts struct {
	Calls   int64
	Flagged int64
}

type firstCall struct {
	thread trace.Thread
	fn     trace.FuncID
}

// suspect is a call to capture.
type suspect struct {
	thread *callstack.Thread
	call   int32
	of     *localFunc
	score  float64
	kind   provenance.Kind
}

// unknownHost is the host of ranks without a host in their metadata.
const unknownHost = "Unknown"

// denseFuncs is the number of functions in a slice. Only damaged traces have more; these are in a map.
const denseFuncs = 1 << 16

func newRank(cfg *Config, key trace.RankKey, names *trace.Names, t *tally.Tally, uncoupled func(string) bool) *rank {
	r := &rank{
		cfg: cfg, key: key, names: names, host: unknownHost, tally: t, step: -1, byPath: cfg.Outlier.ByPath(),
		others: make(map[trace.FuncID]*localFunc), first: make(map[firstCall]uint8), synced: make(map[trace.Thread]bool),
		outer: make(map[trace.Thread]int),
		roles: make(map[trace.CounterID]callstack.CounterRole), counter: make(map[trace.CounterID]*workload.Series),
		work:     workCounter{shift: workload.ShiftOf(cfg.Unit)},
		readings: workload.SeriesSums{Shift: activity.ShiftOf(cfg.Unit)},
	}
	bc := callstack.Default(cfg.Unit)
	bc.Window = max(cfg.Window, 1)
	if !r.byPath { // the other detectors judge calls of the trace, as the original Chimbuko does
		bc.LongCall = 0
	}
	bc.Role, bc.Folded, bc.Ended = r.role, r.folded, r.learnCalls
	r.activities = activity.NewRecorder(cfg.Unit, func(id trace.FuncID) (string, bool) { return names.Func(key.Rank, id) })
	bc.Activities, bc.Place = r.activities, r.placeOf
	if len(cfg.IgnoreCorrelation) > 0 {
		bc.IgnoresCorrelation = func(id trace.FuncID) bool {
			name, ok := names.Func(r.key.Rank, id)
			return ok && uncoupled(name)
		}
	}
	r.builder = callstack.NewBuilder(bc, t)
	return r
}

const correlationName = "Correlation ID"

// role returns the role of a counter. The builder calls it again while the name is unknown.
func (r *rank) role(id trace.CounterID) callstack.CounterRole {
	role, ok := r.roles[id]
	if ok {
		return role
	}
	name, ok := r.names.Counter(r.key.Rank, id)
	switch {
	case !ok:
		return callstack.OfCall
	case name == correlationName:
		role = callstack.Correlation
	case r.cfg.StatePrefix != "" && strings.HasPrefix(name, r.cfg.StatePrefix):
		role = callstack.NodeState
	}
	r.roles[id] = role
	return role
}

// newFunc adds a function: with one path, or with all its paths if allPaths is nil.
func (r *rank) newFunc(id trace.FuncID, allPaths *localFunc, node callpath.Node) *localFunc {
	f := &localFunc{number: int32(len(r.all)), id: id, allPaths: allPaths, node: node, typical: -1}
	if allPaths == nil {
		f.allPaths = f
	}
	r.all = append(r.all, f)
	return f
}

// slot returns the function with an id with all its paths.
func (r *rank) slot(id trace.FuncID) *localFunc {
	if int(id) < len(r.funcs) {
		if f := r.funcs[id]; f != nil {
			return f
		}
	} else if f := r.others[id]; f != nil {
		return f
	}
	f := r.newFunc(id, nil, callpath.Root)
	if id < denseFuncs {
		for int(id) >= len(r.funcs) {
			r.funcs = append(r.funcs, nil)
		}
		r.funcs[id] = f
	} else {
		r.others[id] = f
	}
	return f
}

// begin starts a step. profile is true if its calls count in results other than models.
func (r *rank) begin(step int, profile bool) {
	r.step, r.joint, r.learner = step, false, nil
	r.steps++
	r.start, r.end, r.profile = 0, 0, profile
	r.ended, r.recent = r.ended[:0], r.recent[:0]
	r.builder.Begin(step)
}

// add adds the events of one of the rank's threads.
func (r *rank) add(b *trace.Batch) {
	r.builder.Add(b.Thread, b.Events) // may repair times
	r.endWindow(b.Thread)
	first, last := b.Events[0].Time, b.Events[len(b.Events)-1].Time
	if r.start == 0 || first < r.start {
		r.start = first
	}
	r.end = max(r.end, last)
	if r.firstEvent == 0 || first < r.firstEvent {
		r.firstEvent = first
	}
}

func (r *rank) addMetadata(m *trace.Metadata) {
	if m.Key == "Hostname" {
		r.host = m.Value
	}
}

// time returns the time by which a call is judged.
func (r *rank) time(c *callstack.Call) int64 {
	if r.cfg.Inclusive {
		return int64(c.Inclusive())
	}
	return int64(c.Exclusive())
}

// workOf returns the calls that a call made, or none if any number is usual.
func (r *rank) workOf(f *localFunc, c *callstack.Call) outlier.Work {
	if f.model.anyWork {
		return outlier.Work{}
	}
	return r.withoutRare(outlier.Work{Calls: c.Children, Time: int64(c.Inclusive() - c.Exclusive())}, callKey{c.Step, c.Row})
}

// maxSetUp is the greatest number of waits of a function on a thread to exclude.
const maxSetUp = 16

// setUp reports whether to exclude the next call, in the order of exits, of a function on a thread. It excludes the first
// call, which may include set-up, and waits for messages before the thread's first collective call: ranks start at different
// times, and until they have synchronized, each wait may be for a rank that is still starting.
func (r *rank) setUp(thread trace.Thread, f *localFunc) bool {
	thisThread := stats.ThreadBit(uint32(thread))
	if f.settled&thisThread != 0 {
		return false
	}
	key := firstCall{thread, f.id}
	n := r.first[key]
	if !f.hasWait {
		if name, ok := r.names.Func(r.key.Rank, f.id); ok {
			f.hasWait = true
			if !r.cfg.Outlier.IncludeSelf { // the original judges such calls
				f.wait = provenance.WaitOf(name)
			}
		}
	}
	switch {
	case f.wait == provenance.Collective && n == 0:
		r.synced[thread] = true
	case n == 0 || f.wait == provenance.PointToPoint && n < maxSetUp && !r.synced[thread]:
	default:
		f.settled |= thisThread
		return false
	}
	r.first[key] = n + 1
	return true
}

// merge adds the deltas to the models and to the load. It runs in the order of ranks while no rank is judging.
func (r *rank) merge(m *Models, frozen, profile bool) {
	r.rules = m.rules
	left := r.touched[:0]
	for _, f := range r.touched {
		if !r.resolve(m, f, !frozen && (f.shared || f.pending.Model.Count() > 0)) {
			left = append(left, f) // a later step may have its name
			continue
		}
		switch group := f.allPaths.models; {
		case f.shared:
			f.pending, f.shared = nil, false
		case r.joint:
			m.round(f.model).Merge(f.pending)
			f.release()
		default:
			if profile {
				group.function.Exclusive.Merge(&f.pending.Exclusive)
				group.function.Inclusive.Merge(&f.pending.Inclusive)
			}
			if frozen {
				break
			}
			group.learn(f.model, &f.pending.Model)
			m.touch(group)
			if r.cfg.RankScope { // the result includes the model of all ranks
				group.function.Learned().Merge(&f.pending.Model)
			}
		}
		if f.common = f.model; f != f.allPaths && f.model == f.allPaths.model {
			f.common = nil // the path may get a model of its own
		}
		f.touched = false
		r.note(f)
	}
	r.touched = left
	r.mergeWork()
	r.mergeReadings()
	r.mergeActivities(profile)
}

// note makes forget drop the delta of a function.
func (r *rank) note(f *localFunc) {
	if !f.merged {
		f.merged = true
		r.merged = append(r.merged, f)
	}
}

// forget drops the merged deltas. If saveMemory is true, it releases their memory to other ranks.
func (r *rank) forget(saveMemory bool) {
	for _, f := range r.merged {
		f.merged = false
		switch {
		case f.pending == nil:
		case saveMemory || r.joint:
			f.release()
		default:
			f.pending.Reset()
			f.pending.Model.Times.Follow(&f.model.model.Times)
		}
	}
	r.merged = r.merged[:0]
}

// resolve finds the model of a function with a path, and adds it if it is missing and add is true. Calls on a path with
// unknown names count as calls on no particular path.
func (r *rank) resolve(m *Models, f *localFunc, add bool) bool {
	allPaths := f.allPaths
	if allPaths.models == nil {
		name, ok := r.names.Func(r.key.Rank, f.id)
		if !ok {
			return false
		}
		function := m.function(trace.FuncKey{Program: r.key.Program, Name: name})
		if allPaths.models = function.models; r.cfg.RankScope {
			allPaths.models = newGroup(function)
		}
		allPaths.model = &allPaths.models.allCalls
		m.touch(allPaths.models)
	}
	if f.model == nil || f.model == allPaths.model || f.model.dropped {
		if f.node != callpath.Root && f.path == 0 {
			if f.path = r.builder.Paths().Hash(f.node, r.funcName); f.path != 0 {
				f.path = f.path.With(f.work)
			}
		}
		f.model = allPaths.models.at(f.path, add)
	}
	return true
}

func (r *rank) suspect(t *callstack.Thread, i int32, f *localFunc, j *outlier.Judge, v int64) {
	c := &t.Calls[i]
	score, verdict := j.JudgeCall(v, r.workOf(f, c))
	switch verdict {
	case outlier.NotJudged:
		c.Label = callstack.Unjudged
		r.flagged = append(r.flagged, suspect{t, i, f, score, provenance.Unjudged})
		if r.mayBeRare(t, c, f) {
			r.noteRare(t, c, f)
		}
	case outlier.Normal, outlier.Candidate:
		if verdict == outlier.Candidate && r.keepsCandidates() || r.mayBeDelay(j, v, v-f.model.by.usual, c.Exit) {
			r.flagged = append(r.flagged, suspect{t, i, f, score, provenance.Candidate})
		}
	case outlier.Recurring, outlier.Outlier, outlier.Excess:
		c.Label = callstack.Anomalous
		if r.mayKeep(j, verdict, callKey{c.Step, c.Row}) {
			r.flagged = append(r.flagged, suspect{t, i, f, score, provenance.Anomaly})
		}
	}
}

// keeps reports whether to keep a call with a verdict. It keeps only a sample of calls only if models of all ranks count them.
func (r *rank) keeps(j *outlier.Judge, verdict outlier.Verdict, c callKey) bool {
	return r.cfg.RankScope && verdict == outlier.Recurring || j.Keep(verdict, r.number(c))
}

// mayKeep reports whether the review may keep a call with a verdict.
func (r *rank) mayKeep(j *outlier.Judge, verdict outlier.Verdict, c callKey) bool {
	return r.keeps(j, verdict, c) || r.cfg.Review && j.MayKeep(verdict, r.number(c))
}

// number identifies a call among all ranks of a program.
func (r *rank) number(c callKey) uint64 {
	return trace.EventID{Rank: r.key.Rank, Step: int(c.step), Row: c.row}.Number()
}

// finishStep drops the step's data. If saveMemory is true, it also frees memory that the next step will need again.
func (r *rank) finishStep(saveMemory bool) {
	r.builder.Trim()
	if saveMemory {
		r.builder.Shrink()
		r.ended, r.limits = nil, nil
	}
	r.step = -1
}

// The following methods implement provenance.Source.

// Program returns the program of the rank.
func (r *rank) Program() trace.Program { return r.key.Program }

// Rank returns the number of the rank.
func (r *rank) Rank() trace.Rank { return r.key.Rank }

// Host returns the name of the host of the rank.
func (r *rank) Host() string { return r.host }

// Func returns the global number and the name of a function.
func (r *rank) Func(id trace.FuncID) (int, string) {
	if f := r.slot(id); f.models != nil {
		return f.models.function.ID, f.models.function.Name
	}
	if name, ok := r.names.Func(r.key.Rank, id); ok {
		return -1, name // no call of it ended, so it has no model
	}
	return -1, "#" + strconv.FormatUint(uint64(id), 10)
}

// Counter returns the name of a counter.
func (r *rank) Counter(id trace.CounterID) string {
	name, ok := r.names.Counter(r.key.Rank, id)
	if !ok {
		return "#" + strconv.FormatUint(uint64(id), 10)
	}
	return name
}

func (r *rank) counterKey(id trace.CounterID) trace.FuncKey {
	return trace.FuncKey{Program: r.key.Program, Name: r.Counter(id)}
}

// StateField returns the name of a field of the node's state.
func (r *rank) StateField(id trace.CounterID) string {
	return strings.TrimPrefix(r.Counter(id), r.cfg.StatePrefix)
}

// GPU returns the GPU stream that a thread represents.
func (r *rank) GPU(thread trace.Thread) (trace.GPU, bool) { return r.names.GPU(r.key.Rank, thread) }

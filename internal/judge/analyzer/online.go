package analyzer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// MergedModel is a model that other analyzers have changed.
type MergedModel struct {
	callpath.Context
	Level uint8 // level of the callpath.Sample of the function's paths
	Model outlier.Model
}

// ModelSync shares models with other analyzers. Only Finish and Promote wait.
type ModelSync interface {
	// Add adds the deltas of a rank, or of several whose steps may be joined. It does not retain c.
	Add(c *deltas.Contribution)
	// Joins reports whether a step may be part of a contribution of several ranks, because nobody has it yet. If so, the later
	// steps of the rank may be, too. It must be safe for concurrent use.
	Joins(key trace.StepKey) bool
	// Merged yields the models that other analyzers have changed, merged with all deltas added here. They belong to the caller.
	Merged() iter.Seq[MergedModel]
	// Ready reports whether the analysis may begin. Frozen models have then arrived, and Merged yields them.
	Ready() bool
	// Frozen reports whether models must not change.
	Frozen() bool
	// Stopped reports whether to treat all traces as ended.
	Stopped() bool
	// Earlier returns the number of steps of a rank that the other analyzers have from earlier processes of this analyzer, or false
	// while it is unknown.
	Earlier(key trace.RankKey) (steps int, known bool)
	// Finish waits until all analyzers have added their last deltas. Afterwards, Merged yields the final models.
	Finish(ctx context.Context) error
	// Promote waits until all analyzers have added their delays. It returns the indices of the candidates of this analyzer's run that
	// blame.Promote returns for the run of all analyzers.
	Promote(ctx context.Context, run *blame.Run) ([]int, error)
}

// Online configures the analysis of traces that are being written.
type Online struct {
	Sync ModelSync
	// Find returns the existing traces, and whether the list is complete.
	Find func() (inputs []Input, complete bool, err error)
	// Poll is the time to wait if no trace has a new step. It increases up to a factor of maxPolls while there are none.
	Poll time.Duration
	// Idle is the time without a new step after which a trace counts as ended; 0 means forever. A writer that is killed leaves its
	// trace unfinished.
	Idle time.Duration
	// ProgramEnded, if not nil, reports whether the program that writes the traces has ended. A trace then ends when it has had no new
	// step for endedTimeout.
	ProgramEnded func() bool
	// Sleep waits for d, or until ctx ends. It then returns the error of ctx.
	Sleep func(ctx context.Context, d time.Duration) error
	// Report is called with reports of the progress.
	Report func(*Report)
}

// Report is the progress of an analysis of traces that are being written.
type Report struct {
	Totals summary.Totals
	Tally  tally.Tally
	Ranks  []RankReport
	Ended  bool // all traces have ended
	// Lag is the time since the analyzer last had no unread steps.
	Lag    time.Duration
	Stages []Stage
	// OpenCalls is the number of calls that have not ended.
	OpenCalls int64
	Events    trace.EventCounts
	// Collectives are the collective operations of the traces, or nil.
	Collectives *breakdown.Collectives
}

// Stage is the total time of a part of the work.
type Stage struct {
	Name string
	Runs int64
	Time time.Duration
}

// The stages of a round.
const (
	stageFind  = iota // find new traces
	stageRead         // read a step, decode it, rebuild calls, learn
	stageMerge        // merge deltas, create judges
	stageJudge        // judge, capture, create records
	stageShare        // pass deltas to the ModelSync
	numStages
)

var stageNames = [numStages]string{"find", "read", "merge", "judge", "share"}

// timed adds the time since start to a stage and returns the current time.
func (a *Analyzer) timed(stage int, start time.Time) time.Time {
	now := time.Now()
	a.stages[stage].Runs++
	a.stages[stage].Time += now.Sub(start)
	return now
}

// RankReport describes a rank in a Report.
type RankReport struct {
	trace.RankKey
	Host  string
	Step  int
	Ended bool
	Lag   time.Duration
}

// findEvery is the interval between searches for new traces.
const findEvery = 500 * time.Millisecond

// Follow analyzes traces while they are being written. It judges each step when it arrives, by the models at that time, and
// passes provisional records to the sink. After the end of all traces, including those of other analyzers, it judges all
// captures again with the final models and passes all records to the sink again.
func (a *Analyzer) Follow(ctx context.Context, o Online) (*Result, error) {
	a.online, a.joint = &o, make(map[trace.Program]*deltas.Joint)
	a.totals.Pass = 1
	a.startModels()
	defer a.spool.Close()
	defer func() {
		for _, s := range a.sources {
			s.close()
		}
	}()
	for !o.Sync.Ready() {
		if err := o.Sleep(ctx, o.Poll); err != nil {
			return nil, err
		}
	}
	if err := a.follow(ctx); err != nil {
		return nil, err
	}
	if err := o.Sync.Finish(ctx); err != nil {
		return nil, err
	}
	a.learnFromOthers()
	slices.SortFunc(a.sources, func(x, y *source) int { return compareInputs(x.input, y.input) })
	return a.finish(ctx)
}

// follow reads all traces to their ends.
func (a *Analyzer) follow(ctx context.Context) error {
	var lastFind, lastReport time.Time
	complete := false
	ranks, idle := 0, 0
	for {
		now := time.Now()
		over := a.programEnded()
		if now.Sub(lastFind) >= findEvery || over && !complete {
			lastFind = now
			var err error
			if complete, err = a.find(now); err != nil {
				return err
			}
			a.timed(stageFind, now)
		}
		live := slices.DeleteFunc(slices.Clone(a.sources), func(s *source) bool { return s.done })
		if complete && len(live) == 0 || a.online.Sync.Stopped() {
			a.abandon(live)
			a.report(now, true)
			return ctx.Err()
		}
		a.learnFromOthers()
		busy, err := a.onlineRound(ctx, live, now)
		if err != nil {
			return err
		}
		if a.totals.Ranks != ranks {
			ranks = a.totals.Ranks
			if err := a.checkRanks(); err != nil {
				return err
			}
		}
		if now.Sub(lastReport) >= findEvery {
			lastReport = now
			a.report(now, false)
		}
		idle++
		if busy {
			idle = 0
		}
		if err := a.pause(ctx, idle, over); err != nil {
			return err
		}
	}
}

// pause waits after a number of rounds without new steps. It returns early when the program ends.
func (a *Analyzer) pause(ctx context.Context, idle int, over bool) error {
	for range min(idle, maxPolls) {
		if err := a.online.Sleep(ctx, a.online.Poll); err != nil {
			return err
		}
		if over || a.programEnded() {
			break
		}
	}
	return nil
}

// maxPolls is the greatest multiple of Poll between checks of traces without new steps. A check opens a file of each trace,
// and costs as much as some hundred events.
const maxPolls = 5

// programEnded reports whether the program that writes the traces has ended.
func (a *Analyzer) programEnded() bool {
	return a.online.ProgramEnded != nil && a.online.ProgramEnded()
}

// find opens new traces.
func (a *Analyzer) find(now time.Time) (complete bool, err error) {
	inputs, complete, err := a.online.Find()
	if err != nil {
		return false, err
	}
	for _, in := range inputs {
		if slices.ContainsFunc(a.sources, func(s *source) bool { return s.input.Path == in.Path }) {
			continue
		}
		opt := bp.Default()
		opt.Follow, opt.Idle, opt.Sleep = true, bp.NoWait, a.online.Sleep
		s, err := openSource(in, opt)
		if err != nil {
			return false, err
		}
		s.lastStep, s.caughtUp = now, now
		a.sources = append(a.sources, s)
		if in.Collectives.Log != nil {
			a.collectives.Add(in.Program, in.Collectives)
		}
	}
	return complete, nil
}

// onlineRound reads, learns and judges the next step of each trace that has one. It returns false if none has.
func (a *Analyzer) onlineRound(ctx context.Context, live []*source, now time.Time) (busy bool, err error) {
	err = a.parallel(ctx, live, func(ctx context.Context, s *source) error { return a.advance(ctx, s, true) })
	if err != nil {
		return false, err
	}
	ready := live[:0]
	for _, s := range live {
		if s.arriving == nil {
			s.complete = now
		}
		switch {
		case s.arriving != nil && (now.Sub(s.complete) > s.timeout() || a.isOver(now) && now.Sub(s.complete) > endedTimeout):
			s.done, s.err = true, s.arriving.CorruptError
			a.ended(s)
		case s.arriving != nil:
		case s.idle && a.end(s, now):
		case s.idle && a.online.Idle > 0 && now.Sub(s.lastStep) > a.online.Idle:
			s.done, s.err = true, fmt.Errorf("%w (%v): trace treated as ended", bp.ErrIdle, a.online.Idle)
			a.ended(s)
		case s.idle && a.isOver(now) && now.Sub(s.lastStep) > endedTimeout:
			s.done, s.err = true, errors.New("the writer ended without closing the trace")
			a.ended(s)
		case s.idle:
			s.caughtUp = now
		case s.done:
			a.ended(s)
		default:
			s.lastStep = now
			ready = append(ready, s)
		}
	}
	if len(ready) == 0 {
		return false, nil
	}
	start := a.timed(stageRead, now)
	frozen := a.cfg.Freeze || a.online.Sync.Frozen()
	for _, s := range ready {
		a.merge(s, frozen, true)
	}
	a.models.learn(frozen, true)
	a.models.settle()
	a.sumUp()
	start = a.timed(stageMerge, start)
	if err := a.parallel(ctx, ready, a.judge); err != nil {
		return false, err
	}
	start = a.timed(stageJudge, start)
	for _, s := range ready {
		for _, r := range s.active {
			if r.joint {
				a.join(s, r)
			} else {
				a.share(s, r, false)
			}
		}
	}
	a.shareJoint()
	a.timed(stageShare, start)
	return true, nil
}

// end ends a trace without an end mark if it has not grown for some time.
func (a *Analyzer) end(s *source, now time.Time) bool {
	e, ok := s.steps.(Ender)
	if !ok {
		return false
	}
	quiet := now.Sub(s.lastStep)
	if a.online.Idle > 0 && quiet > a.online.Idle || a.isOver(now) && quiet > endedTimeout {
		e.End()
	}
	s.caughtUp = now
	return true
}

// endedTimeout is the longest time until the last output of a writer becomes visible.
const endedTimeout = 2 * time.Second

// isOver reports whether the program that writes the traces ended some time ago.
func (a *Analyzer) isOver(now time.Time) bool {
	if a.programEnd.IsZero() && a.programEnded() {
		a.programEnd = now
	}
	return !a.programEnd.IsZero() && now.Sub(a.programEnd) > endedTimeout
}

// timeout returns how long to wait for bytes to which the index refers. A writer that has closed its dataset has written all
// of them, but network file systems may show them late.
func (s *source) timeout() time.Duration {
	if s.reader != nil && s.reader.Active() {
		return bp.Default().Arrival
	}
	return bp.Default().Arrival / 12
}

// ended closes a trace and sends the last contributions of its ranks. It closes the trace first, because the program behind
// an abandoned stream must not wait for it.
func (a *Analyzer) ended(s *source) {
	s.close()
	for _, r := range s.ranks {
		a.share(s, r, true)
	}
}

// share passes the deltas of a rank to the ModelSync.
func (a *Analyzer) share(s *source, r *rank, ended bool) {
	c := r.contribution(s.step)
	c.Stream = a.streamProgress(s, r)
	c.Ended, c.Names = ended, a.models.names
	a.online.Sync.Add(c)
	r.forget(a.savesMemory())
	r.load.Reset()
}

// streamProgress returns the progress of the live stream whose first rank is r, or nil.
func (a *Analyzer) streamProgress(s *source, r *rank) *deltas.StreamProgress {
	stream, ok := s.reader.(interface{ Received() int64 })
	if !ok || r != s.ranks[0] {
		return nil
	}
	p := &deltas.StreamProgress{Totals: s.totals(), Tally: a.counts(s), Bytes: stream.Received()}
	p.Totals.Ranks = 0
	return p
}

// counts returns the counts of a source. The reader of a stream counts all steps before its first one as unattended, but
// earlier processes of this analyzer may have read some of them. None count until their number is known.
func (a *Analyzer) counts(s *source) tally.Tally {
	t := s.tally
	before := t.Count(tally.StepsUnattended)
	if before == 0 || a.online == nil {
		return t
	}
	read := before
	if len(s.ranks) > 0 { // all ranks have the same steps
		if steps, known := a.online.Sync.Earlier(s.ranks[0].key); known {
			read = min(read, int64(steps))
		}
	}
	t.Add(tally.StepsUnattended, -read)
	return t
}

// abandon ends traces that are not complete.
func (a *Analyzer) abandon(live []*source) {
	for _, s := range live {
		s.done, s.err = true, errors.New("the run was stopped before the trace ended")
		a.ended(s)
	}
}

// learnFromOthers replaces the models that other analyzers have changed.
func (a *Analyzer) learnFromOthers() {
	for m := range a.online.Sync.Merged() {
		a.models.set(a.models.function(m.FuncKey), m.Path, m.Level, m.Model)
	}
	a.models.settle()
}

// contribution returns the deltas of the rank since the previous contribution.
func (r *rank) contribution(step int) *deltas.Contribution {
	c := &r.shared
	paths := c.Paths[:0]
	*c = deltas.Contribution{
		StepKey: trace.StepKey{RankKey: r.key, Step: step}, Host: r.host, First: r.start, Last: r.end,
		Functions: c.Functions[:0], Contexts: c.Contexts[:0], Counters: c.Counters[:0], PathDepth: r.builder.Paths().Depth(),
	}
	if c.Paths, _ = r.takePaths(paths); !r.load.Empty() {
		c.Load = r.load
	}
	r.mergePaths()
	for _, f := range r.merged {
		key := f.allPaths.models.function.FuncKey
		f.pending.Model.Times.Follow(&f.model.model.Times)
		switch {
		case f == f.allPaths:
			f.pending.FuncKey = key
			c.Functions = append(c.Functions, deltas.Function{FunctionStats: &f.pending.FunctionStats, Model: &f.pending.Model})
		case f.model != f.allPaths.model && !r.cfg.RankScope:
			c.Contexts = append(c.Contexts, deltas.Context{Context: callpath.Context{FuncKey: key, Path: f.path}, Model: &f.pending.Model})
		}
	}
	r.takeCounters(func(of *summary.Counter) { c.Counters = append(c.Counters, of) })
	return c
}

// mergePaths adds the deltas of functions with a path to those of the functions with all paths.
func (r *rank) mergePaths() {
	for _, f := range r.merged {
		if f != f.allPaths && f.pending != nil {
			f.allPaths.delta().Merge(f.pending)
			r.note(f.allPaths)
		}
	}
}

// takeCounters calls add with the values of counters since the last time.
func (r *rank) takeCounters(add func(*summary.Counter)) {
	for id, of := range r.counter {
		if of.Values.Count() > 0 {
			add(&summary.Counter{FuncKey: r.counterKey(id), Values: of.Values})
			of.Values = stats.Sums{}
		}
	}
}

// report reports the progress.
func (a *Analyzer) report(now time.Time, ended bool) {
	a.sumUp()
	rep := &Report{Totals: a.totals, Ended: ended}
	for _, s := range a.sources {
		counts := a.counts(s)
		rep.Tally.Merge(&counts)
		rep.Events.Merge(s.events)
		behind := now.Sub(s.caughtUp)
		if s.done || s.idle {
			behind = 0
		}
		rep.Lag = max(rep.Lag, behind)
		for _, r := range s.ranks {
			rep.OpenCalls += int64(r.builder.OpenCalls())
			rep.Tally.Add(tally.FlagUnsent, r.alike.Left())
			rep.Ranks = append(rep.Ranks, RankReport{r.key, r.host, s.step, s.done, behind})
		}
	}
	for i, st := range a.stages {
		st.Name = stageNames[i]
		rep.Stages = append(rep.Stages, st)
	}
	rep.Collectives = a.collectives.Latest(now)
	a.online.Report(rep)
}

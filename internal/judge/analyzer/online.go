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
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// Contribution is what a rank learned and found in a step.
type Contribution struct {
	StepKey
	Host        string
	First, Last trace.Micros // times of the step's events
	Ended       bool         // the trace has no further steps
	Functions   []Found
	Counters    []*summary.Counter
	Paths       []callpath.Named // calls that ended, by call path
	PathDepth   int              // below which call paths are folded
}

// Found is what a rank learned of a function in a step. What is empty was not
// called, or is not anomalous.
type Found struct {
	*summary.FunctionStats // anomalies as labeled now, not counted for the step
	Model                  *outlier.Model
}

// ModelSync shares what is learned with other analyzers. It never waits but in
// Finish.
type ModelSync interface {
	// Add takes what a rank learned. It keeps nothing of its argument.
	Add(c *Contribution)
	// Merged yields the functions of which others learned something, with all
	// that is known of them now: what others learned and all that was added. The
	// models belong to the caller.
	Merged() iter.Seq2[trace.FuncKey, outlier.Model]
	// Frozen reports whether nothing is to be learned.
	Frozen() bool
	// Stopped reports whether all traces are to be taken as ended.
	Stopped() bool
	// Finish waits until no analyzer has anything to add any more. Merged yields
	// the final models after it.
	Finish(ctx context.Context) error
}

// Online says how to analyze traces while they are written.
type Online struct {
	Sync ModelSync
	// Find returns the traces that are there, and whether no others will come.
	Find func() (inputs []Input, complete bool, err error)
	// Poll is how long to wait when no trace has a new step.
	Poll time.Duration
	// Idle is how long a trace may have no new step before it is taken as
	// ended; 0 is for ever. A killed writer leaves its trace unfinished.
	Idle time.Duration
	// Over reports whether who writes the traces has ended. A trace that has nothing new
	// for a moment is taken as ended then. nil: that is not known.
	Over func() bool
	// Sleep waits for d or until ctx ends, and returns ctx's error then.
	Sleep func(ctx context.Context, d time.Duration) error
	// Report is told how far the work has come.
	Report func(*Report)
}

// Report tells how far the work on traces that are being written has come.
type Report struct {
	Totals summary.Totals
	Tally  tally.Tally
	Ranks  []RankReport
	Ended  bool // all traces have
	// Behind is for how long there have been steps that were not read yet.
	Behind time.Duration
	Stages []Stage
	// OpenCalls are those that have not ended.
	OpenCalls int64
	Events    EventCounts
}

// Stage is a part of the work, and how long it took in all.
type Stage struct {
	Name string
	Runs int64
	Took time.Duration
}

// The stages of a round.
const (
	stageFind  = iota // look for new traces
	stageRead         // read a step, decode it, rebuild calls, learn
	stageMerge        // merge what was learned, make judges
	stageJudge        // judge, capture, make records
	stageShare        // hand what was learned to the ModelSync
	numStages
)

var stageNames = [numStages]string{"find", "read", "merge", "judge", "share"}

// timed adds the time since start to a stage, and returns the time now.
func (a *Analyzer) timed(stage int, start time.Time) time.Time {
	now := time.Now()
	a.stages[stage].Runs++
	a.stages[stage].Took += now.Sub(start)
	return now
}

// RankReport is a rank in a Report.
type RankReport struct {
	trace.RankKey
	Host   string
	Step   int
	Ended  bool
	Behind time.Duration
}

// findEvery is how often new traces are looked for.
const findEvery = 500 * time.Millisecond

// Follow analyses traces while they are written. A step is judged as soon as it
// is there, by all that is known at that moment, and what is flagged goes to the
// sink. When all traces have ended, and all those of other analyzers, everything
// that was kept is judged again with the final models, and goes to the sink again.
func (a *Analyzer) Follow(ctx context.Context, o Online) (*Result, error) {
	a.online = &o
	a.totals.Pass = 1
	a.models = a.cfg.Learned
	if a.models == nil {
		a.models = NewModels(outlier.NewRules(a.cfg.Outlier))
	}
	defer a.spooled.close()
	defer func() {
		for _, s := range a.sources {
			s.close()
		}
	}()
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
	var looked, reported time.Time
	complete := false
	ranks := 0
	for {
		now := time.Now()
		if now.Sub(looked) >= findEvery {
			looked = now
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
		if now.Sub(reported) >= findEvery {
			reported = now
			a.report(now, false)
		}
		if !busy {
			if err := a.online.Sleep(ctx, a.online.Poll); err != nil {
				return err
			}
		}
	}
}

// find opens the traces that are new.
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
		s.heard, s.caughtUp = now, now
		a.sources = append(a.sources, s)
	}
	return complete, nil
}

// onlineRound reads, learns and judges the next step of each trace that has one,
// and reports whether any has.
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
		case s.arriving != nil && (now.Sub(s.complete) > s.patience() || a.isOver(now) && now.Sub(s.complete) > overPatience):
			s.done, s.err = true, s.arriving.CorruptError
			a.ended(s)
		case s.arriving != nil:
		case s.idle && a.online.Idle > 0 && now.Sub(s.heard) > a.online.Idle:
			s.done, s.err = true, fmt.Errorf("%w for %v: it is taken as ended", bp.ErrIdle, a.online.Idle)
			a.ended(s)
		case s.idle && a.isOver(now) && now.Sub(s.heard) > overPatience:
			s.done, s.err = true, errors.New("its writer ended without ending it")
			a.ended(s)
		case s.idle:
			s.caughtUp = now
		case s.done:
			a.ended(s)
		default:
			s.heard = now
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
	a.models.settle()
	a.sumUp()
	start = a.timed(stageMerge, start)
	if err := a.parallel(ctx, ready, a.judge); err != nil {
		return false, err
	}
	start = a.timed(stageJudge, start)
	for _, s := range ready {
		for _, r := range s.active {
			a.online.Sync.Add(r.contribution(s.step))
			r.forget(a.frugal())
		}
	}
	a.timed(stageShare, start)
	return true, nil
}

// overPatience is how long what a writer wrote in the end may take to be seen.
const overPatience = 2 * time.Second

// isOver reports whether who writes the traces has ended, some time ago.
func (a *Analyzer) isOver(now time.Time) bool {
	if a.over.IsZero() && a.online.Over != nil && a.online.Over() {
		a.over = now
	}
	return !a.over.IsZero() && now.Sub(a.over) > overPatience
}

// patience is how long to wait for bytes that the index speaks of. A writer that
// has closed its dataset has written all of them, but network file systems take
// their time.
func (s *source) patience() time.Duration {
	if s.reader != nil && s.reader.Active() {
		return bp.Default().Arrival
	}
	return bp.Default().Arrival / 12
}

// ended says that the ranks of a trace have nothing more to add. It is closed at
// once: the program behind a stream that is given up must not wait for us.
func (a *Analyzer) ended(s *source) {
	s.close()
	for _, r := range s.ranks {
		c := r.contribution(s.step)
		c.Ended = true
		a.online.Sync.Add(c)
		r.forget(a.frugal())
	}
}

// abandon takes traces as ended.
func (a *Analyzer) abandon(live []*source) {
	for _, s := range live {
		s.done, s.err = true, errors.New("the run was stopped before the trace ended")
		a.ended(s)
	}
}

// learnFromOthers takes in what others learned.
func (a *Analyzer) learnFromOthers() {
	for name, model := range a.online.Sync.Merged() {
		f := a.models.function(name)
		f.model.model = model
		a.models.touch(f.model)
	}
	a.models.settle()
}

// contribution is what the rank learned and found since the one before.
func (r *rank) contribution(step int) *Contribution {
	c := &r.shared
	paths := c.Paths[:0]
	*c = Contribution{
		StepKey: StepKey{r.key, step}, Host: r.host, First: r.start, Last: r.end,
		Functions: c.Functions[:0], Counters: c.Counters[:0], PathDepth: r.builder.Paths().Depth(),
	}
	c.Paths, _ = r.takePaths(paths)
	for _, f := range r.merged {
		f.learned.FuncKey = f.function.FuncKey
		c.Functions = append(c.Functions, Found{&f.learned.FunctionStats, &f.learned.delta})
	}
	for id, values := range r.counter {
		if values.Count() > 0 {
			c.Counters = append(c.Counters, &summary.Counter{FuncKey: r.counterKey(id), Values: *values})
			*values = stats.Sums{}
		}
	}
	return c
}

// report tells how far the work has come.
func (a *Analyzer) report(now time.Time, ended bool) {
	a.sumUp()
	rep := &Report{Totals: a.totals, Ended: ended}
	for _, s := range a.sources {
		rep.Tally.Merge(&s.tally)
		rep.Events.add(s.events)
		behind := now.Sub(s.caughtUp)
		if s.done || s.idle {
			behind = 0
		}
		rep.Behind = max(rep.Behind, behind)
		for _, r := range s.ranks {
			rep.OpenCalls += int64(r.builder.OpenCalls())
			rep.Ranks = append(rep.Ranks, RankReport{r.key, r.host, s.step, s.done, behind})
		}
	}
	for i, st := range a.stages {
		st.Name = stageNames[i]
		rep.Stages = append(rep.Stages, st)
	}
	a.online.Report(rep)
}

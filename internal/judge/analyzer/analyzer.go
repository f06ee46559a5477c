package analyzer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/workers"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/spool"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// RecordSink receives records and metadata. Several goroutines call it, but calls for one rank are sequential, and each
// method is called at most once with the same key. It owns its arguments. While traces are being written, it receives
// provisional records when calls are flagged, and at the end all records again.
type RecordSink interface {
	// Metadata stores the metadata that is new in a step.
	Metadata(ctx context.Context, key trace.StepKey, metadata []provenance.Metadata) error
	// Records stores the anomalies and typical executions of a step.
	Records(ctx context.Context, key trace.StepKey, anomalies, typical []*provenance.Record) error
}

// Progress reports progress between two steps and during the review. Calls are sequential.
type Progress func(done ProgressReport)

// ProgressReport is the progress of an analysis.
type ProgressReport struct {
	summary.Totals
	// ReadShare is the share of the steps of all traces that this pass has read.
	ReadShare float64
	// Reviewed is the number of Captures that the review has judged and passed to the sink. Captures is 0 until all traces are read.
	Reviewed, Captures int64
}

// Analyzer analyzes traces.
type Analyzer struct {
	cfg               Config
	sink              RecordSink
	progress          Progress
	online            *Online   // nil for recorded traces
	programEnd        time.Time // time at which the end of the writers was detected; zero while they run
	stages            [numStages]Stage
	collectives       breakdown.Programs // for traces that are being written
	models            *Models
	joint             map[trace.Program]*deltas.Joint // for traces that are being written
	paths             []callpath.NamedEntry           // scratch
	sources           []*source
	ignoreCorrelation outlier.Globs
	totals            summary.Totals
	load              *workload.Load // for recorded traces
	spool             *spool.File

	progressMu sync.Mutex
	done       ProgressReport // progress of the review
}

// New returns an Analyzer. cfg must be valid. progress may be nil.
func New(cfg Config, sink RecordSink, progress Progress) *Analyzer {
	cfg.Outlier.Unit = cfg.Unit
	return &Analyzer{
		cfg: cfg, sink: sink, progress: progress, load: workload.NewIn(cfg.Unit), spool: spool.NewFile(cfg.SpoolDir),
		ignoreCorrelation: outlier.NewGlobs(cfg.IgnoreCorrelation),
	}
}

// Run analyzes recorded traces. It analyzes the readable part of broken traces and lists them in the result.
func (a *Analyzer) Run(ctx context.Context, inputs []Input) (*Result, error) {
	a.startModels()
	slices.SortFunc(inputs, compareInputs)
	if a.cfg.Passes == 2 && !a.cfg.Freeze {
		if err := a.pass(ctx, inputs, 1, a.learnOnly); err != nil {
			return nil, err
		}
		a.totals = summary.Totals{}
	}
	defer a.spool.Close()
	if err := a.pass(ctx, inputs, a.cfg.Passes, a.learnAndJudge); err != nil {
		return nil, err
	}
	return a.finish(ctx)
}

func (a *Analyzer) startModels() {
	if a.models = a.cfg.InitialModels; a.models == nil {
		a.models = NewModels(outlier.NewRules(a.cfg.Outlier))
	}
	a.models.workers = a.cfg.Workers
}

// compareInputs orders traces by program, by the rank in their names and by path, so that the order of the arguments does not
// matter.
func compareInputs(x, y Input) int {
	return cmp.Or(cmp.Compare(x.Program, y.Program), cmp.Compare(tau.RankInName(x.Path), tau.RankInName(y.Path)), cmp.Compare(x.Path, y.Path))
}

// pass reads all traces once.
func (a *Analyzer) pass(ctx context.Context, inputs []Input, number int, round func(context.Context, []*source) error) error {
	a.sources = a.sources[:0]
	a.totals.Pass = number
	for _, in := range inputs {
		s, err := openSource(in, bp.Default())
		if err != nil {
			return err
		}
		defer s.close()
		a.sources = append(a.sources, s)
	}
	live := slices.Clone(a.sources)
	for first := true; len(live) > 0; first = false {
		if err := round(ctx, live); err != nil {
			return err
		}
		live = slices.DeleteFunc(live, func(s *source) bool { return s.done })
		if first {
			if err := a.checkRanks(); err != nil {
				return err
			}
		}
		if a.progress != nil {
			a.progress(ProgressReport{Totals: a.totals, ReadShare: a.readShare()})
		}
	}
	return nil
}

// readShare returns the share of all steps that have been read.
func (a *Analyzer) readShare() float64 {
	read, of := int64(0), int64(0)
	for _, s := range a.sources {
		p, ok := s.reader.(interface{ Progress() (read, of int64) })
		if !ok {
			p, ok = s.steps.(interface{ Progress() (read, of int64) })
		}
		if ok {
			m, n := p.Progress()
			if s.done { // some traces end early
				m = n
			}
			read, of = read+m, of+n
		}
	}
	return float64(read) / float64(max(of, 1))
}

// addReviewed reports that n more executions were reviewed.
func (a *Analyzer) addReviewed(n int64) {
	if a.progress != nil {
		a.progressMu.Lock()
		defer a.progressMu.Unlock()
		a.done.Reviewed += n
		a.progress(a.done)
	}
}

// checkRanks returns a *trace.RankConflict if two traces contain the same rank.
func (a *Analyzer) checkRanks() error {
	owner := make(map[trace.RankKey]string)
	for _, s := range a.sources {
		for _, r := range s.ranks {
			if other, ok := owner[r.key]; ok {
				return &trace.RankConflict{Paths: [2]string{other, s.input.Path}, Rank: r.key}
			}
			owner[r.key] = s.input.Path
		}
	}
	return nil
}

// parallel calls f for each source, with up to cfg.Workers calls at a time.
func (a *Analyzer) parallel(ctx context.Context, sources []*source, f func(context.Context, *source) error) error {
	return workers.InOrder(ctx, a.cfg.Workers, sources, f, func(*source) {})
}

// learnOnly is a round of the first of two passes.
func (a *Analyzer) learnOnly(ctx context.Context, live []*source) error {
	if err := a.learn(ctx, live, false, false); err != nil {
		return err
	}
	return a.parallel(ctx, live, func(_ context.Context, s *source) error {
		for _, r := range s.active {
			r.finishStep(a.savesMemory())
		}
		return nil
	})
}

// learn reads a step of each trace, learns its calls, and merges the models.
func (a *Analyzer) learn(ctx context.Context, live []*source, frozen, profile bool) error {
	read := func(ctx context.Context, s *source) error { return a.advance(ctx, s, profile) }
	err := workers.InOrder(ctx, a.cfg.Workers, live, read, func(s *source) {
		a.merge(s, frozen, profile)
		for _, r := range s.active {
			r.forget(a.savesMemory())
		}
	})
	if err != nil {
		return err
	}
	a.models.learn(frozen, profile)
	a.models.endRound()
	a.models.settle()
	a.sumUp()
	return nil
}

// learnAndJudge is a round of the last pass: all ranks learn a step, their models are merged in the order of ranks, and all
// ranks judge the step by the result.
func (a *Analyzer) learnAndJudge(ctx context.Context, live []*source) error {
	if err := a.learn(ctx, live, a.cfg.Freeze || a.cfg.Passes == 2, true); err != nil {
		return err
	}
	return a.parallel(ctx, live, a.judge)
}

// merge merges the models that the ranks of a source learned in a step.
func (a *Analyzer) merge(s *source, frozen, profile bool) {
	if !s.done && !s.restored {
		s.read.Steps++
	}
	for _, r := range s.active {
		s.read.Started(r.start)
		s.read.End = max(s.read.End, r.end)
		if r.joint && a.online != nil {
			if load := a.jointOf(r.key.Program).Load; r.load != load {
				load.Merge(r.load, nil) // it is empty, but its windows may be wider
				r.load = load
			}
		}
		r.merge(a.models, frozen, profile)
	}
}

// sumUp updates the totals of all ranks.
func (a *Analyzer) sumUp() {
	a.totals = summary.Totals{Pass: a.totals.Pass}
	for _, s := range a.sources {
		a.totals.Merge(s.totals())
	}
}

func (a *Analyzer) judge(ctx context.Context, s *source) error {
	for _, r := range s.active {
		if a.online != nil {
			r.stored, _ = a.online.Sync.Earlier(r.key)
		}
		if err := r.judge(); err != nil {
			return err
		}
		r.finishStep(a.savesMemory())
		if a.online == nil {
			continue
		}
		if err := r.publish(ctx, a.sink, s.step); err != nil {
			return err
		}
	}
	return a.storeMetadata(ctx, s)
}

// storeMetadata passes the new metadata of the step to the sink, rank by rank.
func (a *Analyzer) storeMetadata(ctx context.Context, s *source) error {
	slices.SortStableFunc(s.metadata, func(x, y provenance.Metadata) int { return cmp.Compare(x.RID, y.RID) })
	for left := s.metadata; len(left) > 0; {
		rank := left[0].RID
		n := slices.IndexFunc(left, func(m provenance.Metadata) bool { return m.RID != rank })
		if n < 0 {
			n = len(left)
		}
		key := trace.StepKey{RankKey: trace.RankKey{Program: s.input.Program, Rank: rank}, Step: s.step}
		if err := a.sink.Metadata(ctx, key, slices.Clone(left[:n])); err != nil {
			return err
		}
		left = left[n:]
	}
	return nil
}

package analyzer

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// StepKey names what a rank put out in a step.
type StepKey struct {
	trace.RankKey
	Step int
}

// RecordSink takes what is kept. Methods are called by several goroutines, but
// for one rank by one after the other, and each at most once with the same key;
// they own what they are given. Of traces that are being written, records are
// first given as they are flagged, as provisional, and at the end all once more.
type RecordSink interface {
	// Metadata stores the facts that appeared in a step.
	Metadata(ctx context.Context, key StepKey, found []provenance.Metadata) error
	// Records stores the anomalies and typical executions of a step.
	Records(ctx context.Context, key StepKey, anomalies, typical []*provenance.Record) error
}

// Progress is told how far the work has come, between two steps and while what was
// kept is reviewed, by one goroutine at a time.
type Progress func(done Done)

// Done is how far the work has come.
type Done struct {
	summary.Totals
	// Read is the share of the steps of all traces that was read, in this pass.
	Read float64
	// Reviewed is how many of the Kept executions were judged again and handed to
	// the sink; Kept is 0 until all traces are read.
	Reviewed, Kept int64
}

// Analyzer analyses recorded traces.
type Analyzer struct {
	cfg       Config
	sink      RecordSink
	progress  Progress
	online    *Online   // nil for recorded traces
	over      time.Time // when it was seen that who writes them has ended; zero: not yet
	stages    [numStages]Stage
	models    *Models
	sources   []*source
	uncoupled []*regexp.Regexp
	totals    summary.Totals
	spooled   spoolFile

	telling sync.Mutex
	done    Done // of the review
}

// New returns an Analyzer; the configuration must be valid. progress may be nil.
func New(cfg Config, sink RecordSink, progress Progress) *Analyzer {
	a := &Analyzer{cfg: cfg, sink: sink, progress: progress, spooled: spoolFile{dir: cfg.SpoolDir}}
	for _, p := range cfg.Uncoupled {
		a.uncoupled = append(a.uncoupled, outlier.Glob(p))
	}
	return a
}

func (a *Analyzer) isUncoupled(name string) bool {
	return slices.ContainsFunc(a.uncoupled, func(p *regexp.Regexp) bool { return p.MatchString(name) })
}

// Run analyses the traces and returns what came of it. Traces that are broken
// are analyzed as far as they go; the result names them.
func (a *Analyzer) Run(ctx context.Context, inputs []Input) (*Result, error) {
	a.models = a.cfg.Learned
	if a.models == nil {
		a.models = NewModels(outlier.NewRules(a.cfg.Outlier))
	}
	sortInputs(inputs)
	if a.cfg.Passes == 2 && !a.cfg.Freeze {
		if err := a.pass(ctx, inputs, 1, a.learnOnly); err != nil {
			return nil, err
		}
		a.totals = summary.Totals{}
	}
	defer a.spooled.close()
	if err := a.pass(ctx, inputs, a.cfg.Passes, a.learnAndJudge); err != nil {
		return nil, err
	}
	return a.finish(ctx)
}

// sortInputs orders traces by program, by the rank in their names and by path,
// so that the order in which they were given does not matter.
func sortInputs(inputs []Input) {
	slices.SortFunc(inputs, compareInputs)
}

func compareInputs(x, y Input) int {
	return cmp.Or(cmp.Compare(x.Program, y.Program), cmp.Compare(rankInName(x.Path), rankInName(y.Path)), cmp.Compare(x.Path, y.Path))
}

// rankInName is the number at the end of tau-metrics-app-7.bp, or of the contact
// file tau-metrics-app-7.bp.sst, or -1.
func rankInName(path string) int {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".sst"), ".bp")
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
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
			a.progress(Done{Totals: a.totals, Read: a.read()})
		}
	}
	return nil
}

// read returns the share of all steps that was read.
func (a *Analyzer) read() float64 {
	read, of := int64(0), int64(0)
	for _, s := range a.sources {
		if p, ok := s.reader.(interface{ Progress() (read, of int64) }); ok {
			m, n := p.Progress()
			if s.done { // some end early
				m = n
			}
			read, of = read+m, of+n
		}
	}
	return float64(read) / float64(max(of, 1))
}

// reviewed tells how many more executions were.
func (a *Analyzer) reviewed(n int64) {
	if a.progress != nil {
		a.telling.Lock()
		defer a.telling.Unlock()
		a.done.Reviewed += n
		a.progress(a.done)
	}
}

// checkRanks fails when two traces claim the same rank.
func (a *Analyzer) checkRanks() error {
	owner := make(map[trace.RankKey]string)
	for _, s := range a.sources {
		for _, r := range s.ranks {
			if other, ok := owner[r.key]; ok {
				return fmt.Errorf("%s and %s both hold rank %d of program %d; are they of two runs, or of two programs (see --program)?",
					other, s.input.Path, r.key.Rank, r.key.Program)
			}
			owner[r.key] = s.input.Path
		}
	}
	return nil
}

// parallel calls f for each source, as many at once as there are workers.
func (a *Analyzer) parallel(ctx context.Context, sources []*source, f func(context.Context, *source) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.cfg.Workers)
	for _, s := range sources {
		g.Go(func() error { return f(ctx, s) })
	}
	return g.Wait()
}

// inOrder calls f for each source, as many at once as there are workers, and then for
// each of them one after the other, in their order and as soon as may be, so that what
// f leaves for it need not wait for all.
func (a *Analyzer) inOrder(ctx context.Context, sources []*source, f func(context.Context, *source) error, then func(*source)) error {
	var mu sync.Mutex
	done, next := make(map[*source]bool), 0
	return a.parallel(ctx, sources, func(ctx context.Context, s *source) error {
		if err := f(ctx, s); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for done[s] = true; next < len(sources) && done[sources[next]]; next++ {
			then(sources[next])
			delete(done, sources[next])
		}
		return nil
	})
}

// learnOnly is a round of the first of two passes.
func (a *Analyzer) learnOnly(ctx context.Context, live []*source) error {
	if err := a.learn(ctx, live, false, false); err != nil {
		return err
	}
	return a.parallel(ctx, live, func(_ context.Context, s *source) error {
		for _, r := range s.active {
			r.finishStep(a.frugal())
		}
		return nil
	})
}

// learn has all ranks read and learn a step, and merges what they learned.
func (a *Analyzer) learn(ctx context.Context, live []*source, frozen, profile bool) error {
	read := func(ctx context.Context, s *source) error { return a.advance(ctx, s, profile) }
	err := a.inOrder(ctx, live, read, func(s *source) {
		a.merge(s, frozen, profile)
		for _, r := range s.active {
			r.forget(a.frugal())
		}
	})
	if err != nil {
		return err
	}
	a.models.settle()
	a.sumUp()
	return nil
}

// learnAndJudge is a round of the last pass: all ranks learn a step, what they
// learned is merged in the order of ranks, and all judge the step by it.
func (a *Analyzer) learnAndJudge(ctx context.Context, live []*source) error {
	if err := a.learn(ctx, live, a.cfg.Freeze || a.cfg.Passes == 2, true); err != nil {
		return err
	}
	return a.parallel(ctx, live, a.judge)
}

// merge merges what the ranks of a source learned in a step.
func (a *Analyzer) merge(s *source, frozen, profile bool) {
	if !s.done {
		a.totals.Steps++
	}
	for _, r := range s.active {
		a.totals.Started(r.start)
		r.merge(a.models, frozen, profile)
	}
}

// sumUp renews the totals of all ranks.
func (a *Analyzer) sumUp() {
	a.totals.Events, a.totals.Calls, a.totals.Flagged, a.totals.Ranks = 0, 0, 0, 0
	for _, s := range a.sources {
		a.totals.Events += s.events.total()
		a.totals.Ranks += len(s.ranks)
		for _, r := range s.ranks {
			a.totals.Calls += r.counts.Calls
			a.totals.Flagged += r.counts.Flagged
		}
	}
}

func (a *Analyzer) judge(ctx context.Context, s *source) error {
	for _, r := range s.active {
		if err := r.judge(); err != nil {
			return err
		}
		r.finishStep(a.frugal())
		if a.online == nil {
			continue
		}
		if err := r.hand(ctx, a.sink, s.step); err != nil {
			return err
		}
	}
	return a.storeMetadata(ctx, s)
}

// storeMetadata hands what appeared in the step to the sink, once for each rank.
func (a *Analyzer) storeMetadata(ctx context.Context, s *source) error {
	slices.SortStableFunc(s.found, func(x, y provenance.Metadata) int { return cmp.Compare(x.RID, y.RID) })
	for left := s.found; len(left) > 0; {
		rank := left[0].RID
		n := slices.IndexFunc(left, func(m provenance.Metadata) bool { return m.RID != rank })
		if n < 0 {
			n = len(left)
		}
		key := StepKey{trace.RankKey{Program: s.input.Program, Rank: rank}, s.step}
		if err := a.sink.Metadata(ctx, key, slices.Clone(left[:n])); err != nil {
			return err
		}
		left = left[n:]
	}
	return nil
}

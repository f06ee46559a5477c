package analyzer

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// Input is a trace to analyze.
type Input struct {
	Path    string
	Program trace.Program
	Rank    trace.Rank
	Ranks   tau.RankRule // how to use Rank
	// Open, if not nil, opens a trace with the same steps as a dataset, such as a live stream, and counts losses in the tally.
	// Otherwise Path is a dataset.
	Open func(*tally.Tally) (Reader, error)
	// Steps, if not nil, returns the steps of a trace, once for each pass, and counts losses in the tally. Path is then only a
	// name, and Rank and Ranks are ignored.
	Steps func(*tally.Tally) (trace.Steps, error)
	// Collectives are the collective operations of a trace of one rank, if its reader provides them.
	Collectives breakdown.RankLog
	// Size is the number of bytes of the trace, if it differs from the size of Path.
	Size int64
}

// Ender is implemented by the Steps of formats without an end mark.
type Ender interface {
	// End declares that the trace no longer grows: Next returns the remaining steps, and then io.EOF.
	End()
}

// Reader reads the steps of a trace as TAU wrote them. bp.Reader implements it.
type Reader interface {
	tau.Source
	// Active reports whether the trace may still grow.
	Active() bool
	// Forget closes files and frees the memory of the last step.
	Forget()
	// Close frees all resources.
	Close() error
}

// source is the state of a trace. It usually has one rank; a shared file has several.
type source struct {
	input    Input
	reader   Reader // nil if input.Steps is used
	steps    trace.Steps
	tally    tally.Tally
	ranks    []*rank               // in order of appearance
	active   []*rank               // ranks with events in this step
	metadata []provenance.Metadata // metadata of this step
	step     int
	restored bool // this step was read before
	events   trace.EventCounts
	read     summary.Totals // steps and times only; use totals
	done     bool
	err      error // error that ended the trace early

	outcomes []*summary.RankOutcome // outcomes of ranks that have been reviewed

	// For a trace that is being written:
	idle     bool              // it has no new step
	lastStep time.Time         // time of the last step
	caughtUp time.Time         // last time without unread steps
	arriving *bp.ArrivingError // the missing part of the next step, or nil
	complete time.Time         // last time without a missing part
}

func openSource(in Input, opt bp.Options) (*source, error) {
	s := &source{input: in}
	if in.Steps != nil {
		var err error
		s.steps, err = in.Steps(&s.tally)
		return s, err
	}
	open := in.Open
	if open == nil {
		open = func(t *tally.Tally) (Reader, error) {
			opt.Tally = t
			return bp.Open(in.Path, opt)
		}
	}
	r, err := open(&s.tally)
	if err != nil {
		return nil, err
	}
	s.reader = r
	s.steps = &tau.Trace{Reader: tau.NewReader(r, tau.Config{Program: in.Program, Rank: in.Rank, Ranks: in.Ranks}, &s.tally), Forget: r.Forget}
	return s, nil
}

// totals returns the totals of the source.
func (s *source) totals() summary.Totals {
	t := s.read
	t.Events, t.Ranks = s.events.Total(), len(s.ranks)
	for _, r := range s.ranks {
		t.Calls += r.counts.Calls
		t.Flagged += r.counts.Flagged
	}
	return t
}

func (s *source) close() {
	if s.reader != nil {
		_ = s.reader.Close() // errors of closing a reader lose nothing
	}
}

// rank returns the state of a rank, and adds it if it is new.
func (a *Analyzer) rank(s *source, id trace.Rank) *rank {
	for _, r := range s.ranks {
		if r.key.Rank == id {
			return r
		}
	}
	r := newRank(&a.cfg, trace.RankKey{Program: s.input.Program, Rank: id}, s.steps.Names(), &s.tally, a.ignoreCorrelation.Match)
	if r.load = a.load; a.online != nil {
		r.online, r.load = true, workload.NewIn(a.cfg.Unit)
	}
	r.spool, r.late = a.spool.New(), a.spool.New()
	s.ranks = append(s.ranks, r)
	return r
}

// advance reads the next step, and its ranks learn it. An error ends the trace, and is reported in the result.
func (a *Analyzer) advance(ctx context.Context, s *source, profile bool) error {
	s.active = s.active[:0]
	s.metadata = s.metadata[:0]
	s.arriving = nil
	step, err := s.steps.Next(ctx)
	if s.idle = errors.Is(err, bp.ErrIdle); s.idle {
		s.arriving, _ = errors.AsType[*bp.ArrivingError](err)
		return nil
	}
	if err != nil {
		s.done = true
		s.steps.Release()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, io.EOF) {
			s.err = err
		}
		return nil
	}
	s.step, s.restored = step.Index, step.Restored
	s.events.Add(step)
	for i := range step.Metadata {
		m := &step.Metadata[i]
		a.rank(s, m.Rank).addMetadata(m)
		s.metadata = append(s.metadata, provenance.Metadata{
			Descr: provenance.Text(m.Key), PID: m.Program, RID: m.Rank, TID: m.Thread, Value: provenance.Text(m.Value),
		})
	}
	l := a.models.learners.Take()
	defer a.models.learners.Put(l)
	var r *rank
	for i := range step.Batches {
		b := &step.Batches[i]
		if r == nil || r.key.Rank != b.Rank {
			r = a.rank(s, b.Rank)
			if r.begin(step.Index, profile); a.joins(r.key, step.Index) {
				r.joinStep(l, step.EventsFrom(i))
			}
			s.active = append(s.active, r)
		}
		r.add(b)
	}
	for i := range step.Readings {
		a.rank(s, step.Readings[i].Rank).addReadings(&step.Readings[i], profile)
	}
	for _, r := range s.active {
		r.learn()
	}
	if a.savesMemory() {
		s.steps.Release()
	} else if t, ok := s.steps.(*tau.Trace); ok {
		t.Reader.Release() // so that all traces use the same part of the processor's cache
	}
	return nil
}

// savesMemory reports whether to close files and free memory after each step.
func (a *Analyzer) savesMemory() bool { return len(a.sources) > a.cfg.KeepOpen }

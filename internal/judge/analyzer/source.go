package analyzer

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
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
	Ranks   tau.RankRule // what Rank is for
	// Open opens a trace that is no dataset but gives the same steps, such as a
	// live stream; nil: the dataset at Path is opened. What is lost is counted in
	// the tally.
	Open func(*tally.Tally) (Reader, error)
	// Steps gives the steps of a trace that is no dataset; Path only names it
	// then, and Rank and Ranks say nothing. It is called once for each pass.
	Steps func() (Steps, error)
}

// Steps is where the steps of a trace come from.
type Steps interface {
	// Next returns the next step, valid until the next call, or io.EOF.
	Next(ctx context.Context) (*tau.Step, error)
	// Names resolves the numbers in steps. It may grow with them.
	Names() *tau.Names
	// Release gives back what can be had again, and the memory of the last step.
	Release()
}

// Reader reads the steps of a trace as TAU wrote them; bp.Reader is one.
type Reader interface {
	tau.Source
	// Active reports whether the trace may still grow.
	Active() bool
	// Forget gives back what can be had again, and the memory of the last step.
	Forget()
	// Close frees everything.
	Close() error
}

// dataset is a trace in a BP dataset, or a stream.
type dataset struct {
	reader Reader
	steps  *tau.Reader
}

func (d *dataset) Next(ctx context.Context) (*tau.Step, error) { return d.steps.Next(ctx) }
func (d *dataset) Names() *tau.Names                           { return &d.steps.Names }

func (d *dataset) Release() {
	d.reader.Forget()
	d.steps.Release()
}

// EventCounts are how many events of each kind there were.
type EventCounts struct{ Functions, Messages, Counters int64 }

func (c *EventCounts) add(o EventCounts) {
	c.Functions += o.Functions
	c.Messages += o.Messages
	c.Counters += o.Counters
}

func (c EventCounts) total() int64 { return c.Functions + c.Messages + c.Counters }

// source is a trace at work: usually of one rank, in a common file of several.
type source struct {
	input  Input
	reader Reader // of a dataset or stream
	steps  Steps
	tally  tally.Tally
	ranks  []*rank // in the order in which they appeared
	active []*rank // with something in this step
	found  []provenance.Metadata
	step   int
	events EventCounts
	done   bool
	err    error // that ended the trace early

	outcomes []*summary.RankOutcome // of ranks, when they are reviewed

	// Of a trace that is being written.
	idle     bool              // it has no new step
	heard    time.Time         // when it had the last
	caughtUp time.Time         // when it had none to read
	arriving *bp.ArrivingError // what is missing of the next step; nil: nothing
	complete time.Time         // when nothing was missing
}

func openSource(in Input, opt bp.Options) (*source, error) {
	s := &source{input: in}
	if in.Steps != nil {
		var err error
		s.steps, err = in.Steps()
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
	s.steps = &dataset{r, tau.NewReader(r, tau.Config{Program: in.Program, Rank: in.Rank, Ranks: in.Ranks}, &s.tally)}
	return s, nil
}

func (s *source) close() {
	if s.reader != nil {
		_ = s.reader.Close() // only read from: nothing can be lost
	}
}

// rank returns the state of a rank, made by a when it is new.
func (a *Analyzer) rank(s *source, id trace.Rank) *rank {
	for _, r := range s.ranks {
		if r.key.Rank == id {
			return r
		}
	}
	r := newRank(&a.cfg, trace.RankKey{Program: s.input.Program, Rank: id}, s.steps.Names(), &s.tally, a.isUncoupled)
	r.online = a.online != nil
	r.spool, r.late = &spool{file: &a.spooled}, &spool{file: &a.spooled}
	s.ranks = append(s.ranks, r)
	return r
}

// advance reads the next step and has its ranks learn it. A trace that cannot
// be read any further ends there; its error is reported at the end.
func (a *Analyzer) advance(ctx context.Context, s *source, profile bool) error {
	s.active = s.active[:0]
	s.found = s.found[:0]
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
	s.step = step.Index
	s.events.add(EventCounts{int64(step.Funcs), int64(step.Comms), int64(step.Counters)})
	for i := range step.Metadata {
		m := &step.Metadata[i]
		a.rank(s, m.Rank).addMetadata(m)
		s.found = append(s.found, provenance.Metadata{
			Descr: provenance.Text(m.Key), PID: m.Program, RID: m.Rank, TID: m.Thread, Value: provenance.Text(m.Value),
		})
	}
	var r *rank
	for i := range step.Batches {
		b := &step.Batches[i]
		if r == nil || r.key.Rank != b.Rank {
			r = a.rank(s, b.Rank)
			r.begin(step.Index)
			s.active = append(s.active, r)
		}
		r.add(b)
	}
	for i := range step.Readings {
		a.rank(s, step.Readings[i].Rank).addReadings(&step.Readings[i])
	}
	for _, r := range s.active {
		r.learn(profile)
	}
	if a.frugal() {
		s.steps.Release()
	}
	return nil
}

// frugal reports whether files and memory are given back after each step.
func (a *Analyzer) frugal() bool { return len(a.sources) > a.cfg.KeepOpen }

package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// sink writes one dataset. Its methods are called in the order in which they
// stand here; a dataset that is not finished stays marked as being written.
type sink interface {
	// open makes the dataset, without a step.
	open() error
	// write adds a step, which was recorded at the time at.
	write(s *bp.Step, at trace.Micros) error
	// finish closes it, once the source came to its end.
	finish() error
}

// stream is a recorded dataset on its way to one sink, or to several that are
// copies of it.
type stream struct {
	src   *bp.Reader
	to    string // path of the dataset to write, as the caller gave it
	sinks []sink
	steps int // of the source

	clock  clock
	opened bool
	step   *bp.Step // to be written when it is due; nil: there is no further one
	ended  error    // how the source ended
	due    trace.Micros
	order  int // breaks ties
}

// begin reads the first step, so that it is known when the dataset was opened:
// at its first event.
func (s *stream) begin(ctx context.Context, p *Replay) error {
	if err := s.advance(ctx, p); err != nil {
		return err
	}
	s.due = s.clock.first
	return nil
}

// advance reads the next step and the time at which it is due. Only ctx's
// error is returned: how the source ended matters when its steps are written.
func (s *stream) advance(ctx context.Context, p *Replay) error {
	s.step, s.ended = s.src.Next(ctx)
	if s.ended != nil {
		s.step = nil
		return ctx.Err()
	}
	if err := s.clock.look(s.step, p.buffer(chunkSize)); err != nil {
		s.step, s.ended = nil, err
	}
	s.src.Release()
	return ctx.Err()
}

// act does the one thing that is due: open, write a step or close. It returns
// io.EOF after the last.
func (s *stream) act(ctx context.Context, p *Replay) error {
	if !s.opened {
		s.opened = true
		if err := s.each(func(k sink) error { p.result.Datasets++; return k.open() }); err != nil {
			return err
		}
		s.due = max(s.due, s.clock.last)
		return nil
	}
	if s.step == nil {
		return s.finish()
	}
	err := s.each(func(k sink) error {
		if err := k.write(s.step, s.clock.last); err != nil {
			return err
		}
		p.result.Steps++
		if p.cfg.Stepped != nil {
			p.cfg.Stepped()
		}
		return nil
	})
	s.src.Release()
	if err != nil {
		return err
	}
	err = s.advance(ctx, p)
	s.due = max(s.due, s.clock.last)
	return err
}

func (s *stream) finish() error {
	if !errors.Is(s.ended, io.EOF) {
		return fmt.Errorf("%s: the steps before were written: %w", s.src.Path(), s.ended)
	}
	if err := s.each(sink.finish); err != nil {
		return err
	}
	return io.EOF
}

func (s *stream) each(do func(sink) error) error {
	for _, k := range s.sinks {
		if err := do(k); err != nil {
			return err
		}
	}
	return nil
}

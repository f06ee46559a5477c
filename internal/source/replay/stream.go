package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// sink writes one dataset. Its methods are called in this order. An unfinished dataset
// stays marked as being written.
type sink interface {
	// open creates the dataset, without a step.
	open() error
	// write adds a step that was recorded at the time at.
	write(s *bp.Step, at trace.Ticks) error
	// finish closes it after the last step.
	finish() error
}

// stream copies a recorded dataset to one sink, or to several copies.
type stream struct {
	src   *bp.Reader
	to    string // path of the dataset to write, as the caller gave it
	sinks []sink
	steps int // of the source

	clock  clock
	opened bool
	step   *bp.Step // the next one; nil after the last
	ended  error    // the error that ended the source
	due    trace.Ticks
	order  int // breaks ties
}

// begin reads the first step: the dataset opens at its first event.
func (s *stream) begin(ctx context.Context, p *Replay) error {
	if err := s.advance(ctx, p); err != nil {
		return err
	}
	s.due = s.clock.first
	return nil
}

// advance reads the next step and its due time. It returns only the error of ctx; act reports the
// error of the source after the last step.
func (s *stream) advance(ctx context.Context, p *Replay) error {
	s.step, s.ended = s.src.Next(ctx)
	if s.ended != nil {
		s.step = nil
		return ctx.Err()
	}
	if err := s.clock.addTimes(s.step, p.buffer(chunkSize)); err != nil {
		s.step, s.ended = nil, err
	}
	s.src.Release()
	return ctx.Err()
}

// act opens the sinks, writes a step or closes them. It returns io.EOF at the end.
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
		if p.cfg.OnStep != nil {
			p.cfg.OnStep()
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
		return fmt.Errorf("%s: replayed up to here: %w", s.src.Path(), s.ended)
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

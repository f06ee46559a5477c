package inspect

import (
	"context"
	"errors"
	"io"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// sequence reads the ranks of a trace one after another. It returns the first error after the steps of all
// ranks.
type sequence struct {
	open    []func() (trace.Steps, error) // of ranks that are left
	current trace.Steps                   // nil before the first rank and after each
	ended   func(trace.Steps)             // called after each rank; may be nil
	err     error
}

// Next returns the next step of a rank.
func (s *sequence) Next(ctx context.Context) (*trace.Step, error) {
	for {
		if s.current == nil {
			if len(s.open) == 0 {
				break
			}
			steps, err := s.open[0]()
			if s.open = s.open[1:]; err != nil {
				s.fail(err)
				continue
			}
			s.current = steps
		}
		step, err := s.current.Next(ctx)
		if err == nil || ctx.Err() != nil {
			return step, err
		}
		if !errors.Is(err, io.EOF) {
			s.fail(err)
		}
		if s.ended != nil {
			s.ended(s.current)
		}
		s.release()
	}
	if s.err != nil {
		return nil, s.err
	}
	return nil, io.EOF
}

func (s *sequence) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// release closes the files of the current rank.
func (s *sequence) release() {
	if s.current != nil {
		s.current.Release()
		s.current = nil
	}
}

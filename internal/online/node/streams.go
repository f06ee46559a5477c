package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/sst"
)

// streams are the live streams of an analyzer.
type streams struct {
	cfg  *Config
	mu   sync.Mutex
	open []*sst.Reader
}

// opener returns a function that opens the stream at path without waiting for steps.
func (s *streams) opener(path string) func(*tally.Tally) (analyzer.Reader, error) {
	return func(t *tally.Tally) (analyzer.Reader, error) {
		opt := sst.Default()
		opt.ConnectTimeout, opt.Idle, opt.Queue, opt.Tally = s.cfg.ConnectTimeout, bp.NoWait, s.cfg.StreamQueue<<20, t
		opt.Save = true
		opt.Unsaved = func(err error) {
			s.cfg.Log.Warn("cannot save the function names of a stream: a replacement of this analyzer will not have them",
				"stream", path, "error", err)
		}
		opt.Connected = func(address string) {
			s.cfg.Log.Info("connected to the program of a stream", "stream", path, "address", address)
		}
		r, err := sst.Open(path, opt)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = append(s.open, r)
		return &loggedStream{r, s.cfg.Log}, nil
	}
}

// loggedStream logs a failure immediately: the program continues, but is no longer analyzed.
type loggedStream struct {
	*sst.Reader
	log *slog.Logger
}

func (t *loggedStream) Next(ctx context.Context) (*bp.Step, error) {
	step, err := t.Reader.Next(ctx)
	if err != nil && !errors.Is(err, bp.ErrIdle) && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		t.log.Warn("lost a stream", "error", err)
	}
	return step, err
}

// receivedBytes returns the bytes that were read from streams, and whether there are any streams.
func (s *streams) receivedBytes() (bytes int64, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.open {
		bytes += r.Received()
	}
	return bytes, len(s.open) > 0
}

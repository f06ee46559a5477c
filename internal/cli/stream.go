package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// The ways in which a program hands over its traces.
const (
	engineAuto = "auto" // by the names
	engineBP   = "bp"
	engineSST  = "sst"
)

// streamSuffix ends the name of a contact file.
const streamSuffix = ".sst"

// isStream reports whether a path is that of a contact file.
func isStream(path string) bool { return strings.HasSuffix(path, streamSuffix) }

// streamFlags say how to read live streams.
type streamFlags struct {
	engine  string
	connect time.Duration
	queue   int64 // megabytes
}

func (s *streamFlags) register(f *pflag.FlagSet) {
	f.DurationVar(&s.connect, "connect-timeout", sst.Default().ConnectTimeout, "how long to wait for the contact file of a live stream, and for the program behind it; 0 is for ever")
}

func (s *streamFlags) check() error {
	var errs []error
	if s.engine != engineAuto && s.engine != engineBP && s.engine != engineSST {
		errs = append(errs, fmt.Errorf("--engine %q is none of %s, %s, %s", s.engine, engineAuto, engineBP, engineSST))
	}
	if s.connect < 0 || s.queue < 1 {
		errs = append(errs, errors.New("--connect-timeout cannot be negative, and --stream-queue must be positive"))
	}
	return errors.Join(errs...)
}

// streams are the live streams of an analyzer.
type streams struct {
	flags *streamFlags
	log   *slog.Logger
	mu    sync.Mutex
	open  []*sst.Reader
}

// opener returns what opens the stream at path, for an analyzer that does not
// wait for steps.
func (s *streams) opener(path string) func(*tally.Tally) (analyzer.Reader, error) {
	return func(t *tally.Tally) (analyzer.Reader, error) {
		opt := sst.Default()
		opt.ConnectTimeout, opt.Idle, opt.Queue, opt.Tally = s.flags.connect, bp.NoWait, s.flags.queue<<20, t
		opt.Connected = func(address string) {
			s.log.Info("connected with the program of a stream", "stream", path, "address", address)
		}
		r, err := sst.Open(path, opt)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = append(s.open, r)
		return &toldStream{r, s.log}, nil
	}
}

// toldStream says at once when it ends early. The program goes on without us
// then, so somebody should know before the end of the run.
type toldStream struct {
	*sst.Reader
	log *slog.Logger
}

func (t *toldStream) Next(ctx context.Context) (*bp.Step, error) {
	step, err := t.Reader.Next(ctx)
	if err != nil && !errors.Is(err, bp.ErrIdle) && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		t.log.Warn("a stream is not read any further", "error", err)
	}
	return step, err
}

// received is how many bytes came, and whether there are streams at all.
func (s *streams) received() (bytes int64, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.open {
		bytes += r.Received()
	}
	return bytes, len(s.open) > 0
}

// traceReader is an open trace, in whatever form.
type traceReader interface {
	tau.Source
	Close() error
	Engine() string
	Version() string
	Active() bool
	Modified() time.Time
}

// openTrace opens the dataset or live stream at path. A stream is always
// followed.
func openTrace(path string, opt bp.Options, connect time.Duration) (traceReader, error) {
	if !isStream(path) {
		return bp.Open(path, opt)
	}
	o := sst.Default()
	o.ConnectTimeout, o.Tally = connect, opt.Tally
	if opt.Follow {
		o.Idle = opt.Idle
	}
	r, err := sst.Open(path, o)
	if err != nil {
		return nil, err
	}
	return stream{r}, nil
}

// stream is a live stream as a traceReader. It tells neither version nor times.
type stream struct{ *sst.Reader }

func (stream) Version() string     { return "" }
func (stream) Modified() time.Time { return time.Time{} }

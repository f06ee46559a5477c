// Package replay writes recorded traces again, as if their programs were running: the
// files of each dataset grow in the order in which ADIOS2 writes them, at the recorded
// times.
//
// A dataset is copied byte by byte or, to change its ranks or times, decoded and rewritten
// as BP4. The caller provides the clock. Memory holds the metadata of one step of each
// dataset, but not its rows.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
)

// Dataset is a dataset to replay.
type Dataset struct {
	From string // path of the recorded dataset
	To   string // path of the copy; its directories are created
}

// Config configures a replay. Start with Default.
type Config struct {
	// Speed is the factor relative to the recording; 0 means without waiting, but in the
	// order of recorded times.
	Speed float64
	// Ranks is the number of ranks to write, as copies of the recorded ones; 0 means the
	// recorded number. It needs one dataset for each recorded rank.
	Ranks int
	// ShiftTime shifts all times so that the first event is at the start of the replay.
	ShiftTime bool
	// Force allows replacing existing datasets.
	Force bool

	// Now returns the time. Sleep waits for d or until ctx ends, and then returns its
	// error.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// OnWrite is called after each write to a file, OnStep after each step of a dataset.
	// Both may be nil.
	OnWrite func()
	OnStep  func()
}

// Default returns the configuration that replays at the speed of the recording.
func Default() Config { return Config{Speed: 1} }

// Validate returns the errors of the configuration.
func (c Config) Validate() error {
	var errs []error
	if !(c.Speed >= 0) || math.IsInf(c.Speed, 0) {
		errs = append(errs, fmt.Errorf("speed %v: must be ≥ 0", c.Speed))
	}
	if c.Ranks < 0 || c.Ranks > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("%d ranks: out of range", c.Ranks))
	}
	if c.Now == nil || c.Sleep == nil {
		errs = append(errs, errors.New("no clock: set Now and Sleep"))
	}
	return errors.Join(errs...)
}

// rewrites reports whether datasets are rewritten rather than copied.
func (c Config) rewrites() bool { return c.Ranks > 0 || c.ShiftTime }

// Result describes a replay.
type Result struct {
	Datasets int           // started ones
	Steps    int           // written, of all datasets
	Bytes    int64         // written
	MaxDelay time.Duration // largest delay of a step
	Time     time.Duration
	// OmittedAttributes counts the attributes that BP4 cannot hold: non-strings and repeated names.
	// CutAttributes counts the attributes cut to 64 KiB.
	OmittedAttributes, CutAttributes int
}

// Replay is a validated replay. It can be run once.
type Replay struct {
	cfg     Config
	streams []*stream
	first   trace.Ticks // time of the first event; 0 if none
	offset  trace.Ticks // added to all times
	failed  []error
	result  Result
	buf     []byte
	step    bpwriter.Step // reused to rewrite steps
}

// buffer returns a shared buffer.
func (p *Replay) buffer(size int) []byte {
	if len(p.buf) < size {
		p.buf = make([]byte, size)
	}
	return p.buf[:size]
}

// wrote counts a write of n bytes.
func (p *Replay) wrote(n int64) {
	p.result.Bytes += n
	if p.cfg.OnWrite != nil {
		p.cfg.OnWrite()
	}
}

// Run replays until all datasets are written or ctx ends. A dataset that cannot be read to
// its end is written up to there and stays marked as being written; the error covers all
// of these. When ctx ends, Run returns its error and leaves the files as a killed program
// does.
func (p *Replay) Run(ctx context.Context) (Result, error) {
	start := p.cfg.Now()
	if p.cfg.ShiftTime && p.first > 0 {
		p.offset = trace.Ticks(start.UnixMicro()) - p.first
	}
	defer func() {
		for _, s := range p.streams {
			s.src.Close()
		}
	}()
	for i, s := range p.streams {
		s.order = i
	}
	err := p.drain(ctx, slices.SortedFunc(slices.Values(p.streams), (*stream).compare), start)
	p.result.Time = p.cfg.Now().Sub(start)
	if err != nil {
		return p.result, err
	}
	return p.result, errors.Join(p.failed...)
}

// drain runs the streams of the queue in the order of their due times.
func (p *Replay) drain(ctx context.Context, queue []*stream, start time.Time) error {
	for len(queue) > 0 {
		s := queue[0]
		if err := p.wait(ctx, s.due, start); err != nil {
			return err
		}
		err := s.act(ctx, p)
		switch {
		case errors.Is(err, io.EOF):
			queue = queue[1:]
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.failed = append(p.failed, err)
			queue = queue[1:]
		default: // it may be due later now
			at, _ := slices.BinarySearchFunc(queue[1:], s, (*stream).compare)
			copy(queue, queue[1:at+1])
			queue[at] = s
		}
	}
	return nil
}

// compare orders streams by due time.
func (s *stream) compare(o *stream) int {
	return cmp.Or(cmp.Compare(s.due, o.due), cmp.Compare(s.order, o.order))
}

// wait waits until the recorded time t is due.
func (p *Replay) wait(ctx context.Context, t trace.Ticks, start time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.cfg.Speed == 0 || t <= p.first {
		return nil
	}
	due := p.due(t)
	passed := p.cfg.Now().Sub(start)
	if passed >= due {
		p.result.MaxDelay = max(p.result.MaxDelay, passed-due)
		return nil
	}
	return p.cfg.Sleep(ctx, due-passed)
}

// due returns the time from the start of the replay to the recorded time t.
func (p *Replay) due(t trace.Ticks) time.Duration {
	d := float64(t-p.first) * float64(time.Microsecond) / p.cfg.Speed
	return time.Duration(min(d, math.MaxInt64/2))
}

// Steps returns the number of steps to write.
func (p *Replay) Steps() (n int) {
	for _, s := range p.streams {
		n += s.steps * len(s.sinks)
	}
	return n
}

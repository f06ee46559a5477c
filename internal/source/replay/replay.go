// Package replay writes recorded traces again, as if their programs were
// running again: the files of each dataset grow in the order in which ADIOS2
// writes them, at the times at which they grew when they were recorded.
//
// A dataset is copied byte by byte, or, where its ranks or times are to be
// others, decoded and rewritten as BP4. Time passes only in the functions
// that the caller gives. What is held in memory is one step of each dataset's
// description, never its rows.
package replay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
)

// Dataset is one to replay.
type Dataset struct {
	From string // path of the recorded dataset
	To   string // path of the one to write; directories above it are made
}

// Config configures how to replay. Begin with Default.
type Config struct {
	// Speed is how many times faster than recorded the steps appear; 0 means
	// without any wait, still in the order of their times.
	Speed float64
	// Ranks is how many ranks to write, by copies of the recorded ones; 0
	// means those recorded. It needs one dataset for each recorded rank.
	Ranks int
	// ShiftTime moves all times so that the first event is at the start of
	// the replay.
	ShiftTime bool
	// Force lets datasets be replaced that already exist.
	Force bool

	// Now returns the time, Sleep waits for d or until ctx ends, and returns
	// ctx's error then.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// Wrote is called after each write to a file, Stepped after each step of
	// a dataset; may be nil.
	Wrote   func()
	Stepped func()
}

// Default replays at the speed of the recording.
func Default() Config { return Config{Speed: 1} }

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if !(c.Speed >= 0) || math.IsInf(c.Speed, 0) {
		errs = append(errs, fmt.Errorf("speed %v: must be ≥ 0", c.Speed))
	}
	if c.Ranks < 0 || c.Ranks > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("%d ranks are impossible", c.Ranks))
	}
	if c.Now == nil || c.Sleep == nil {
		errs = append(errs, errors.New("to replay needs the functions Now and Sleep"))
	}
	return errors.Join(errs...)
}

// rewrites reports whether datasets are rewritten rather than copied.
func (c Config) rewrites() bool { return c.Ranks > 0 || c.ShiftTime }

// Result describes what a replay did.
type Result struct {
	Datasets int           // that were begun
	Steps    int           // that were written, over all datasets
	Bytes    int64         // that were written
	Late     time.Duration // by how much the latest step came too late
	Took     time.Duration
	// Attributes is how many attributes were left out, because BP4 cannot
	// hold them: others than strings, and further ones of the same name.
	// Cut is how many were shortened to 64 KiB.
	Attributes, Cut int
}

// Replay is a replay that was checked and can be run once.
type Replay struct {
	cfg     Config
	streams []*stream
	first   trace.Micros // of all events; 0 if none
	offset  trace.Micros // added to all times
	failed  []error
	result  Result
	buf     []byte
	step    bpwriter.Step // the one that is rewritten
}

// buffer returns memory for what is read and written at once.
func (p *Replay) buffer(size int) []byte {
	if len(p.buf) < size {
		p.buf = make([]byte, size)
	}
	return p.buf[:size]
}

// wrote notes a write of n bytes.
func (p *Replay) wrote(n int64) {
	p.result.Bytes += n
	if p.cfg.Wrote != nil {
		p.cfg.Wrote()
	}
}

// Run replays until all datasets are written or ctx ends. Datasets that cannot
// be read to their end are written as far as they can, and left marked as
// being written; the error then tells of each. When ctx ends Run returns its
// error, and leaves the files as a killed program does.
func (p *Replay) Run(ctx context.Context) (Result, error) {
	start := p.cfg.Now()
	if p.cfg.ShiftTime && p.first > 0 {
		p.offset = trace.Micros(start.UnixMicro()) - p.first
	}
	defer func() {
		for _, s := range p.streams {
			s.src.Close()
		}
	}()
	queue := make(schedule, 0, len(p.streams))
	for i, s := range p.streams {
		s.order = i
		queue = append(queue, s)
	}
	heap.Init(&queue)
	err := p.drain(ctx, &queue, start)
	p.result.Took = p.cfg.Now().Sub(start)
	if err != nil {
		return p.result, err
	}
	return p.result, errors.Join(p.failed...)
}

// drain does what is due, one thing after the other.
func (p *Replay) drain(ctx context.Context, queue *schedule, start time.Time) error {
	for queue.Len() > 0 {
		s := (*queue)[0]
		if err := p.wait(ctx, s.due, start); err != nil {
			return err
		}
		err := s.act(ctx, p)
		switch {
		case errors.Is(err, io.EOF):
			heap.Pop(queue)
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.failed = append(p.failed, err)
			heap.Pop(queue)
		default:
			heap.Fix(queue, 0)
		}
	}
	return nil
}

// wait waits until something recorded at the time t is due.
func (p *Replay) wait(ctx context.Context, t trace.Micros, start time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.cfg.Speed == 0 || t <= p.first {
		return nil
	}
	due := p.scaled(t)
	passed := p.cfg.Now().Sub(start)
	if passed >= due {
		p.result.Late = max(p.result.Late, passed-due)
		return nil
	}
	return p.cfg.Sleep(ctx, due-passed)
}

// scaled returns how long after the start something recorded at t is due.
func (p *Replay) scaled(t trace.Micros) time.Duration {
	d := float64(t-p.first) * float64(time.Microsecond) / p.cfg.Speed
	return time.Duration(min(d, math.MaxInt64/2))
}

// Datasets is how many datasets will be written.
func (p *Replay) Datasets() int {
	n := 0
	for _, s := range p.streams {
		n += len(s.sinks)
	}
	return n
}

// Steps is how many steps the datasets to be written will have.
func (p *Replay) Steps() int {
	n := 0
	for _, s := range p.streams {
		n += s.steps * len(s.sinks)
	}
	return n
}

// schedule is a heap of streams, the one that is due next on top.
type schedule []*stream

func (q schedule) Len() int { return len(q) }

func (q schedule) Less(i, j int) bool {
	if q[i].due != q[j].due {
		return q[i].due < q[j].due
	}
	return q[i].order < q[j].order
}

func (q schedule) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds a stream. Nothing is ever added to a running schedule.
func (q *schedule) Push(x any) { *q = append(*q, x.(*stream)) }

// Pop removes the last stream.
func (q *schedule) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// Package bp reads ADIOS2's BP4, BP5 and BP3 datasets without ADIOS2: steps, their
// variables block by block, and their attributes, from finished files and from files
// that a running program is still writing. It does not interpret the variables.
//
// There is one decoder. Following a dataset changes only whether Next waits for a
// step that does not exist yet. Nothing in a file is trusted: a wrong byte leads to a
// CorruptError with its place, and no allocation is larger than the file allows.
package bp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// Options configure a Reader. Start from Default.
type Options struct {
	// Follow makes Next wait for steps that do not exist yet, and Open
	// accept a dataset that does not exist yet.
	Follow bool
	// Poll is the time between two checks of a followed dataset.
	Poll time.Duration
	// Idle is the time that Next waits for a step before it returns ErrIdle; 0 means forever. With
	// NoWait it does not wait at all, and returns an ArrivingError for a step that has only partly
	// arrived.
	Idle time.Duration
	// Arrival is the time to wait for bytes to which the index already refers. They arrive within
	// milliseconds except on slow network file systems.
	Arrival time.Duration
	// NotBefore makes a followed dataset count as missing if it was last written
	// before that time: an earlier run left it.
	NotBefore time.Time
	// Sleep waits for d or until ctx ends, and then returns ctx's error. A followed dataset
	// requires it; the Reader waits only by calling Sleep.
	Sleep func(ctx context.Context, d time.Duration) error
	// Tally counts skipped data; it may be nil.
	Tally *tally.Tally
}

// NoWait as the idle limit makes Next return at once without a step.
const NoWait time.Duration = -1

// Default returns the options for a finished dataset, with usual waits for a followed
// one.
func Default() Options {
	return Options{Poll: 50 * time.Millisecond, Arrival: time.Minute}
}

// Validate reports all errors in the options.
func (o Options) Validate() error {
	if !o.Follow {
		return nil
	}
	var errs []error
	if o.Poll <= 0 {
		errs = append(errs, fmt.Errorf("poll interval %v must be positive", o.Poll))
	}
	if o.Idle < 0 && o.Idle != NoWait || o.Arrival < 0 {
		errs = append(errs, fmt.Errorf("idle limit %v or arrival limit %v is negative", o.Idle, o.Arrival))
	}
	if o.Sleep == nil {
		errs = append(errs, errors.New("following a dataset needs a Sleep function"))
	}
	return errors.Join(errs...)
}

// engine decodes one of the formats.
type engine interface {
	// next returns the next step. It never waits: a pendingError means that the step,
	// or part of it, does not exist yet, and that the next call tries it again. io.EOF
	// means that the writer closed the dataset and all steps were returned.
	next() (*Step, error)
	state() state
	close()
	// forget frees the memory of the last step, which becomes invalid.
	forget()
}

// state describes a dataset apart from its steps.
type state struct {
	engine   string
	version  string
	active   bool
	modified time.Time
	read, of int64 // progress, in steps or bytes of their index
}

// Reader iterates over the steps of one dataset. It serves one goroutine.
type Reader struct {
	path   string
	opt    Options
	engine engine // nil until the format is known
	err    error  // that ended the stream
}

// Open opens the dataset at path: the directory of a BP4 or BP5 dataset, or
// the file of a BP3 one. With Follow it need not exist yet.
func Open(path string, opt Options) (*Reader, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	r := &Reader{path: filepath.Clean(path), opt: opt}
	err := r.detect()
	if err == nil || opt.Follow && errors.Is(err, ErrNotReady) {
		return r, nil
	}
	return nil, err
}

// Close closes all files. Steps become invalid.
func (r *Reader) Close() error {
	r.Release()
	r.err = os.ErrClosed
	return nil
}

// Release closes all files. The Reader opens them again when it needs them, so that
// thousands of datasets can be read in parallel.
func (r *Reader) Release() {
	if r.engine != nil {
		r.engine.close()
	}
}

// Forget closes all files, as Release does, and frees the memory of the last step,
// which becomes invalid.
func (r *Reader) Forget() {
	r.Release()
	if r.engine != nil {
		r.engine.forget()
	}
}

func (r *Reader) state() state {
	if r.engine == nil {
		return state{active: true}
	}
	return r.engine.state()
}

// Path returns the path that was opened.
func (r *Reader) Path() string { return r.path }

// Engine returns "BP3", "BP4" or "BP5", or "" while the format is unknown.
func (r *Reader) Engine() string { return r.state().engine }

// Version returns the version of ADIOS2 that wrote the dataset.
func (r *Reader) Version() string { return r.state().version }

// Active reports whether the dataset was marked as being written at the last check. A
// killed writer leaves the mark forever.
func (r *Reader) Active() bool { return r.state().active }

// Modified returns the time of the last finished step, as of the last check.
func (r *Reader) Modified() time.Time { return r.state().modified }

// Progress returns the part of the dataset that was read, in a unit that is the same for all
// datasets of a format. The total, of, grows with the dataset and is 0 before the first step is
// read.
func (r *Reader) Progress() (read, of int64) {
	s := r.state()
	return s.read, s.of
}

// Next returns the next step. Without Follow it returns io.EOF after the last step
// that exists now. With Follow it waits for the next step until the writer closes the
// dataset (io.EOF), the idle limit passes (ErrIdle), another run replaces the dataset
// (ErrRecreated) or ctx ends. It returns all steps before the place that a
// CorruptError names. All errors except ErrIdle and ctx's are final: further calls
// return them again.
func (r *Reader) Next(ctx context.Context) (*Step, error) {
	if r.err != nil {
		return nil, r.err
	}
	var waited time.Duration
	retried := false
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		step, err := r.poll()
		if err == nil {
			return step, nil
		}
		var pending *pendingError
		var corrupt *CorruptError
		switch {
		case errors.As(err, &pending):
			if !r.opt.Follow {
				return nil, r.finish(pending)
			}
			if err := r.timeoutError(pending, waited); err != nil {
				return nil, err
			}
		case errors.As(err, &corrupt) && r.opt.Follow && !retried:
			retried = true // stale pages of a network file system look like damage
		default:
			r.err = err
			return nil, err
		}
		if err := r.opt.Sleep(ctx, r.opt.Poll); err != nil {
			return nil, err
		}
		waited += r.opt.Poll
	}
}

// finish ends the stream at missing data, without waiting.
func (r *Reader) finish(pending *pendingError) error {
	r.err = io.EOF
	switch {
	case pending.file != "":
		r.err = pending.corrupt()
		return r.err
	case pending == errTorn:
		r.opt.Tally.Add(tally.IndexTorn, 1)
	}
	r.opt.Tally.Add(tally.NotClosed, 1)
	return r.err
}

// timeoutError returns the error that ends the wait if waited has reached its limit.
func (r *Reader) timeoutError(pending *pendingError, waited time.Duration) error {
	if pending.file != "" {
		if r.opt.Idle == NoWait {
			return &ArrivingError{pending.corrupt()}
		}
		if waited < r.opt.Arrival {
			return nil
		}
		e := pending.corrupt()
		e.Reason += fmt.Sprintf("; waited %v for them", r.opt.Arrival)
		r.err = e
		return e
	}
	if r.opt.Idle == NoWait || r.opt.Idle > 0 && waited >= r.opt.Idle {
		return fmt.Errorf("%s: %w", r.path, ErrIdle)
	}
	return nil
}

// poll returns the next step if it exists.
func (r *Reader) poll() (*Step, error) {
	if r.engine == nil {
		if err := r.detect(); err != nil {
			if errors.Is(err, ErrNotReady) {
				return nil, errNoStep
			}
			return nil, err
		}
	}
	return r.engine.next()
}

// ffsError adds the place in a file to an error of package ffs.
func ffsError(err error, path string, step int, base int64) error {
	if bad, ok := errors.AsType[*ffs.Error](err); ok {
		return &CorruptError{File: path, Step: step, Offset: base + bad.Offset, Reason: bad.Reason}
	}
	if errors.Is(err, ffs.ErrUnsupported) {
		return &UnsupportedError{Path: path, What: err.Error(), Advice: newerADIOS2}
	}
	return err
}

// Package bp reads ADIOS2's BP4, BP5 and BP3 datasets without ADIOS2: steps,
// their variables block by block, and their attributes, from finished files
// and from files that a running program is still writing. It knows nothing of
// what the variables mean.
//
// There is one decoder. Whether a dataset is followed decides only if Next
// waits for a step that does not exist yet. Nothing in a file is trusted: a
// wrong byte leads to a CorruptError with its place, and nothing is allocated
// that the file could not hold.
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

// Options configures how to read a dataset. Begin with Default.
type Options struct {
	// Follow makes Next wait for steps that do not exist yet, and Open
	// accept a dataset that does not exist yet.
	Follow bool
	// Poll is how long to wait between two looks at a followed dataset.
	Poll time.Duration
	// Idle is how long Next waits for a step before it returns ErrIdle; 0 means
	// for ever, NoWait not at all, not even for the rest of one that has begun to
	// arrive: that is an ArrivingError.
	Idle time.Duration
	// Arrival is how long to wait for bytes that the index already speaks
	// of. They come within milliseconds but for slow network file systems.
	Arrival time.Duration
	// NotBefore makes a followed dataset that was last written before it
	// count as not there: it is left from an earlier run.
	NotBefore time.Time
	// Sleep waits for d or until ctx ends, and returns ctx's error then. A
	// followed dataset needs it; time passes nowhere else.
	Sleep func(ctx context.Context, d time.Duration) error
	// Tally takes the counts of what was skipped; nil forgets them.
	Tally *tally.Tally
}

// NoWait as the idle limit has Next return at once when there is no step.
const NoWait time.Duration = -1

// Default returns the options for a finished dataset, and sane waits for one
// that is followed.
func Default() Options {
	return Options{Poll: 50 * time.Millisecond, Arrival: time.Minute}
}

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	if !o.Follow {
		return nil
	}
	var errs []error
	if o.Poll <= 0 {
		errs = append(errs, fmt.Errorf("poll interval %v is not positive", o.Poll))
	}
	if o.Idle < 0 && o.Idle != NoWait || o.Arrival < 0 {
		errs = append(errs, fmt.Errorf("idle limit %v or arrival limit %v is negative", o.Idle, o.Arrival))
	}
	if o.Sleep == nil {
		errs = append(errs, errors.New("to follow a dataset needs a Sleep function"))
	}
	return errors.Join(errs...)
}

// engine decodes one of the formats.
type engine interface {
	// next returns the next step. It never waits: a pendingError says that
	// the step, or part of it, does not exist yet; the same step is tried
	// again at the next call. io.EOF means that the writer closed the
	// dataset and all its steps were returned.
	next() (*Step, error)
	state() state
	close()
	// forget gives back the memory of the last step, which becomes invalid.
	forget()
}

// state is what is known of a dataset besides its steps.
type state struct {
	engine   string
	version  string
	active   bool
	modified time.Time
	read, of int64 // how far the reader has come, in steps or bytes that tell them
}

// Reader iterates over the steps of one dataset. It serves one goroutine.
type Reader struct {
	path   string
	opt    Options
	engine engine // nil until the dataset shows its format
	err    error  // how the stream ended
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

// Close frees what the Reader holds. Steps become invalid.
func (r *Reader) Close() error {
	if r.engine != nil {
		r.engine.close()
	}
	r.err = os.ErrClosed
	return nil
}

// Release closes the files that the Reader holds open. It opens them again when
// it needs them, so that thousands of datasets can be read side by side.
func (r *Reader) Release() {
	if r.engine != nil {
		r.engine.close()
	}
}

// Forget gives back what can be had again: open files, as Release does, and the
// memory of the last step, which becomes invalid.
func (r *Reader) Forget() {
	if r.engine != nil {
		r.engine.close()
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

// Engine returns "BP3", "BP4" or "BP5"; empty while nothing is written yet.
func (r *Reader) Engine() string { return r.state().engine }

// Version returns the version of ADIOS2 that wrote the dataset.
func (r *Reader) Version() string { return r.state().version }

// Active reports whether the dataset is marked as still being written, as of
// the last look at it. A killed writer leaves the mark for ever.
func (r *Reader) Active() bool { return r.state().active }

// Modified is when the last step was finished, as of the last look.
func (r *Reader) Modified() time.Time { return r.state().modified }

// Progress returns how far the Reader has come: read of that much, in a unit that is the
// same for all datasets of a format. What it is of grows with the dataset, and is 0
// before the first step is read.
func (r *Reader) Progress() (read, of int64) {
	s := r.state()
	return s.read, s.of
}

// Next returns the next step. Without Follow the steps end, with io.EOF, where
// the dataset ends at the moment. With Follow it waits for the next step until
// the writer closes the dataset (io.EOF), the idle limit passes (ErrIdle),
// another run takes over its place (ErrRecreated) or ctx ends. A CorruptError
// names what cannot be read; what was readable before has been returned. All
// but ErrIdle and ctx's error are final: they are returned again.
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
			if err := r.expired(pending, waited); err != nil {
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

// finish turns what cannot be waited for into the end of the stream.
func (r *Reader) finish(pending *pendingError) error {
	r.err = io.EOF
	if pending == errTorn {
		r.opt.Tally.Add(tally.IndexTorn, 1)
	} else if pending.file != "" {
		r.err = pending.corrupt()
	}
	return r.err
}

// expired returns the error that ends the wait after the time waited.
func (r *Reader) expired(pending *pendingError, waited time.Duration) error {
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

// poll looks once for the next step.
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

// ffsError gives an error of package ffs its place in a file.
func ffsError(err error, path string, step int, base int64) error {
	if bad, ok := errors.AsType[*ffs.Error](err); ok {
		return &CorruptError{File: path, Step: step, Offset: base + bad.Offset, Reason: bad.Reason}
	}
	if errors.Is(err, ffs.ErrUnsupported) {
		return &UnsupportedError{Path: path, What: err.Error(), Advice: "write the trace with ADIOS2 2.9 or newer, or as BP4"}
	}
	return err
}

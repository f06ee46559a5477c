package bp

import (
	"errors"
	"fmt"
)

var (
	// ErrIdle means that a followed dataset is still marked as being
	// written, but nothing new came within the idle limit: its writer has
	// nothing to say, or was killed. Next may be called again.
	ErrIdle = errors.New("no new step within the idle limit; the writer has nothing to say or was killed")

	// ErrRecreated means that another run began to write to the same place
	// while the dataset was followed. Reopen it to read that run.
	ErrRecreated = errors.New("the dataset was replaced by a new run while it was read")

	// ErrNotReady means that there is no dataset yet: nothing is there, or
	// its writer has not finished the first step.
	ErrNotReady = errors.New("no dataset yet")
)

// CorruptError describes what is wrong with a file and where.
type CorruptError struct {
	File   string
	Step   int   // -1 where it concerns no step
	Offset int64 // in bytes from the start of the file
	Reason string
}

func (e *CorruptError) Error() string {
	if e.Step < 0 {
		return fmt.Sprintf("%s at byte %d: %s", e.File, e.Offset, e.Reason)
	}
	return fmt.Sprintf("%s at byte %d (step %d): %s", e.File, e.Offset, e.Step, e.Reason)
}

// UnsupportedError names something that is valid but cannot be read here.
type UnsupportedError struct {
	Path   string
	What   string
	Advice string
}

func (e *UnsupportedError) Error() string {
	s := e.Path + ": " + e.What + " is not supported"
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// place completes an error of a decoder, which knows neither the file nor the
// step: path is the file, and base is where the decoder's bytes begin in it.
func place(err error, path string, step int, base int64) error {
	if bad, ok := errors.AsType[*CorruptError](err); ok && bad.File == "" {
		bad.File, bad.Step, bad.Offset = path, step, bad.Offset+base
	}
	if refused, ok := errors.AsType[*UnsupportedError](err); ok && refused.Path == "" {
		refused.Path = path
	}
	return err
}

// columnMajor is what is refused where an array's first index runs fastest.
const columnMajor = "a dataset with column-major arrays, as Fortran writes them,"

// pendingError means: not there yet, look again later. When no one waits, it
// becomes the end of the stream or, where it names a file, a CorruptError.
type pendingError struct {
	file   string // the file that is too short; empty: just no further step
	step   int
	have   int64
	reason string
}

func (e *pendingError) Error() string { return e.corrupt().Error() }

func (e *pendingError) corrupt() *CorruptError {
	return &CorruptError{File: e.file, Step: e.step, Offset: e.have, Reason: e.reason}
}

var errNoStep = &pendingError{reason: "no further step"}

// ArrivingError reports that bytes of which the index speaks do not exist yet, to
// one who does not wait for them. It is an ErrIdle; one who has waited long enough
// takes the CorruptError in it for the end of the dataset.
type ArrivingError struct{ *CorruptError }

// Is makes it an ErrIdle.
func (e *ArrivingError) Is(target error) bool { return target == ErrIdle }

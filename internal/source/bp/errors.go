package bp

import (
	"errors"
	"fmt"
)

var (
	// ErrIdle means that a followed dataset is still marked as being written, but
	// has no new step within the idle limit: its writer is idle or was killed. Next
	// may be called again.
	ErrIdle = errors.New("no new step within the idle limit; the writer is idle or was killed")

	// ErrRecreated means that another run began to write to the same place while
	// the dataset was followed. Open it again to read that run.
	ErrRecreated = errors.New("the dataset was replaced by a new run while it was read")

	// ErrNotReady means that the dataset does not exist, or that its writer has not
	// finished the first step.
	ErrNotReady = errors.New("no dataset yet")
)

// CorruptError describes damage and its place.
type CorruptError struct {
	File   string
	Step   int   // -1 if it concerns no step
	Offset int64 // in bytes from the start of the file
	Reason string
}

func (e *CorruptError) Error() string {
	if e.Step < 0 {
		return fmt.Sprintf("%s at byte %d: %s", e.File, e.Offset, e.Reason)
	}
	return fmt.Sprintf("%s at byte %d (step %d): %s", e.File, e.Offset, e.Step, e.Reason)
}

// UnsupportedError names a valid feature that this package cannot read.
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

// place adds file and step to the error of a decoder, whose bytes begin at base in the file.
func place(err error, path string, step int, base int64) error {
	if bad, ok := errors.AsType[*CorruptError](err); ok && bad.File == "" {
		bad.File, bad.Step, bad.Offset = path, step, bad.Offset+base
	}
	if refused, ok := errors.AsType[*UnsupportedError](err); ok && refused.Path == "" {
		refused.Path = path
	}
	return err
}

// Texts of UnsupportedErrors.
const (
	columnMajor = "a dataset with column-major arrays, as Fortran writes them,"
	newerADIOS2 = "write the trace with ADIOS2 2.9 or newer, or as BP4"
)

// pendingError means that data does not exist yet and the caller may try again later. For a caller
// that does not wait it is the end of the stream or, if it names a file, a CorruptError.
type pendingError struct {
	file   string // the file that is too short; empty if only the next step is missing
	step   int
	have   int64
	reason string
}

func (e *pendingError) Error() string { return e.corrupt().Error() }

func (e *pendingError) corrupt() *CorruptError {
	return &CorruptError{File: e.file, Step: e.step, Offset: e.have, Reason: e.reason}
}

var errNoStep = &pendingError{reason: "no further step"}

// ArrivingError means, with NoWait, that bytes to which the index refers do not exist
// yet. It is an ErrIdle. A caller that has waited long enough ends the dataset with
// the CorruptError in it.
type ArrivingError struct{ *CorruptError }

// Is reports whether target is ErrIdle.
func (e *ArrivingError) Is(target error) bool { return target == ErrIdle }

// Package chrome reads Chrome trace JSON, which the profiler of PyTorch (Kineto) and many other
// programs write: an object with a list traceEvents, or the bare list, plain or compressed by gzip.
// It streams: memory is bounded by the largest event, at most 16 MB. It returns everything readable
// of damaged files, and counts and locates the rest. It parses the format of events and does not
// interpret them.
package chrome

import (
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

// Limits of the data that a Reader keeps.
const (
	MaxEvent      = 16 << 20 // bytes of an event
	MaxProperty   = 1 << 20  // bytes of a property
	MaxProperties = 64       // properties of a document
	MaxGaps       = 16       // gaps with their places
)

// Event is an element of traceEvents. All texts are valid until the next call of Next;
// they are valid UTF-8.
type Event struct {
	Phase          byte   // first byte of ph: X, B, E, b, e, n, i, I, C, s, t, f, M, N, D, O, P, …
	Name, Category []byte // without escapes; empty if missing
	ID             []byte // id, or id2.local or id2.global, as text; empty if missing
	PID, TID       ID
	// Time and Duration are ts and dur in nanoseconds, rounded half away from zero. The
	// file has microseconds with any number of decimals.
	Time, Duration       int64
	HasTime, HasDuration bool
	Args                 []Arg     // of wanted keys, in file order; a repeated key has its last value
	Counters             []Counter // numbers in args, in file order; only if Phase is C
	Offset               int64     // where the event begins, in uncompressed bytes
	NewDocument          bool      // this is the first event of its document
}

// Arg is a value in args.
type Arg struct {
	Key    int    // index in wanted
	Value  []byte // text of a number, true, false or null; string without escapes; JSON of a list or object
	String bool   // the value is a string
}

// Counter is a series of a counter event.
type Counter struct {
	Name, Value []byte // Value is the text of a number
}

// ID is a process or thread: a number, or a text such as "Spans". The zero ID is missing.
type ID struct {
	Text     []byte // as in the file, without escapes
	Number   int64  // if IsNumber
	IsNumber bool   // the value is an integer, not a string
}

// Gap is a part of the input that was skipped or repaired.
type Gap struct {
	Kind           tally.Kind
	Offset, Length int64 // in uncompressed bytes
}

// Error is the end of an input that was cut or cannot be read.
type Error struct {
	Offset     int64 // uncompressed bytes before the end
	Compressed int64 // compressed bytes before it; -1 if the input is not compressed
	Err        error
}

func (e *Error) Error() string {
	if e.Compressed >= 0 {
		return fmt.Sprintf("byte %d (byte %d of the gzip file): %v", e.Offset, e.Compressed, e.Err)
	}
	return fmt.Sprintf("byte %d: %v", e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

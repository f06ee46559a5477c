package duckstore

import "github.com/chimbuko/chimbuko/internal/base/trace"

// Keys of what a batch replaces.
type (
	eventKey struct {
		program trace.Program
		id      string
	}
	counterKey struct {
		program trace.Program
		name    string
	}
	stepKey struct {
		program trace.Program
		rank    trace.Rank
		step    int
	}
)

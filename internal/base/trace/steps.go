package trace

import "context"

// Steps reads a trace. All formats are read through it:
//
//   - Steps are in the order of time, and their numbers increase. Each has the events of a span of time, and one
//     Batch for each thread with events, ordered by rank and thread.
//   - The events of a thread are in the order of time. Calls are nested: the function of an Exit is that
//     of the last Enter that has none yet.
//   - Numbers in a step have their names after Next returned it, if the trace has them at all.
//   - Everything readable is returned before an error. What is lost is counted in the tally that the
//     reader was created with.
//   - Next uses an amount of memory that does not depend on the length of the trace, and does not allocate memory for each event.
type Steps interface {
	// Next returns the next step, valid until the next call, or io.EOF.
	Next(ctx context.Context) (*Step, error)
	// Names returns the names of the numbers in steps. Steps may add names.
	Names() *Names
	// Release closes files and frees the memory of the last step. Next opens them again.
	Release()
}

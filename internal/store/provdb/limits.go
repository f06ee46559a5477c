package provdb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors of statements with limits.
var (
	// ErrBusy means that too many statements with limits are running.
	ErrBusy = errors.New("too many SQL queries are running")
	// ErrLimit means that a statement exceeded a limit.
	ErrLimit = errors.New("query stopped")
)

// Limits bound a statement that a user wrote, besides the deadline of its context. It runs
// apart from other queries, so that it neither slows nor breaks them.
type Limits struct {
	Memory int64 // bytes; 0: the default of the store
}

type limitsKey struct{}

// WithLimits returns a context whose statements have limits. Stores and their clients
// observe them, also across processes.
func WithLimits(ctx context.Context, l Limits) context.Context {
	return context.WithValue(ctx, limitsKey{}, l)
}

// LimitsOf returns the limits of the statements of ctx.
func LimitsOf(ctx context.Context) (Limits, bool) {
	l, ok := ctx.Value(limitsKey{}).(Limits)
	return l, ok
}

// maxLimited is the number of statements with limits that a store runs at once.
const maxLimited = 2

// maxWait is how long such a statement waits for others.
const maxWait = 5 * time.Second

// Slots bound the number of statements with limits that run at once.
type Slots chan struct{}

// NewSlots returns the slots of a store.
func NewSlots() Slots { return make(Slots, maxLimited) }

// Take takes a slot, or returns ErrBusy. The caller must call release once.
func (s Slots) Take(ctx context.Context) (release func(), err error) {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-timer.C:
		return nil, fmt.Errorf("%w: %d at a time", ErrBusy, cap(s))
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

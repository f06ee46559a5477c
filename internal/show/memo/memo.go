// Package memo caches values that take long to compute. Concurrent callers share one computation,
// and can get a stale value while a new one is computed.
package memo

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Memo caches values by key. It spends at most a tenth of the time on computing each. It is safe
// for concurrent use.
type Memo[T any] struct {
	Size       int  // number of values
	ServeStale bool // return stale values instead of waiting for slow computations

	mu      sync.Mutex
	entries *simplelru.LRU[string, *entry[T]]
}

type entry[T any] struct {
	value  T
	err    error
	at     time.Time     // when it was computed
	took   time.Duration // to compute it
	final  bool          // it never changes
	valid  bool          // there is a value
	flight chan struct{} // closed at the end of the running computation; nil: none is running
}

// Compute computes a value. final reports that it never changes.
type Compute[T any] func(ctx context.Context) (value T, final bool, err error)

// A value is fresh for lifeFactor times as long as it took to compute it, at least for minLife. After maxAge lives it is
// served only if stale values may be served and the last computation did not fail. If stale values may be served, callers
// do not wait for a computation that last took slow or longer, and wait at most for patience otherwise.
const (
	lifeFactor = 10
	minLife    = 2 * time.Second
	maxAge     = 3
	slow       = 250 * time.Millisecond
	patience   = time.Second
)

// Get returns the value of a key. It computes the value unless a fresh one is cached. During a
// computation other callers get the previous value if it is not too old. With ServeStale, all callers get it at any
// age, so that nobody waits for a slow computation after a time without callers. The computation continues when ctx of
// the first caller ends, since others may wait for it; it must end by itself. Errors are not cached.
func (m *Memo[T]) Get(ctx context.Context, key string, compute Compute[T]) (T, error) {
	m.mu.Lock()
	e := m.entry(key)
	life, age := max(minLife, lifeFactor*e.took), time.Since(e.at)
	due := !e.valid || !e.final && age >= life
	first := e.flight == nil && (!m.ServeStale || e.took < slow)
	stale := e.valid && (age < maxAge*life || m.ServeStale && e.err == nil) // it may be served
	if due && e.flight == nil {
		e.flight = m.launch(context.WithoutCancel(ctx), e, compute)
	}
	if !due || stale && !first {
		defer m.mu.Unlock()
		return e.value, nil
	}
	flight := e.flight
	m.mu.Unlock()
	enough := make(<-chan time.Time)
	if stale && m.ServeStale {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		enough = timer.C
	}
	var none T
	select {
	case <-flight:
		stale = false
	case <-enough:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.err != nil && !stale {
		return none, e.err
	}
	return e.value, nil
}

// TryGet is Get for an optional value: after a short wait it returns the previous value, or the
// zero value.
func (m *Memo[T]) TryGet(ctx context.Context, key string, compute Compute[T]) (value T, err error) {
	short, cancel := context.WithTimeout(ctx, slow)
	defer cancel()
	value, err = m.Get(short, key, compute)
	if short.Err() == nil || ctx.Err() != nil {
		return value, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entry(key); e.valid {
		return e.value, nil
	}
	return value, nil
}

// Peek returns the value of a key if it is final, else the zero value.
func (m *Memo[T]) Peek(key string) (value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries != nil {
		if e, ok := m.entries.Get(key); ok && e.valid && e.final {
			return e.value
		}
	}
	return value
}

func (m *Memo[T]) launch(ctx context.Context, e *entry[T], compute Compute[T]) chan struct{} {
	flight := make(chan struct{})
	go func() {
		begin := time.Now()
		value, final, err := compute(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		e.err, e.flight = err, nil
		if err == nil {
			e.value, e.final, e.valid, e.at, e.took = value, final, true, time.Now(), time.Since(begin)
		}
		close(flight)
	}()
	return flight
}

// entry returns the entry of a key. A new one replaces the least recently used one, whose running
// computation still serves its callers.
func (m *Memo[T]) entry(key string) *entry[T] {
	if m.entries == nil {
		m.entries, _ = simplelru.NewLRU[string, *entry[T]](max(1, m.Size), nil) // fails only without room
	}
	e, ok := m.entries.Get(key)
	if !ok {
		e = new(entry[T])
		m.entries.Add(key, e)
	}
	return e
}

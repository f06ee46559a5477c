// Package memo caches answers that take long, so that each is found once for all who ask, and
// serves stale ones while new ones are being found.
package memo

import (
	"context"
	"sync"
	"time"
)

// Memo keeps answers that many clients ask for, so that each is found out once for all
// of them, and at most one part in ten of the time is spent on it.
type Memo[T any] struct {
	Most int  // answers that are kept
	Old  bool // serve stale answers while refreshing

	mu      sync.Mutex
	Entries map[string]*entry[T]
}

// entry is an answer, or one that is being found out.
type entry[T any] struct {
	value   T
	err     error
	at      time.Time     // when it was found out
	took    time.Duration // to find it out
	lasting bool          // it does not change any more
	valid   bool          // there is an answer
	flight  chan struct{} // closed when the one that is being found out is there; nil: none is
	used    time.Time
}

// An answer that may change is kept for so many times as long as it takes to find it
// out, but at least for a short time. It is much too old when it is so many times as old.
// What takes long is not waited for where old answers will do.
const (
	memoShare = 10
	memoLeast = 2 * time.Second
	memoOld   = 3
	memoLong  = 250 * time.Millisecond
)

// Get returns the answer of a key. It is found out by find, unless it was a short time
// ago; lasting says that it holds for ever. While a new answer is being found out, others
// get the old one, if it is not much too old. find goes on when the context of who
// asked first ends, since others may wait for it; it must end by itself. Errors are
// not kept.
func (m *Memo[T]) Get(ctx context.Context, key string, find func(ctx context.Context) (value T, lasting bool, err error)) (T, error) {
	m.mu.Lock()
	now := time.Now()
	e := m.entry(key, now)
	life, age := max(memoLeast, memoShare*e.took), now.Sub(e.at)
	due := !e.valid || !e.lasting && age >= life
	first := e.flight == nil && (!m.Old || e.took < memoLong)
	wait := due && (!e.valid || age >= memoOld*life || first)
	if due && e.flight == nil {
		e.flight = m.launch(context.WithoutCancel(ctx), e, find)
	}
	if !wait {
		defer m.mu.Unlock()
		return e.value, nil
	}
	flight := e.flight
	m.mu.Unlock()
	var none T
	select {
	case <-flight:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.err != nil {
		return none, e.err
	}
	return e.value, nil
}

// Soon is get for an answer that one can do without: it is not waited for longer than
// memoLong. Then the one of before is returned, or none.
func (m *Memo[T]) Soon(ctx context.Context, key string, find func(ctx context.Context) (value T, lasting bool, err error)) (value T,
	err error,
) {
	short, cancel := context.WithTimeout(ctx, memoLong)
	defer cancel()
	value, err = m.Get(short, key, find)
	if short.Err() == nil || ctx.Err() != nil {
		return value, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.Entries[key]; e != nil && e.valid {
		return e.value, nil
	}
	return value, nil
}

// AtHand returns the answer of a key if there is one that does not change any more.
func (m *Memo[T]) AtHand(key string) (value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.Entries[key]; e != nil && e.valid && e.lasting {
		e.used = time.Now()
		return e.value
	}
	return value
}

// launch has an answer found out.
func (m *Memo[T]) launch(ctx context.Context, e *entry[T], find func(ctx context.Context) (T, bool, error)) chan struct{} {
	flight := make(chan struct{})
	go func() {
		begin := time.Now()
		value, lasting, err := find(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		e.err, e.flight = err, nil
		if err == nil {
			e.value, e.lasting, e.valid, e.at, e.took = value, lasting, true, time.Now(), time.Since(begin)
		}
		close(flight)
	}()
	return flight
}

// entry returns that of a key; if it is new, it may take the place of the one that was
// not used for longest.
func (m *Memo[T]) entry(key string, now time.Time) *entry[T] {
	e := m.Entries[key]
	if e == nil {
		if m.Entries == nil {
			m.Entries = make(map[string]*entry[T])
		}
		m.makeRoom()
		e = new(entry[T])
		m.Entries[key] = e
	}
	e.used = now
	return e
}

func (m *Memo[T]) makeRoom() {
	for len(m.Entries) >= max(1, m.Most) {
		oldest := ""
		for key, e := range m.Entries {
			if e.flight == nil && (oldest == "" || e.used.Before(m.Entries[oldest].used)) {
				oldest = key
			}
		}
		if oldest == "" {
			return // all are being found out: there are no more of them than questions at once
		}
		delete(m.Entries, oldest)
	}
}

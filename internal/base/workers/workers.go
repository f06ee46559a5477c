// Package workers divides work among goroutines.
package workers

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// InOrder calls f for each item, with up to limit calls at a time, and then sequentially for each item in order, as soon as f
// has returned for it and all before it. Workers do not wait for each other. It returns the first error of f, after which it
// may skip items. A single worker is the calling goroutine, whose stack need not grow again.
func InOrder[T any](ctx context.Context, limit int, items []T, f func(context.Context, T) error, then func(T)) error {
	if limit == 1 || len(items) == 1 {
		for _, item := range items {
			if err := f(ctx, item); err != nil {
				return err
			}
			then(item)
		}
		return nil
	}
	var mu sync.Mutex
	done, next, busy := make([]bool, len(items)), 0, false // busy while a worker calls then
	work := func(ctx context.Context, i int) error {
		if err := f(ctx, items[i]); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		done[i] = true
		if busy { // the busy worker will see it
			return nil
		}
		for busy = true; next < len(items) && done[next]; next++ {
			mu.Unlock()
			then(items[next])
			mu.Lock()
		}
		busy = false
		return nil
	}
	var started atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(limit, len(items)) {
		g.Go(func() error {
			for i := started.Add(1) - 1; i < int64(len(items)); i = started.Add(1) - 1 {
				if err := work(ctx, int(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

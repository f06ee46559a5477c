// Package workers divides work among goroutines.
package workers

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
)

// InOrder calls f for each item, with up to limit calls at a time, and then sequentially for each item in order, as soon as f
// has returned for it and all before it. Workers do not wait for each other. It returns the first error of f.
func InOrder[T any](ctx context.Context, limit int, items []T, f func(context.Context, T) error, then func(T)) error {
	var mu sync.Mutex
	done, next, busy := make([]bool, len(items)), 0, false // busy while a worker calls then
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(limit)
	for i, item := range items {
		g.Go(func() error {
			if err := f(ctx, item); err != nil {
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
		})
	}
	return g.Wait()
}

// Package wait pauses between attempts.
package wait

import (
	"context"
	"time"
)

// Sleep waits for d. It returns the error of ctx if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Bounds of the pauses of a Backoff.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Backoff pauses between failed attempts, longer each time. Its zero value is ready
// for use.
type Backoff struct{ pause time.Duration }

// Wait pauses. It returns the error of ctx if that ends first.
func (b *Backoff) Wait(ctx context.Context) error {
	b.pause = min(max(2*b.pause, firstPause), lastPause)
	return Sleep(ctx, b.pause)
}

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Overviews are made once for all streams, shown when they differ, and not made for
// nobody; synctest fails if the making goes on.
func TestOverviewsAreMadeOnceAndShownWhenTheyDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		var text atomic.Value // empty: it fails
		text.Store("first")
		b := &board{every: 2 * time.Second, make: func(context.Context) (json.RawMessage, error) {
			made.Add(1)
			if text.Load() == "" {
				return nil, errors.New("the store is away")
			}
			return []byte(text.Load().(string)), nil
		}}
		b.wake() // nobody looks
		one, leaveOne := b.join(t.Context())
		if got := string(<-one); got != "first" {
			t.Errorf("got %q", got)
		}
		two, leaveTwo := b.join(t.Context())
		if got := string(<-two); got != "first" || made.Load() != 1 {
			t.Errorf("who comes later gets %q at once; %d were made", got, made.Load())
		}
		time.Sleep(21 * time.Second) //nolint:forbidigo // the clock is that of synctest
		if len(one)+len(two) != 0 || made.Load() != 11 {
			t.Errorf("%d made, and what is the same is shown again", made.Load())
		}
		text.Store("second")
		if a, b := string(<-one), string(<-two); a != "second" || b != "second" {
			t.Errorf("got %q and %q", a, b)
		}
		text.Store("")
		b.wake()
		synctest.Wait()
		if len(one) != 0 {
			t.Error("what failed is shown")
		}
		text.Store("third")
		b.wake()
		synctest.Wait()
		if len(one) != 1 || len(two) != 1 || string(<-one) != "third" {
			t.Error("who is woken does not look at once")
		}
		leaveOne()
		leaveTwo()
		before := made.Load()
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
		if made.Load() != before {
			t.Errorf("%d were made for nobody", made.Load()-before)
		}
	})
}

// slowly counts, and takes its time for it.

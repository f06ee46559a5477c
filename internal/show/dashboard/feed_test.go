package dashboard

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

type counting struct{ n int }

func (c *counting) Status(context.Context) (*api.Status, error) { c.n++; return new(api.Status), nil }
func (c *counting) Reader() provdb.Reader                       { return nil }

// synctest fails if a goroutine remains.
func TestTicksEndWithLastStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(counting)
		s := &server{Config: Config{Config: insight.Config{Source: source}}}
		h := &feed[tick]{make: s.tick, every: time.Second, most: 10}
		for round := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			ticks, leave, ok1 := h.join(ctx)
			other, leaveToo, ok2 := h.join(t.Context())
			if !ok1 || !ok2 {
				t.Fatal("the feed is full")
			}
			begin := time.Now()
			for range 3 {
				<-ticks
			}
			if took := time.Since(begin); took != 2*time.Second {
				t.Errorf("three ticks took %v", took)
			}
			cancel()
			leave()
			time.Sleep(10*time.Second + time.Millisecond) //nolint:forbidigo // the clock is that of synctest
			if got := (<-other).seq; got != int64(13*(round+1)) {
				t.Errorf("a slow reader gets tick %d, not the newest", got)
			}
			leaveToo()
			queries := source.n
			time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
			if source.n != queries {
				t.Errorf("%d queries of the source without streams", source.n-queries)
			}
		}
	})
}

func TestFeedLimitsSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed[int]{make: func(context.Context, *int) (int, bool) { return 1, true }, every: time.Second, most: 1}
		_, leave, ok := f.join(t.Context())
		if !ok {
			t.Fatal("the first subscriber is rejected")
		}
		if _, _, ok := f.join(t.Context()); ok {
			t.Error("the second subscriber is admitted")
		}
		leave()
		if _, leave, ok := f.join(t.Context()); !ok {
			t.Error("a place is not freed")
		} else {
			leave()
		}
	})
}

func TestUnchangedValuesAreNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		var text atomic.Value // empty: making it fails
		text.Store("first")
		f := &feed[string]{every: 2 * time.Second, most: 10, make: func(_ context.Context, last *string) (string, bool) {
			made.Add(1)
			value := text.Load().(string)
			return value, value != "" && (last == nil || value != *last)
		}}
		f.wake() // without subscribers
		one, leaveOne, _ := f.join(t.Context())
		if got := <-one; got != "first" {
			t.Errorf("got %q", got)
		}
		two, leaveTwo, _ := f.join(t.Context())
		if got := <-two; got != "first" || made.Load() != 1 {
			t.Errorf("a later subscriber gets %q at once; %d values made", got, made.Load())
		}
		time.Sleep(21 * time.Second) //nolint:forbidigo // the clock is that of synctest
		if len(one)+len(two) != 0 || made.Load() != 11 {
			t.Errorf("an equal value is published again; %d values made", made.Load())
		}
		text.Store("second")
		if a, b := <-one, <-two; a != "second" || b != "second" {
			t.Errorf("got %q and %q", a, b)
		}
		text.Store("")
		f.wake()
		synctest.Wait()
		if len(one) != 0 {
			t.Error("a failed value is published")
		}
		text.Store("third")
		f.wake()
		synctest.Wait()
		if len(one) != 1 || len(two) != 1 || <-one != "third" {
			t.Error("wake does not publish at once")
		}
		leaveOne()
		leaveTwo()
		before := made.Load()
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
		if made.Load() != before {
			t.Errorf("%d values made without subscribers", made.Load()-before)
		}
	})
}

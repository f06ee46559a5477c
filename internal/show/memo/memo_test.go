package memo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestConcurrentCallersShareOneComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var computed atomic.Int64
		final, takes := false, time.Second
		m := &Memo[int64]{Size: 2}
		get := func(key string, want int64) {
			t.Helper()
			if got, err := m.Get(t.Context(), key, slowCount(&computed, takes, final)); got != want || err != nil {
				t.Errorf("%s: got %d, %v, want %d", key, got, err, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = m.Get(ctx, "a", slowCount(&computed, takes, false)) }()
		synctest.Wait()
		cancel() // others may wait for the value
		for range 5 {
			go get("a", 1)
		}
		get("a", 1)
		time.Sleep(9 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get("a", 1)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		go get("a", 2)
		synctest.Wait()
		get("a", 1)                 // during the computation
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get("a", 2)
		final, takes = true, 0
		get("b", 3)
		time.Sleep(time.Hour) //nolint:forbidigo // the clock is that of synctest
		get("b", 3)
		for i := range 10 {
			get(fmt.Sprint(i), int64(4+i))
		}
		if n := m.entries.Len(); n > 2 {
			t.Errorf("%d values are cached", n)
		}
	})
}

func TestStaleValuesAreServedWhileRefreshing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var computed atomic.Int64
		m := &Memo[int64]{Size: 2, ServeStale: true}
		get := func(want int64, takes time.Duration) {
			t.Helper()
			begin := time.Now()
			if got, err := m.Get(t.Context(), "a", slowCount(&computed, time.Second, false)); got != want || err != nil || time.Since(begin) != takes {
				t.Errorf("got %d, %v after %v, want %d after %v", got, err, time.Since(begin), want, takes)
			}
		}
		get(1, time.Second)
		time.Sleep(11 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get(1, 0)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get(2, 0)
		time.Sleep(time.Hour) //nolint:forbidigo // the clock is that of synctest
		get(2, 0)
		time.Sleep(time.Second) //nolint:forbidigo // the clock is that of synctest
		synctest.Wait()
		get(3, 0)
		time.Sleep(time.Hour) //nolint:forbidigo // the clock is that of synctest
		wrong := errors.New("no")
		for _, want := range []error{nil, wrong} { // the second waits, since the first computation failed
			_, err := m.Get(t.Context(), "a", func(context.Context) (int64, bool, error) { return 0, false, wrong })
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			synctest.Wait()
		}
	})
}

func TestComputationsThatBecameSlowAreNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var computed atomic.Int64
		m := &Memo[int64]{Size: 2, ServeStale: true}
		for _, x := range []struct {
			want          int64
			takes, waited time.Duration
		}{{1, 0, 0}, {1, time.Minute, patience}} {
			time.Sleep(time.Hour) //nolint:forbidigo // the clock is that of synctest
			begin := time.Now()
			got, err := m.Get(t.Context(), "a", slowCount(&computed, x.takes, false))
			if got != x.want || err != nil || time.Since(begin) != x.waited {
				t.Errorf("got %d, %v after %v, want %d after %v", got, err, time.Since(begin), x.want, x.waited)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
	})
}

func slowCount(n *atomic.Int64, takes time.Duration, final bool) func(context.Context) (int64, bool, error) {
	return func(context.Context) (int64, bool, error) {
		time.Sleep(takes) //nolint:forbidigo // the clock is that of synctest
		return n.Add(1), final, nil
	}
}

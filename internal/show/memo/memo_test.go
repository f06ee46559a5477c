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

func TestAMemoFindsOutOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found atomic.Int64
		lasting, takes := false, time.Second
		m := &Memo[int64]{Most: 2}
		get := func(key string, want int64) {
			t.Helper()
			if got, err := m.Get(t.Context(), key, slowly(&found, takes, lasting)); got != want || err != nil {
				t.Errorf("%s: got %d, %v, want %d", key, got, err, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = m.Get(ctx, "a", slowly(&found, takes, false)) }()
		synctest.Wait()
		cancel() // others may wait for it
		for range 5 {
			go get("a", 1)
		}
		get("a", 1)
		time.Sleep(9 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get("a", 1)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		go get("a", 2)
		synctest.Wait()
		get("a", 1)                 // while it is found out
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get("a", 2)
		lasting, takes = true, 0
		get("b", 3)
		time.Sleep(time.Hour) //nolint:forbidigo // the clock is that of synctest
		get("b", 3)
		for i := range 10 {
			get(fmt.Sprint(i), int64(4+i))
		}
		if len(m.Entries) > 2 {
			t.Errorf("%d are kept", len(m.Entries))
		}
	})
}

func TestAMemoThatMayBeOldLetsNobodyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found atomic.Int64
		m := &Memo[int64]{Most: 2, Old: true}
		get := func(want int64, takes time.Duration) {
			t.Helper()
			begin := time.Now()
			if got, err := m.Get(t.Context(), "a", slowly(&found, time.Second, false)); got != want || err != nil || time.Since(begin) != takes {
				t.Errorf("got %d, %v after %v, want %d after %v", got, err, time.Since(begin), want, takes)
			}
		}
		get(1, time.Second)
		time.Sleep(11 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get(1, 0)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is that of synctest
		get(2, 0)
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
		get(3, time.Second)     // the one that is there is much too old
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
		wrong := errors.New("no")
		if _, err := m.Get(t.Context(), "a", func(context.Context) (int64, bool, error) { return 0, false, wrong }); !errors.Is(err, wrong) {
			t.Errorf("got %v", err)
		}
	})
}

func slowly(n *atomic.Int64, takes time.Duration, lasting bool) func(context.Context) (int64, bool, error) {
	return func(context.Context) (int64, bool, error) {
		time.Sleep(takes) //nolint:forbidigo // the clock is that of synctest
		return n.Add(1), lasting, nil
	}
}

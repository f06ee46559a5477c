package dashboard

import (
	"fmt"
	"testing"
	"time"
)

func TestLimiterRefillsOverTime(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLimiter("queries", Rate{PerMinute: 60, Burst: 2})
	for i, c := range []struct {
		after time.Duration
		who   string
		wait  time.Duration
	}{
		{0, "a", 0},
		{0, "a", 0},
		{0, "a", time.Second},
		{0, "b", 0}, // another client
		{500 * time.Millisecond, "a", 500 * time.Millisecond},
		{500 * time.Millisecond, "a", 0},
		{time.Hour, "a", 0}, // no more than at once
		{0, "a", 0},
		{0, "a", time.Second},
	} {
		now = now.Add(c.after)
		if got := l.take(c.who, now).Round(time.Microsecond); got != c.wait {
			t.Errorf("%d: %s waits %v, want %v", i, c.who, got, c.wait)
		}
	}
}

func TestLimiterRemembersBoundedNumberOfClients(t *testing.T) {
	l := newLimiter("queries", Rate{PerMinute: 60, Burst: 2})
	for i := range 3 * maxClients {
		if wait := l.take(fmt.Sprint(i), time.Now()); wait != 0 {
			t.Fatalf("client %d waits %v", i, wait)
		}
	}
	if n := l.clients.Len(); n > maxClients {
		t.Errorf("%d clients are remembered", n)
	}
}

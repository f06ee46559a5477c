package dashboard

import (
	"fmt"
	"testing"
	"time"
)

func TestALimiterGivesBackWhatARestEarns(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLimiter("questions", Rate{PerMinute: 60, AtOnce: 2})
	l.now = func() time.Time { return now }
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
		if got := l.take(c.who); got != c.wait {
			t.Errorf("%d: %s waits %v, want %v", i, c.who, got, c.wait)
		}
	}
}

func TestALimiterRemembersOnlySoManyClients(t *testing.T) {
	l := newLimiter("questions", Rate{PerMinute: 60, AtOnce: 2})
	for i := range 3 * maxClients {
		if wait := l.take(fmt.Sprint(i)); wait != 0 {
			t.Fatalf("client %d waits %v", i, wait)
		}
	}
	if len(l.clients) > maxClients {
		t.Errorf("%d clients are remembered", len(l.clients))
	}
}

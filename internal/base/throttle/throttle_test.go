package throttle

import (
	"fmt"
	"testing"
	"time"
)

var begin = time.Unix(1000, 0)

func TestFirstLineIsDueAtOnceThenOncePerInterval(t *testing.T) {
	l := New(10 * time.Second)
	f := func(after time.Duration, key string, wantDue bool, wantSuppressed int) {
		t.Helper()
		if due, suppressed := l.Allow(key, begin.Add(after)); due != wantDue || suppressed != wantSuppressed {
			t.Errorf("%s after %v: got %t, %d suppressed, want %t, %d", key, after, due, suppressed, wantDue, wantSuppressed)
		}
	}
	f(0, "a", true, 0)
	f(time.Second, "a", false, 0)
	f(time.Second, "b", true, 0)
	f(9*time.Second, "a", false, 0)
	f(10*time.Second, "a", true, 2)
	f(11*time.Second, "a", false, 0)
	f(30*time.Second, "a", true, 1)
}

func TestSuppressedLinesAreReportedWhenDue(t *testing.T) {
	l := New(10 * time.Second)
	for range 5 {
		l.Allow("a", begin)
	}
	f := func(got map[string]int, want string) {
		t.Helper()
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	f(l.Due(begin.Add(9*time.Second)), "map[]")
	f(l.Due(begin.Add(10*time.Second)), "map[a:4]")
	f(l.Due(begin.Add(20*time.Second)), "map[]")
	l.Allow("a", begin.Add(11*time.Second))
	f(l.Drain(begin.Add(12*time.Second)), "map[a:1]")
}

func TestManyKeysTakeBoundedMemory(t *testing.T) {
	l := New(10 * time.Second)
	dueLines := 0
	for i := range 100 * maxKeys {
		if due, _ := l.Allow(fmt.Sprint(i), begin); due {
			dueLines++
		}
	}
	if dueLines != maxKeys+1 || len(l.lines) != maxKeys+1 {
		t.Errorf("%d lines due and %d keys, want %d", dueLines, len(l.lines), maxKeys+1)
	}
	if suppressed := l.Drain(begin); suppressed[Others] != 99*maxKeys-1 {
		t.Errorf("%d suppressed", suppressed[Others])
	}
	if due, _ := l.Allow("new", begin.Add(time.Minute)); !due || len(l.lines) > 2 {
		t.Errorf("after a minute: due %t, %d keys", due, len(l.lines))
	}
}

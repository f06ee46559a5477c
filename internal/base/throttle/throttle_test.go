package throttle

import (
	"fmt"
	"testing"
	"time"
)

var begin = time.Unix(1000, 0)

func TestTheFirstLineIsSaidAtOnceAndThenHowManyThereWere(t *testing.T) {
	l := New(10 * time.Second)
	f := func(after time.Duration, key string, wantDue bool, wantLeft int) {
		t.Helper()
		if due, left := l.Say(key, begin.Add(after)); due != wantDue || left != wantLeft {
			t.Errorf("%s after %v: got %t, %d left out, want %t, %d", key, after, due, left, wantDue, wantLeft)
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

func TestWhatWasLeftOutIsToldWhenItsTimeHasCome(t *testing.T) {
	l := New(10 * time.Second)
	for range 5 {
		l.Say("a", begin)
	}
	f := func(got map[string]int, want string) {
		t.Helper()
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	f(l.Left(begin.Add(9*time.Second)), "map[]")
	f(l.Left(begin.Add(10*time.Second)), "map[a:4]")
	f(l.Left(begin.Add(20*time.Second)), "map[]")
	l.Say("a", begin.Add(11*time.Second))
	f(l.Rest(begin.Add(12*time.Second)), "map[a:1]")
}

func TestManyKeysNeedNoMoreMemory(t *testing.T) {
	l := New(10 * time.Second)
	said := 0
	for i := range 100 * most {
		if due, _ := l.Say(fmt.Sprint(i), begin); due {
			said++
		}
	}
	if said != most+1 || len(l.said) != most+1 {
		t.Errorf("%d were said and %d are known, want %d", said, len(l.said), most+1)
	}
	if left := l.Rest(begin); left[Others] != 99*most-1 {
		t.Errorf("%d were left out", left[Others])
	}
	if due, _ := l.Say("new", begin.Add(time.Minute)); !due || len(l.said) > 2 {
		t.Errorf("after a minute a new one is said: %t; %d are known", due, len(l.said))
	}
}

package wait

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestOutageLogsNewReasonsAndReminders(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var o Outage
	if _, was := o.End(start); was {
		t.Error("an outage ends that never began")
	}
	var logged []time.Duration
	for second := range 100 { // two servers of a cluster refuse alternately
		if lasted, log := o.Failed(fmt.Sprint("server ", second%2), start.Add(time.Duration(second)*time.Second)); log {
			logged = append(logged, lasted/time.Second)
		}
	}
	if want := []time.Duration{0, 1, 10, 20, 40, 80}; !slices.Equal(logged, want) {
		t.Errorf("logged after %d seconds, want %d", logged, want)
	}
	if lasted, was := o.End(start.Add(100 * time.Second)); !was || lasted != 100*time.Second {
		t.Errorf("the outage lasted %v, %t", lasted, was)
	}
	if lasted, log := o.Failed("server 0", start.Add(200*time.Second)); lasted != 0 || !log {
		t.Errorf("a second outage has lasted %v, logged: %t", lasted, log)
	}
}

func TestOutageLimitsReasons(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var o Outage
	lines := 0
	for i := range 1000 {
		if _, log := o.Failed(fmt.Sprint("port ", i), start); log {
			lines++
		}
	}
	if lines != mostReasons {
		t.Errorf("%d lines, want %d", lines, mostReasons)
	}
}

func TestOutageWithoutReasonIsLoggedWhenLong(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var o Outage
	if _, log := o.Failed("", start); log {
		t.Error("logged at once")
	}
	if lasted, log := o.Failed("", start.Add(time.Minute)); !log || lasted != time.Minute {
		t.Errorf("after a minute: %v, logged: %t", lasted, log)
	}
	if _, log := o.Failed("", start.Add(time.Minute+time.Second)); log {
		t.Error("logged again after a second")
	}
}

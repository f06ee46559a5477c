package trace_test

import (
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

func TestUnits(t *testing.T) {
	var zero trace.Unit
	for _, u := range []trace.Unit{zero, trace.Microsecond} {
		if u.Micros(1234) != 1234 || u.Seconds(2_500_000) != 2.5 || u.Ticks(3*time.Millisecond+999) != 3000 ||
			u.FromMicros(1.6) != 2 || u.FromSeconds(-1.5) != -1_500_000 || u.PerSecond() != 1e6 {
			t.Errorf("unit of %d ns does not measure microseconds", u.Nanos())
		}
	}
	ns := trace.Nanosecond
	if ns.Micros(1234) != 1.234 || ns.Seconds(2_500_000) != 0.0025 || ns.Ticks(time.Microsecond) != 1000 ||
		ns.FromMicros(1.2344) != 1234 || ns.FromSeconds(1) != 1e9 {
		t.Error("wrong conversions of nanoseconds")
	}
	const late = 7_775_999_999_999_999 // ns, almost 90 days
	if got := ns.FromMicros(ns.Micros(late)); got != late {
		t.Errorf("%d ns became %d on the way to microseconds and back", int64(late), got)
	}
}

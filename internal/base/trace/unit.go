package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unit is the length of a tick in nanoseconds. It is a property of the traces of a run: TAU
// measures microseconds, profilers of GPUs nanoseconds. The zero Unit is a microsecond.
type Unit int64

// The usual units.
const (
	Nanosecond  Unit = 1
	Microsecond Unit = 1000
)

// Canonical returns u, or 0 for a microsecond, which is not stored.
func (u Unit) Canonical() Unit {
	if u == Microsecond {
		return 0
	}
	return u
}

// Nanos returns the length of a tick in nanoseconds.
func (u Unit) Nanos() int64 {
	if u == 0 {
		u = Microsecond
	}
	return int64(u)
}

// Micros returns a duration in microseconds.
func (u Unit) Micros(t Ticks) float64 { return u.MicrosOf(float64(t)) }

// MicrosOf returns a duration of any number of ticks in microseconds.
func (u Unit) MicrosOf(ticks float64) float64 {
	switch u.Nanos() {
	case int64(Microsecond):
		return ticks
	case int64(Nanosecond):
		return ticks / 1e3 // exact to the last digit, which a product with 0.001 is not
	}
	return ticks * float64(u.Nanos()) / 1e3
}

// Between returns the time from one tick to another in microseconds. It is exact although times
// since an epoch have more digits than a float64, and never overflows.
func (u Unit) Between(from, to Ticks) float64 {
	if d := to - from; (d < 0) == (to < from) {
		return u.Micros(d)
	}
	return u.MicrosOf(float64(to) - float64(from))
}

// MicrosText returns all digits of a time in microseconds, without zeros at the end of a fraction.
func (u Unit) MicrosText(t Ticks) string {
	n := u.Nanos()
	if n%1000 == 0 {
		return strconv.FormatInt(int64(t)*(n/1000), 10)
	}
	sign, nanos := "", uint64(t)
	if t < 0 {
		sign, nanos = "-", -uint64(t)
	}
	nanos *= uint64(n)
	text := strconv.FormatUint(nanos/1000, 10)
	if rest := nanos % 1000; rest != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
	}
	return sign + text
}

// Time returns the time t after the Unix epoch.
func (u Unit) Time(t Ticks) time.Time {
	perSecond := int64(u.PerSecond())
	return time.Unix(int64(t)/perSecond, int64(t)%perSecond*u.Nanos())
}

// Duration returns a number of ticks as a duration.
func (u Unit) Duration(t Ticks) time.Duration { return time.Duration(int64(t) * u.Nanos()) }

// At returns the ticks from the Unix epoch to a time.
func (u Unit) At(t time.Time) Ticks {
	return Ticks(t.Unix()*int64(u.PerSecond()) + int64(t.Nanosecond())/u.Nanos())
}

// Seconds returns a duration in seconds.
func (u Unit) Seconds(t Ticks) float64 { return u.MicrosOf(float64(t)) / 1e6 }

// PerSecond returns the number of ticks in a second.
func (u Unit) PerSecond() float64 { return 1e9 / float64(u.Nanos()) }

// FromMicros returns the nearest number of ticks to a duration in microseconds.
func (u Unit) FromMicros(us float64) Ticks { return Ticks(math.Round(us * 1e3 / float64(u.Nanos()))) }

// FromSeconds returns the nearest number of ticks to a duration in seconds.
func (u Unit) FromSeconds(s float64) Ticks { return Ticks(math.Round(s * u.PerSecond())) }

// Ticks returns the number of whole ticks in a duration.
func (u Unit) Ticks(d time.Duration) Ticks { return Ticks(int64(d) / u.Nanos()) }

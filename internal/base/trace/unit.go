package trace

import (
	"math"
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

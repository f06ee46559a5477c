//go:build !race

package tracetest

// race says whether this program has the race detector.
const race = false

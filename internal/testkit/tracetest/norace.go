//go:build !race

package tracetest

// Race reports whether this program has the race detector.
const Race = false

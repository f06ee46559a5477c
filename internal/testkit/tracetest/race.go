//go:build race

package tracetest

// Race says whether this program has the race detector.
const Race = true

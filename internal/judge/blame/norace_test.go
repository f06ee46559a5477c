//go:build !race

package blame_test

// measured are the scenarios that are run.
var measured = propagating

//go:build race

package blame_test

// measured are the scenarios that are run; the race detector makes them slow, and
// there is nothing here that could race.
var measured = []string{"burst", "slow-link", "workflow"}

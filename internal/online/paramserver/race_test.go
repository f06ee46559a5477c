//go:build race

package paramserver

// schedules is how many random runs are played; the race detector makes them slow.
const schedules uint64 = 150

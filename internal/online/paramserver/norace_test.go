//go:build !race

package paramserver

// schedules is how many random runs are played.
const schedules uint64 = 500

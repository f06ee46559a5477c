//go:build !linux

package supervise

// adoptOrphans does nothing: orphans are found on Linux only.
func adoptOrphans() {}

// orphans returns none.
func orphans(func(pid int) bool) []int { return nil }

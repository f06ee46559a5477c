//go:build !linux

package supervise

// adoptOrphans does nothing here.
func adoptOrphans() {}

// orphans are not known here.
func orphans(func(pid int) bool) []int { return nil }

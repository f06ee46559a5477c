//go:build !linux

package cli

// adoptOrphans does nothing here.
func adoptOrphans() {}

// orphans are not known here.
func orphans(func(pid int) bool) []int { return nil }

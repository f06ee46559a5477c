//go:build !linux || !(amd64 || arm64)

package faultdisk

import "testing"

// Run skips the test.
func (d *Disk) Run(tb testing.TB, _ Fault, _ []string, _ ...string) (output string, code int) {
	tb.Helper()
	tb.Skip("SKIP: injecting faults into system calls needs Linux on amd64 or arm64")
	return "", 0
}

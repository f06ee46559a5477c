//go:build unix

// Package cputime measures processor time.
package cputime

import (
	"syscall"
	"time"
)

// OfProcess returns the processor time that this process has used, 0 if unknown.
func OfProcess() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

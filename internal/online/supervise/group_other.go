//go:build !unix

package supervise

import "syscall"

// ownGroup is nothing special here.
func ownGroup() *syscall.SysProcAttr { return nil }

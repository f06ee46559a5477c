//go:build !unix

package children

import "syscall"

// ownGroup is nothing special here.
func ownGroup() *syscall.SysProcAttr { return nil }

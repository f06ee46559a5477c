//go:build !unix

package cli

import "syscall"

// outlivesNobody is nothing special here.
func outlivesNobody() *syscall.SysProcAttr { return nil }

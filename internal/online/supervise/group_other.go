//go:build !unix

package supervise

import "syscall"

// ownGroup returns nil: process groups exist on Unix only.
func ownGroup() *syscall.SysProcAttr { return nil }

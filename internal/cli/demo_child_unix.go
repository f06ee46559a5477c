//go:build unix && !linux && !freebsd

package cli

import "syscall"

// outlivesNobody lets signals of the terminal go to the process that starts this one
// alone. That it ends with it, too, cannot be had here.
func outlivesNobody() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

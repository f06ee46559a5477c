//go:build linux || freebsd

package cli

import "syscall"

// outlivesNobody has a process end with the one that starts it, however that ends,
// and lets signals of the terminal go to the latter alone. On Linux it ends with
// the thread that starts it.
func outlivesNobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

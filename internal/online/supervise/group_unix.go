//go:build unix

package supervise

import "syscall"

// ownGroup lets signals of the terminal go to the process that starts this one alone.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

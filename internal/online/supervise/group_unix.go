//go:build unix

package supervise

import "syscall"

// ownGroup keeps the signals of the terminal from a process.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

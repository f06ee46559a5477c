//go:build unix

package alert

import (
	"os/exec"
	"syscall"
)

// endWithGroup makes the end of a command's context end all processes that it started.
func endWithGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

//go:build unix

package supervise

import (
	"os"

	"golang.org/x/sys/unix"
)

// inForeground reports whether the terminal sends its signals to the group of this process.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close() //nolint:errcheck // nothing was written
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

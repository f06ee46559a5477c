package cli_test

import (
	"errors"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startOnTwoProcessors starts a process, which inherits the processors of the thread that starts it.
func startOnTwoProcessors(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, two unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for cpu := 0; two.Count() < min(2, all.Count()); cpu++ {
		if all.IsSet(cpu) {
			two.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &two); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &all))
}

//go:build !linux

package cli_test

import "os/exec"

// startOnTwoProcessors starts a process on all processors.
func startOnTwoProcessors(cmd *exec.Cmd) error { return cmd.Start() }

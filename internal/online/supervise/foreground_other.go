//go:build !unix

package supervise

// inForeground reports whether the terminal sends its signals to all processes.
func inForeground() bool { return true }

package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of its descendants when their parents end.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } // if it fails, orphans stay unseen

// orphans returns the living children of this process for which known returns false, and reaps dead
// ones.
func orphans(known func(pid int) bool) (left []int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(text, []byte(") ")) // after the name
		fields := bytes.Fields(rest)                // state, parent
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(fields) < 2 || string(fields[1]) != strconv.Itoa(os.Getpid()) || known(pid) {
			continue
		}
		if string(fields[0]) == "Z" {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // it has no other parent
			continue
		}
		left = append(left, pid)
	}
	return left
}

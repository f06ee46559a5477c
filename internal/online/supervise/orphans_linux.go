package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// adoptOrphans has processes that descend from this one become its children when their
// parents end.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } // else they are not seen

// orphans are the children of this process that live, but for those that others wait
// for.
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
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // nobody else asks for it
			continue
		}
		left = append(left, pid)
	}
	return left
}

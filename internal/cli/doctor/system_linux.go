package doctor

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// system has limits of this machine; 0 if unknown.
type system struct {
	memory int64 // memory of the machine or the control group
	files  uint64
	free   int64 // free bytes in a directory
}

func readSystem(dir string) (s system) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		s.memory = int64(info.Totalram) * int64(info.Unit)
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 {
			s.memory = min(s.memory, limit)
		}
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		s.files = limit.Max // the Go runtime raises the soft limit to this
	}
	var disk unix.Statfs_t
	if unix.Statfs(dir, &disk) == nil {
		s.free = int64(disk.Bavail) * disk.Bsize
	}
	return s
}

// clockState reports whether the clock is synchronized. known is false if the system does not report it.
func clockState() (synchronized, known bool) {
	var state unix.Timex
	_, err := unix.Adjtimex(&state)
	return state.Status&unix.STA_UNSYNC == 0, err == nil
}

// lockFile locks a file as DuckDB does.
func lockFile(f *os.File) error {
	return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
}

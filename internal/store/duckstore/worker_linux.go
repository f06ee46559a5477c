package duckstore

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// workerNice is added to the niceness of workers, because the page and the analysis have priority.
const workerNice = 10

// lowerPriority lowers the priority of this process.
func lowerPriority() {
	threads, _ := os.ReadDir("/proc/self/task") // if this fails, workers have the same priority
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, workerNice) // fails only if the process is nicer already
		}
	}
}

// limitMemory limits the memory that this process may use in addition to its current memory.
func limitMemory(bytes int64) error {
	inUse, err := procField("/proc/self/status", "VmData:")
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: uint64(inUse + bytes), Max: uint64(inUse + bytes)}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limit the memory of the query: %w", err)
	}
	return nil
}

// procField returns a size in a file of /proc in bytes.
func procField(path, name string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 1 && f[0] == name {
			kilobytes, err := strconv.ParseInt(f[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}

// machineMemory returns the memory that this process can use: that of the machine, or the limit of its control group if that
// is less.
func machineMemory() int64 {
	memory, err := procField("/proc/meminfo", "MemTotal:")
	if err != nil {
		memory = math.MaxInt64
	}
	groups, _ := os.ReadFile("/proc/self/cgroup") // if this fails, there is no limit
	for line := range strings.Lines(string(groups)) {
		_, group, _ := strings.Cut(strings.TrimSpace(line), "::") // version 2
		for ; strings.HasPrefix(group, "/"); group = filepath.Dir(group) {
			text, _ := os.ReadFile(filepath.Join("/sys/fs/cgroup", group, "memory.max"))
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				memory = min(memory, limit)
			}
			if group == "/" {
				break
			}
		}
	}
	return memory
}

// freeSpace returns the free space of a file system in bytes.
func freeSpace(dir string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return math.MaxInt64 // writing fails if the disk is full
	}
	return int64(s.Bavail) * s.Bsize //nolint:gosec,unconvert // far below the limit
}

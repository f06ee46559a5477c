package doctor

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

// tryWrite writes a file into a directory and removes it.
func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".chimbuko-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Limits below which services have trouble.
const (
	leastFiles  = 1024
	leastMemory = 1 << 30
	leastDisk   = 1 << 30
)

// checkMachine checks the limits of the process.
func (e *examination) checkMachine() {
	s := readSystem(e.Dir)
	switch {
	case s.memory == 0:
		e.add("machine", Note, "", "%d processors, memory unknown", runtime.NumCPU())
	case s.memory < leastMemory:
		e.add("machine", Warning, "services and analyzers of large runs need 1 GB; request more memory",
			"%d processors, %s of memory", runtime.NumCPU(), text.Bytes(s.memory))
	default:
		e.add("machine", Good, "", "%d processors, %s of memory", runtime.NumCPU(), text.Bytes(s.memory))
	}
	if s.files > 0 && s.files < leastFiles {
		e.add("files", Warning, "ulimit -n 4096", "a process may open only %d files", s.files)
	}
}

// checkDisk checks the directory of runs: free space, locks, and the time until data is on disk.
func (e *examination) checkDisk() {
	f, err := os.CreateTemp(e.Dir, ".chimbuko-doctor-*")
	if err != nil {
		e.add("disk", Failure, "choose a directory where you may write", "%v", err)
		return
	}
	defer os.Remove(f.Name()) //nolint:errcheck // a leftover is harmless
	defer f.Close()           //nolint:errcheck // its data is not needed
	began := time.Now()
	_, err = f.Write(make([]byte, 1<<20))
	if err = errors.Join(err, f.Sync()); err != nil {
		e.add("disk", Failure, "free space, or choose another directory", "%s: %v", e.Dir, err)
		return
	}
	took := time.Since(began)
	if err := lockFile(f); err != nil {
		e.add("disk", Failure, "put runs on another file system (Lustre: mount with flock), or use --store postgres://…",
			"%s: files cannot be locked: %v", e.Dir, err)
	}
	free := readSystem(e.Dir).free
	switch {
	case free > 0 && free < leastDisk:
		e.add("disk", Warning, "free space, or choose another directory", "%s has only %s free", e.Dir, text.Bytes(free))
	case took > time.Second:
		e.add("disk", Warning, "put runs on a local or a parallel file system", "%s: storing 1 MB took %.1f s", e.Dir, took.Seconds())
	case free > 0:
		e.add("disk", Good, "", "%s has %s free; 1 MB is safe in %s", e.Dir, text.Bytes(free), text.Duration(float64(took.Microseconds())))
	default:
		e.add("disk", Good, "", "%s: 1 MB is safe in %s", e.Dir, text.Duration(float64(took.Microseconds())))
	}
	if info, err := os.Stat(f.Name()); err == nil {
		if ahead := time.Until(info.ModTime()); ahead.Abs() > time.Second {
			e.add("clock", Warning, "synchronize the clocks of both machines",
				"the clock of the file system of %s differs by %.1f s", e.Dir, ahead.Seconds())
		}
	}
}

// checkClock checks whether the clock is synchronized, because times of hosts are compared.
func (e *examination) checkClock() {
	switch synchronized, known := clockState(); {
	case !known:
		e.add("clock", Note, "", "unknown whether the clock is synchronized")
	case synchronized:
		e.add("clock", Good, "", "the clock is synchronized")
	default:
		e.add("clock", Warning, "on a cluster, run chronyd or ntpd on all hosts",
			"the clock is not synchronized, so times of different hosts may disagree")
	}
}

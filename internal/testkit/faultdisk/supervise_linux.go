//go:build linux && (amd64 || arm64)

package faultdisk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call describes the arguments of a system call.
type call struct {
	op   string
	fd   int // number of the argument with the file descriptor, or -1
	path int // number of the argument with the path, below the directory before it if at is set
	to   int // the same for the new path, or -1
	at   bool
}

// calls are the system calls that change files, besides opens.
var calls = map[uintptr]call{
	unix.SYS_WRITE:     {op: "write", path: -1, to: -1},
	unix.SYS_PWRITE64:  {op: "write", path: -1, to: -1},
	unix.SYS_WRITEV:    {op: "write", path: -1, to: -1},
	unix.SYS_PWRITEV:   {op: "write", path: -1, to: -1},
	unix.SYS_FSYNC:     {op: "sync", path: -1, to: -1},
	unix.SYS_FDATASYNC: {op: "sync", path: -1, to: -1},
	unix.SYS_FTRUNCATE: {op: "truncate", path: -1, to: -1},
	unix.SYS_FALLOCATE: {op: "allocate", path: -1, to: -1},
	unix.SYS_RENAMEAT:  {op: "rename", fd: -1, path: 1, to: 3, at: true},
	unix.SYS_RENAMEAT2: {op: "rename", fd: -1, path: 1, to: 3, at: true},
	unix.SYS_UNLINKAT:  {op: "remove", fd: -1, path: 1, to: -1, at: true},
	unix.SYS_MKDIRAT:   {op: "mkdir", fd: -1, path: 1, to: -1, at: true},
	unix.SYS_LINKAT:    {op: "link", fd: -1, path: 1, to: 3, at: true},
}

// opens are the system calls that open files, with the number of the argument with the flags.
var opens = map[uintptr]int{unix.SYS_OPENAT: 2}

// notification is struct seccomp_notif.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// supervisor answers the notifications of system calls.
type supervisor struct {
	disk     *Disk
	listener int
	kill     func()
	stopped  bool
}

// run answers until all processes have ended.
func (s *supervisor) run() {
	for {
		poll := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notification
		if s.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
			continue // the process was killed
		}
		answer := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		val, errno := s.decide(&n)
		if s.stopped {
			s.kill() // without an answer: the disk stays as it is
			continue
		}
		if val > 0 || errno != 0 {
			answer = response{id: n.id, val: val, err: -int32(errno)}
		}
		s.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
	}
}

func (s *supervisor) ioctl(request uint, p unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), uintptr(request), uintptr(p))
	return errno
}

// decide returns the error or the result of a system call; with neither, it takes place.
func (s *supervisor) decide(n *notification) (val int64, errno unix.Errno) {
	d := s.disk
	c, op, ok := s.operation(n)
	if !ok || s.stopped {
		return 0, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, op)
	number, f := len(d.ops), d.fault
	switch {
	case f.Stop == number:
		s.stopped = true
		d.hit = append(d.hit, op)
		return 0, 0
	case number == f.From && f.Short && op.Name == "write":
		if val = s.writeHalf(n, op); val > 0 {
			d.hit = append(d.hit, op)
			return val, 0
		}
	case number >= f.From && number < f.To:
		d.hit = append(d.hit, op)
		switch op.Name {
		case "sync", "truncate", "remove":
			return 0, unix.EIO
		}
		return 0, unix.ENOSPC
	}
	s.record(n, c, op)
	return 0, 0
}

// operation returns the operation of a notification, false if it changes nothing on the disk.
func (s *supervisor) operation(n *notification) (c call, op Op, ok bool) {
	var path string
	if flags, isOpen := opens[uintptr(n.nr)]; isOpen {
		c = call{op: "create", fd: -1, path: flags - 1, to: -1, at: flags == 2}
		path = s.pathArg(n, c.path, c.at)
		if info, err := os.Lstat(path); err == nil {
			if n.args[flags]&unix.O_TRUNC == 0 || !info.Mode().IsRegular() {
				return c, op, false
			}
			c.op = "truncate"
		}
	} else if c = calls[uintptr(n.nr)]; c.fd < 0 {
		path = s.pathArg(n, c.path, c.at)
		_, err := os.Lstat(path)
		if (err == nil) == (c.op == "mkdir") { // it fails
			return c, op, false
		}
	} else {
		path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0]))) // "" if it is closed
	}
	name, ok := s.below(path)
	return c, Op{c.op, name}, ok
}

// below returns a path relative to the directory, false if it is not below.
func (s *supervisor) below(path string) (string, bool) {
	if path == s.disk.dir {
		return ".", true
	}
	name, ok := strings.CutPrefix(path, s.disk.dir+"/")
	return name, ok && !s.disk.skip(name)
}

// pathArg returns the path in an argument.
func (s *supervisor) pathArg(n *notification, arg int, at bool) string {
	b := s.memory(n, n.args[arg], unix.PathMax)
	name, _, ok := bytes.Cut(b, []byte{0})
	if !ok {
		return ""
	}
	path := string(name)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	base := fmt.Sprintf("/proc/%d/cwd", n.pid)
	if at && int32(n.args[arg-1]) != unix.AT_FDCWD {
		base = fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[arg-1]))
	}
	dir, _ := os.Readlink(base) // "" if the process has ended
	return filepath.Join(dir, path)
}

// memory returns up to length bytes of the memory of the calling process.
func (s *supervisor) memory(n *notification, at uint64, length int) []byte {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read from
	b := make([]byte, length)
	for size := length; size > 0; size = min(size-1, int(4096-at%4096)) { // the last page may be the end
		if got, err := f.ReadAt(b[:size], int64(at)); err == nil || got > 0 {
			return b[:got]
		}
		if size <= int(4096-at%4096) {
			break
		}
	}
	return nil
}

// data returns the bytes of a write.
func (s *supervisor) data(n *notification) []byte {
	switch n.nr {
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		return s.memory(n, n.args[1], int(n.args[2]))
	}
	var all []byte
	vectors := s.memory(n, n.args[1], 16*int(n.args[2]))
	for ; len(vectors) >= 16; vectors = vectors[16:] {
		v := (*[2]uint64)(unsafe.Pointer(&vectors[0]))
		all = append(all, s.memory(n, v[0], int(v[1]))...)
	}
	return all
}

// offset returns the position of a write.
func (s *supervisor) offset(n *notification) int64 {
	if n.nr == unix.SYS_PWRITE64 || n.nr == unix.SYS_PWRITEV {
		return int64(n.args[3])
	}
	fd := int32(n.args[0])
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", n.pid, fd)) // "" if the process has ended
	var pos, flags int64
	_, _ = fmt.Sscanf(string(b), "pos:\t%d\nflags:\t%o", &pos, &flags)
	if flags&unix.O_APPEND != 0 {
		if info, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%d", n.pid, fd)); err == nil {
			return info.Size()
		}
	}
	return pos
}

// writeHalf writes the first half of the data of a write for the process, and returns its length.
func (s *supervisor) writeHalf(n *notification, op Op) int64 {
	data, at := s.data(n), s.offset(n)
	data = data[:len(data)/2]
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid))
	_, rest, _ := strings.Cut(string(b), "\nTgid:\t")
	var pid int
	if _, scanErr := fmt.Sscan(rest, &pid); err != nil || scanErr != nil {
		return 0
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(process) //nolint:errcheck // nothing was written
	fd, err := unix.PidfdGetfd(process, int(int32(n.args[0])), 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd) //nolint:errcheck // the process has it
	var got int
	if n.nr == unix.SYS_WRITE || n.nr == unix.SYS_WRITEV {
		got, _ = unix.Write(fd, data) // 0 after an error
	} else {
		got, _ = unix.Pwrite(fd, data, at)
	}
	if got > 0 {
		s.disk.state.change(op.Path, change{at, data[:got]})
	}
	return int64(max(got, 0))
}

// record records a change that takes place.
func (s *supervisor) record(n *notification, c call, op Op) {
	m := &s.disk.state
	switch op.Name {
	case "write":
		m.change(op.Path, change{s.offset(n), s.data(n)})
	case "truncate":
		var size int64
		if c.fd == 0 {
			size = int64(n.args[1])
		}
		m.change(op.Path, change{at: size})
	case "allocate":
		if end := int64(n.args[2] + n.args[3]); n.args[1] == 0 {
			if info, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0]))); err == nil && info.Size() < end {
				m.change(op.Path, change{at: end})
			}
		}
	case "sync":
		m.sync(op.Path)
	case "create", "mkdir":
		m.name(naming{op: op.Name, to: op.Path})
	case "remove":
		m.name(naming{op: op.Name, from: op.Path})
	case "rename", "link":
		if to, ok := s.below(s.pathArg(n, c.to, c.at)); ok {
			m.name(naming{op: op.Name, from: op.Path, to: to})
		}
	}
}

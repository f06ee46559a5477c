//go:build linux && (amd64 || arm64)

package faultdisk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launchEnv makes a process of this program install the filter and become another program.
const launchEnv = "FAULTDISK_LAUNCH"

// launchFailed is the exit code of a process that could not.
const launchFailed = 111

// leftTimeout bounds the life of processes after the program that started them.
const leftTimeout = 2 * time.Minute

func init() {
	if os.Getenv(launchEnv) != "" {
		err := launch()
		fmt.Fprintln(os.Stderr, "faultdisk:", err)
		os.Exit(launchFailed) //nolint:forbidigo // this process exists to become another program
	}
}

// launch reports the system calls that change files to the socket 3 and executes the arguments.
func launch() error {
	prog := filter()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	listener, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	unix.CloseOnExec(3)
	if err := os.Unsetenv(launchEnv); err != nil {
		return err
	}
	return syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// filter returns the program that selects system calls.
func filter() (prog []unix.SockFilter) {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		bits  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K
	)
	const toAllow, toNotify = 254, 255 // replaced below
	add := func(code uint16, k uint32, jt, jf uint8) {
		prog = append(prog, unix.SockFilter{Code: code, K: k, Jt: jt, Jf: jf})
	}
	add(load, 4, 0, 0)
	add(equal, arch, 0, toAllow)
	add(load, 0, 0, 0)
	for nr := range calls {
		add(equal, uint32(nr), toNotify, 0)
	}
	for nr, flags := range opens {
		add(equal, uint32(nr), 0, 2)
		add(load, uint32(16+8*flags), 0, 0)
		add(bits, unix.O_CREAT|unix.O_TRUNC, toNotify, toAllow)
	}
	add(ret, unix.SECCOMP_RET_ALLOW, 0, 0)
	add(ret, unix.SECCOMP_RET_USER_NOTIF, 0, 0)
	for i := range prog {
		for _, to := range []*uint8{&prog[i].Jt, &prog[i].Jf} {
			if *to >= toAllow {
				*to = uint8(len(prog) - 2 - i - 1 + int(*to-toAllow))
			}
		}
	}
	return prog
}

// Run runs a program with variables besides those of this process, until it and all processes
// that it started have ended. It returns its output and exit code, -1 if it was killed.
func (d *Disk) Run(tb testing.TB, f Fault, env []string, command ...string) (output string, code int) {
	tb.Helper()
	d.mu.Lock()
	d.fault, d.ops, d.hit = f, nil, nil
	err := d.state.load(d.dir, d.skip)
	d.mu.Unlock()
	if err != nil {
		tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer unix.Close(pair[0]) //nolint:errcheck // only read from
	child := os.NewFile(uintptr(pair[1]), "socket")
	tag := fmt.Sprintf("FAULTDISK_TAG=%d-%p", os.Getpid(), d)
	var out bytes.Buffer
	cmd := exec.CommandContext(tb.Context(), self, command...) //nolint:gosec // this program
	cmd.Args = append([]string{self}, command...)
	cmd.Env = append(append(os.Environ(), env...), launchEnv+"=1", tag, "GORACE=atexit_sleep_ms=0")
	cmd.ExtraFiles = []*os.File{child}
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	_ = child.Close() // the process has it
	listener, err := receive(pair[0])
	if err != nil {
		_ = cmd.Wait() // its output explains
		tb.Skipf("SKIP: injecting faults into system calls: %v: %s", err, out.String())
	}
	s := &supervisor{disk: d, listener: listener, kill: func() { killTagged(tag) }}
	done := make(chan struct{})
	go func() { defer close(done); s.run() }()
	_ = cmd.Wait() // the caller looks at the exit code
	select {
	case <-done:
	case <-time.After(leftTimeout):
		tb.Error("processes of the program are left after its end")
		killTagged(tag)
		<-done
	}
	_ = unix.Close(listener)
	return out.String(), cmd.ProcessState.ExitCode()
}

// receive receives a file descriptor.
func receive(socket int) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return 0, errors.Join(errors.New("no listener"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return fds[0], nil
}

// killTagged kills all processes with a variable in their environment.
func killTagged(tag string) {
	for found := true; found; {
		found = false
		files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(b, []byte(tag+"\x00")) {
				continue // it has ended
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && unix.Kill(pid, unix.SIGKILL) == nil {
				found = true
			}
		}
	}
}

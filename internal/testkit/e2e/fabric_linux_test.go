package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// netSwitch is a fabric of network namespaces. Each has a network device whose other end is
// this process, which forwards packets as the wires allow. That needs no queueing discipline
// of the kernel, such as netem, which many systems do not have.
type netSwitch struct {
	name  string
	wires *wires
	ports []*os.File // of the hosts
}

// newSwitch makes a switch. Namespaces of tests that were killed are removed.
func newSwitch(t testing.TB, w *wires, hosts int) (fabric, error) {
	t.Helper()
	removeNetworks(func(name string) bool {
		pid, err := strconv.Atoi(strings.Split(strings.TrimPrefix(name, networkPrefix), "-")[0])
		return err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
	s := &netSwitch{name: fmt.Sprintf("%s%d-%d-", networkPrefix, os.Getpid(), networks.Add(1)), wires: w}
	t.Cleanup(func() {
		for _, p := range s.ports {
			_ = p.Close() // ends its reader
		}
		removeNetworks(func(name string) bool { return strings.HasPrefix(name, s.name) })
	})
	for i := range hosts {
		if err := ip("netns", "add", s.space(i)); err != nil {
			return nil, err
		}
		port, err := within(s.space(i), openTUN)
		if err != nil {
			return nil, err
		}
		s.ports = append(s.ports, port)
		err = errors.Join(ip("-n", s.space(i), "addr", "add", s.Address(i)+"/24", "dev", tunName),
			ip("-n", s.space(i), "link", "set", tunName, "up"), ip("-n", s.space(i), "link", "set", "lo", "up"))
		if err != nil {
			return nil, err
		}
	}
	for i := range s.ports {
		go s.forward(i)
	}
	return s, nil
}

const tunName = "tun0"

// within calls f on a thread in a network namespace.
func within[T any](space string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		var r result
		ns, err := os.Open(filepath.Join("/var/run/netns", space))
		if err == nil {
			err = errors.Join(unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET), ns.Close())
		}
		if r.err = err; err == nil {
			r.value, r.err = f()
		}
		done <- r
	}()
	r := <-done
	return r.value, r.err
}

// openTUN makes a network device in the namespace of this thread and returns its other end.
func openTUN() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(tunName)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("create network device: %w", err)
	}
	return os.NewFile(uintptr(fd), tunName), nil
}

func (s *netSwitch) Share(t testing.TB, from, to int, address string) error {
	t.Helper()
	l, err := within(s.space(from), func() (net.Listener, error) {
		return new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	})
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &proxies{wires: s.wires}
	go p.accept(t.Context(), l, to, func([]byte) int { return from }, func(ctx context.Context) (net.Conn, error) {
		return within(s.space(to), func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) })
	})
	return nil
}

func (s *netSwitch) space(host int) string { return s.name + strconv.Itoa(host) }

func (s *netSwitch) Address(host int) string { return fmt.Sprint("10.78.0.", host+1) }

func (s *netSwitch) Reach(host, port int) string {
	return net.JoinHostPort(s.Address(host), strconv.Itoa(port))
}

func (s *netSwitch) Command(host int) []string {
	return []string{"ip", "netns", "exec", s.space(host)}
}

// forward delivers the packets of a host until its port is closed.
func (s *netSwitch) forward(from int) {
	const destination = 16 // offset in the header of an IPv4 packet
	buffer := make([]byte, 1<<16)
	for {
		n, err := s.ports[from].Read(buffer)
		if err != nil {
			return
		}
		if n < 20 || buffer[0]>>4 != 4 {
			continue
		}
		to := int(buffer[destination+3]) - 1
		if to < 0 || to >= len(s.ports) {
			continue
		}
		dropped, delay := s.wires.next(from, to)
		switch {
		case dropped:
		case delay == 0:
			_, _ = s.ports[to].Write(buffer[:n]) // a lost packet is sent again
		default:
			packet := append([]byte(nil), buffer[:n]...)
			time.AfterFunc(delay, func() { _, _ = s.ports[to].Write(packet) })
		}
	}
}

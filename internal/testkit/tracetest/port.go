package tracetest

import (
	"errors"
	"syscall"
	"testing"
)

// ReservePort returns a port of 127.0.0.1 without a listener. Servers of the test can
// listen there. The system does not assign it to another process until the test ends.
func ReservePort(tb testing.TB) int {
	tb.Helper()
	port, err := reservePort(tb)
	if err != nil {
		tb.Fatal("reserve a port: ", err)
	}
	return port
}

func reservePort(tb testing.TB) (int, error) {
	tb.Helper()
	syscall.ForkLock.RLock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, err
	}
	tb.Cleanup(func() { _ = syscall.Close(socket) }) // it was never used
	if err := errors.Join(syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})); err != nil {
		return 0, err
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	return address.(*syscall.SockaddrInet4).Port, nil
}

package tracetest

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

func TestReservedPortRefusesConnectionsUntilServerListens(t *testing.T) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ReservePort(t)))
	for range 3 { // a server that is restarted
		if c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("without a server: got %v, %v", c, err)
		}
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}

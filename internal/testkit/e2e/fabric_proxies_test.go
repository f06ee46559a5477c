package e2e

import (
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// proxies is a fabric of processes that listen on the loopback interface, each behind
// a proxy.
type proxies struct {
	t     testing.TB
	wires *wires
	marks []string // of the hosts, in what they send first

	mu        sync.Mutex
	listeners map[[2]int]net.Listener // by host and port
}

// The states of proxied connections are checked this often, and a lost packet is sent
// again after this time.
const (
	proxyTick  = 20 * time.Millisecond
	resendTime = 200 * time.Millisecond
)

func (p *proxies) Command(int) []string { return nil }
func (p *proxies) Address(int) string   { return "127.0.0.1" }

func (p *proxies) Reach(host, port int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]int{host, port}
	l := p.listeners[key]
	if l == nil {
		var err error
		if l, err = new(net.ListenConfig).Listen(p.t.Context(), "tcp", "127.0.0.1:0"); err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { _ = l.Close() })
		p.listeners[key] = l
		go p.accept(p.t.Context(), l, host, p.origin, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		})
	}
	return l.Addr().String()
}

// Share does nothing: all hosts have the same loopback interface.
func (p *proxies) Share(testing.TB, int, int, string) error { return nil }

// A recognizer returns the host that sends b first, or -1.
type recognizer func(b []byte) int

// A dialer connects to the process behind a proxy.
type dialer func(ctx context.Context) (net.Conn, error)

func (p *proxies) accept(ctx context.Context, l net.Listener, host int, origin recognizer, dial dialer) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go p.serve(ctx, c, host, origin, dial)
	}
}

// serve connects a client with a process until one of them ends the connection.
func (p *proxies) serve(ctx context.Context, client net.Conn, host int, origin recognizer, dial dialer) {
	defer client.Close() //nolint:errcheck // the other end reports it
	listener, err := dial(ctx)
	if err != nil {
		return
	}
	defer listener.Close() //nolint:errcheck // the same
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), listener.Close() })()
	first := make(chan int, 1)
	var both sync.WaitGroup
	both.Go(func() {
		defer listener.Close() //nolint:errcheck // the same
		p.copy(ctx, listener, client, func(b []byte) (from, to int) { return origin(b), host }, first)
	})
	both.Go(func() {
		defer client.Close() //nolint:errcheck // the same
		from := -1
		p.copy(ctx, client, listener, func([]byte) (_, to int) {
			select {
			case from = <-first:
			default:
			}
			return host, from
		}, nil)
	})
	both.Wait()
}

// origin returns the host whose mark is in b, or -1.
func (p *proxies) origin(b []byte) int {
	for i, mark := range p.marks {
		if bytes.Contains(b, []byte(mark)) {
			return i
		}
	}
	return -1
}

// copy copies bytes as the wire between two hosts allows. Until the hosts are known, which
// identify returns, it copies at once. It sends the first known origin.
func (p *proxies) copy(ctx context.Context, to io.Writer, from io.Reader, identify func([]byte) (from, to int), origin chan<- int) {
	type chunk struct {
		data []byte
		due  time.Time
	}
	chunks := make(chan chunk, 1024)
	hosts := [2]int{-1, -1}
	var mu sync.Mutex // guards hosts
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, 1<<15)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			mu.Lock()
			if hosts[0] < 0 || hosts[1] < 0 {
				hosts[0], hosts[1] = identify(b[:n])
				if origin != nil && hosts[0] >= 0 {
					origin <- hosts[0]
					origin = nil
				}
			}
			dropped, delay := p.wires.next(hosts[0], hosts[1])
			mu.Unlock()
			if dropped {
				delay += resendTime
			}
			select {
			case chunks <- chunk{b[:n], time.Now().Add(delay)}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for c := range chunks {
		pause := time.NewTimer(time.Until(c.due))
		for ready := false; !ready; {
			select {
			case <-pause.C:
			case <-ctx.Done():
				return
			}
			mu.Lock()
			ready = !p.wires.isCut(hosts[0], hosts[1])
			mu.Unlock()
			pause.Reset(proxyTick)
		}
		if _, err := to.Write(c.data); err != nil {
			return
		}
	}
}
